package node

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// writers is a closed scope /b/ of one node. outside may write below /b/app/, and read nothing; part may read there as
// well, and write and name what is elsewhere.
type writers struct {
	*cluster
	inside, outside, part *Node
	in                    *Replica // of inside, in the scope
}

func newWriters(ctx context.Context, t *testing.T) *writers {
	t.Helper()
	testshort.Skip(t)
	_, c := newHolders(t, func(_ int, cfg *Config) { cfg.idleAfter = 0 })
	w := &writers{cluster: c, inside: c.nodes[1], outside: c.nodes[0], part: c.nodes[2]}
	policy := scope.DefaultPolicy(quorum.Crash)
	verbs := []string{scope.VerbAlias, scope.VerbDelete, scope.VerbPut}
	policy.Authors = append(policy.Authors[:1], scope.Author{ // the anchors
		Name: "names", Who: scope.OneKey, Key: w.part.cfg.Identity.Public(),
		Verbs: []string{scope.VerbAlias, scope.VerbPut}, Prefixes: [][]byte{[]byte("/b/")},
	}, scope.Author{
		Name: "outside", Who: scope.OneKey, Key: w.outside.cfg.Identity.Public(),
		Verbs: verbs, Prefixes: [][]byte{[]byte("/b/app/")},
	}, scope.Author{
		Name: "part", Who: scope.OneKey, Key: w.part.cfg.Identity.Public(),
		Verbs: append(verbs, scope.VerbRead), Prefixes: [][]byte{[]byte("/b/app/")},
	})
	c.decide(ctx, "", c.child("/b/", policy, 1))
	testwait.For(t, func() (err error) {
		w.in, err = w.inside.In("/b/")
		return err
	})
	for _, key := range []string{"/b/secret", "/b/app/x"} {
		w.applied(w.inside.Txn(ctx, putTxn(key, "v"), Once{}))
	}
	return w
}

func (w *writers) applied(r machine.Receipt, err error) {
	w.t.Helper()
	if err != nil || r.Code != scope.Applied {
		w.t.Errorf("not applied: %+v, %v", r, err)
	}
}

func (w *writers) refused(what string, err error) {
	w.t.Helper()
	if !errors.Is(err, scope.ErrNoReader) {
		w.t.Errorf("%s: %v", what, err)
	}
}

// asking are transactions that write below /b/app/ and show something of a key.
func asking(key string) map[string]scope.Txn {
	put := scope.Op{Kind: scope.OpPut, Key: []byte("/b/app/leak"), Value: []byte("x")}
	read := scope.Op{Kind: scope.OpRange, Key: []byte(key)}
	is := []scope.Compare{{Target: scope.OnValue, Relation: scope.Equal, Key: []byte(key), Value: []byte("v")}}
	return map[string]scope.Txn{
		"a compare":                   {Compare: is, Success: []scope.Op{put}},
		"a range":                     {Success: []scope.Op{put, read}},
		"a range in the other branch": {Compare: []scope.Compare{{Target: scope.OnVersion, Relation: scope.Greater, Key: put.Key, Number: 9}}, Success: []scope.Op{put}, Failure: []scope.Op{put, read}},
		"an inner compare":            {Success: []scope.Op{{Kind: scope.OpTxn, Txn: &scope.Txn{Compare: is, Success: []scope.Op{put}}}}},
	}
}

// TestWritesShowNothingToRead: an author that may not read a key learns nothing of it by the answers to its writes.
func TestWritesShowNothingToRead(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	w := newWriters(ctx, t)
	w.applied(w.outside.Txn(ctx, putTxn("/b/app/y", "1"), Once{}))
	w.applied(w.part.Txn(ctx, putTxn("/b/app/z", "1"), Once{}))
	for name, x := range asking("/b/secret") {
		for who, n := range map[string]*Node{"outside": w.outside, "part": w.part} {
			r, err := n.Txn(ctx, x, Once{})
			if w.refused(who+", by "+name, err); len(r.Responses) > 0 || r.Succeeded {
				t.Errorf("%s learns by %s: %+v", who, name, r)
			}
		}
	}
	before := scope.Txn{Success: []scope.Op{{Kind: scope.OpPut, Key: []byte("/b/app/x"), Value: []byte("w"), Prev: true}}}
	_, err := w.outside.Txn(ctx, before, Once{})
	w.refused("outside, by the content before a put", err)
	before.Success[0] = scope.Op{Kind: scope.OpDelete, Key: []byte("/b/app/x"), Prev: true}
	_, err = w.outside.Txn(ctx, before, Once{})
	w.refused("outside, by the content before a deletion", err)
	for name, x := range asking("/b/app/x") {
		r, err := w.part.Txn(ctx, x, Once{})
		if w.applied(r, err); name == "a range" && (len(r.Responses) != 2 || len(r.Responses[1].Range.Kvs) != 1) {
			t.Errorf("a node that may read the key gets %+v", r)
		}
	}
	found, _, err := w.inside.Range(ctx, []byte("/b/secret"), nil, scope.Range{}, true)
	if err != nil || len(found.Kvs) != 1 {
		t.Fatal(found, err)
	}
	secret := found.Kvs[0]
	fork := scope.Naming{Kind: scope.Fork, Object: secret.UID, To: []byte("/b/app/copy"), From: secret.Key, Revision: secret.ModRevision, Sub: secret.Sub}
	_, err = w.part.Naming(ctx, fork, Once{})
	w.refused("part, by a fork", err)
	bind := scope.Naming{Kind: scope.Bind, Object: secret.UID, Key: secret.Key, To: []byte("/b/app/copy")}
	_, err = w.part.Naming(ctx, bind, Once{})
	w.refused("part, by a second name", err)
	// An earlier version of an object that has a name which it may read.
	w.applied(w.inside.Naming(ctx, scope.Naming{Kind: scope.Bind, Object: secret.UID, Key: secret.Key, To: []byte("/b/app/second")}, Once{}))
	w.applied(w.inside.Txn(ctx, putTxn("/b/secret", "public"), Once{}))
	back := scope.Naming{Kind: scope.Rollback, Object: secret.UID, Key: secret.Key, From: secret.Key, Revision: secret.ModRevision, Sub: secret.Sub}
	_, err = w.part.Naming(ctx, back, Once{})
	w.refused("part, by a rollback", err)
	if found, _, err = w.inside.Range(ctx, []byte("/b/app/second"), nil, scope.Range{}, true); err != nil || len(found.Kvs) != 1 || string(found.Kvs[0].Value) != "public" {
		t.Errorf("a name that it may read shows %+v, %v", found, err)
	}
}

// TestFramesShowNothingToRead: nor does what such a write would change, however it is handed in.
func TestFramesShowNothingToRead(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	w := newWriters(ctx, t)
	send := func(from *Node, x scope.Txn, gossip bool) {
		t.Helper()
		m := scope.Mutation{
			Scope: w.in.id, Class: scope.Write, Content: canon.Encode(x), Nonce: []byte(rand.Text()), ValidUntil: w.in.time().Add(20 * time.Second),
		}
		b, err := scope.SignReserving(2000, from.cfg.Identity, w.in.Limits(), m)
		if err != nil {
			t.Fatal(err)
		}
		frame := w.in.address.on(machine.RawFrame(machine.TagBundle, b.Raw()))
		if gossip {
			frame = append([]byte{tagGossip}, frame...)
		}
		from.host.Send(w.inside.host.ID(), frame)
	}
	holds := func(key string) bool {
		found, _, err := w.inside.Range(ctx, []byte(key), nil, scope.Range{}, true)
		return err == nil && len(found.Kvs) == 1
	}
	for _, gossip := range []bool{false, true} {
		unread := w.in.Counts().Unread
		for _, x := range asking("/b/secret") {
			send(w.outside, x, gossip)
			send(w.part, x, gossip)
		}
		testwait.Until(t, "they came", func() bool { return w.in.Counts().Unread >= unread+8 })
		last := "/b/app/plain"
		if gossip {
			last = "/b/app/told"
		}
		send(w.outside, putTxn(last, "1"), gossip)
		testwait.Until(t, "a write that shows nothing is taken", func() bool { return holds(last) })
		if holds("/b/app/leak") {
			t.Error("a write whose effect shows a key that its author may not read was taken")
		}
	}
}

// TestRulesShowNothingToRead: a peer that may not read a key has no rule of its own tried on it.
func TestRulesShowNothingToRead(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	w := newWriters(ctx, t)
	rule := &action.Rule{Verb: "nod", Class: action.Claim, When: "object.version == 1"}
	try := func(n *Node, key string, rule *action.Rule) error {
		verb := "nod"
		if rule == nil {
			verb = "write"
		}
		_, err := n.Judge(ctx, ActionQuery{Verb: verb, Key: []byte(key), Try: rule}, true)
		return err
	}
	w.refused("outside tries a rule on /b/secret", try(w.outside, "/b/secret", rule))
	w.refused("outside tries a rule on /b/app/x", try(w.outside, "/b/app/x", rule))
	w.refused("outside asks for the verdict on /b/secret", try(w.outside, "/b/secret", nil))
	w.refused("part tries a rule on /b/secret", try(w.part, "/b/secret", rule))
	if err := errors.Join(try(w.outside, "/b/app/x", nil), try(w.part, "/b/app/x", rule)); err != nil {
		t.Error("what they may ask for:", err)
	}
	bind := scope.Naming{Kind: scope.Bind, Key: []byte("/b/secret"), To: []byte("/b/app/pub")}
	w.applied(w.inside.Naming(ctx, bind, Once{}))
	w.refused("part tries a rule on an object with a hidden alias", try(w.part, "/b/app/pub", rule))
	read := &action.Rule{Verb: "nod", Class: action.Read, When: "object.version == 1"}
	if err := errors.Join(try(w.part, "/b/app/pub", read), try(w.part, "/b/app/pub", nil), try(w.inside, "/b/app/pub", rule)); err != nil {
		t.Error("what they may ask for of it:", err)
	}
}

// TestProofsShowNothingElse: a proof of a key holds its whole mutation. A node that may read some keys gets no proof of
// one with others.
func TestProofsShowNothingElse(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	w := newWriters(ctx, t)
	both := putTxn("/b/app/both", "v")
	both.Success = append(both.Success, scope.Op{Kind: scope.OpPut, Key: []byte("/b/other"), Value: []byte("secret")})
	w.applied(w.inside.Txn(ctx, both, Once{}))
	if p, _, err := w.part.Prove(ctx, []byte("/b/app/x")); err != nil || p.Kv == nil {
		t.Errorf("no proof of a key that it may read: %v", err)
	}
	_, _, err := w.part.Prove(ctx, []byte("/b/app/both"))
	w.refused("a proof with another key", err)
	// A name that moved leads to another key.
	move := scope.Naming{Kind: scope.Move, Key: []byte("/b/app/x"), To: []byte("/b/moved"), Until: aweigh.InstantOf(time.Now().Add(time.Hour))}
	w.applied(w.inside.Naming(ctx, move, Once{}))
	_, _, err = w.part.Resolve(ctx, []byte("/b/app/x"), 0, true)
	w.refused("the object that moved", err)
}

// TestAnswersNameNoHiddenKeys: a node that may read one alias of an object gets no version that stands under another
// key alone, and no history with such a key. A version that its alias shows, it gets.
func TestAnswersNameNoHiddenKeys(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	w := newWriters(ctx, t)
	write := func() { w.applied(w.inside.Txn(ctx, putTxn("/b/secret", "public"), Once{})) }
	write()
	bind := scope.Naming{Kind: scope.Bind, Key: []byte("/b/secret"), To: []byte("/b/app/pub")}
	w.applied(w.inside.Naming(ctx, bind, Once{}))
	write()
	write()
	pub := []byte("/b/app/pub")
	r, _, err := w.part.Resolve(ctx, pub, 1, true)
	if w.refused("a version of before the alias", err); len(r.Kv.Key) > 0 {
		t.Errorf("it shows %q of %q", r.Kv.Value, r.Kv.Key)
	}
	for _, version := range []int64{0, 2, 3} {
		r, _, err := w.part.Resolve(ctx, pub, version, true)
		if err != nil || string(r.Kv.Key) != string(pub) || string(r.Kv.Value) != "public" {
			t.Errorf("version %d, which the alias shows: %q of %q, %v", version, r.Kv.Value, r.Kv.Key, err)
		}
	}
	l, _, err := w.part.Lineage(ctx, pub, 10)
	if w.refused("a history with another key", err); len(l.Entries) > 0 {
		t.Errorf("it shows %+v", l.Entries)
	}
	if l, _, err := w.part.Lineage(ctx, []byte("/b/app/x"), 10); err != nil || len(l.Entries) != 1 {
		t.Errorf("a history of a key that it may read: %+v, %v", l, err)
	}
}

// TestClosedScopesCloseWhatComesLater: what a prefix had before it got a closed scope is in the scope above, until that
// is compacted.
func TestClosedScopesCloseWhatComesLater(t *testing.T) {
	testshort.Skip(t)
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	_, c := newHolders(t, func(_ int, cfg *Config) { cfg.idleAfter = 0 })
	outside, key := c.nodes[0], []byte("/b/before")
	r, err := outside.Txn(ctx, putTxn(string(key), "v"), Once{})
	if err != nil || r.Code != scope.Applied {
		t.Fatal(r, err)
	}
	policy := scope.DefaultPolicy(quorum.Crash)
	policy.Authors = policy.Authors[:1] // the anchors
	c.decide(ctx, "", c.child("/b/", policy, 1))
	testwait.For(t, func() error {
		_, err := c.nodes[1].In("/b/")
		return err
	})
	if _, _, err := outside.Range(ctx, key, nil, scope.Range{}, true); !errors.Is(err, scope.ErrNoReader) {
		t.Errorf("a node outside reads the closed scope: %v", err)
	}
	old := func() (scope.RangeResult, error) {
		found, _, err := outside.root.Range(ctx, key, nil, scope.Range{Revision: r.Revision}, true)
		return found, err
	}
	if found, err := old(); err != nil || len(found.Kvs) != 1 {
		t.Errorf("the scope above, as of before: %+v, %v", found, err)
	}
	if r, err := outside.root.Compact(ctx, outside.root.LastHead().Revision, Once{}); err != nil || r.Code != scope.Applied {
		t.Fatal(r, err)
	}
	if found, err := old(); !errors.Is(err, scope.ErrCompacted) {
		t.Errorf("the scope above, once it is compacted: %+v, %v", found, err)
	}
}
