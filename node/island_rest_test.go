package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
)

// decideApart makes the first two of four nodes decide something provisionally, and waits until the scope has it.
func decideApart(t *testing.T, ctx context.Context, c *cluster, cut func(bool)) Island {
	t.Helper()
	c.before(ctx)
	cut(true)
	eventually(t, ctx, "a provisional decision", func() error {
		_, _, err := c.nodes[0].TxnProvisional(ctx, putTxn("/ship/log", "apart"), Once{})
		return err
	})
	found := c.nodes[0].Islands()[0]
	cut(false)
	eventually(t, ctx, "the scope has it", func() error {
		for _, n := range c.nodes[:2] {
			for _, is := range n.Islands() {
				if is.ID == found.ID && !is.Done {
					return errors.New("it has not rejoined")
				}
			}
		}
		return nil
	})
	return found
}

// recordsOf is how many records of an island a store has, those that name it included.
func recordsOf(t *testing.T, r kv.Reader, is Island) (n int) {
	t.Helper()
	prefixes := append(machine.RecordsOf(is.ID), machine.KeyIsland(is.Scope, is.ID), machine.KeyIslandRest(is.Scope, is.ID))
	for _, prefix := range prefixes {
		if err := r.Scan(prefix, kv.PrefixEnd(prefix), false, func(_, _ []byte) bool {
			n++
			return true
		}); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// TestIslandsRest: once its outcome is final, the replica of an island is closed. Another member that asks for it opens
// it once more. In the end its records are deleted.
func TestIslandsRest(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	c, cut := halvesOf(t, 4, 2, shipPolicy(), func(n *Node) { n.cfg.islandRest, n.cfg.islandKept = time.Second, 10*time.Second })
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	found := decideApart(t, ctx, c, cut)
	base, err := c.nodes[0].root.History().Stub(found.Base)
	if err != nil {
		t.Fatal(err)
	}
	rests := func(n *Node) error {
		if len(n.parts()) != len(n.Replicas()) {
			return errors.New("its replica is open")
		}
		for _, is := range n.Islands() {
			if is.ID == found.ID && (!is.Rests || !is.Done || is.Open || is.Head.Height == 0) {
				t.Fatalf("%+v", is)
			}
		}
		return nil
	}
	eventually(t, ctx, "the island rests", func() error { return errors.Join(rests(c.nodes[0]), rests(c.nodes[1])) })
	ask := islandAsk{Prefix: found.Prefix, Block: base.Block, Opens: true}
	for i := range found.Members {
		ask.Members = append(ask.Members, found.Members[i].Key.ID())
	}
	if said, err := c.nodes[1].askMember(ctx, c.nodes[1].root, c.nodes[0].root.Status().Self, ask); err != nil || said.Island != found.ID {
		t.Errorf("a member asks for it: %+v, %v", said, err)
	}
	eventually(t, ctx, "it rests again", func() error { return rests(c.nodes[0]) })
	eventually(t, ctx, "its records are deleted", func() error {
		for _, n := range c.nodes[:2] {
			if left := recordsOf(t, n.cfg.Store, found); left > 0 || len(n.Islands()) > 0 {
				return fmt.Errorf("%d records are left", left)
			}
		}
		return nil
	})
	v, err := c.nodes[0].root.Read(ctx, true)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if all, err := v.Islands(); err != nil || len(all) == 0 {
		t.Errorf("on record: %+v, %v", all, err)
	}
}

// TestRestIsAsKilled: a node that is killed at any step of closing an island goes on from there in its next life.
func TestRestIsAsKilled(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	c, cut := halves(t, 4, 2, shipPolicy())
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	found := decideApart(t, ctx, c, cut)
	n := c.nodes[0]
	rest := func(s store.Store, is machine.IslandRest) {
		t.Helper()
		if err := s.Commit([]kv.Op{kv.Set(machine.KeyIslandRest(found.Scope, found.ID), canon.Encode(is))}, true); err != nil {
			t.Fatal(err)
		}
	}
	for name, killed := range map[string]struct { // order-free: each is checked alone
		prepare func(store.Store)
		open    bool
		kept    bool
	}{
		"before it rests":         {func(store.Store) {}, true, true},
		"as it rests":             {func(s store.Store) { rest(s, machine.IslandRest{Since: n.root.time()}) }, false, true},
		"when it was kept enough": {func(s store.Store) { rest(s, machine.IslandRest{}) }, false, false},
		"as it is deleted": {func(s store.Store) {
			rest(s, machine.IslandRest{Since: n.root.time(), Dropped: true})
			w, prefix := bulk{store: s}, machine.RecordsOf(found.ID)[0]
			if err := w.clear(prefix, append(bytes.Clone(prefix), 'm')); err != nil {
				t.Fatal(err)
			}
		}, false, false},
	} {
		s := store.NewMem()
		snapshot := n.cfg.Store.Snapshot()
		if err := snapshot.Scan([]byte{1}, nil, false, func(k, v []byte) bool {
			if err := s.Commit([]kv.Op{kv.Set(bytes.Clone(k), bytes.Clone(v))}, false); err != nil {
				t.Fatal(err)
			}
			return true
		}); err != nil {
			t.Fatal(err)
		}
		if err := snapshot.Close(); err != nil {
			t.Fatal(err)
		}
		killed.prepare(s)
		cfg := n.cfg
		cfg.Store, cfg.Listen, cfg.Bootstrap = s, nil, nil
		o, err := New(cfg)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if open := len(o.parts()) > len(o.Replicas()); open != killed.open {
			t.Errorf("%s: a replica of the island is open: %v", name, open)
		}
		if err := o.dropIslands(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if kept := recordsOf(t, s, found) > 0; kept != killed.kept {
			t.Errorf("%s: records of the island are kept: %v", name, kept)
		}
		if err := o.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRefusedIslandsAreNotTriedAgain: refusals that nothing changes end the tries, and those of what comes too early do
// not.
func TestRefusedIslandsAreNotTriedAgain(t *testing.T) {
	for _, why := range []error{scope.ErrIslandForked, scope.ErrIslandOld} {
		if got := islandRefused(rejoinFailure(scope.Reason(why))); got != scope.Reason(why) {
			t.Errorf("%v: %q", why, got)
		}
	}
	if got := islandRefused(rejoinFailure("the island is on record already")); got != "" {
		t.Errorf("too early: %q", got)
	}
}
