package scope

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mr-tron/base58"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/votes"
)

// withActions is a world whose policy has rules.
func withActions(t fataler, rules ...action.Rule) *world {
	t.Helper()
	g, _ := testGenesis(t, 4)
	for _, r := range rules {
		g.Policy.Actions = g.Policy.Actions.With(r)
	}
	return newWorldOf(t, g)
}

func (w *world) act(verb string, class action.Class, key, value string) Mutation {
	return w.mutation(Act, Action{Verb: verb, Class: class, Key: []byte(key), Value: []byte(value)})
}

func (w *world) value(key string) string {
	w.t.Helper()
	v, _, err := w.state.newest([]byte(key))
	if err != nil {
		w.t.Fatalf("reading %q: %v", key, err)
	}
	return string(v.Value)
}

// chainOf is the history of the object that a key names, newest first.
func (w *world) chainOf(key string) (all []string) {
	w.t.Helper()
	a, err := w.state.Aliases(w.uid(key))
	if err == nil {
		err = w.state.Lineage().Chain(a.Last, func(_ int64, e lineage.Entry) bool {
			all = append(all, strings.TrimSpace(e.Class.String()+" "+e.Reason))
			return true
		})
	}
	if err != nil {
		w.t.Fatalf("reading the chain of %q: %v", key, err)
	}
	return all
}

// refuses checks that a mutation fails for a reason, and changes no key.
func (w *world) refuses(m Mutation, why error, text string) {
	w.t.Helper()
	before := w.state.Head().Revision
	out := w.step(m).Outcomes[0]
	if got := Failure(out.Reason); out.Code != Failed || !errors.Is(got, why) || !strings.Contains(out.Reason, text) {
		w.t.Fatalf("%s %q, want %v with %q", out.Code, out.Reason, why, text)
	}
	if after := w.state.Head().Revision; after != before {
		w.t.Fatalf("a refusal moved the revision from %d to %d", before, after)
	}
}

var pay = action.Rule{Verb: "pay", Class: action.Write, When: "object.version < 2 && verb == 'pay'"}

func TestActionsObeyTheirRule(t *testing.T) {
	w := withActions(t, pay)
	w.one(w.act("pay", action.Write, "/user/elizabeth", "10"))
	w.one(w.act("pay", action.Write, "/user/elizabeth", "11"))
	if got := w.value("/user/elizabeth"); got != "11" {
		t.Errorf("paid %q", got)
	}
	w.refuses(w.act("pay", action.Write, "/user/elizabeth", "12"), ErrDenied, "the rule does not hold: pay (write) when object.version < 2 && verb == 'pay'")
	w.refuses(w.act("own", action.Claim, "/user/elizabeth", ""), ErrDenied, "no rule knows the verb own")
	w.refuses(w.act("read", action.Write, "/user/elizabeth", "12"), ErrClass, "")
	w.refuses(w.act("pay", action.Signal, "/user/elizabeth", "12"), ErrSignal, "")
	if got := w.value("/user/elizabeth"); got != "11" {
		t.Errorf("after denials it is %q", got)
	}
	w.one(w.act("write", action.Write, "/user/elizabeth", "13")) // every scope knows it
	w.one(w.put("/user/elizabeth", "14"))                        // and no rule covers it
}

func TestActionsAreWellFormed(t *testing.T) {
	w := withActions(t, pay)
	for name, a := range map[string]Action{
		"no verb":              {Class: action.Write, Key: []byte("k")},
		"a verb of two words":  {Verb: "pay now", Class: action.Write, Key: []byte("k")},
		"no key":               {Verb: "pay", Class: action.Write},
		"nothing to order":     {Verb: "read", Class: action.Read, Key: []byte("k")},
		"no class":             {Verb: "pay", Key: []byte("k")},
		"a claim with a value": {Verb: "own", Class: action.Claim, Key: []byte("k"), Value: []byte("v")},
		"a large value":        {Verb: "pay", Class: action.Write, Key: []byte("k"), Value: make([]byte, w.g.Policy.Limits.ValueBytes+1)},
	} {
		if _, err := Sign(w.author, w.g.Policy.Limits, w.mutation(Act, a)); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRulesSeeWhoAsks: an anchor's node acts in the anchor's name, in whichever form
// a mutation names it, and no other key does.
func TestRulesSeeWhoAsks(t *testing.T) {
	g, keys := testGenesis(t, 4)
	author := testKey(t, 99)
	g.Anchors[2].Peer = base58.Encode(append([]byte("\x00\x24\x08\x01\x12\x20"), author.Public().Bytes...))
	g.Policy.Actions = action.Table{{Verb: "sign", Class: action.Write, When: "caller.anchor == 'c' && caller.weight > 0 && caller.id != ''"}}
	w := newWorldOf(t, g)
	w.one(w.act("sign", action.Write, "/k", "by the node of c"))
	w.author = keys[2]
	w.one(w.act("sign", action.Write, "/k", "by c"))
	w.author = keys[1]
	w.refuses(w.act("sign", action.Write, "/k", "by b"), ErrDenied, "sign")
	w.author = testKey(t, 98)
	w.refuses(w.act("sign", action.Write, "/k", "by an unlisted author"), ErrDenied, "sign")
}

func TestRulesSeeScopeAndTime(t *testing.T) {
	w := withActions(t)
	start := int64(w.g.Time / aweigh.Instant(time.Second))
	w = withActions(t,
		action.Rule{Verb: "early", Class: action.Write, When: fmt.Sprintf("now <= %d && scope.height == 1", start+1)},
		action.Rule{Verb: "here", Class: action.Write, When: "scope.prefix == '' && scope.mode == 'bft' && scope.epoch == 0"})
	w.one(w.act("early", action.Write, "/k", "1"))
	w.refuses(w.act("early", action.Write, "/k", "2"), ErrDenied, "early")
	w.one(w.act("here", action.Write, "/k", "3"))
}

// TestClaimsStandInTheChain: a claim is an entry of the object, which changes nothing
// of it, and later changes follow it.
func TestClaimsStandInTheChain(t *testing.T) {
	w := withActions(t, action.Rule{Verb: "own", Class: action.Claim, When: "object.exists"})
	w.one(w.put("/house", "brick"))
	before, v := w.state.Head().Revision, w.live()["/house"]
	if out := w.one(w.act("own", action.Claim, "/house", "")); out.Revision != before {
		t.Errorf("a claim moved the revision to %d", out.Revision)
	}
	if got := w.live()["/house"]; fmt.Sprint(got) != fmt.Sprint(v) {
		t.Errorf("a claim changed %+v to %+v", v, got)
	}
	w.one(w.put("/house", "wood"))
	w.one(w.naming(Naming{Kind: Bind, Key: []byte("/house"), To: []byte("/home")}))
	w.one(w.act("own", action.Claim, "/home", ""))
	want := []string{"claim own", "alias-bind", "update", "claim own", "insert"}
	for _, key := range []string{"/house", "/home"} {
		if got := w.chainOf(key); !slices.Equal(got, want) {
			t.Errorf("%s: %v", key, got)
		}
	}
	r, _, err := w.state.Resolve([]byte("/home"))
	if err != nil || r.Number != 2 || !r.Claims {
		t.Errorf("it resolves to %+v, %v", r, err)
	}
	w.refuses(w.act("own", action.Claim, "/castle", ""), ErrUnnamed, "")
	w.refuses(w.mutation(Act, Action{Verb: "own", Class: action.Claim, Key: []byte("/house"), Object: aweigh.UID{1}}), ErrUnnamed, "")
	w.one(w.ops(del("/house", "")))
	w.one(w.ops(del("/home", "")))

	w.one(w.put("/house", "stone"))
	w.one(w.act("own", action.Claim, "/house", ""))
	w.now = w.now.Add(time.Second)
	b := w.block(w.sign(w.put("/other", "1")))
	w.execute(b)
	if _, err := w.take(b.Header, 1<<20).restore(); err != nil {
		t.Errorf("a snapshot with claims: %v", err)
	}
}

// TestWriteRulesBindAllWrites: no form of writing gets around the rule about
// write, except a verb that the policy allows.
func TestWriteRulesBindAllWrites(t *testing.T) {
	w := withActions(t, pay, action.Rule{Verb: "write", Class: action.Write, When: "!object.key.startsWith('/safe/')"})
	w.one(w.act("pay", action.Write, "/safe/a", "1"))
	w.one(w.put("/free", "1"))
	no := func(m Mutation) { t.Helper(); w.refuses(m, ErrDenied, "write (write) when") }
	no(w.put("/safe/a", "2"))
	no(w.act("write", action.Write, "/safe/a", "2"))
	no(w.ops(put("/free", "2"), put("/safe/b", "2")))
	no(w.ops(Op{Kind: OpTxn, Txn: &Txn{Success: []Op{put("/safe/b", "2")}}}))
	no(w.ops(del("/safe/a", "")))
	no(w.ops(del("/", "0")))
	no(w.naming(Naming{Kind: Unbind, Key: []byte("/safe/a")}))
	no(w.bind("/free", "/safe/free"))
	no(w.move("/safe/a", "/free/a", 0))
	w.one(w.txn(Txn{Success: []Op{get("/safe/", "/safe0")}}))
	w.one(w.put("/free", "2"))

	w = withActions(t, action.Rule{Verb: "write", Class: action.Write, When: "object.version == 0"})
	w.step(w.mutation(Lease, LeaseRequest{Kind: LeaseGrant, IDs: []int64{9}, TTL: 60}))
	w.one(w.ops(leased("/k", "1", 9)))
	no = func(m Mutation) { t.Helper(); w.refuses(m, ErrDenied, "write (write) when") }
	no(w.revoke(9))
	no(w.put("/k", "2"))
	for range 100 {
		w.step()
	}
	if got := w.value("/k"); got != "" {
		t.Errorf("the lease is over, and the key is %q", got)
	}
}

// TestAliasesDoNotGetAroundWriteRules: an author that may not write under one name
// of an object may not write under another.
func TestAliasesDoNotGetAroundWriteRules(t *testing.T) {
	w := withActions(t, action.Rule{Verb: "write", Class: action.Write, When: "object.key != '/safe' || !object.exists"})
	w.one(w.put("/free", "1"))
	w.one(w.bind("/free", "/safe"))
	w.refuses(w.put("/free", "2"), ErrDenied, "write")
}

// TestActionsWaitForApproval: a verb that writes needs what a put needs, and its rule
// must still hold when it applies.
func TestActionsWaitForApproval(t *testing.T) {
	w := newAssembly(t, 4, func(p *Policy) { p.Actions = action.Table{pay} })
	first := w.propose(w.act("pay", action.Write, "/secrets/a", "1"))
	if mo, _, err := w.state.Motion(first); err != nil || mo.Subject() != `pay "/secrets/a"` {
		t.Errorf("a motion about %q, %v", mo.Subject(), err)
	}
	w.cast(w.approve(first, 3))
	if got := w.fate(first); got != "carried" || w.value("/secrets/a") != "1" {
		t.Fatalf("%s, and it is %q", got, w.value("/secrets/a"))
	}
	w.refuses(w.act("own", action.Claim, "/secrets/a", ""), ErrDenied, "")

	late := w.g.Time.Add(10 * time.Second)
	w = newAssembly(t, 4, func(p *Policy) {
		p.Actions = action.Table{{Verb: "pay", Class: action.Write, When: fmt.Sprintf("now < %d", late/aweigh.Instant(time.Second))}}
	})
	second := w.propose(w.act("pay", action.Write, "/secrets/a", "1"))
	w.now = late
	w.step()
	w.cast(w.approve(second, 3))
	if got := w.fate(second); !strings.HasPrefix(got, "void: denied: the rule does not hold: pay (write)") || w.value("/secrets/a") != "" {
		t.Errorf("%s, and it is %q", got, w.value("/secrets/a"))
	}
}

func TestActionsElsewhere(t *testing.T) {
	r := newRealm(t, nil)
	res := r.delegate(r.decision("/b/", quorum.Crash, "a", "b"))
	fails(t, r.world, r.act("write", action.Write, "/b/1", "no"), ErrElsewhere)
	c := r.child(res.Founded[0])
	c.one(c.act("write", action.Write, "/b/1", "yes"))
	fails(t, c, c.act("write", action.Write, "/a/1", "no"), ErrElsewhere)
}

// TestVerdictsAreThoseOfTheNextBlock: the block does what the node's verdict
// announces, and a scope on the way looks at the key alone.
func TestVerdictsAreThoseOfTheNextBlock(t *testing.T) {
	w := withActions(t, pay, action.Rule{Verb: "own", Class: action.Claim, When: "object.exists"})
	w.one(w.put("/a", "1"))
	for verb, class := range map[string]action.Class{"pay": action.Write, "own": action.Claim, "nod": action.Claim, "write": action.Write} {
		for _, key := range []string{"/a", "/none"} {
			said, err := w.state.Verdict(Question{Verb: verb, Key: []byte(key), Caller: w.author.Public().ID(), Now: w.now})
			if err != nil {
				t.Fatal(err)
			}
			if verb == "own" && said.Allowed != (w.value(key) != "") {
				t.Errorf("%s %s is allowed", verb, key)
			}
			value := ""
			if class == action.Write {
				value = "2"
			}
			out := w.step(w.act(verb, class, key, value)).Outcomes[0]
			if said.Allowed != (out.Code == Applied) {
				t.Errorf("%s %s: %+v, and then %s %s", verb, key, said, out.Code, out.Reason)
			}
		}
	}
	pass, err := w.state.Verdict(Question{Verb: "own", Key: []byte("/a"), Pass: true})
	if err != nil || pass.Allowed {
		t.Errorf("on the way %+v, %v", pass, err)
	}
	pass, err = w.state.Verdict(Question{Verb: "nod", Key: []byte("/a"), Pass: true})
	if err != nil || !pass.Allowed {
		t.Errorf("on the way %+v, %v", pass, err)
	}
	tried, err := w.state.Verdict(Question{Verb: "nod", Key: []byte("/a"), Rules: action.Prepare(action.Table{{Verb: "nod", Class: action.Signal}})})
	if err != nil || !tried.Allowed || tried.Class != action.Signal {
		t.Errorf("tried %+v, %v", tried, err)
	}
}

func TestPoliciesWithBadRulesAreNone(t *testing.T) {
	p := OpenPolicy(quorum.BFT)
	p.Actions = action.Table{{Verb: "pay", Class: action.Write, When: "caller.weight >"}}
	if err := p.Check(); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "pay: action: not a predicate: line 1, column 16") {
		t.Errorf("%v", err)
	}
}

func TestPeersThatAreNoKeysAreNobody(t *testing.T) {
	for _, peer := range []string{"", "peer-e", "12D3KooW", strings.Repeat("1", 52), strings.Repeat("z", 1<<20), base58.Encode(append([]byte("\x00\x24\x08\x02\x12\x20"), make([]byte, 32)...))} {
		if k, ok := PeerKey(peer); ok {
			t.Errorf("%.60q is %v", peer, k)
		}
	}
	k := testKey(t, 5).Public()
	if got, ok := PeerKey(base58.Encode(append([]byte("\x00\x24\x08\x01\x12\x20"), k.Bytes...))); !ok || got.ID() != k.ID() || got.Scheme != votes.Ed25519 {
		t.Errorf("%v, %v", got, ok)
	}
}
