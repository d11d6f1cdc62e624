package scope

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/votes"
)

// ErrNoDraft refuses a draft of a mutation that would open no motion.
var ErrNoDraft = errors.New("scope: it would open no motion")

// Draft returns the motion that the nth mutation of a bundle would open in the next block, at a time: what its voters
// would be asked, by the policy and the roster of now. No block has it, so its Height, Opened, Entry, Deadline, Voters
// and Basis may be others when it opens; its ID is the mutation's, and so ballots on it count then. Errors wrap
// ErrNoDraft if it would open none.
func (s *State) Draft(c *CheckedBundle, nth int, at aweigh.Instant) (*Motion, error) {
	s, err := s.Begin()
	if err != nil {
		return nil, err
	}
	m := &c.mutations[nth]
	if m.Txn == nil && m.Naming == nil && m.Decision == nil {
		return nil, fmt.Errorf("%w: it is of class %s", ErrNoDraft, m.Class)
	}
	h := Header{
		Height: s.head.Height + 1, Time: max(at, s.head.Time+1), Epoch: s.epoch.Number, Policy: s.epoch.Domain().Policy,
	}
	x := newExecution(s, &Block{Header: h})
	x.purse.reserve, x.priced = c.reserve, true // what opens no motion need not be executed
	var spent *Receipt
	if was, known, err := x.receipt(exceeding(c.id)); err != nil {
		return nil, err
	} else if known {
		spent = &was
	}
	out, err := x.apply(m, c.until.Sub(h.Time) > x.policy.Limits.Patience(c.Patient()), spent)
	if err != nil {
		return nil, err
	}
	if out.Code != Pending {
		if out.Reason != "" {
			return nil, fmt.Errorf("%w: %s: %s", ErrNoDraft, out.Code, out.Reason)
		}
		return nil, fmt.Errorf("%w: %s", ErrNoDraft, out.Code)
	}
	mo, _, err := x.next.Over(x.versions).Motion(votes.MotionID(m.ID))
	if err != nil {
		return nil, err
	}
	if mo == nil || mo.Height != h.Height {
		return nil, fmt.Errorf("%w: %s is on record already", ErrNoDraft, m.ID.Short())
	}
	mo.Entry, mo.Revision = 0, 0
	return mo, nil
}

// NewDraftProof collects the proof of a draft: who signs its mutation, and up to the ancestry's head, who may vote by
// which policy. The handovers of the ancestry lead to the epoch of the draft, which is that of the head or, if the head
// is the last block of its epoch, the next one.
func NewDraftProof(a Ancestry, c *CheckedBundle, nth int, mo *Motion) *MotionProof {
	p := &MotionProof{Ancestry: a, Origin: originIn(c, nth), Motion: *mo}
	p.Motion.Mutation = nil
	return p
}

// drafted reports whether the proof is of a draft.
func (p *MotionProof) drafted() bool { return p.Origin.Final.Header.Height == 0 }

// verifyDraft verifies the proof of a draft.
func (p *MotionProof) verifyDraft(network aweigh.NetworkID) (r MotionReport, err error) {
	a := p.Ancestry
	head := &a.Head.Header
	ended := a.Handovers[min(uint64(head.Epoch), uint64(len(a.Handovers))):]
	if len(ended) > 1 {
		return r, fmt.Errorf("%d handovers after the newest block", len(ended))
	}
	a.Handovers = a.Handovers[:len(a.Handovers)-len(ended)]
	_, last, err := a.follow(network, head.Epoch)
	if err != nil {
		return r, err
	}
	in, err := last.followAll(ended)
	if err != nil {
		return r, err
	}
	if in.Start < head.Height && in != last {
		return r, errors.New("a later block than the last of the epoch before")
	}
	mo, o := p.Motion, &p.Origin
	switch {
	case p.Opened != nil || len(p.Held) > 0 || mo.Entry != 0 || mo.Revision != 0:
		return r, errors.New("an entry or content of a motion that no block has opened")
	case o.Mutations != lineage.Head{} || o.Place.Index != 0 || o.Place.Size != 0 || len(o.Place.Path) > 0,
		!bytes.Equal(canon.Encode(o.Final), canon.Encode(Finality{})):
		return r, errors.New("a block of a motion that no block has opened")
	case len(mo.Mutation) > 0:
		return r, errors.New("a motion that repeats its mutation")
	case mo.Height <= max(head.Height, in.Start) || mo.Epoch != in.Number || mo.Policy != in.Domain().Policy:
		return r, errors.New("a draft as of another block, epoch or policy")
	case mo.Opened <= max(head.Time, in.Time) || mo.Deadline != mo.Opened.Add(mo.Approval.Window):
		return r, errors.New("another deadline than the policy gives")
	}
	m, err := o.signed(head.Scope)
	if err != nil {
		return r, err
	}
	if m.ValidUntil < head.Time {
		return r, errors.New("a mutation whose time was over before the newest block")
	}
	mo.Mutation = o.Mutation
	if err := mo.asked(in); err != nil {
		return r, err
	}
	r, _, err = p.report(network, &mo, &m, in, last)
	r.Draft, r.Effects = true, nil
	return r, err
}
