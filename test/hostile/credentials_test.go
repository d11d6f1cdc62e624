package hostile

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/devnet"
	"github.com/aweigh/aweigh/internal/refusal"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/scope"
)

// held is what a node holds under a key, as of a linearizable read.
func (x *net4) held(t testing.TB, i int, key string) (kv scope.KeyValue) {
	t.Helper()
	v, err := x.node(i).Root().Read(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	found, err := v.Range([]byte(key), nil, scope.Range{})
	if err = errors.Join(err, v.Close()); err != nil {
		t.Fatal(err)
	}
	if len(found.Kvs) > 0 {
		kv = found.Kvs[0]
	}
	return kv
}

// TestReplayedWritesApplyOnce: a write that was signed and recorded on its way is sent again, at all nodes and as
// frames of a peer, also after another write and after its time: it changes nothing again, and the answer says why.
func TestReplayedWritesApplyOnce(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	x := newNetwork(t, 4)
	alice := x.unlisted(t)
	recorded := alice.mutation(put("/alice", "first"))
	recorded.ValidUntil = aweigh.InstantOf(time.Now().Add(8 * time.Second))
	first, err := scope.Sign(alice.key, x.Genesis.Policy.Limits, recorded)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := x.node(0).Submit(t.Context(), first.Raw()); err != nil || r[0].Code != scope.Applied {
		t.Fatal(r, err)
	}
	second, err := scope.Sign(alice.key, x.Genesis.Policy.Limits, alice.mutation(put("/alice", "second")))
	if err != nil {
		t.Fatal(err)
	}
	if r, err := x.node(0).Submit(t.Context(), second.Raw()); err != nil || r[0].Code != scope.Applied {
		t.Fatal(r, err)
	}
	frame := alice.sign(t, recorded)
	replay := func(when string, want func(scope.Code, error) bool) {
		t.Helper()
		for i := range x.daemons {
			r, err := x.node(i).Submit(t.Context(), first.Raw())
			code := scope.Code(0)
			if err == nil {
				code = r[0].Code
			}
			if !want(code, err) {
				t.Errorf("%s, node %d answers a replayed write: %v, %v", when, i, r, err)
			}
			p, to := x.attacker(t, i)
			s, err := p.Open(t.Context(), to, "frames")
			if err != nil {
				t.Fatal(err)
			}
			for range 20 {
				if err := Write(s, frame, 5*time.Second); err != nil {
					break // cut off is as well
				}
			}
		}
		x.commits(t)
		for i := range x.daemons {
			if kv := x.held(t, i, "/alice"); string(kv.Value) != "second" || kv.Version != 2 {
				t.Errorf("%s, node %d holds %q in version %d", when, i, kv.Value, kv.Version)
			}
		}
	}
	replay("at once", func(c scope.Code, err error) bool { return err == nil && (c == scope.Applied || c == scope.Duplicate) }) // the record of the first
	time.Sleep(time.Until(recorded.ValidUntil.Time()) + time.Second)                                                            // its time by the blocks' clock; nothing shows that it is over
	replay("after its time", func(c scope.Code, err error) bool {
		return err == nil && (c == scope.Applied || c == scope.Duplicate || c == scope.Expired) || err != nil && strings.Contains(err.Error(), "it has expired")
	})
}

// TestStolenNodeKeysWriteWhatTheirEntriesAllow: the thief of a node's key writes what the entry of the node permits,
// and nothing else, whatever caller it states, such as the root user of etcd. Each refusal names what the policy does
// not permit, and once the entry is gone, anchors refuse the key's bundles and count them.
func TestStolenNodeKeysWriteWhatTheirEntriesAllow(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	x := newNetworkOf(t, 4, devnet.Make)
	thief := x.unlisted(t)
	x.govern(t, func(p *scope.Policy) {
		p.Authors = append([]scope.Author{}, p.Authors...)
		p.Authors = append(p.Authors, scope.Author{
			Name: "thief", Who: scope.OneKey, Key: thief.key.Public(), Prefixes: [][]byte{[]byte("/apps/")}, Verbs: []string{scope.VerbPut},
		})
	})
	text := func(class scope.Class, content any) scope.Mutation {
		m := thief.mutation(scope.Txn{})
		m.Class, m.Content = class, canon.Encode(content)
		return m
	}
	write := func(t scope.Txn) scope.Mutation { return thief.mutation(t) }
	remove := scope.Txn{Success: []scope.Op{{Kind: scope.OpDelete, Key: []byte("/apps/a")}}}
	mixed := put("/apps/b", "v")
	mixed.Success = append(mixed.Success, put("/other", "v").Success...)
	b, err := scope.Sign(thief.key, x.policy.Limits, write(put("/apps/a", "v")))
	if err != nil {
		t.Fatal(err)
	}
	if r, err := x.node(0).Submit(t.Context(), b.Raw()); err != nil || r[0].Code != scope.Applied {
		t.Fatal(r, err)
	}
	object := x.held(t, 1, "/apps/a").UID
	p := x.policy
	p.Authors = []scope.Author{{Name: "any", Who: scope.Anyone}}
	for _, caller := range []string{"", "etcd:root", "local:0", "cert:root"} {
		for name, c := range map[string]struct {
			m      scope.Mutation
			reason string // "": it applies
		}{
			"what the entry permits":          {write(put("/apps/a", "v")), ""},
			"a key outside of it":             {write(put("/other", "v")), `does not permit this author to put "/other"`},
			"another verb":                    {write(remove), `does not permit this author to delete "/apps/a"`},
			"a key outside, beside one of it": {write(mixed), `does not permit this author to put "/other"`},
			"a new name":                      {text(scope.Name, scope.Naming{Kind: scope.Move, Object: object, Key: []byte("/apps/a"), To: []byte("/apps/c")}), "does not permit this author to alias"},
			"a lease":                         {text(scope.Lease, scope.LeaseRequest{Kind: scope.LeaseGrant, IDs: []int64{7}, TTL: 60}), "does not permit this author to lease"},
			"a compaction":                    {text(scope.Compact, scope.Compaction{Revision: 1}), "does not permit this author to compact"},
			"users":                           {text(scope.Permit, scope.Access{Revision: 1}), "only nodes of anchors change users and roles"},
			"a policy":                        {text(scope.Govern, scope.Decision{Kind: scope.SetPolicy, Policy: &p}), "anchor"},
		} {
			m := c.m
			m.Caller = caller
			b, err := scope.Sign(thief.key, x.policy.Limits, m)
			if err != nil {
				t.Fatal(name, err)
			}
			r, err := x.node(1).Submit(t.Context(), b.Raw())
			if errors.Is(err, scope.ErrDenied) && c.reason != "" { // it reached no block
				if !strings.Contains(err.Error(), c.reason) {
					t.Errorf("%s, as %q: %v", name, caller, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s, as %q: %v", name, caller, err)
				continue
			}
			if c.reason == "" && r[0].Code != scope.Applied || c.reason != "" && (r[0].Code != scope.Failed || !strings.Contains(r[0].Reason, c.reason)) {
				t.Errorf("%s, as %q: %s: %s", name, caller, r[0].Code, r[0].Reason)
			}
		}
	}
	for i := range x.daemons {
		if kv := x.held(t, i, "/other"); kv.Version > 0 {
			t.Errorf("node %d holds what the thief may not write", i)
		}
	}

	before := uint64(0)
	refused := func() (sum uint64) {
		for i := range x.daemons {
			sum += x.node(i).Root().Counts().Refused[refusal.Denied]
		}
		return sum
	}
	x.govern(t, func(p *scope.Policy) { p.Authors = scope.DefaultAuthors() })
	before = refused()
	for i := range x.daemons {
		peer, to := x.attacker(t, i)
		s, err := peer.Open(t.Context(), to, "frames")
		if err != nil {
			t.Fatal(err)
		}
		if err := Write(s, thief.sign(t, write(put("/apps/a", "late"))), 5*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	testwait.Until(t, "each anchor refuses the stolen key", func() bool { return refused() >= before+4 })
	x.commits(t)
	if kv := x.held(t, 0, "/apps/a"); string(kv.Value) != "v" {
		t.Errorf("after its entry is gone, the stolen key wrote %q", kv.Value)
	}
}
