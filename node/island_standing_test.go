package node

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/scope"
)

// TestWritesWithoutAQuorumNameIslands: a write that has no quorum says that an island may decide on it, or which one,
// if one can; and an island without a quorum of its own says which member it lacks.
func TestWritesWithoutAQuorumNameIslands(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	policy := shipPolicy()
	policy.Partitions[0].After = 3 * time.Second
	c, cut := halves(t, 4, 2, policy)
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	c.before(ctx)
	n := c.nodes[0]
	if all := n.Partitions(n.root.id); len(all) != 0 {
		t.Errorf("with a quorum: %+v", all)
	}
	next := func(txn scope.Txn) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
		defer cancel()
		var u *UndecidedError
		if r, err := n.Txn(ctx, txn, Once{}); !errors.As(err, &u) {
			t.Fatalf("without a quorum: %+v, %v", r, err)
		}
		return u.Next
	}
	cut(true)
	if got := next(putTxn("/ship/log", "x")); got != "after 3s without a quorum, an island "+Provisionally {
		t.Errorf("before an island stands: %q", got)
	}
	eventually(t, ctx, "an island decides", func() error {
		if all := n.Partitions(n.root.id); len(all) != 1 || all[0].Island.IsZero() || all[0].Why != nil {
			return errors.New("not yet")
		}
		return nil
	})
	if got := next(putTxn("/ship/log", "x")); got != "island "+n.Islands()[0].ID.Short()+" "+Provisionally {
		t.Errorf("while an island stands: %q", got)
	}
	whole := scope.Txn{Success: []scope.Op{{Kind: scope.OpDelete, Key: []byte("/ship/"), End: scope.PrefixEnd([]byte("/ship/"))}}}
	for what, txn := range map[string]scope.Txn{"a key outside": putTxn("/land", "x"), "a range": whole} { // order-free
		if got := next(txn); got != "" {
			t.Errorf("%s: %q", what, got)
		}
	}

	c.stop[1]()
	want := "has no quorum of its own: start " + c.nodes[1].cfg.Name
	eventually(t, ctx, "the island has no quorum", func() error {
		if all := n.Partitions(n.root.id); len(all) != 1 || all[0].Why == nil || !strings.Contains(all[0].Why.Error(), want) {
			return errors.New("not yet")
		}
		return nil
	})
	if got := next(putTxn("/ship/log", "x")); got != "" {
		t.Errorf("while the island has no quorum: %q", got)
	}
	short, done := context.WithTimeout(ctx, 500*time.Millisecond)
	defer done()
	if _, _, _, err := n.RangeProvisional(short, []byte("/ship/log"), nil, scope.Range{}); !errors.Is(err, ErrUnread) || !strings.Contains(err.Error(), want) {
		t.Errorf("a read: %v", err)
	}
	short, done = context.WithTimeout(ctx, 500*time.Millisecond)
	defer done()
	if _, _, err := n.TxnProvisional(short, putTxn("/ship/log", "x"), Once{}); !errors.As(err, new(*UndecidedError)) || !strings.Contains(err.Error(), want) {
		t.Errorf("a write: %v", err)
	}
}

// TestNamesAcrossTheBorderStopIslands: all anchors report the names for which no island of a partition can be founded.
func TestNamesAcrossTheBorderStopIslands(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	c, cut := halves(t, 4, 2, shipPolicy())
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if _, err := c.nodes[0].Txn(ctx, putTxn("/ship/log", "before"), Once{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.nodes[0].Naming(ctx, scope.Naming{Kind: scope.Bind, Key: []byte("/ship/log"), To: []byte("/land/log")}, Once{}); err != nil {
		t.Fatal(err)
	}
	c.level(ctx)
	cut(true)
	for _, n := range c.nodes[:2] {
		eventually(t, ctx, "the reason", func() error {
			all := n.Partitions(n.root.id)
			if len(all) != 1 || !all[0].Island.IsZero() || all[0].Why == nil || !strings.Contains(all[0].Why.Error(), `"/ship/log" and "/land/log" name one object`) {
				return errors.New("another one")
			}
			if why := all[0].Brief().Error(); strings.Contains(why, "/ship/log") {
				t.Errorf("in brief: %s", why)
			}
			return nil
		})
		if _, _, err := n.TxnProvisional(ctx, putTxn("/ship/log", "x"), Once{}); !errors.Is(err, ErrNoIsland) || !errors.Is(err, scope.ErrIsland) || strings.Contains(err.Error(), "/land") {
			t.Errorf("a write: %v", err)
		}
	}
}

// TestRequestsComeWhileIslandsClose is for the race detector.
func TestRequestsComeWhileIslandsClose(t *testing.T) {
	c := startClusterUnder(t, 1, shipPolicy(), func(int, *Node) {})
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c.before(ctx)
	n := c.nodes[0]
	p := n.root
	part := &p.epochs.epoch().Policy.Partitions[0]
	d := &scope.Descent{Prefix: part.Prefix, Block: p.LastHead().Block, Entry: -1}
	is := &island{of: p, replica: p, genesis: scope.Genesis{Descent: d}, busy: true}
	n.islands.mu.Lock()
	n.islands.all = append(n.islands.all, is)
	n.islands.mu.Unlock()
	var closes sync.WaitGroup
	closes.Go(func() {
		for range 1000 {
			n.islands.mu.Lock()
			is.closed = time.Now()
			n.islands.mu.Unlock()
		}
	})
	for range 1000 {
		_, _ = n.standing(p, part)
	}
	closes.Wait()
	n.islands.mu.Lock()
	n.islands.all = nil
	n.islands.mu.Unlock()
}
