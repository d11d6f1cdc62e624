package scope

import (
	"strings"
	"testing"

	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/trust"
	"github.com/aweigh/aweigh/votes"
)

// lies is a proof that an anchor signed two ballots that exclude each other.
func (r *realm) lies(name string) Proof {
	r.t.Helper()
	e, liar := r.epoch(), r.id(name)
	ballot := func(s quorum.Subject) votes.Ballot {
		return votes.Ballot{Format: votes.Format, Domain: e.Domain(), Subject: s, Anchor: liar, Signature: r.sign(e, s, liar).Bytes}
	}
	p, err := votes.NewEquivocation(ballot(quorum.Subject{Kind: quorum.Nullify, View: 9}), ballot(quorum.Subject{Kind: quorum.Finalize, View: 9, Block: e.Root}))
	if err != nil {
		r.t.Fatalf("proving a lie: %v", err)
	}
	return p
}

func (r *realm) readmission(name string) Decision {
	r.t.Helper()
	for _, a := range r.g.Anchors {
		if a.Name == name {
			a.Score, a.Peer = 0, "peer of "+name
			return Decision{Kind: Readmit, Subject: r.id(name), Anchor: &a}
		}
	}
	r.t.Fatalf("no anchor is called %s", name)
	return Decision{}
}

func (r *realm) all(d Decision, names ...string) (last Outcome) {
	r.t.Helper()
	for _, name := range names {
		if last = r.approve(name, d); last.Code != Applied {
			r.t.Fatalf("%s may not approve to %s: %s", name, d.About(), last.Reason)
		}
	}
	return last
}

// TestAttestedScoresAreSet: a carried Attest sets the score with the next epoch, after the attendance of this one, and
// the change names the decision.
func TestAttestedScoresAreSet(t *testing.T) {
	r := newRealm(t, nil)
	d := Decision{Kind: Attest, Subject: r.id("c"), Score: 700_001, Reason: "its new machine was audited"}
	if got := d.About(); !strings.Contains(got, "score 700001: its new machine was audited") {
		t.Errorf("it is described as %q", got)
	}
	r.all(d, "a", "b")
	if s := r.score("c"); s.Score != 500_000 {
		t.Fatalf("half of the weight sets a score of %d", s.Score)
	}
	r.all(d, "d")
	if s := r.score("c"); s.Score != 500_000 {
		t.Fatalf("it is in effect before the epoch ends: %d", s.Score)
	}
	res := r.turn()
	if s := r.score("c"); s.Score != 700_001 || !s.Seated {
		t.Fatalf("after the epoch: %+v", s)
	}
	var told trust.Change
	for _, c := range res.Trust {
		if c.Evidence.Kind == trust.Attested {
			told = c
		}
	}
	if told.Evidence.Proof != d.ID() || told.After != 700_001 || !strings.Contains(told.Reason, "sets 700001") {
		t.Errorf("the change is told as %+v", told)
	}
	if out := r.approve("a", d); out.Code != Failed || !strings.Contains(out.Reason, "has a score of 700001 already") {
		t.Errorf("once more: %s %s", out.Code, out.Reason)
	}
	if got := r.epoch().Roster.Weights.Of(r.id("c")); got <= r.epoch().Roster.Weights.Of(r.id("a")) {
		t.Errorf("it weighs %d, no more than the others", got)
	}
}

// TestBarsAreLifted: a carried Readmit gives an anchor that lied its seat again, without weight until its probation is
// over, and once only.
func TestBarsAreLifted(t *testing.T) {
	r := newRealm(t, nil)
	d := r.readmission("d")
	if out := r.approve("a", d); out.Code != Failed || !strings.Contains(out.Reason, "is not barred") {
		t.Fatalf("of an anchor that is not barred: %s %s", out.Code, out.Reason)
	}
	lie := r.lies("d")
	r.add(r.next(nil, []Proof{lie}))
	r.turn()
	attest := Decision{Kind: Attest, Subject: r.id("d"), Score: 5, Reason: "mercy"}
	if out := r.approve("a", attest); out.Code != Failed || !strings.Contains(out.Reason, "is barred") {
		t.Fatalf("a score for one that is barred: %s %s", out.Code, out.Reason)
	}
	r.all(d, "a", "b", "c")
	r.add(r.next(nil, nil)) // which ends the epoch
	s, e := r.score("d"), r.epoch()
	p := e.Policy.Trust
	if s.Barred || !s.Seated || s.Score != p.Initial || s.Weighs != e.Number+1 {
		t.Fatalf("in epoch %d: %+v", e.Number, s)
	}
	seat, seated := e.Roster.Seat(r.id("d"))
	if !seated || e.Roster.Weights.Of(r.id("d")) != 0 || e.Roster.Anchors[seat].Peer != "peer of d" {
		t.Fatalf("its seat is %v: %+v", seated, e.Roster)
	}
	if out := r.approve("a", d); out.Code != Failed || !strings.Contains(out.Reason, "is not barred") {
		t.Errorf("once more: %s %s", out.Code, out.Reason)
	}
	k, err := e.Keyring()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.next(nil, []Proof{lie}).CheckProofs(k, e); err == nil {
		t.Error("the old proof bars it again")
	}
	r.turn()
	if e = r.epoch(); e.Roster.Weights.Of(r.id("d")) == 0 {
		t.Errorf("it weighs nothing in epoch %d: %+v", e.Number, r.score("d"))
	}
}

// TestAttestedAndReadmittedDecisionsAreRefused, with what to do.
func TestAttestedAndReadmittedDecisionsAreRefused(t *testing.T) {
	r := newRealm(t, nil)
	b, unlisted := r.id("b"), testKey(t, 77)
	for name, x := range map[string]struct {
		d   Decision
		why string
	}{
		"no score":        {Decision{Kind: Attest, Subject: b, Reason: "x"}, "from 1 to 1000000"},
		"too much":        {Decision{Kind: Attest, Subject: b, Score: trust.MaxScore + 1, Reason: "x"}, "from 1 to 1000000"},
		"no reason":       {Decision{Kind: Attest, Subject: b, Score: 1}, "a reason of 0 bytes"},
		"a long reason":   {Decision{Kind: Attest, Subject: b, Score: 1, Reason: strings.Repeat("x", maxAttested+1)}, "of 1 to 512"},
		"no text":         {Decision{Kind: Attest, Subject: b, Score: 1, Reason: "\xff"}, "not UTF-8"},
		"a line break":    {Decision{Kind: Attest, Subject: b, Score: 1, Reason: "a\nb"}, "cannot be printed"},
		"no anchor":       {Decision{Kind: Attest, Score: 1, Reason: "x"}, "without its anchor"},
		"a reason to go":  {Decision{Kind: Evict, Subject: b, Reason: "x"}, "content of another kind"},
		"to admit no one": {Decision{Kind: Admit, Subject: b, Sponsor: r.id("a")}, "content of another kind"},
		"another key":     {Decision{Kind: Readmit, Subject: b, Anchor: &Anchor{Name: "b", Key: unlisted.Public(), Peer: "p"}}, "with the key of"},
		"with a sponsor":  {Decision{Kind: Readmit, Subject: b, Anchor: &Anchor{Name: "b", Key: r.names["b"].Public(), Peer: "p"}, Sponsor: b}, "content of another kind"},
		"a yield":         {Decision{Kind: Yield}, "unknown decision"},
		"a return":        {Decision{Kind: Return}, "unknown decision"},
		"an unknown kind": {Decision{Kind: Return + 1}, "unknown decision"},
		"no prefix":       {Decision{Kind: Fold, Child: &Child{}}, "a prefix of 0 bytes"},
		"a fold to some":  {Decision{Kind: Fold, Child: &Child{Prefix: []byte("/a/"), Name: "x"}}, "by its prefix alone"},
	} {
		if err := x.d.Check(); err == nil || !strings.Contains(err.Error(), x.why) {
			t.Errorf("%s: %v", name, err)
		}
	}
	far := Decision{Kind: Attest, Subject: unlisted.Public().ID(), Score: 1, Reason: "x"}
	if out := r.approve("a", far); out.Code != Failed || !strings.Contains(out.Reason, "is no anchor") {
		t.Errorf("a score for an unlisted author: %s %s", out.Code, out.Reason)
	}
	never := Decision{Kind: Readmit, Subject: unlisted.Public().ID(), Anchor: &Anchor{Name: "x", Key: unlisted.Public(), Peer: "p"}}
	if out := r.approve("a", never); out.Code != Failed || !strings.Contains(out.Reason, "was never an anchor here") {
		t.Errorf("an unlisted author returns: %s %s", out.Code, out.Reason)
	}
}

// TestAnchorsThatLieMeanwhileAreNotAttested: a bar between the vote and the end of the epoch makes the decision void,
// with the reason.
func TestAnchorsThatLieMeanwhileAreNotAttested(t *testing.T) {
	r := newRealm(t, nil)
	d := Decision{Kind: Attest, Subject: r.id("d"), Score: 900_000, Reason: "it did well"}
	r.all(d, "a", "b")
	sign := func(name string) *CheckedBundle {
		c, err := Sign(r.names[name], r.g.Policy.Limits, r.mutation(Govern, d))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if out := r.add(r.next(nil, []Proof{r.lies("d")}, sign("c"))).Outcomes[0]; out.Code != Applied {
		t.Fatalf("the vote: %+v", out)
	}
	_, end, err := r.state.Decision(d.ID())
	if err != nil || end == nil || end.Fate != Void || !strings.Contains(end.Reason, "barred") {
		t.Fatalf("it ends as %+v, %v", end, err)
	}
	r.turn()
	if s := r.score("d"); s.Score != 0 || !s.Barred {
		t.Errorf("a liar has the standing %+v", s)
	}
}
