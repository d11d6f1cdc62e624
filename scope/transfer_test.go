package scope

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/quorum"
)

// transferRealms are a root scope and two scopes below it, /a/ and /b/. change changes the policy of /b/.
func transferRealms(t testing.TB, change func(*Policy)) (above, from, to *realm) {
	t.Helper()
	above = newRealm(t, func(p *Policy) { p.Children.Notice, p.Transfers = time.Hour, true })
	first := above.decision("/a/", quorum.BFT, "a", "b", "c", "d")
	first.Child.Policy.Transfers = true
	from = above.below(above.delegate(first).Founded[0])
	d := above.decision("/b/", quorum.BFT, "a", "b", "c", "d")
	d.Child.Policy.Transfers = true
	if change != nil {
		change(&d.Child.Policy)
	}
	to = above.below(above.delegate(d).Founded[0])
	above.add(above.next(nil, nil))
	above.add(above.next(nil, nil))
	from.now, to.now = above.now, above.now
	return above, from, to
}

// ancestryBelow leads from the root scope to the newest block of a scope below it, or of itself.
func (r *realm) ancestryBelow(c *realm) Ancestry {
	r.t.Helper()
	if c == r {
		return Ancestry{Genesis: r.g, Handovers: r.hands, Head: r.final()}
	}
	above, err := NewStep(Ancestry{Genesis: r.g, Handovers: r.hands, Head: r.final()}, r.state, c.g.Descent)
	if err != nil {
		r.t.Fatalf("%v", err)
	}
	return Ancestry{Genesis: c.g, Handovers: c.hands, Head: c.final(), Above: above}
}

// sending is a mutation that sends what a key names.
func (r *realm) sending(key, to string, until aweigh.Instant) Mutation {
	return r.naming(Naming{Kind: Send, Object: r.live()[key].UID, Key: []byte(key), To: []byte(to), Until: until})
}

// sends sends what a key names, and makes the proof of it.
func (r *realm) sends(above *realm, key, to string, until aweigh.Instant) *TransferProof {
	r.t.Helper()
	r.one(r.sending(key, to, until))
	r.add(r.next(nil, nil))
	r.add(r.next(nil, nil))
	return r.sentProof(above, key)
}

func (r *realm) sentProof(above *realm, key string) *TransferProof {
	r.t.Helper()
	all, err := r.state.Sent(10)
	at := slices.IndexFunc(all, func(s Sent) bool { return string(s.Key) == key })
	if err != nil || at < 0 {
		r.t.Fatalf("%q is not on its way: %v, %v", key, all, err)
	}
	e, _, err := r.state.Lineage().Entry(all[at].Entry)
	if err != nil {
		r.t.Fatalf("%v", err)
	}
	by := slices.IndexFunc(r.made, func(b *Block) bool { return b.Header.Height == e.Height })
	p, err := NewTransferSent(above.ancestryBelow(r), r.state, &all[at], r.made[by])
	if err != nil {
		r.t.Fatalf("%v", err)
	}
	return p
}

// carries takes a proof, in the name of an anchor.
func (r *realm) carries(c Carrying) Outcome {
	r.t.Helper()
	b, err := SignReserving(0, r.names["a"], r.g.Policy.Limits, r.mutation(Carry, c))
	if err != nil {
		r.t.Fatalf("signing: %v", err)
	}
	res := r.add(r.next(nil, nil, b))
	for len(res.Outcomes) == 0 { // the block had to end an epoch
		res = r.add(r.next(nil, nil, b))
	}
	r.checkDigest()
	return res.Outcomes[0]
}

// decided makes the proof of what was decided about what another scope sent.
func (r *realm) decided(above *realm, sent *TransferProof) *TransferProof {
	r.t.Helper()
	r.add(r.next(nil, nil))
	r.add(r.next(nil, nil))
	is, ok, err := r.state.Received(sent.To, sent.Entry.Entry.Hash())
	if err != nil || !ok {
		r.t.Fatalf("nothing was decided: %v", err)
	}
	p, err := NewTransferDecided(above.ancestryBelow(r), r.state, is.Entry)
	if err != nil {
		r.t.Fatalf("%v", err)
	}
	return p
}

// TestNamesMoveToOtherScopes: an object keeps its identity and its content, clients read it all the time, and each step
// is taken once.
func TestNamesMoveToOtherScopes(t *testing.T) {
	above, from, to := transferRealms(t, nil)
	from.one(from.put("/a/x", "one"))
	from.one(from.put("/a/x", "two"))
	was := from.live()["/a/x"]
	sent := from.sends(above, "/a/x", "/b/y", from.now.Add(time.Hour))
	for name, m := range map[string]Mutation{ // order-free
		"put": from.put("/a/x", "three"), "delete": from.ops(del("/a/x", "")), "delete a range": from.ops(del("/a/", "/a0")),
		"in a transaction": from.txn(Txn{Success: []Op{{Kind: OpTxn, Txn: &Txn{Success: []Op{put("/a/x", "z")}}}}}),
		"bind":             from.bind("/a/x", "/a/z"), "move": from.move("/a/x", "/a/z", 0), "send again": from.sending("/a/x", "/b/z", from.now.Add(time.Hour)),
	} {
		t.Run(name, func(t *testing.T) { fails(t, from.world, m, ErrSent) })
	}
	from.one(from.put("/a/y", "another"))
	if v := from.live()["/a/x"]; fmt.Sprint(v) != fmt.Sprint(was) {
		t.Errorf("on its way it is %+v, was %+v", v, was)
	}

	if out := to.carries(Carrying{Proof: *sent}); out.Code != Applied {
		t.Fatalf("%s: %s", out.Code, out.Reason)
	}
	v := to.live()["/b/y"]
	if v.UID != was.UID || string(v.Value) != "two" || v.Version != was.Version+1 {
		t.Errorf("received as %+v, sent as %+v", v, was)
	}
	if out := to.carries(Carrying{Proof: *sent}); out.Code != Failed || out.Reason != reason(errReceived) {
		t.Errorf("received twice: %s %s", out.Code, out.Reason)
	}
	to.one(to.put("/b/y", "four"))
	done := to.decided(above, sent)
	if err := done.Verify(above.g.Hash()); err != nil {
		t.Fatal(err)
	}
	if out := from.carries(Carrying{Key: []byte("/a/x"), Proof: *done}); out.Code != Applied {
		t.Fatalf("%s: %s", out.Code, out.Reason)
	}
	if v, there := from.live()["/a/x"]; there {
		t.Errorf("it is still there: %+v", v)
	}
	if out := from.carries(Carrying{Key: []byte("/a/x"), Proof: *done}); out.Code != Failed || out.Reason != reason(errNoTransfer) {
		t.Errorf("let go twice: %s %s", out.Code, out.Reason)
	}
	from.one(from.put("/a/x", "anew"))
	if from.live()["/a/x"].UID == was.UID {
		t.Error("a new object has the identity of the one that left")
	}
	if all, err := from.state.Sent(9); len(all) > 0 || err != nil {
		t.Errorf("on the way are %v, %v", all, err)
	}

	// And back, under another name.
	sent = to.sends(above, "/b/y", "/a/home", to.now.Add(time.Hour))
	if out := from.carries(Carrying{Proof: *sent}); out.Code != Applied {
		t.Fatalf("back: %s %s", out.Code, out.Reason)
	}
	if v := from.live()["/a/home"]; v.UID != was.UID || string(v.Value) != "four" {
		t.Errorf("back it is %+v", v)
	}
	var versions []string
	if err := from.state.Versions(was.UID, func(v Version) bool {
		versions = append(versions, fmt.Sprint(v.Number, " ", v.Entry.Class))
		return true
	}); err != nil || fmt.Sprint(versions) != "[5 received 2 update 1 insert]" {
		t.Errorf("versions %q, %v", versions, err)
	}
}

// TestScopesDeclineWhatTheyWouldNotTake: what the author of what was sent could not put there itself is declined, and
// stays.
func TestScopesDeclineWhatTheyWouldNotTake(t *testing.T) {
	for name, c := range map[string]struct {
		policy func(*Policy)
		before func(to *realm)
		key    string
		why    string
	}{
		"named": {before: func(to *realm) { to.one(to.put("/b/y", "there")) }, why: reason(ErrNamed)},
		"late":  {before: func(to *realm) { to.now = to.now.Add(2 * time.Hour) }, why: "it came too late"},
		"author": {policy: func(p *Policy) {
			p.Authors = []Author{{Name: "anchors", Who: Anchors}}
		}, why: "does not permit this author"},
		"prefix": {policy: func(p *Policy) {
			p.Authors = []Author{{Name: "any", Who: Anyone, Prefixes: [][]byte{[]byte("/b/z/")}}}
		}, why: "does not permit this author"},
		"policy":   {policy: func(p *Policy) { p.Transfers = false }, why: "names.transfers"},
		"value":    {policy: func(p *Policy) { p.Limits.ValueBytes = 2 }, why: "a value of 3 bytes"},
		"key":      {policy: func(p *Policy) { p.Limits.KeyBytes = 3 }, why: "key"},
		"approval": {policy: func(p *Policy) { p.Approvals = approvalOfKeys("/b/") }, why: "takes approval"},
	} {
		t.Run(name, func(t *testing.T) {
			above, from, to := transferRealms(t, c.policy)
			from.one(from.put("/a/x", "one"))
			was := from.live()["/a/x"]
			sent := from.sends(above, "/a/x", "/b/y", from.now.Add(time.Hour))
			if c.before != nil {
				c.before(to)
			}
			before := fmt.Sprint(to.live())
			if out := to.carries(Carrying{Proof: *sent}); out.Code != Applied || fmt.Sprint(to.live()) != before {
				t.Fatalf("%s %s; there are %v", out.Code, out.Reason, to.live())
			}
			done := to.decided(above, sent)
			if e := &done.Entry.Entry; e.Class != lineage.Declined || !strings.Contains(e.Reason, c.why) {
				t.Errorf("%s: %q", e.Class, e.Reason)
			}
			if out := from.carries(Carrying{Key: []byte("/a/x"), Proof: *done}); out.Code != Applied {
				t.Fatalf("%s: %s", out.Code, out.Reason)
			}
			if v := from.live()["/a/x"]; fmt.Sprint(v) != fmt.Sprint(was) {
				t.Errorf("it stays as %+v, was %+v", v, was)
			}
			from.one(from.put("/a/x", "goes on"))
		})
	}
}

func approvalOfKeys(prefix string) []Approval {
	return []Approval{{Matter: Changes, Prefix: []byte(prefix), Num: 2, Den: 3, Window: time.Hour}}
}

// TestWhatCannotBeSent: the reasons why a name stays, before anything is on record elsewhere.
func TestWhatCannotBeSent(t *testing.T) {
	_, from, _ := transferRealms(t, nil)
	from.one(from.grant(7, 1000))
	from.one(from.ops(leased("/a/leased", "l", 7), put("/a/x", "x"), put("/a/two", "2")))
	from.one(from.bind("/a/two", "/a/names"))
	until := from.now.Add(time.Hour)
	for name, c := range map[string]struct {
		n    Naming
		want error
	}{
		"leased":     {Naming{Key: []byte("/a/leased"), To: []byte("/b/y"), Until: until}, ErrSendLeased},
		"aliases":    {Naming{Key: []byte("/a/two"), To: []byte("/b/y"), Until: until}, ErrSendAliases},
		"here":       {Naming{Key: []byte("/a/x"), To: []byte("/a/y"), Until: until}, ErrSendHere},
		"past":       {Naming{Key: []byte("/a/x"), To: []byte("/b/y"), Until: from.now}, ErrTransferUntil},
		"far":        {Naming{Key: []byte("/a/x"), To: []byte("/b/y"), Until: until.Add(MaxTransfer)}, ErrTransferUntil},
		"absent":     {Naming{Key: []byte("/a/none"), To: []byte("/b/y"), Until: until}, ErrUnnamed},
		"other's":    {Naming{Key: []byte("/b/x"), To: []byte("/c/y"), Until: until}, ErrElsewhere},
		"other name": {Naming{Key: []byte("/a/x"), Object: aweigh.UID{1}, To: []byte("/b/y"), Until: until}, ErrUnnamed},
	} {
		t.Run(name, func(t *testing.T) {
			if c.n.Kind = Send; c.n.Object.IsZero() {
				c.n.Object = cmp.Or(from.live()[string(c.n.Key)].UID, aweigh.UID{2})
			}
			fails(t, from.world, from.naming(c.n), c.want)
		})
	}
}

// TestProofsOfTransfersBearNoChange: what is not as the scope's anchors signed it is refused before it reaches a block.
func TestProofsOfTransfersBearNoChange(t *testing.T) {
	above, from, to := transferRealms(t, nil)
	from.one(from.put("/a/x", "one"))
	sent := from.sends(above, "/a/x", "/b/y", from.now.Add(time.Hour))
	to.carries(Carrying{Proof: *sent})
	done := to.decided(above, sent)
	for name, spoil := range map[string]func(c *Carrying){
		"value":     func(c *Carrying) { c.Proof.Kv.Value = []byte("other") },
		"identity":  func(c *Carrying) { c.Proof.Kv.UID[0] ^= 1 },
		"alias":     func(c *Carrying) { c.Proof.To = []byte("/b/z") },
		"time":      func(c *Carrying) { c.Proof.Until++ },
		"number":    func(c *Carrying) { c.Proof.Number++ },
		"mutation":  func(c *Carrying) { c.Proof.Asked.Mutation = append([]byte{0}, c.Proof.Asked.Mutation...) },
		"signature": func(c *Carrying) { c.Proof.Asked.Signed[0] ^= 1 },
		"signer":    func(c *Carrying) { c.Proof.Asked.Author = above.names["b"].Public() },
		"key":       func(c *Carrying) { c.Proof.Kv.Key = []byte("/a/y") },
		"author":    func(c *Carrying) { c.Proof.Entry.Entry.Author[0] ^= 1 },
		"class":     func(c *Carrying) { c.Proof.Entry.Entry.Class = lineage.Declined },
		"no object": func(c *Carrying) { c.Proof.Kv = nil },
		"entry":     func(c *Carrying) { c.Proof.Entry.Place.Index++ },
		"few":       func(c *Carrying) { s := &c.Proof.Ancestry.Head.Certificate.Signatures; *s = (*s)[:2] },
		"no way":    func(c *Carrying) { c.Proof.Ancestry.Above = nil },
		"with a key": func(c *Carrying) {
			c.Key = []byte("/a/x")
		},
	} {
		for of, good := range map[string]Carrying{"sent": {Proof: *sent}, "decided": {Key: []byte("/a/x"), Proof: *done}} {
			var c Carrying
			if err := canon.Decode(canon.Encode(good), &c); err != nil {
				t.Fatal(err)
			}
			if c.Proof.Kv == nil && slices.Contains([]string{"value", "identity", "key", "no object", "mutation", "signature", "signer"}, name) || of == "decided" && (name == "with a key" || name == "class" && c.Proof.Entry.Entry.Class == lineage.Declined) {
				continue
			}
			spoil(&c)
			if _, err := Sign(above.names["a"], to.g.Policy.Limits, to.mutation(Carry, c)); !errors.Is(err, ErrInvalid) {
				t.Errorf("%s with another %s: %v", of, name, err)
			}
		}
	}
	// A decision about something else, and one of a scope that does not decide about the name.
	from.one(from.put("/a/y", "two"))
	other := from.sends(above, "/a/y", "/b/other", from.now.Add(time.Hour))
	if out := from.carries(Carrying{Key: []byte("/a/y"), Proof: *done}); out.Code != Failed || out.Reason != reason(errNoTransfer) {
		t.Errorf("the decision about another name: %s %s", out.Code, out.Reason)
	}
	if out := above.carries(Carrying{Proof: *other}); out.Code != Failed || out.Reason != reason(ErrElsewhere) {
		t.Errorf("the scope above received it: %s %s", out.Code, out.Reason)
	}
	stranger := to.mutation(Carry, Carrying{Proof: *other})
	if out := to.step(stranger).Outcomes[0]; out.Code != Failed || !strings.Contains(out.Reason, "anchor") {
		t.Errorf("carried by a stranger: %s %s", out.Code, out.Reason)
	}
}

// TestDecisionsGoWithTheirPrefix: the scope that decided about a name folds, and its prefix is delegated anew. No scope
// decides a second time.
func TestDecisionsGoWithTheirPrefix(t *testing.T) {
	above, from, to := transferRealms(t, nil)
	from.one(from.put("/a/x", "one"))
	u := from.live()["/a/x"].UID
	sent := from.sends(above, "/a/x", "/b/c/y", from.now.Add(time.Hour))
	to.carries(Carrying{Proof: *sent})
	done := to.decided(above, sent)

	above.now = max(above.now, to.now)
	order := above.folds("/b/")
	to.closes(order)
	above.now = max(above.now, to.now).Add(time.Minute)
	above.home("/b/", to.source(), 1<<20)
	above.checkDigest()
	if v := above.live()["/b/c/y"]; v.UID != u {
		t.Errorf("it came home as %+v, was %s", v, u)
	}
	if out := above.carries(Carrying{Proof: *sent}); out.Code != Failed || out.Reason != reason(errReceived) {
		t.Errorf("above: %s %s", out.Code, out.Reason)
	}
	anew := above.below(above.delegate(above.decision("/b/c/", quorum.BFT, "a", "b", "c", "d")).Founded[0])
	above.add(above.next(nil, nil))
	above.checkDigest()
	if out := anew.carries(Carrying{Proof: *sent}); out.Code != Failed || out.Reason != reason(errReceived) {
		t.Errorf("below: %s %s", out.Code, out.Reason)
	}
	if is, ok, err := anew.state.Received(sent.To, sent.Entry.Entry.Hash()); !is.Taken || is.Scope != to.g.Hash() || is.Entry != done.Entry.Place.Index || !ok || err != nil {
		t.Errorf("below it is on record as %+v, %v, %v", is, ok, err)
	}
	if out := from.carries(Carrying{Key: []byte("/a/x"), Proof: *done}); out.Code != Applied {
		t.Errorf("the decision of the closed scope: %s %s", out.Code, out.Reason)
	}
}

// TestWhatIsOnItsWayHoldsItsScope: neither the scope of such a name nor its prefix goes anywhere.
func TestWhatIsOnItsWayHoldsItsScope(t *testing.T) {
	above, from, to := transferRealms(t, nil)
	from.one(from.put("/a/c/x", "one"))
	sent := from.sends(above, "/a/c/x", "/b/y", from.now.Add(time.Hour))
	if err := from.state.foldable(); err == nil || !strings.Contains(err.Error(), "1 name on the way") {
		t.Errorf("it can fold: %v", err)
	}
	if out := from.approve("a", from.decision("/a/c/", quorum.BFT, "a", "b", "c", "d")); out.Code != Failed || out.Reason != reason(ErrSent) {
		t.Errorf("its prefix is delegated: %s %s", out.Code, out.Reason)
	}
	to.carries(Carrying{Proof: *sent})
	from.now = max(from.now, to.now)
	from.carries(Carrying{Key: []byte("/a/c/x"), Proof: *to.decided(above, sent)})
	if err := from.state.foldable(); err != nil {
		t.Error(err)
	}
	if res := from.delegate(from.decision("/a/c/", quorum.BFT, "a", "b", "c", "d")); len(res.Founded) != 1 {
		t.Error("its prefix was not delegated")
	}
}

// TestNamesOnTheirWayAreGivenUp: once the time is over until which the other scope can receive an object, an author can
// unbind its name, whether or not that scope has it. No key names the identity twice, also if the other scope comes
// home.
func TestNamesOnTheirWayAreGivenUp(t *testing.T) {
	for i := range 4 {
		taken, unbinds := i%2 == 0, i < 2
		t.Run(fmt.Sprint("the other scope has it: ", taken, ", unbound: ", unbinds), func(t *testing.T) {
			above, _, to := transferRealms(t, nil)
			above.one(above.put("/x", "one"))
			u := above.live()["/x"].UID
			until := above.now.Add(time.Hour)
			p := above.sends(above, "/x", "/b/y", until)
			to.now = max(to.now, above.now)
			var done *TransferProof
			if taken {
				to.carries(Carrying{Proof: *p})
				done = to.decided(above, p)
			}
			at := func(now aweigh.Instant) {
				above.now = now
				for above.add(above.next(nil, nil)).Next != nil { // the clock may end an epoch
				}
			}
			at(until.Add(-time.Minute))
			ends := func() Mutation {
				if unbinds {
					return above.naming(Naming{Kind: Unbind, Key: []byte("/x")})
				}
				return above.ops(del("/x", ""))
			}
			fails(t, above.world, ends(), ErrSent)
			at(until.Add(time.Second))
			fails(t, above.world, above.ops(del("/x", "/x0")), ErrSent) // a range does not say which names it is for
			above.one(ends())
			above.checkDigest()
			if all, err := above.state.Sent(9); len(all) > 0 || err != nil {
				t.Errorf("on their way are %v, %v", all, err)
			}
			above.one(above.put("/x", "two"))
			if v := above.live()["/x"]; v.UID == u || v.Version != 1 {
				t.Errorf("the key names %+v again", v)
			}
			to.now = max(to.now, above.now)
			if !taken {
				to.carries(Carrying{Proof: *p})
				done = to.decided(above, p)
				if e := done.Entry.Entry; e.Class != lineage.Declined {
					t.Errorf("it was %s after its time", e.Class)
				}
			}
			above.now = max(above.now, to.now)
			if out := above.carries(Carrying{Key: []byte("/x"), Proof: *done}); out.Code != Failed || Failure(out.Reason).Error() != errNoTransfer.Error() {
				t.Errorf("a decision about what was given up: %s %s", out.Code, out.Reason)
			}
			to.closes(above.folds("/b/"))
			above.now = max(above.now, to.now).Add(time.Minute)
			above.home("/b/", to.source(), 1<<20)
			above.checkDigest()
			if live := above.live(); (live["/b/y"].UID == u) != taken || live["/x"].UID == u || string(live["/x"].Value) != "two" {
				t.Errorf("there are %+v", live)
			}
		})
	}
}
