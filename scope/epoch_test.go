package scope

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/trust"
	"github.com/aweigh/aweigh/votes"
)

// realm is a world whose anchors sign: their finalize ballots are reconciled, and
// make the handovers of its epochs.
type realm struct {
	*world
	keys  map[aweigh.AnchorID]votes.PrivateKey
	names map[string]votes.PrivateKey
	away  map[aweigh.AnchorID]bool // sign nothing
	past  []Header                 // final blocks
	hands []Handover
}

func newRealm(t fataler, change func(*Policy)) *realm {
	t.Helper()
	g, keys := testGenesis(t, 4)
	g.Policy.EpochBlocks = 20
	g.Policy.Trust.Probation = 1
	if change != nil {
		change(&g.Policy)
	}
	return realmOf(t, g, keys)
}

// realmOf is a realm of a genesis, whose anchors have these keys.
func realmOf(t fataler, g Genesis, keys []votes.PrivateKey) *realm {
	t.Helper()
	r := &realm{world: newWorldOf(t, g), keys: make(map[aweigh.AnchorID]votes.PrivateKey), names: make(map[string]votes.PrivateKey), away: make(map[aweigh.AnchorID]bool)}
	for i, k := range keys {
		r.keys[k.Public().ID()] = k
		r.names[g.Anchors[i].Name] = k
	}
	return r
}

func (r *realm) id(name string) aweigh.AnchorID { return r.names[name].Public().ID() }

func (r *realm) epoch() *Epoch {
	r.t.Helper()
	e, err := r.state.Epoch()
	if err != nil {
		r.t.Fatalf("epoch: %v", err)
	}
	return e
}

func (r *realm) sign(e *Epoch, s quorum.Subject, a aweigh.AnchorID) quorum.Signature {
	b := votes.Ballot{Format: votes.Format, Domain: e.Domain(), Subject: s, Anchor: a}
	return quorum.Signature{Anchor: a, Bytes: r.keys[a].Sign(votes.ContextBallot, b.SigningBytes())}
}

// ballots are those of all signing anchors, on recent blocks that lack them.
func (r *realm) ballots(lag aweigh.Height) (all []Attended) {
	r.t.Helper()
	e := r.epoch()
	head := r.state.Height()
	err := r.state.Open(func(at aweigh.Height, s quorum.Subject, lacks func(aweigh.AnchorID) bool) {
		a := Attended{Height: at}
		for _, x := range e.Roster.Anchors {
			if id := x.Key.ID(); lacks(id) && !r.away[id] && at+lag <= head {
				a.Signatures = append(a.Signatures, r.sign(e, s, id))
			}
		}
		if len(a.Signatures) > 0 {
			all = append(all, a)
		}
	})
	if err != nil {
		r.t.Fatalf("open: %v", err)
	}
	return all
}

// next makes the next block, whatever it must be.
func (r *realm) next(attended []Attended, proofs []Proof, muts ...*CheckedBundle) *Block {
	r.t.Helper()
	e := r.epoch()
	r.now = r.now.Add(time.Second)
	view := r.state.Head().View + 1
	if r.state.Head().Block == e.Root {
		view = 1
	}
	h, full, err := r.state.Claim(Header{
		Epoch: e.Number, View: view, Time: r.now, Proposer: quorum.Leader(e.Leaders(), e.Seed(), view),
	})
	if err != nil {
		r.t.Fatalf("claim: %v", err)
	}
	if !full {
		muts, proofs, attended = nil, nil, nil
	}
	return NewBlock(h, muts, Evidence{Proofs: proofs, Attended: attended})
}

// add checks a block and makes it final.
func (r *realm) add(b *Block) *Result {
	r.t.Helper()
	e := r.epoch()
	k, err := e.Keyring()
	if err != nil {
		r.t.Fatalf("keyring: %v", err)
	}
	if err := r.state.CheckHeader(b.Header); err != nil {
		r.t.Fatalf("header: %v", err)
	}
	if err := b.CheckProofs(k, e); err != nil {
		r.t.Fatalf("proofs: %v", err)
	}
	if err := r.state.CheckAttended(b, k, func(quorum.Vote) bool { return false }); err != nil {
		r.t.Fatalf("attended: %v", err)
	}
	res := r.execute(b)
	r.past = append(r.past, b.Header)
	if res.Next != nil {
		r.hands = append(r.hands, Handover{Final: Finality{Header: b.Header, Certificate: r.certificate(e, b.Header)}, Terms: res.Terms})
	}
	return res
}

func (r *realm) certificate(e *Epoch, h Header) quorum.Certificate {
	c := quorum.Certificate{Subject: quorum.Subject{Kind: quorum.Finalize, View: h.View, Block: h.Hash()}}
	for s := range e.Roster.Weights.All() {
		c.Signatures = append(c.Signatures, r.sign(e, c.Subject, s.Anchor))
	}
	return c
}

// turn makes blocks until the epoch ends.
func (r *realm) turn() *Result {
	r.t.Helper()
	for range 1000 {
		if res := r.add(r.next(r.ballots(1), nil)); res.Next != nil {
			return res
		}
	}
	r.t.Fatalf("the epoch does not end")
	return nil
}

// govern is an anchor's approval of a decision.
func (r *realm) approve(name string, d Decision) Outcome {
	r.t.Helper()
	c, err := Sign(r.names[name], r.g.Policy.Limits, r.mutation(Govern, d))
	if err != nil {
		r.t.Fatalf("sign: %v", err)
	}
	return r.add(r.next(nil, nil, c)).Outcomes[0]
}

func (r *realm) score(name string) trust.Standing {
	r.t.Helper()
	l, err := r.state.Ledger()
	if err != nil {
		r.t.Fatalf("ledger: %v", err)
	}
	s, _ := l.Standing(r.id(name))
	return s
}

func TestP24EpochEndsAfterItsBlocks(t *testing.T) {
	r := newRealm(t, nil)
	r.turn()
	e := r.epoch()
	if e.Number != 1 || e.Start != 21 || r.state.Head().Epoch != 0 || e.Root != r.state.Head().Block {
		t.Fatalf("epoch %d from block %d, head %+v", e.Number, e.Start, r.state.Head())
	}
	b := r.next(nil, nil)
	if b.Header.View != 1 || b.Header.Epoch != 1 || b.Header.Domain() != e.Domain() {
		t.Fatalf("the first block of the epoch is %+v", b.Header)
	}
	r.add(b)
}

// TestKnownEpochIsSharedOnlyByItsOwnStates gives states epochs that were read before.
func TestKnownEpochIsSharedOnlyByItsOwnStates(t *testing.T) {
	r := newRealm(t, nil)
	first := r.epoch()
	r.turn()
	second := r.epoch()
	if second.Number != first.Number+1 {
		t.Fatalf("epoch %d follows %d", second.Number, first.Number)
	}
	r.open()
	for name, known := range map[string][]*Epoch{"none": nil, "another": {first}, "its own": {first, second}} {
		s, err := r.state.Begin(known...)
		if err != nil {
			t.Fatal(err)
		}
		e, err := s.Epoch()
		if err != nil || e.Domain() != second.Domain() || e.Root != second.Root || (e == second) != (name == "its own") {
			t.Errorf("knowing %s, the state begins in epoch %d, shared: %v, %v", name, e.Number, e == second, err)
		}
	}
}

func TestP24ClockEndsAnEpochThatHoldsBlocks(t *testing.T) {
	r := newRealm(t, func(p *Policy) { p.EpochTime = time.Minute })
	if at, _ := r.state.ClockEnds(); at != 0 {
		t.Error("an epoch without blocks has a deadline")
	}
	r.now = r.now.Add(time.Hour)
	for range defaults.clockBlocks() {
		if b := r.next(nil, nil); !b.Header.Next.IsZero() {
			t.Fatal("an epoch of few blocks ended")
		} else {
			r.add(b)
		}
	}
	if res := r.add(r.next(nil, nil)); res.Next == nil {
		t.Fatal("an hour ended no epoch of a minute")
	}
}

// TestP24EndingBlocksAreWhatFollowsFromTheChain spoils them in each way.
func TestP24EndingBlocksAreWhatFollowsFromTheChain(t *testing.T) {
	r := newRealm(t, nil)
	for range 20 {
		r.add(r.next(r.ballots(1), nil))
	}
	good := r.next(nil, nil).Header
	if good.Next.IsZero() {
		t.Fatal("the epoch does not end")
	}
	for name, spoil := range map[string]func(*Header){
		"does not end the epoch": func(h *Header) { h.Next = aweigh.Hash{} },
		"hands over to others":   func(h *Header) { h.Next[0] ^= 1 },
		"has content":            func(h *Header) { h.Mutations[0] = 1 },
		"has ballots":            func(h *Header) { h.Evidence[0] = 1 },
		"of the next epoch":      func(h *Header) { h.Epoch++ },
		"of another roster":      func(h *Header) { h.Roster[0] ^= 1 },
		"of another policy":      func(h *Header) { h.Policy[0] ^= 1 },
	} {
		h := good
		spoil(&h)
		if err := r.state.CheckHeader(h); !errors.Is(err, ErrInvalid) {
			t.Errorf("a block that %s: %v", name, err)
		}
	}
	if err := r.state.CheckHeader(good); err != nil {
		t.Fatal(err)
	}
	early := newRealm(t, nil)
	h := early.next(nil, nil).Header
	h.Next[0] = 1
	if err := early.state.CheckHeader(h); !errors.Is(err, ErrInvalid) {
		t.Errorf("an epoch that ends with its first block: %v", err)
	}
}

// TestP25WhatFollowsTheEndIsEmpty: blocks of the old epoch above its end carry
// nothing, and the new epoch begins with the end itself.
func TestP25WhatFollowsTheEndIsEmpty(t *testing.T) {
	r := newRealm(t, nil)
	r.turn()
	last := r.past[len(r.past)-1]
	trail := func(s *State, view aweigh.View) Header {
		h, full, err := s.Claim(Header{Epoch: 0, View: view, Time: s.Head().Time + 1})
		if err != nil || full {
			t.Fatalf("full %v, %v", full, err)
		}
		return h
	}
	h := trail(r.state, last.View+1)
	if err := r.state.CheckHeader(h); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Header){
		"has content":       func(h *Header) { h.Mutations[0] = 1 },
		"has ballots":       func(h *Header) { h.Evidence[0] = 1 },
		"ends it again":     func(h *Header) { h.Next[0] = 1 },
		"of an older view":  func(h *Header) { h.View = last.View },
		"of another roster": func(h *Header) { h.Roster[0] ^= 1 },
	} {
		bad := h
		spoil(&bad)
		if err := r.state.CheckHeader(bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("a block after the end that %s: %v", name, err)
		}
	}
	res, err := r.state.Execute(NewBlock(h, nil, Evidence{}))
	if err != nil {
		t.Fatal(err)
	}
	above := res.State(r.state.r)
	if err := above.CheckHeader(trail(above, last.View+2)); err != nil {
		t.Errorf("a second block after the end: %v", err)
	}
	e := r.epoch()
	first, _, err := above.Claim(Header{Epoch: e.Number, View: 1, Time: above.Head().Time + 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := above.CheckHeader(first); !errors.Is(err, ErrInvalid) {
		t.Errorf("the new epoch begins above its root: %v", err)
	}
}

// TestP26LightClientFollowsRosters: the genesis and one handover per epoch show
// the newest roster, and nothing else does.
func TestP26LightClientFollowsRosters(t *testing.T) {
	r := newRealm(t, nil)
	r.away[r.id("d")] = true
	for range 5 {
		r.turn()
	}
	first, err := r.g.Epoch()
	if err != nil {
		t.Fatal(err)
	}
	var read []Handover
	if err := canon.Decode(canon.Encode(r.hands), &read); err != nil {
		t.Fatal(err)
	}
	got, err := first.followAll(read)
	if err != nil || !bytes.Equal(got.Encode(), r.epoch().Encode()) {
		t.Fatalf("followed to %+v, %v; it is %+v", got, err, r.epoch())
	}
	for name, spoil := range map[string]func([]Handover) []Handover{
		"leaves an epoch out": func(c []Handover) []Handover { return slices.Delete(c, 1, 2) },
		"swaps two":           func(c []Handover) []Handover { c[1], c[2] = c[2], c[1]; return c },
		"names other weights": func(c []Handover) []Handover { c[2].Terms.Weights[0]++; return c },
		"lets others lead":    func(c []Handover) []Handover { c[2].Terms.NonLeading[0] = true; return c },
		"names other rules":   func(c []Handover) []Handover { c[2].Terms.Policy.EpochBlocks++; return c },
		"lacks a signature": func(c []Handover) []Handover {
			c[2].Final.Certificate.Signatures = c[2].Final.Certificate.Signatures[2:]
			return c
		},
	} {
		var bad []Handover
		if err := canon.Decode(canon.Encode(r.hands), &bad); err != nil {
			t.Fatal(err)
		}
		if _, err := first.followAll(spoil(bad)); err == nil {
			t.Errorf("a chain that %s is followed", name)
		}
	}
}

// TestP27BallotsLeftOutAreReconciled: a leader cannot keep a ballot from the
// chain that another leader holds, and only in time is full credit.
func TestP27BallotsLeftOutAreReconciled(t *testing.T) {
	r := newRealm(t, nil)
	full := newRealm(t, nil)
	r.away[r.id("d")] = true
	none := newRealm(t, nil)
	none.away[none.id("d")] = true
	for i := range 20 {
		if i == 12 {
			r.away[r.id("d")] = false // what it signed comes late
		}
		for _, w := range []*realm{r, full, none} {
			w.add(w.next(w.ballots(1), nil))
		}
	}
	for _, w := range []*realm{r, full, none} {
		w.turn()
	}
	d, best, worst := r.score("d").Score, full.score("d").Score, none.score("d").Score
	if !(worst < d && d < best) {
		t.Errorf("late %d, in time %d, never %d", d, best, worst)
	}
}

// TestP27BallotsAreCheckedBeforeTheyCount spoils what a block reconciles.
func TestP27BallotsAreCheckedBeforeTheyCount(t *testing.T) {
	r := newRealm(t, nil)
	for range 5 {
		r.add(r.next(nil, nil))
	}
	k, err := r.epoch().Keyring()
	if err != nil {
		t.Fatal(err)
	}
	check := func(a []Attended) error {
		return r.state.CheckAttended(r.next(a, nil), k, func(quorum.Vote) bool { return false })
	}
	if err := check(r.ballots(0)); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func([]Attended) []Attended{
		"forged":             func(a []Attended) []Attended { a[1].Signatures[1].Bytes[5] ^= 1; return a },
		"twice in one block": func(a []Attended) []Attended { a[1].Height = a[0].Height; return a },
		"of one anchor twice": func(a []Attended) []Attended {
			a[0].Signatures[1] = a[0].Signatures[0]
			return a
		},
		"on another block":  func(a []Attended) []Attended { a[0].Height, a[1].Height = a[1].Height, a[0].Height; return a[1:2] },
		"on no block":       func(a []Attended) []Attended { a[len(a)-1].Height = 99; return a },
		"on the genesis":    func(a []Attended) []Attended { a[0].Height = 0; return a },
		"of nobody":         func(a []Attended) []Attended { a[0].Signatures = nil; return a },
		"of a non-member":   func(a []Attended) []Attended { a[0].Signatures[0].Anchor[0] ^= 1; return a },
		"in no order":       func(a []Attended) []Attended { slices.Reverse(a); return a },
		"signers unordered": func(a []Attended) []Attended { slices.Reverse(a[0].Signatures); return a },
	} {
		if err := check(spoil(r.ballots(0))); !errors.Is(err, ErrInvalid) {
			t.Errorf("ballots %s: %v", name, err)
		}
	}
	r.add(r.next(r.ballots(0), nil))
	again := []Attended{{Height: 3, Signatures: []quorum.Signature{r.sign(r.epoch(), quorum.Subject{Kind: quorum.Finalize, View: r.past[2].View, Block: r.past[2].Hash()}, r.id("a"))}}}
	if err := check(again); !errors.Is(err, ErrInvalid) {
		t.Errorf("ballots that are on record: %v", err)
	}
}

func TestLiarsAreBarredWithTheNextEpoch(t *testing.T) {
	r := newRealm(t, nil)
	liar, e := r.id("b"), r.epoch()
	ballot := func(s quorum.Subject) votes.Ballot {
		return votes.Ballot{Format: votes.Format, Domain: e.Domain(), Subject: s, Anchor: liar, Signature: r.sign(e, s, liar).Bytes}
	}
	proof, err := votes.NewEquivocation(ballot(quorum.Subject{Kind: quorum.Nullify, View: 9}), ballot(quorum.Subject{Kind: quorum.Finalize, View: 9, Block: e.Root}))
	if err != nil {
		t.Fatal(err)
	}
	prove := func(r *realm) {
		r.add(r.next(nil, []Proof{proof}))
		if s := r.score("b"); !s.Barred || s.Score != 0 {
			t.Fatalf("after the proof: %+v", s)
		}
		if res := r.add(r.next(nil, nil)); res.Next == nil {
			t.Fatal("the epoch goes on with a liar")
		}
		if n := r.epoch(); len(n.Roster.Anchors) != 3 || n.Roster.Weights.Of(liar) != 0 {
			t.Fatalf("the liar keeps its seat: %+v", n.Roster)
		}
	}
	prove(r)
	late := newRealm(t, nil) // proven in the next epoch only
	late.turn()
	prove(late)
	later := newRealm(t, nil)
	later.turn()
	later.turn()
	k, err := later.epoch().Keyring()
	if err != nil {
		t.Fatal(err)
	}
	if err := later.next(nil, []Proof{proof}).CheckProofs(k, later.epoch()); !errors.Is(err, votes.ErrStale) {
		t.Errorf("a proof from two epochs ago: %v", err)
	}
}

// TestWhoRetiresAnswersForTheLastEpoch: a liar that retires before it is proven at
// fault is barred all the same.
func TestWhoRetiresAnswersForTheLastEpoch(t *testing.T) {
	r := newRealm(t, nil)
	liar, e := r.id("b"), r.epoch()
	ballot := func(s quorum.Subject) votes.Ballot {
		return votes.Ballot{Format: votes.Format, Domain: e.Domain(), Subject: s, Anchor: liar, Signature: r.sign(e, s, liar).Bytes}
	}
	proof, err := votes.NewEquivocation(ballot(quorum.Subject{Kind: quorum.Nullify, View: 9}), ballot(quorum.Subject{Kind: quorum.Finalize, View: 9, Block: e.Root}))
	if err != nil {
		t.Fatal(err)
	}
	r.approve("b", Decision{Kind: Retire, Subject: liar})
	r.turn()
	if _, seated := r.epoch().Roster.Seat(liar); seated {
		t.Fatal("it did not leave")
	}
	r.add(r.next(nil, []Proof{proof}))
	if s := r.score("b"); !s.Barred {
		t.Errorf("after the proof: %+v", s)
	}
}

// TestNobodyFillsTheAgendaForOthers: an anchor has a share of it, and non-members
// one of theirs; and no mutation writes it all again.
func TestNobodyFillsTheAgendaForOthers(t *testing.T) {
	r := newRealm(t, func(p *Policy) { p.EpochBlocks, p.EpochTime = 1000, 24*time.Hour })
	for i := range proposedAtOnce + 1 {
		p := r.g.Policy
		p.EpochBlocks = uint64(2000 + i)
		out := r.approve("a", Decision{Kind: SetPolicy, Policy: &p})
		if want := i < proposedAtOnce; (out.Code == Applied) != want {
			t.Fatalf("decision %d: %v %s", i, out.Code, out.Reason)
		}
	}
	for i := range outsideAtOnce + 1 {
		key := testKey(t, byte(100+i))
		r.names["x"] = key
		out := r.approve("x", Admission(r.g.Hash(), key, "x", string(rune('A'+i)), r.id("a")))
		if want := i < outsideAtOnce; (out.Code == Applied) != want {
			t.Fatalf("application %d: %v %s", i, out.Code, out.Reason)
		}
	}
	r.now = r.now.Add(unlistedMotionStay) // none has an approval: the first one gives way
	r.names["x"] = testKey(t, 200)
	last := r.approve("x", Admission(r.g.Hash(), r.names["x"], "x", "Z", r.id("a")))
	if last.Code != Applied {
		t.Fatalf("an application when others have waited for long: %s", last.Reason)
	}
	r.approve("a", Admission(r.g.Hash(), r.names["x"], "x", "Z", r.id("a")))
	for i := range 3 * outsideAtOnce {
		key := testKey(t, byte(10+i))
		r.names["x"], r.now = key, r.now.Add(unlistedMotionStay)
		if out := r.approve("x", Admission(r.g.Hash(), key, "x", string(rune('a'+i)), r.id("a"))); out.Code != Applied {
			t.Fatalf("application %d of those that come later: %s", i, out.Reason)
		}
	}
	if _, end, err := r.state.Motion(last.Mutation); err != nil || end != nil {
		t.Fatalf("an application that has an approval gave way to others: %v, %v", end, err)
	}
	if out := r.approve("b", Decision{Kind: Evict, Subject: r.id("a")}); out.Code != Applied {
		t.Errorf("its eviction: %s", out.Reason)
	}
	if out := r.approve("c", Decision{Kind: Retire, Subject: r.id("c")}); out.Code != Applied {
		t.Errorf("another retires: %s", out.Reason)
	}
	r.turn()
	before := r.state.Head()
	var again []Mutation
	for range maxDecisions {
		again = append(again, r.mutation(Govern, Decision{Kind: Evict, Subject: r.id("a")}))
	}
	c, err := Sign(r.names["b"], r.g.Policy.Limits, again...)
	if err != nil {
		t.Fatal(err)
	}
	if r.add(r.next(nil, nil, c)); r.state.Head().Agenda != before.Agenda || r.state.Head().Docket != before.Docket {
		t.Error("approving again changes the agenda")
	}
	if _, err := Sign(r.names["b"], r.g.Policy.Limits, append(again, r.mutation(Govern, Decision{Kind: Evict, Subject: r.id("a")}))...); !errors.Is(err, ErrInvalid) {
		t.Errorf("a bundle of too many decisions: %v", err)
	}
}

// TestRetiringNeedsARosterThatHolds: no anchor leaves that the rules need.
func TestRetiringNeedsARosterThatHolds(t *testing.T) {
	r := newRealm(t, func(p *Policy) { p.Rules.Finalize.MinAnchors = 4 })
	if out := r.approve("a", Decision{Kind: Retire, Subject: r.id("a")}); out.Code != Failed || !strings.Contains(out.Reason, "without this anchor") {
		t.Errorf("%v %s", out.Code, out.Reason)
	}
}

func TestAnchorsJoinAndLeave(t *testing.T) {
	r := newRealm(t, nil)
	fifth := testKey(t, 77)
	r.names["e"], r.keys[fifth.Public().ID()] = fifth, fifth
	d := Admission(r.g.Hash(), fifth, "e", "peer-e", r.id("a"))
	if out := r.approve("e", d); out.Code != Applied {
		t.Fatalf("the application: %v %s", out.Code, out.Reason)
	}
	for _, name := range []string{"b", "c", "d"} {
		if out := r.approve(name, d); out.Code != Applied {
			t.Fatalf("%s: %v %s", name, out.Code, out.Reason)
		}
	}
	if open, _ := r.state.Agenda(); len(open) != 1 || open[0].Carried != 0 || len(open[0].Approvals) != 3 {
		t.Fatalf("without its sponsor: %+v", open)
	}
	r.approve("a", d)
	r.turn()
	e := r.epoch()
	if seat, ok := e.Roster.Seat(fifth.Public().ID()); !ok || e.Roster.Weights.Of(fifth.Public().ID()) != 0 || e.Roster.Anchors[seat].Peer != "peer-e" {
		t.Fatalf("after its admission: %+v", e.Roster)
	}
	r.turn()
	r.turn()
	if w := r.epoch().Roster.Weights; w.Of(fifth.Public().ID()) == 0 || w.Len() != 5 {
		t.Fatalf("after its probation it weighs %d", w.Of(fifth.Public().ID()))
	}
	leave := Decision{Kind: Retire, Subject: r.id("c")}
	if out := r.approve("a", leave); out.Code != Failed || !strings.Contains(out.Reason, "only the anchor itself") {
		t.Fatalf("another retires an anchor: %v %s", out.Code, out.Reason)
	}
	r.approve("c", leave)
	evict := Decision{Kind: Evict, Subject: r.id("d")}
	r.turn()
	if r.epoch().Roster.Weights.Of(r.id("c")) != 0 {
		t.Fatal("who retired still weighs")
	}
	for _, name := range []string{"a", "b", "e"} {
		r.approve(name, evict)
	}
	r.turn()
	if w := r.epoch().Roster.Weights; w.Of(r.id("d")) != 0 || w.Len() != 3 {
		t.Fatal("who was evicted still weighs")
	}
	first, err := r.g.Epoch()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := first.followAll(r.hands); err != nil || !bytes.Equal(got.Encode(), r.epoch().Encode()) {
		t.Fatalf("a light client follows to %+v: %v", got, err)
	}
}

// TestDecisionsThatCannotBeTakenAreRefused checks the reason for each.
func TestDecisionsThatCannotBeTakenAreRefused(t *testing.T) {
	r := newRealm(t, nil)
	outsider := testKey(t, 88)
	r.names["x"] = outsider
	loose, mode := r.g.Policy, r.g.Policy
	loose.Rules.Finalize = quorum.Rule{Num: 1, Den: 2}
	mode.Rules = quorum.DefaultRules(quorum.Crash)
	for name, c := range map[string]struct {
		by   string
		d    Decision
		want string
	}{
		"a non-member evicts":   {"x", Decision{Kind: Evict, Subject: r.id("a")}, "only anchors"},
		"nobody is evicted":     {"a", Decision{Kind: Evict, Subject: outsider.Public().ID()}, "no anchor"},
		"an anchor is admitted": {"a", Admission(r.g.Hash(), r.names["b"], "b", "p", r.id("a")), "anchor already"},
		"a strange sponsor":     {"x", Admission(r.g.Hash(), outsider, "x", "p", testKey(t, 5).Public().ID()), "no weight"},
		"unsafe rules":          {"a", Decision{Kind: SetPolicy, Policy: &loose}, "unsafe"},
		"mode crash":            {"a", Decision{Kind: SetPolicy, Policy: &mode}, "mode bft cannot be of mode crash"},
	} {
		if out := r.approve(c.by, c.d); out.Code != Failed || !strings.Contains(out.Reason, c.want) {
			t.Errorf("%s: %v %q, want %q", name, out.Code, out.Reason, c.want)
		}
	}
	d := Admission(r.g.Hash(), outsider, "x", "p", r.id("a"))
	d.Sponsor = r.id("b")
	if _, err := Sign(r.names["a"], r.g.Policy.Limits, r.mutation(Govern, d)); err == nil || !strings.Contains(err.Error(), "consent") {
		t.Errorf("consent to another sponsor: %v", err)
	}
}

func TestPolicyChangesWithTheEpoch(t *testing.T) {
	r := newRealm(t, nil)
	p := r.g.Policy
	p.EpochBlocks, p.Rules.Finalize, p.Rules.Mode = 7, quorum.Rule{Num: 8, Den: 10}, quorum.Fast
	d := Decision{Kind: SetPolicy, Policy: &p}
	for _, name := range []string{"a", "b", "c"} {
		if r.epoch().Policy.EpochBlocks != 20 {
			t.Fatal("the policy changed before the epoch did")
		}
		r.approve(name, d)
	}
	r.turn()
	if e := r.epoch(); e.Policy.Hash() != p.Hash() || e.Number != 1 {
		t.Fatalf("epoch %d has policy %+v", e.Number, e.Policy)
	}
}

// TestAnchorsThatLedInVainDoNotLead: an anchor whose views gave no block in an epoch
// does not lead in the next, and keeps its weight.
func TestAnchorsThatLedInVainDoNotLead(t *testing.T) {
	r := newRealm(t, func(p *Policy) { p.EpochBlocks = 60 })
	dead := r.id("c")
	view := aweigh.View(0)
	for r.epoch().Number == 0 {
		e := r.epoch()
		for view++; quorum.Leader(e.Leaders(), e.Seed(), view) == dead; view++ { // nullified
		}
		b := r.next(nil, nil)
		b.Header.View, b.Header.Proposer = view, quorum.Leader(e.Leaders(), e.Seed(), view)
		r.add(NewBlock(b.Header, nil, Evidence{}))
	}
	e := r.epoch()
	if e.Roster.Weights.Of(dead) == 0 || e.Leaders().Of(dead) != 0 || e.Leaders().Len() != 3 {
		t.Fatalf("it weighs %d and leads with %d", e.Roster.Weights.Of(dead), e.Leaders().Of(dead))
	}
	r.turn()
	if e := r.epoch(); e.Leaders().Of(dead) == 0 {
		t.Fatal("it does not lead for ever")
	}
}

// TestRostersAreTheSameEverywhere pins the fifth epoch of a scope in which one
// anchor was away, one joined and one lied: every processor must compute it.
func TestRostersAreTheSameEverywhere(t *testing.T) {
	r := newRealm(t, nil)
	r.away[r.id("d")] = true
	fifth := testKey(t, 77)
	r.names["e"], r.keys[fifth.Public().ID()] = fifth, fifth
	d := Admission(r.g.Hash(), fifth, "e", "peer-e", r.id("a"))
	for _, name := range []string{"a", "b", "c"} {
		r.approve(name, d)
	}
	for r.epoch().Number < 5 {
		r.turn()
	}
	e := r.epoch()
	const want = "3b764a4f46db053e1888420c97b9c8b3302fe4b6ea8aed80523abf368236513e"
	if got := aweigh.Sum(e.Encode()).String(); got != want || e.Roster.Weights.Len() != 5 {
		t.Errorf("epoch %d with weights %v is %s, not %s", e.Number, e.Terms().Weights, got, want)
	}
}
