package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// kv is what a key holds, by a linearizable read at a node; zero if there is nothing.
func (c *cluster) kv(ctx context.Context, node int, key string) scope.KeyValue {
	c.t.Helper()
	res, _, err := c.nodes[node].Range(ctx, []byte(key), nil, scope.Range{}, true)
	if err != nil {
		c.t.Fatal(err)
	}
	if len(res.Kvs) == 0 {
		return scope.KeyValue{}
	}
	return res.Kvs[0]
}

// gives delegates a prefix, and waits until all nodes know that.
func (c *cluster) gives(ctx context.Context, prefix string, anchors ...int) {
	c.t.Helper()
	c.decide(ctx, "", c.child(prefix, transferring(), anchors...))
	for _, n := range c.nodes {
		testwait.Until(c.t, "the delegation is known", func() bool {
			return slices.ContainsFunc(n.root.Delegations(), func(d scope.Delegation) bool { return string(d.Prefix) == prefix })
		})
	}
}

// transferring is a policy that lets names move to other scopes.
func transferring() scope.Policy {
	p := scope.OpenPolicy(quorum.Crash)
	p.Transfers = true
	return p
}

func moving(key, to string) scope.Naming {
	return scope.Naming{Kind: scope.Move, Key: []byte(key), To: []byte(to)}
}

// TestNamesMoveBetweenScopes moves a name to a scope of other anchors, at nodes that hold both scopes, and at nodes
// that hold one of them, or none. Either it has moved when the request is answered, with its identity, or it stays, and
// the answer says why.
func TestNamesMoveBetweenScopes(t *testing.T) {
	for name, follow := range map[string][][]byte{"held": nil, "apart": {}} {
		t.Run(name, func(t *testing.T) {
			if follow != nil {
				testshort.Skip(t)
			}
			t.Parallel()
			c := startClusterUnder(t, 6, transferring(), func(_ int, n *Node) { n.cfg.Follow = follow })
			ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
			defer cancel()
			c.gives(ctx, "/a/", 0, 1, 2)
			c.gives(ctx, "/b/", 2, 3, 4)
			for i := range c.nodes { // the last holds neither, where none is followed
				key, to := fmt.Sprint("/a/", i), fmt.Sprint("/b/to/", i)
				if _, err := c.nodes[i].Txn(ctx, putTxn(key, "value"), Once{}); err != nil {
					t.Fatal(err)
				}
				was := c.kv(ctx, i, key)
				r, err := c.nodes[i].Naming(ctx, moving(key, to), Once{})
				if err != nil || r.Code != scope.Applied {
					t.Fatalf("at node %d: %s %s, %v", i, r.Code, r.Reason, err)
				}
				if v := c.kv(ctx, (i+1)%len(c.nodes), to); v.UID != was.UID || string(v.Value) != "value" {
					t.Errorf("node %d moved %+v to %+v", i, was, v)
				}
				if v := c.kv(ctx, (i+2)%len(c.nodes), key); v.Version != 0 {
					t.Errorf("after node %d moved it, it is still there: %+v", i, v)
				}
			}
			if _, err := c.nodes[1].Txn(ctx, putTxn("/a/stays", "value"), Once{}); err != nil {
				t.Fatal(err)
			}
			r, err := c.nodes[1].Naming(ctx, moving("/a/stays", "/b/to/0"), Once{})
			if err != nil || r.Code != scope.Failed || !strings.Contains(r.Reason, "names an object already") {
				t.Errorf("onto another object: %s %s, %v", r.Code, r.Reason, err)
			}
			if _, err := c.nodes[1].Txn(ctx, putTxn("/a/stays", "goes on"), Once{}); err != nil {
				t.Errorf("what stays cannot be written: %v", err)
			}
			// And to the root scope, and back.
			for _, m := range []scope.Naming{moving("/b/to/1", "/root"), moving("/root", "/a/back")} {
				if r, err := c.nodes[3].Naming(ctx, m, Once{}); err != nil || r.Code != scope.Applied {
					t.Fatalf("%s: %s %s, %v", m.About(), r.Code, r.Reason, err)
				}
			}
			if v := c.kv(ctx, 0, "/a/back"); string(v.Value) != "value" {
				t.Errorf("back it is %+v", v)
			}
		})
	}
}

// TestNamesWaitForAScopeThatCannotDecide: while the other scope has no quorum, what was sent can be read, and does not
// change.
func TestNamesWaitForAScopeThatCannotDecide(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	c := startClusterUnder(t, 5, transferring(), func(_ int, n *Node) { n.cfg.Follow = [][]byte{} })
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	c.gives(ctx, "/a/", 0, 1, 2)
	c.gives(ctx, "/b/", 3, 4)
	if _, err := c.nodes[1].Txn(ctx, putTxn("/a/x", "value"), Once{}); err != nil {
		t.Fatal(err)
	}
	was := c.kv(ctx, 1, "/a/x")
	c.stop[4]()
	short, end := context.WithTimeout(ctx, 3*time.Second)
	defer end()
	if _, err := c.nodes[0].Naming(short, moving("/a/x", "/b/x"), Once{}); !errors.Is(err, ErrOnItsWay) {
		t.Fatalf("with half of the anchors it has moved: %v", err)
	}
	if v := c.kv(ctx, 1, "/a/x"); fmt.Sprint(v) != fmt.Sprint(was) {
		t.Errorf("on its way it is %+v", v)
	}
	if r, err := c.nodes[1].Txn(ctx, putTxn("/a/x", "other"), Once{}); err != nil || r.Code != scope.Failed || scope.Failure(r.Reason) != scope.ErrSent {
		t.Errorf("on its way it is written: %s %s, %v", r.Code, r.Reason, err)
	}
}
