package scope

import (
	"errors"
	"fmt"
	"strings"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/plain"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/trust"
	"github.com/aweigh/aweigh/votes"
)

// DecisionKind states what a Decision changes.
type DecisionKind uint8

const (
	// Admit takes an anchor into the roster, or lets one return.
	Admit DecisionKind = 1
	// Retire takes an anchor out at its own wish.
	Retire DecisionKind = 2
	// Evict takes an anchor out by the others' will.
	Evict DecisionKind = 3
	// SetPolicy gives the scope another policy.
	SetPolicy DecisionKind = 4
	// Delegate hands a prefix to a scope of its own.
	Delegate DecisionKind = 5
	// Revoke gives a scope that was delegated to another government, if its genesis names a
	// notice after which that can be done.
	Revoke DecisionKind = 6
	// Yield is what a Revoke of the scope above makes of a scope's agenda. It cannot be proposed.
	Yield DecisionKind = 7
	// Attest sets the score of an anchor that has a seat, for a reason.
	Attest DecisionKind = 8
	// Readmit lifts the bar of an anchor that lied, and gives it its seat again; or it makes an approver that is void a
	// voter again.
	Readmit DecisionKind = 9
	// Fold takes back what was delegated, if the genesis of the scope below names a notice after which that can be
	// done.
	Fold DecisionKind = 10
	// Return is what a scope's agenda has when all that a folded scope held is there. It cannot be proposed.
	Return DecisionKind = 11
)

// String is the kind in lower case.
func (k DecisionKind) String() string {
	switch k {
	case Admit:
		return "admit"
	case Retire:
		return "retire"
	case Evict:
		return "evict"
	case SetPolicy:
		return "policy"
	case Delegate:
		return "delegate"
	case Revoke:
		return "revoke"
	case Yield:
		return "yield"
	case Attest:
		return "attest"
	case Readmit:
		return "readmit"
	case Fold:
		return "fold"
	case Return:
		return "return"
	}
	return fmt.Sprintf("decision(%d)", uint8(k))
}

// Decision is a change of a scope's government: of its anchors, or of its rules. It takes effect with the next epoch,
// once it has the approval that the policy requires, which is never less than finalizes a block; an anchor decides
// alone on its own retirement.
//
// It is a motion. A mutation of class Govern whose content is the Decision opens it, or approves the one that is open,
// if an anchor has signed the mutation with its own key; ballots count as well.
type Decision struct {
	_       struct{} `cbor:",toarray"`
	Kind    DecisionKind
	Subject aweigh.AnchorID // the anchor that it is about, or the key of an approver that Readmit is about; zero for SetPolicy, Delegate, Revoke and Fold
	Anchor  *Anchor         // for Admit, and Readmit unless it is of an approver: the anchor that gets a seat; its Score is 0
	Sponsor aweigh.AnchorID // for Admit: the sitting anchor that stands surety, and must approve
	Consent []byte          // for Admit: the new anchor's signature, see ConsentBytes
	Policy  *Policy         // for SetPolicy
	Child   *Child          // for Delegate and Revoke; for Fold its prefix alone
	Score   trust.Score     // for Attest: from then on
	Reason  string          // for Attest, and for what a scope delegates by itself: why
}

// About describes in a few words what the decision would do.
func (d *Decision) About() string {
	switch d.Kind {
	case SetPolicy:
		return "set another policy"
	case Delegate:
		return fmt.Sprintf("delegate %q to %s", d.Child.Prefix, d.Child.who())
	case Fold, Return:
		return fmt.Sprintf("take back %q", d.Child.Prefix)
	case Revoke, Yield:
		if d.Child.folds() {
			return fmt.Sprintf("hand %q back to the scope above", d.Child.Prefix)
		}
		return fmt.Sprintf("let %q be governed by %s", d.Child.Prefix, d.Child.who())
	case Admit, Readmit:
		if d.ofApprover() {
			return fmt.Sprintf("readmit the approver %s", d.Subject.Short())
		}
		return d.AboutAnchor(d.Anchor.Name)
	}
	return fmt.Sprintf("%s %s", d.Kind, d.Subject.Short()) + d.attests()
}

// AboutAnchor describes a decision about an anchor, which has that name.
func (d *Decision) AboutAnchor(name string) string {
	return fmt.Sprintf("%s %s (%s)", d.Kind, name, d.Subject.Short()) + d.attests()
}

// attests is what an Attest sets, and why; nothing for other decisions.
func (d *Decision) attests() string {
	if d.Kind != Attest {
		return ""
	}
	return fmt.Sprintf(", score %d: %s", d.Score, d.Reason)
}

// who returns the names of the anchors that govern the scope, and the mode.
func (c *Child) who() string {
	var names []string
	for i := range c.Anchors {
		if i == 8 && len(c.Anchors) > 9 {
			names = append(names, fmt.Sprintf("%d others", len(c.Anchors)-i))
			break
		}
		names = append(names, c.Anchors[i].Name)
	}
	return fmt.Sprintf("%s (mode %s)", strings.Join(names, ", "), c.Policy.Rules.Mode)
}

// ID names the decision.
func (d *Decision) ID() aweigh.Hash {
	return canon.Hash("aweigh/decision/1", *d)
}

// ConsentBytes returns what a new anchor signs in votes.ContextConsent, so that an anchor can only be admitted under a
// key that it holds.
func ConsentBytes(id aweigh.ScopeID, a Anchor, sponsor aweigh.AnchorID) []byte {
	return append(append([]byte(nil), id[:]...), canon.Encode([]any{a, sponsor})...)
}

// Application is the decision to admit an anchor, without its consent.
func Application(key votes.PublicKey, name, peer string, sponsor aweigh.AnchorID) Decision {
	return Decision{Kind: Admit, Subject: key.ID(), Anchor: &Anchor{Name: name, Key: key, Peer: peer}, Sponsor: sponsor}
}

// Admission is the decision to admit an anchor, with its consent.
func Admission(id aweigh.ScopeID, key votes.PrivateKey, name, peer string, sponsor aweigh.AnchorID) Decision {
	d := Application(key.Public(), name, peer, sponsor)
	d.Consent = key.Sign(votes.ContextConsent, ConsentBytes(id, *d.Anchor, sponsor))
	return d
}

const (
	maxAnchorName = 64
	maxPeerName   = 128
)

// Check reports whether the decision is well-formed.
func (d *Decision) Check() error {
	admits, sets, gives := d.Kind == Admit, d.Kind == SetPolicy, d.Kind == Delegate || d.Kind == Revoke || d.Kind == Fold
	attests := d.Kind == Attest
	switch {
	case d.Kind < Admit || d.Kind > Fold || d.Kind == Yield:
		return fmt.Errorf("unknown decision %d", uint8(d.Kind))
	case d.seats() != (d.Anchor != nil) || admits && d.Anchor == nil || !admits && (!d.Sponsor.IsZero() || len(d.Consent) > 0) || sets != (d.Policy != nil) || gives != (d.Child != nil),
		!attests && (d.Score != 0 || d.Reason != ""):
		return fmt.Errorf("a decision to %s with content of another kind", d.Kind)
	case (sets || gives) != d.Subject.IsZero():
		return fmt.Errorf("a decision to %s without its anchor, or with one that it does not need", d.Kind)
	case sets:
		return d.Policy.Check()
	case d.Kind == Fold:
		return d.Child.checkFold()
	case gives:
		return d.Child.Check()
	case attests:
		return d.checkAttested()
	case !d.seats():
		return nil
	}
	switch a := d.Anchor; {
	case a.Key.ID() != d.Subject:
		return fmt.Errorf("a decision to %s %s with the key of %s", d.Kind, d.Subject.Short(), a.Key.ID().Short())
	case a.Score != 0:
		return fmt.Errorf("an anchor is admitted with the score that the policy gives, not with %d", a.Score)
	case len(a.Name) == 0 || len(a.Name) > maxAnchorName || len(a.Peer) == 0 || len(a.Peer) > maxPeerName:
		return fmt.Errorf("an anchor needs a name of 1 to %d bytes and a peer of 1 to %d", maxAnchorName, maxPeerName)
	case plain.Name(a.Name) != nil:
		return fmt.Errorf("an anchor: %w", plain.Name(a.Name))
	case admits && (d.Sponsor.IsZero() || d.Sponsor == d.Subject):
		return fmt.Errorf("an anchor is admitted on another anchor's surety")
	}
	return d.Anchor.checkPeer()
}

// consent verifies that the new anchor agrees.
func (d *Decision) consent(id aweigh.ScopeID, verify votes.Verifier) error {
	if d.Kind != Admit {
		return nil
	}
	if err := verify(d.Anchor.Key, votes.ContextConsent, ConsentBytes(id, *d.Anchor, d.Sponsor), d.Consent); err != nil {
		return fmt.Errorf("%w: the new anchor's consent: %w", ErrInvalid, err)
	}
	return nil
}

// Proposed is a decision that is open as a motion, or carried and not yet in effect.
type Proposed struct {
	ID        aweigh.Hash // of Decision
	Motion    votes.MotionID
	Decision  Decision
	Approvals []aweigh.AnchorID // voters that approve, by ID
	Tally     votes.MotionTally // of an open one
	By        aweigh.Hash       // author of the mutation that proposed it
	Opened    aweigh.Instant
	Deadline  aweigh.Instant
	Carried   aweigh.Height // of the block in which it was carried; 0: it is open
}

// decided is a decision that is carried, and takes effect with the next epoch.
type decided struct {
	_        struct{} `cbor:",toarray"`
	Decision Decision
	Motion   votes.MotionID // zero where none was needed
	By       aweigh.Hash
	Opened   aweigh.Instant
	Carried  aweigh.Height
}

// agenda is the decisions that are carried, in that order.
type agenda []decided

func (a agenda) encode() []byte { return canon.Encode([]decided(a)) }

func decodeAgenda(data []byte) (a agenda, err error) {
	if err := canon.Decode(data, (*[]decided)(&a)); err != nil {
		return nil, fmt.Errorf("%w: agenda: %w", ErrCorrupt, err)
	}
	return a, nil
}

func agendaDigest(encoded []byte) aweigh.Hash {
	return aweigh.Sum([]byte("aweigh/agenda/1"), encoded)
}

// Agenda is the decisions that are open, by deadline, and then those that wait for
// the next epoch.
func (s *State) Agenda() ([]Proposed, error) {
	all, err := s.openDecisions()
	if err != nil {
		return nil, err
	}
	carried, err := s.agenda()
	for i := range carried {
		p, err := s.carried(&carried[i])
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, err
}

// carried is a decision that waits for the next epoch, with its support as far as its motion
// is on record.
func (s *State) carried(d *decided) (p Proposed, err error) {
	p = Proposed{ID: d.Decision.ID(), Motion: d.Motion, Decision: d.Decision, By: d.By, Opened: d.Opened, Carried: d.Carried}
	if d.Motion.IsZero() {
		return p, nil
	}
	rec, ok, err := s.motion(d.Motion)
	if err == nil && ok {
		p.Deadline = rec.Motion.Deadline
		err = s.supported(&p, &rec.Motion)
	}
	return p, err
}

// supported fills in the voters that approved a decision.
func (s *State) supported(p *Proposed, mo *Motion) (err error) {
	if p.Tally, err = s.view.tally(mo); err != nil {
		return err
	}
	ballots, err := s.Ballots(p.Motion)
	for i := range ballots {
		if v, err := ballots[i].Vote(p.Motion); err == nil && !ballots[i].Late && v.Ballot().Choice == votes.Approve {
			p.Approvals = append(p.Approvals, aweigh.AnchorID(v.Ballot().Voter))
		}
	}
	return err
}

// Decision returns the record of a decision: open, carried, or closed with its ending. Of
// several motions about it, the open one counts, otherwise the one that closed last. It is nil
// if none is on record.
func (s *State) Decision(id aweigh.Hash) (p *Proposed, end *Ending, err error) {
	all, err := s.Agenda()
	if err != nil {
		return nil, nil, err
	}
	for i := range all {
		if all[i].ID == id {
			return &all[i], nil, nil
		}
	}
	var motion votes.MotionID
	var bad error
	prefix := s.space.at(atClosed)
	err = s.r.Scan(prefix, kv.PrefixEnd(prefix), true, func(k, raw []byte) bool {
		var line indexedMotion
		if bad = canon.Decode(raw, &line); bad == nil && line.Decision == id {
			motion = votes.MotionID(k[len(prefix)+8:])
		}
		return bad == nil && motion.IsZero()
	})
	if err = errors.Join(err, bad); err != nil || motion.IsZero() {
		return nil, nil, err
	}
	rec, err := s.mustMotion(motion)
	if err != nil {
		return nil, nil, err
	}
	closed, err := s.proposed(motion)
	return &closed, rec.Ending, err
}

// openDecisions is those among the open motions, by deadline.
func (s *State) openDecisions() (all []Proposed, err error) {
	if s.head.Docket.Open == 0 { // as after almost every block
		return nil, nil
	}
	var bad error
	err = s.eachOpen(func(_ aweigh.Instant, id votes.MotionID, line indexedMotion) bool {
		if line.Decision.IsZero() {
			return true
		}
		var p Proposed
		p, bad = s.proposed(id)
		all = append(all, p)
		return bad == nil
	})
	return all, errors.Join(err, bad)
}

// proposed is a decision that is, or was, open as a motion.
func (s *State) proposed(id votes.MotionID) (p Proposed, err error) {
	rec, err := s.mustMotion(id)
	if err != nil {
		return p, err
	}
	var m CheckedMutation
	if err := m.open(rec.Motion.Mutation, MostLimits()); err != nil || m.Decision == nil {
		return p, fmt.Errorf("%w: the decision of motion %s: %w", ErrCorrupt, id.Short(), err)
	}
	p = Proposed{ID: m.Decision.ID(), Motion: id, Decision: *m.Decision, By: m.Author, Opened: rec.Motion.Opened, Deadline: rec.Motion.Deadline}
	return p, s.supported(&p, &rec.Motion)
}
