package node

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// TestAnyMemberOpensMotions: where the node that brought an island back opens no motion about what was set aside,
// another member does, and no second one opens.
func TestAnyMemberOpensMotions(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	c, cut := halves(t, 4, 2, shipPolicy())
	ctx, cancel := context.WithTimeout(context.Background(), 120*time.Second)
	defer cancel()
	c.before(ctx)
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

// TestMotionsAboutIslandsWaitForRoom: where the policy's quota of motions is used up, motions about what was set aside
// open once others have closed.
func TestMotionsAboutIslandsWaitForRoom(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	policy := shipPolicy()
	policy.Authors[0].Quota.Motions, policy.Partitions[0].Window = 1, 15*time.Second
	c, cut := halves(t, 4, 2, policy)
	ctx, cancel := context.WithTimeout(context.Background(), 120*time.Second)
	defer cancel()
	c.before(ctx)
	cut(true)
	for _, n := range []*Node{c.nodes[0], c.nodes[2]} {
		for _, key := range []string{"/ship/log", "/ship/new"} {
			eventually(t, ctx, "a provisional decision", func() error {
				_, _, err := n.TxnProvisional(ctx, putTxn(key, "apart "+n.cfg.Name), Once{})
				return err
			})
		}
	}
	cut(false)
	eventually(t, ctx, "a motion about each change", func() error {
		v, err := c.nodes[0].root.Read(ctx, false)
		if err != nil {
			return err
		}
		defer v.Close()
		all, err := v.Islands()
		motions := 0
		for i := range all {
			about, bad := AsideMotions(v.State, &all[i])
			motions, err = motions+len(about), errors.Join(err, bad)
		}
		if err == nil && motions < 2 {
			err = fmt.Errorf("%d motions", motions)
		}
		return err
	})
}

// TestOthersOpenNoMotionsForIslands: a motion of an author that is no anchor is not taken for that of a member,
// whatever its nonce and its caller.
func TestOthersOpenNoMotionsForIslands(t *testing.T) {
	c := startClusterUnder(t, 4, shipPolicy(), func(int, *Node) {})
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	p := c.nodes[0].root
	content := canon.Encode(putTxn("/ship/log", "apart"))
	m := p.mutation(scope.Write, content, p.filled(Once{Nonce: asideNonce(aweigh.ScopeID{1}, aweigh.Hash{2}), Caller: asideCaller, Patient: true}))
	mallory, err := votes.GenerateKey(votes.Ed25519, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	b, err := scope.Sign(mallory, p.Limits(), m)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := p.Submit(ctx, b.Raw()); err != nil || r[0].Code != scope.Pending {
		t.Fatalf("%+v, %v", r, err)
	}
	v, err := p.Read(ctx, true)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if open, err := asideMotions(v); err != nil || len(open) > 0 {
		t.Errorf("%v, %v", open, err)
	}
}

// TestCallersOfAsideAreText: the caller of a motion about what was set aside is one that a mutation can have, wherever
// it is cut.
func TestCallersOfAsideAreText(t *testing.T) {
	for n := range 4 {
		caller := asideFor(aweigh.ScopeID{1}, strings.Repeat("x", n)+strings.Repeat("\u20ac", 80))
		m := scope.Mutation{Class: scope.Write, Content: canon.Encode(putTxn("/ship/log", "1")), Nonce: make([]byte, 16), Caller: caller, Patient: true}
		if _, err := scope.OpenMutation(m.Encode()); err != nil {
			t.Errorf("%q: %v", caller, err)
		}
	}
}
