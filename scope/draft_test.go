package scope

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/votes"
)

// draft is what a mutation would open, and its bundle.
func (c *chronicle) draft(t *testing.T, m Mutation) (*Motion, *CheckedBundle, error) {
	t.Helper()
	b := c.sign(m)[0]
	mo, err := c.state.Draft(b, 0, c.now.Add(time.Second))
	return mo, b, err
}

func (c *chronicle) proveDraft(t *testing.T, m Mutation) *MotionProof {
	t.Helper()
	mo, b, err := c.draft(t, m)
	if err != nil {
		t.Fatal(err)
	}
	p, err := DecodeMotionProof(NewDraftProof(c.ancestry(t), b, 0, mo).Encode())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestDraftsAreWhatOpens: a draft has all but its place in the lineage of the motion that the next block opens, and
// changes nothing.
func TestDraftsAreWhatOpens(t *testing.T) {
	c, _ := contested(t)
	c.add(nil)
	m := c.ops(put("/secrets/db/a", "newer"), del("/secrets/db/x", "/secrets/db/y"))
	before := c.state.Head()
	mo, b, err := c.draft(t, m)
	if err != nil {
		t.Fatal(err)
	}
	if again, _, err := c.draft(t, m); err != nil || !bytes.Equal(canon.Encode(*again), canon.Encode(*mo)) || c.state.Head() != before {
		t.Fatalf("a second draft: %v, or the state changed", err)
	}
	c.now = c.now.Add(time.Second)
	block := c.block([]*CheckedBundle{b})
	c.execute(NewBlock(block.Header, block.Bundles, Evidence{}))
	opened, _, err := c.state.Motion(votes.MotionID(b.Mutations()[0].ID))
	if err != nil || opened == nil {
		t.Fatalf("it opened %v, %v", opened, err)
	}
	want := *opened
	want.Entry, want.Revision = 0, 0
	if !bytes.Equal(canon.Encode(*mo), canon.Encode(want)) {
		t.Errorf("drafted\n%+v\nopened\n%+v", *mo, want)
	}
}

// TestSomeMutationsOpenNothing: a draft says why.
func TestSomeMutationsOpenNothing(t *testing.T) {
	c, id := contested(t)
	c.add(nil)
	late := c.put("/secrets/db/a", "late")
	late.ValidUntil = c.now
	opened, _, err := c.state.Motion(id)
	if err != nil {
		t.Fatal(err)
	}
	var again Mutation
	if err := again.decode(opened.Mutation); err != nil {
		t.Fatal(err)
	}
	for want, m := range map[string]Mutation{
		"applied":             c.put("/free", "1"),
		"expired":             late,
		"on record":           again,
		"transactions within": c.ops(Op{Kind: OpTxn, Txn: &Txn{Success: []Op{put("/secrets/db/a", "1")}}}),
	} {
		if _, _, err := c.draft(t, m); !errors.Is(err, ErrNoDraft) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestDraftProofConvincesWhoKnowsOnlyTheNetwork: of the author and of the voters, and of nothing that it cannot know.
func TestDraftProofConvincesWhoKnowsOnlyTheNetwork(t *testing.T) {
	c, _ := contested(t)
	c.add(nil)
	m := c.put("/secrets/db/new", "draft")
	raw := c.proveDraft(t, m).Encode()
	other := c.open(c.put("/secrets/db/b", "2"))
	c.add(nil)
	full := c.proveMotion(t, other)
	bent := func(bend func(*MotionProof)) (MotionReport, error) {
		p, err := DecodeMotionProof(raw)
		if err != nil {
			t.Fatal(err)
		}
		bend(p)
		return p.Verify(c.g.Hash())
	}
	r, err := bent(func(*MotionProof) {})
	if err != nil || !r.Draft || r.Bare || len(r.Motion.Voters) != 4 || len(r.Effects) != 0 || r.Author.ID() != c.author.Public().ID() {
		t.Fatalf("%v, %+v", err, r)
	}
	for name, bend := range map[string]func(*MotionProof){
		"another's mutation":         func(p *MotionProof) { p.Origin.Mutation = c.put("/secrets/db/a", "other").Encode() },
		"another author":             func(p *MotionProof) { p.Origin.Author = testKey(t, 77).Public() },
		"no signature":               func(p *MotionProof) { p.Origin.Signed = nil },
		"another approval":           func(p *MotionProof) { p.Motion.Approval.Num = 0 },
		"another rule":               func(p *MotionProof) { p.Motion.Rule.Num = 0 },
		"other voters":               func(p *MotionProof) { p.Motion.Voters = p.Motion.Voters[1:] },
		"a key without a vote votes": func(p *MotionProof) { p.Motion.Voters[0].Key = testKey(t, 77).Public() },
		"another deadline":           func(p *MotionProof) { p.Motion.Deadline++ },
		"an earlier block":           func(p *MotionProof) { p.Motion.Height = p.Ancestry.Head.Header.Height },
		"an earlier time":            func(p *MotionProof) { p.Motion.Opened = p.Ancestry.Head.Header.Time },
		"another epoch":              func(p *MotionProof) { p.Motion.Epoch++ },
		"another policy":             func(p *MotionProof) { p.Motion.Policy[0]++ },
		"an entry":                   func(p *MotionProof) { p.Motion.Entry = 1 },
		"a revision":                 func(p *MotionProof) { p.Motion.Revision = 1 },
		"the motion's own":           func(p *MotionProof) { p.Motion.Mutation = p.Origin.Mutation },
		"content":                    func(p *MotionProof) { p.Held = full.Held },
		"an opening":                 func(p *MotionProof) { p.Opened = full.Opened },
		"a place in a block":         func(p *MotionProof) { p.Origin.Place = full.Origin.Place },
		"a certificate":              func(p *MotionProof) { p.Origin.Final.Certificate = full.Origin.Final.Certificate },
		"a block that opened":        func(p *MotionProof) { p.Origin.Final = full.Origin.Final },
		"a handover":                 func(p *MotionProof) { p.Ancestry.Handovers = make([]Handover, 1) },
		"many handovers":             func(p *MotionProof) { p.Ancestry.Handovers = make([]Handover, 2) },
		"not final": func(p *MotionProof) {
			p.Ancestry.Head.Certificate.Signatures = p.Ancestry.Head.Certificate.Signatures[:2]
		},
	} {
		if _, err := bent(bend); !errors.Is(err, ErrProof) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDraftProofBearsNoChange flips bits in every byte: what is proven is as before, or the proof is refused.
func TestDraftProofBearsNoChange(t *testing.T) {
	testshort.Skip(t)
	c, _ := contested(t)
	c.add(nil)
	p := c.proveDraft(t, c.put("/secrets/db/new", "draft"))
	want, err := p.Verify(c.g.Hash())
	if err != nil {
		t.Fatal(err)
	}
	raw := p.Encode()
	for i := range raw {
		bent := bytes.Clone(raw)
		bent[i] ^= 1 << (i % 8)
		p, err := DecodeMotionProof(bent)
		if err != nil {
			continue
		}
		r, err := p.Verify(c.g.Hash())
		if err == nil && (!r.Draft || r.Motion.ID() != want.Motion.ID() || r.Author.ID() != want.Author.ID() || r.Motion.Rule != want.Motion.Rule ||
			!bytes.Equal(canon.Encode(r.Motion.Voters), canon.Encode(want.Motion.Voters))) {
			t.Fatalf("byte %d of %d changed from %#x to %#x: %+v", i, len(raw), raw[i], bent[i], r)
		}
	}
}

// TestDraftsOfTheNextEpoch: the newest block is the last of its epoch, and its handover shows who may vote.
func TestDraftsOfTheNextEpoch(t *testing.T) {
	r := newRealm(t, func(p *Policy) {
		p.Approvals = []Approval{{Matter: Changes, Prefix: []byte("/secrets/"), Num: 3, Den: 4, Window: time.Hour}}
	})
	r.turn()
	last := r.past[len(r.past)-1]
	b := r.world.sign(r.put("/secrets/a", "1"))[0]
	mo, err := r.state.Draft(b, 0, r.now.Add(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	first, err := r.g.Epoch()
	if err != nil {
		t.Fatal(err)
	}
	a := Ancestry{Genesis: r.g, Handovers: r.hands, Head: Finality{Header: last, Certificate: r.certificate(first, last)}}
	p := NewDraftProof(a, b, 0, mo)
	report, err := p.Verify(r.g.Hash())
	if err != nil || mo.Epoch != 1 || report.Under.Number != 1 || report.Head.Epoch != 0 {
		t.Fatalf("epoch %d, %v, %+v", mo.Epoch, err, report)
	}
	p.Ancestry.Handovers = nil
	if _, err := p.Verify(r.g.Hash()); !errors.Is(err, ErrProof) {
		t.Errorf("without the handover: %v", err)
	}
}
