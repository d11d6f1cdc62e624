package scope

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/votes"
)

// Minutes are all that is on record of a motion.
type Minutes struct {
	_       struct{} `cbor:",toarray"`
	Motion  Motion
	Ending  *Ending // nil while it is open
	Ballots []Recorded
}

// Minutes are those of a motion that is on record, nil if it is not.
func (s *State) Minutes(id votes.MotionID) (*Minutes, error) { return s.view.minutes(id) }

func (v *view) minutes(id votes.MotionID) (*Minutes, error) {
	rec, ok, err := v.motion(id)
	if err != nil || !ok {
		return nil, err
	}
	all, err := v.ballots(id)
	return &Minutes{Motion: rec.Motion, Ending: rec.Ending, Ballots: all}, err
}

// Encode is the canonical encoding.
func (m *Minutes) Encode() []byte { return canon.Encode(m) }

// DecodeMinutes reads what Encode wrote. Errors wrap ErrCorrupt: minutes come from
// the own store.
func DecodeMinutes(data []byte) (*Minutes, error) {
	m := new(Minutes)
	if err := canon.Decode(data, m); err != nil {
		return nil, fmt.Errorf("%w: the minutes of a motion: %w", ErrCorrupt, err)
	}
	return m, nil
}

// Assent proves that a motion was carried: its opening, the ballots that carried
// it, and its closing.
type Assent struct {
	_       struct{} `cbor:",toarray"`
	Motion  Motion   // without its Mutation, which the Origin has
	Opened  Listed
	Ballots []Cast // by their place in the lineage
	Closed  Listed
}

// Cast is a ballot as the lineage records it.
type Cast struct {
	_      struct{} `cbor:",toarray"`
	Ballot []byte   // encoding of a votes.MotionBallot
	Record Listed
}

// Approved holds the voters that approved a motion that was carried, as proven. A proof may leave out ballots; those
// that it has suffice.
type Approved struct {
	Motion  Motion
	Tally   votes.MotionTally
	Height  aweigh.Height // of the block that carried it
	Ballots []Told        // by their place in the lineage
}

// Told is one ballot on a motion, as proven.
type Told struct {
	Voter   aweigh.Hash
	Name    string // that roster and policy give the voter
	Weight  uint64 // as of the opening
	Choice  votes.Choice
	Comment string
	Offline bool          // the voter states that it was signed away from any node
	Height  aweigh.Height // of the block that recorded it
	Late    bool          // the motion was closed before: it changed nothing (P34)
}

// newAssent collects what shows that a change was carried by a motion.
func newAssent(a *Ancestry, log *lineage.Log, m *Minutes, change int64) (out *Assent, err error) {
	out = &Assent{Motion: m.Motion}
	out.Motion.Mutation = nil
	if out.Opened, err = a.list(log, m.Motion.Entry); err != nil {
		return nil, err
	}
	for at := change + 1; ; at++ { // the motion's writes, and then its end
		e, ok, err := log.Entry(at)
		if err == nil && (!ok || e.Mutation != m.Motion.ID()) {
			err = fmt.Errorf("%w: motion %s has no end after entry %d", ErrCorrupt, m.Motion.ID().Short(), change)
		}
		if err != nil {
			return nil, err
		}
		if e.Class != lineage.Closed {
			continue
		}
		if out.Closed, err = a.list(log, at); err != nil {
			return nil, err
		}
		break
	}
	for i := range m.Ballots {
		r := &m.Ballots[i]
		if r.Entry >= a.Head.Header.LineageSize {
			continue // recorded after the head
		}
		c := Cast{Ballot: r.Ballot}
		if c.Record, err = a.list(log, r.Entry); err != nil {
			return nil, err
		}
		out.Ballots = append(out.Ballots, c)
	}
	slices.SortFunc(out.Ballots, func(x, y Cast) int { return int(x.Record.Place.Index - y.Record.Place.Index) })
	return out, nil
}

// verify checks that the change was carried by the motion that the mutation
// opened in an epoch, and counts the ballots again.
func (a *Assent) verify(to *Ancestry, o *Origin, m *Mutation, change *Listed, v *KeyValue, in *Epoch) (*Approved, error) {
	mo, err := o.opened(a.Motion, m, to, &a.Opened, in)
	if err != nil {
		return nil, err
	}
	if err := to.lists(&a.Closed); err != nil {
		return nil, err
	}
	e, end := &change.Entry, &a.Closed.Entry
	switch {
	case !o.about(e, m) || e.Height != end.Height || e.Policy != end.Policy || e.Roster != end.Roster:
		return nil, errors.New("the change is not one of the motion")
	case !o.about(end, m) || end.Class != lineage.Closed || end.Reason != Carried.String() || end.Prior != mo.Hash():
		return nil, errors.New("the motion did not end as carried")
	case a.Opened.Place.Index >= change.Place.Index || change.Place.Index >= a.Closed.Place.Index:
		return nil, errors.New("the change does not stand between the motion's opening and its end")
	}
	if needed := in.Policy.guard(e, m.asksBy()); m.writes() && needed != nil && !bytes.Equal(canon.Encode(*needed), canon.Encode(mo.Approval)) {
		return nil, errors.New("the policy asked for another approval of the change")
	}
	out := &Approved{Motion: *mo, Height: end.Height}
	return out, a.count(out, to, mo)
}

// count verifies the ballots and counts those that came in time.
func (a *Assent) count(out *Approved, to *Ancestry, mo *Motion) error {
	e, err := mo.Electorate()
	if err != nil {
		return err
	}
	keys, err := mo.Keys()
	if err != nil {
		return err
	}
	if len(a.Ballots) > 2*e.Len() {
		return fmt.Errorf("%d ballots of %d voters", len(a.Ballots), e.Len())
	}
	var inTime []votes.CheckedMotionBallot
	last := a.Opened.Place.Index
	for i := range a.Ballots {
		c := &a.Ballots[i]
		b, err := votes.DecodeMotionBallot(c.Ballot)
		if err != nil {
			return err
		}
		id := a.Opened.Entry.Scope
		checked, err := votes.CheckMotionBallot(b, to.Genesis.Network(), id, keys, nil)
		if err != nil {
			return err
		}
		if err := to.lists(&c.Record); err != nil {
			return err
		}
		r, at := &c.Record.Entry, c.Record.Place.Index
		late := r.Class == lineage.Reconcile
		switch {
		case b.Motion != mo.ID():
			return fmt.Errorf("a ballot on motion %s", b.Motion.Short())
		case r.Class != lineage.Voted && !late || late != (at > a.Closed.Place.Index) || at <= last:
			return errors.New("a ballot that the lineage records elsewhere")
		case r.Mutation != b.Motion || r.Author != b.Voter || r.Scope != id || r.Posterior != b.ID() ||
			r.Reason != b.Choice.String() || r.Justification != b.Comment:
			return errors.New("a ballot that the lineage records otherwise")
		}
		if last = at; !late {
			inTime = append(inTime, checked)
		}
		weight, _ := e.Of(b.Voter)
		out.Ballots = append(out.Ballots, Told{
			Voter: b.Voter, Name: mo.NameOf(b.Voter), Weight: weight, Choice: b.Choice, Comment: b.Comment, Offline: b.Offline, Height: r.Height, Late: late,
		})
	}
	if out.Tally = votes.CountMotion(e, mo.Rule, inTime); out.Tally.Verdict != votes.Carried {
		return fmt.Errorf("the ballots do not carry the motion: %s", out.Tally)
	}
	return nil
}

// opened checks that a motion, given without its mutation, is the one that the
// mutation opened in an epoch: all of it is computed again, except what the mutation found,
// which the entry's hash covers. Without an entry (l), what it found stays unproven.
func (o *Origin) opened(mo Motion, m *Mutation, to *Ancestry, l *Listed, in *Epoch) (*Motion, error) {
	if len(mo.Mutation) > 0 {
		return nil, errors.New("a motion that repeats its mutation")
	}
	mo.Mutation = o.Mutation
	if l == nil && to.Head.Header.Height != o.Final.Header.Height {
		return nil, errors.New("a later block, and not the entry of the opening in its lineage")
	}
	if l != nil {
		if err := to.lists(l); err != nil {
			return nil, err
		}
		if e := &l.Entry; !o.entered(e, m) || e.Class != lineage.Opened || e.Posterior != mo.Hash() || l.Place.Index != mo.Entry || e.Revision != mo.Revision {
			return nil, errors.New("the motion is not the one that the entry says was opened")
		}
	}
	h := &o.Final.Header
	switch {
	case mo.Policy != h.Policy:
		return nil, errors.New("another policy than that of the block which opened it")
	case mo.Height != h.Height || mo.Opened != h.Time || mo.Epoch != h.Epoch:
		return nil, errors.New("the motion opened in another block")
	case mo.Deadline != mo.Opened.Add(mo.Approval.Window):
		return nil, errors.New("another deadline than the policy gives")
	}
	return &mo, mo.asked(in)
}

// asked verifies that an epoch's policy can ask a motion's voters, by its rule.
func (m *Motion) asked(in *Epoch) error {
	c, err := m.content()
	if err != nil {
		return err
	}
	may := in.Policy.Approvals
	if c.Decision != nil {
		may = []Approval{*in.Policy.decides(c.Decision)}
	}
	for i := range in.Policy.Partitions {
		if c.Patient {
			may = append(slices.Clip(may), in.Policy.Partitions[i].approval())
		}
	}
	if c.Decision == nil && !m.Approval.ofKeys() {
		return errors.New("an approval of decisions, for a change of keys")
	}
	wanted := canon.Encode(m.Approval)
	if !slices.ContainsFunc(may, func(a Approval) bool { return bytes.Equal(canon.Encode(a), wanted) }) {
		return errors.New("an approval that the policy does not ask for")
	}
	if !m.Approval.inOrderOf(m.Void) {
		return errors.New("void approvers that are none of the policy's")
	}
	voters, rule, err := m.Approval.electors(in.Roster, c.askers(in.Roster), m.Void, c.Decision != nil && c.Decision.ofApprover())
	if err != nil {
		return err
	}
	if !bytes.Equal(canon.Encode(m.Voters), canon.Encode(voters)) {
		return errors.New("other voters than those of the roster and the policy")
	}
	if m.Rule != rule {
		return errors.New("another rule than the policy gives")
	}
	return nil
}

// NameOf returns the name of a voter. For an anchor that is an approver too, it returns both names.
func (m *Motion) NameOf(voter aweigh.Hash) (name string) {
	for i := range m.Voters {
		switch v := &m.Voters[i]; {
		case v.Key.ID() != voter || v.Name == name:
		case name == "":
			name = v.Name
		default:
			name += ", " + v.Name
		}
	}
	return name
}
