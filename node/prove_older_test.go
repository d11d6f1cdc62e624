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
// refuses a block that is to come, and keys that were another scope's by then.
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
	below := c.nodes[0].Replicas()[1]
	holds := func(i int) error {
		p, _, err := below.ProveRange(ctx, []byte("/b/1"), nil, heights[i])
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
	newest := func() aweigh.Height { return c.nodes[0].root.LastHead().Height }
	at := newest() // which changed a key
	p, _, err := c.nodes[0].ProveRange(ctx, []byte("/a"), nil, at)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := p.Verify(c.nodes[0].root.id); err != nil || r.Parts[0].Height != at {
		t.Errorf("of the newest block, %d: %+v, %v", at, r.Parts, err)
	}
	at = newest() // which was written for the proof, and changed none
	if _, _, err := c.nodes[0].ProveRange(ctx, []byte("/a"), nil, at); !errors.Is(err, ErrOlder) || newest() != at {
		t.Errorf("of the newest block, %d, which changed no key: %v, and the newest is %d", at, err, newest())
	}
	first, _, err := c.nodes[0].ProveRange(ctx, []byte("/b/1"), nil, 2) // before another scope got the key
	if err != nil {
		t.Fatal(err)
	}
	if r, err := first.Verify(c.nodes[0].root.id); err != nil || len(r.Parts) != 1 || len(r.Parts[0].Prefix) > 0 || len(r.Kvs) != 1 || string(r.Kvs[0].Value) != "first" {
		t.Errorf("as of block 2 of the root scope: %+v, %v", r, err)
	}
	for what, ask := range map[string]func() error{ // order-free
		"a block that is to come": func() error {
			_, _, err := below.ProveRange(ctx, []byte("/b/1"), nil, heights[3]+1000)
			return err
		},
		"the keys of two scopes": func() error {
			_, _, err := c.nodes[0].ProveRange(ctx, []byte("/"), []byte("0"), c.nodes[0].root.LastHead().Height-1)
			return err
		},
		"keys of another scope by then": func() error {
			_, _, err := o.ProveRange(ctx, []byte("/b/1"), nil, o.root.LastHead().Height-1)
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
