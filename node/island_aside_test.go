package node

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/machine"
)

// TestAnyMemberOpensMotions: where the node that brought an island back opens no motion about what was set aside,
// another member does, and no second one opens.
func TestAnyMemberOpensMotions(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	c, cut := halves(t, 4, 2, shipPolicy())
	ctx, cancel := context.WithTimeout(context.Background(), 120*time.Second)
	defer cancel()
	if _, err := c.nodes[0].Txn(ctx, putTxn("/ship/log", "before"), Once{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, ctx, "all have it", func() error {
		for i := range c.nodes {
			if c.nodes[i].root.LastHead().Block != c.nodes[0].root.LastHead().Block {
				return errors.New("not yet")
			}
		}
		return nil
	})
	cut(true)
	var marks [][]byte // of each island, at its first member, as if that had stopped before it opened a motion
	var firsts []*Node
	for _, side := range [][]*Node{c.nodes[:2], c.nodes[2:]} {
		eventually(t, ctx, "a provisional decision", func() error {
			r, is, err := side[0].TxnProvisional(ctx, putTxn("/ship/log", "apart "+side[0].cfg.Name), Once{})
			if err != nil {
				return err
			}
			for _, n := range side {
				if n.root.Status().Self == is.Members[0].Key.ID() {
					marks, firsts = append(marks, machine.KeyAside(is.Scope, is.ID, r.Mutation)), append(firsts, n)
				}
			}
			return nil
		})
	}
	for i, n := range firsts {
		if err := n.cfg.Store.Commit([]kv.Op{kv.Set(marks[i], []byte{1})}, true); err != nil {
			t.Fatal(err)
		}
	}
	cut(false)
	opened := func(want int64) func() error {
		return func() error {
			v, err := c.nodes[0].root.Read(ctx, false)
			if err != nil {
				return err
			}
			defer v.Close()
			for _, n := range c.nodes {
				for _, is := range n.Islands() {
					if !is.Done {
						return errors.New("an island has not rejoined")
					}
				}
			}
			if n := int64(v.Head().Docket.Open); n != want {
				return fmt.Errorf("%d motions are open", n)
			}
			return nil
		}
	}
	eventually(t, ctx, "another member opens a motion", opened(1))
	for i, n := range firsts { // in their next life
		if err := n.cfg.Store.Commit([]kv.Op{kv.Del(marks[i])}, true); err != nil {
			t.Fatal(err)
		}
		n.islands.mu.Lock()
		for _, is := range n.islands.all {
			is.done = false
		}
		n.islands.mu.Unlock()
	}
	eventually(t, ctx, "no other motion opens", opened(1))
}
