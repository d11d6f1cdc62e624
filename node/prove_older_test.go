package node

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// TestOlderAnswersAreProven: a node proves what a key held after each earlier block, until a compaction drops that. It
// refuses a block that is to come, the keys of two scopes, and those of a scope that it does not hold.
func TestOlderAnswersAreProven(t *testing.T) {
	testshort.Skip(t)
	c, _, o := newRegions(t, quorum.BFT)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	var heights []aweigh.Height
	var revisions []int64
	for i := range 4 {
		for _, key := range []string{"/b/1", "/a"} {
			r, err := c.nodes[0].Txn(ctx, putTxn(key, fmt.Sprint(i)), Once{})
			if err != nil || r.Code != scope.Applied {
				t.Fatal(r, err)
			}
			if key == "/b/1" {
				heights, revisions = append(heights, r.Height), append(revisions, r.Revision)
			}
		}
	}
	holds := func(i int) error {
		p, _, err := c.nodes[0].ProveRange(ctx, []byte("/b/1"), nil, heights[i])
		if err != nil {
			return err
		}
		r, err := p.Verify(c.nodes[0].root.id)
		if err != nil {
			return err
		}
		if len(r.Kvs) != 1 || string(r.Kvs[0].Value) != fmt.Sprint(i) || r.Parts[0].Height != heights[i] {
			return fmt.Errorf("after block %d it held %v as of block %d", heights[i], r.Kvs, r.Parts[0].Height)
		}
		return nil
	}
	for i := range heights {
		if err := holds(i); err != nil {
			t.Error(err)
		}
	}
	newest := c.nodes[0].root.LastHead().Height
	p, _, err := c.nodes[0].ProveRange(ctx, []byte("/a"), nil, newest)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := p.Verify(c.nodes[0].root.id); err != nil || r.Parts[0].Height != newest {
		t.Errorf("of the newest block, %d: %+v, %v", newest, r.Parts, err)
	}
	for what, ask := range map[string]func() error{ // order-free
		"a block that is to come": func() error {
			_, _, err := c.nodes[0].ProveRange(ctx, []byte("/b/1"), nil, heights[3]+1000)
			return err
		},
		"the keys of two scopes": func() error {
			_, _, err := c.nodes[0].ProveRange(ctx, []byte("/"), []byte("0"), c.nodes[0].root.LastHead().Height)
			return err
		},
		"a scope that the node does not hold": func() error {
			_, _, err := o.ProveRange(ctx, []byte("/b/1"), nil, heights[0])
			return err
		},
	} {
		if err := ask(); !errors.Is(err, ErrOlder) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := c.nodes[0].Compact(ctx, revisions[2], Once{}); err != nil {
		t.Fatal(err)
	}
	if err := holds(0); !errors.Is(err, scope.ErrCompacted) {
		t.Errorf("what was compacted: %v", err)
	}
	if err := holds(3); err != nil {
		t.Error(err)
	}
}
