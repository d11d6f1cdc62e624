package scope

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aweigh/aweigh/action"
)

// within is a transaction that may put keys below some prefixes, in their order.
func within(t Txn, prefixes ...string) Txn {
	for _, p := range prefixes {
		t.Reach = append(t.Reach, Reach{Key: []byte(p), End: PrefixEnd([]byte(p))})
	}
	return t
}

// TestReachHoldsUnderEveryAlias: a transaction with a reach changes no object that has an alias outside of it,
// whichever alias it names, whatever it is wrapped in, and whether the alias was there before the transaction was
// signed or not.
func TestReachHoldsUnderEveryAlias(t *testing.T) {
	w := newWorld(t)
	w.one(w.put("/sec/a", "secret"))
	w.one(w.put("/pub/own", "1"))
	reaching := func(prefixes ...string) Mutation {
		return w.txn(within(Txn{Success: []Op{put("/pub/x", "changed")}}, prefixes...))
	}
	early := reaching("/pub/") // signed before the alias is there
	w.one(w.bind("/sec/a", "/pub/x"))
	inner := within(Txn{Success: []Op{{Kind: OpTxn, Txn: &Txn{Success: []Op{put("/pub/x", "changed")}}}}}, "/pub/")
	for what, m := range map[string]Mutation{
		"signed before": early, "a put": reaching("/pub/"), "a put beside another": w.txn(within(Txn{Success: []Op{put("/pub/own", "2"), put("/pub/x", "changed")}}, "/pub/")),
		"in a transaction": w.txn(inner), "a put that keeps the value": w.txn(within(Txn{Success: []Op{{Kind: OpPut, Key: []byte("/pub/x"), IgnoreValue: true}}}, "/pub/")),
	} {
		out := w.step(m).Outcomes[0]
		if out.Code != Failed || Failure(out.Reason) != ErrReach || w.value("/sec/a") != "secret" || w.value("/pub/own") != "1" {
			t.Errorf("%s: %s %q, and the keys are %q and %q", what, out.Code, out.Reason, w.value("/sec/a"), w.value("/pub/own"))
		}
	}
	w.one(w.txn(within(Txn{Success: []Op{put("/pub/own", "2"), del("/pub/x", "")}}, "/pub/"))) // the rest is unchanged
	if w.value("/pub/own") != "2" || w.value("/sec/a") != "secret" {
		t.Errorf("the keys are %q and %q", w.value("/pub/own"), w.value("/sec/a"))
	}
	w.one(w.bind("/sec/a", "/pub/x"))
	w.one(reaching("/pub/", "/sec/"))
	if w.value("/sec/a") != "changed" {
		t.Errorf("who may change both changed %q", w.value("/sec/a"))
	}
	w.one(w.txn(Txn{Success: []Op{put("/pub/x", "without a bound")}}))
}

// TestMotionsKeepTheirReach: a transaction that waited for approval is held to its reach when it is carried.
func TestMotionsKeepTheirReach(t *testing.T) {
	w := newAssembly(t, 4)
	w.cast(w.approve(w.propose(w.put("/secrets/a", "1")), 4))
	id := w.propose(w.txn(within(Txn{Success: []Op{put("/secrets/a", "2")}}, "/secrets/")))
	p := w.g.Policy
	p.Approvals = nil // or no alias could be bound
	client := w.author
	w.author = w.keys[0]
	w.cast(w.approve(w.step(w.mutation(Govern, Decision{Kind: SetPolicy, Policy: &p})).Outcomes[0].Mutation, 4)[1:])
	w.author = client
	w.turn()
	w.one(w.bind("/secrets/a", "/other"))
	w.cast(w.approve(id, 4))
	if got := w.fate(id); !strings.HasPrefix(got, "void") || w.value("/other") != "1" {
		t.Errorf("%s, and the key is %q", got, w.value("/other"))
	}
}

// TestReachIsWellFormed: one bound has one encoding, and what lies outside of it is refused before it is ordered.
func TestReachIsWellFormed(t *testing.T) {
	w := newWorld(t)
	lim := w.g.Policy.Limits
	r := func(ends ...string) (all []Reach) {
		for i := 0; i < len(ends); i += 2 {
			all = append(all, Reach{Key: []byte(ends[i]), End: []byte(ends[i+1])})
		}
		return all
	}
	var many []string
	for i := range MaxReach + 1 {
		many = append(many, fmt.Sprintf("b%03d", i), fmt.Sprintf("b%03dx", i))
	}
	for what, c := range map[string]struct {
		reach []Reach
		good  bool
	}{
		"one": {r("a", "c"), true}, "two": {r("a", "b\x00", "c", "d"), true}, "to the end": {r("a", "\x00"), true}, "as many as may be": {r(many[:2*MaxReach]...), false},
		"a put outside": {r("c", "d"), false}, "no key": {r("", "z"), false}, "no end": {r("a", "c", "d", ""), false}, "empty": {r("a", "c", "d", "d"), false},
		"turned": {r("c", "a"), false}, "overlap": {r("a", "c", "b", "d"), false}, "touch": {r("a", "c", "c", "d"), false}, "out of order": {r("c", "d", "a", "b1"), false},
		"after the end": {r("a", "\x00", "c", "d"), false}, "too many": {r(append([]string{"a", "b000"}, many...)...), false},
	} {
		txn := Txn{Success: []Op{put("b", "1")}, Reach: c.reach}
		if what == "as many as may be" {
			txn.Success[0].Key, c.good = []byte("b000"), true
		}
		if err := txn.Check(lim); (err == nil) != c.good {
			t.Errorf("%s: %v", what, err)
		}
	}
	inner := Txn{Success: []Op{{Kind: OpTxn, Txn: &Txn{Reach: r("a", "z")}}}}
	if err := inner.Check(lim); err == nil {
		t.Error("a transaction within another has a reach")
	}
	inner = Txn{Failure: []Op{{Kind: OpTxn, Txn: &Txn{Failure: []Op{put("x", "")}}}}, Reach: r("a", "c")}
	if err := inner.Check(lim); err == nil {
		t.Error("a put in a transaction within another lies outside")
	}
}

// TestVerbsFollowAliases: the rule of a verb that writes or claims must hold under every alias of the object, and the
// block does what the state's verdict announces.
func TestVerbsFollowAliases(t *testing.T) {
	below := "object.key.startsWith('/pub/')"
	w := withActions(t, action.Rule{Verb: "pay", Class: action.Write, When: below}, action.Rule{Verb: "own", Class: action.Claim, When: below})
	w.one(w.put("/sec/a", "1"))
	w.one(w.put("/pub/a", "1"))
	w.one(w.bind("/sec/a", "/pub/x"))
	w.one(w.bind("/pub/a", "/pub/b"))
	for verb, class := range map[string]action.Class{"pay": action.Write, "own": action.Claim} {
		for key, may := range map[string]bool{"/pub/x": false, "/pub/b": true} {
			said, err := w.state.Verdict(Question{Verb: verb, Key: []byte(key), Caller: w.author.Public().ID(), Now: w.now})
			if err != nil || said.Allowed != may {
				t.Errorf("%s %s: %+v, %v", verb, key, said, err)
			}
			m := w.act(verb, class, key, map[bool]string{true: "2"}[class == action.Write])
			if may {
				w.one(m)
			} else {
				w.refuses(m, ErrDenied, "")
			}
		}
	}
	if w.value("/sec/a") != "1" || w.value("/pub/a") != "2" {
		t.Errorf("the keys are %q and %q", w.value("/sec/a"), w.value("/pub/a"))
	}
}
