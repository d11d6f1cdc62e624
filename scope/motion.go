package scope

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/votes"
)

// Motion is a mutation that waits for approval (P28). All of it is fixed when it
// opens.
type Motion struct {
	_        struct{} `cbor:",toarray"`
	Mutation []byte   // encoding; its ID is that of the motion
	Height   aweigh.Height
	Opened   aweigh.Instant // time of the block
	Epoch    aweigh.Epoch
	Entry    int64 // of its opening in the lineage
	Revision int64 // of the key space
	Deadline aweigh.Instant
	Policy   aweigh.Hash // in force
	Approval Approval    // that of the policy which asked for it
	Rule     quorum.Rule // what carries it, among the voters
	Voters   []Elector
	Success  bool          // the branch of the transaction that was chosen
	Basis    []Found       // what its puts and deletions found
	Void     []aweigh.Hash // approvers of Approval that signed both ways before, in its order: no voters (P51)
	Impact   *Impact       // what it would change, found out in the block that opened it
}

// Elector may vote on a motion. One key may stand as an anchor's and as an
// approver's.
type Elector struct {
	_        struct{} `cbor:",toarray"`
	Name     string
	Key      votes.PublicKey
	Weight   uint64
	Anchor   bool
	Required bool
}

// Found is how many keys the nth put or deletion of the motion found when it opened.
func (m *Motion) Found(n int) int64 {
	if n >= len(m.Basis) {
		return 0
	}
	return m.Basis[n].Keys
}

// Hash names the motion as it opened; it is in the lineage.
func (m *Motion) Hash() aweigh.Hash { return canon.Hash("aweigh/motion/1", *m) }

// ID is the motion's: that of its mutation.
func (m *Motion) ID() votes.MotionID { return ID(m.Mutation) }

// Electorate returns the voters, with their weights.
func (m *Motion) Electorate() (votes.Electorate, error) { return electorate(m.Voters) }

func electorate(all []Elector) (votes.Electorate, error) {
	var shares []quorum.Share
	var approvers []votes.Approver
	for i := range all {
		v := &all[i]
		if v.Anchor {
			shares = append(shares, quorum.Share{Anchor: v.Key.ID(), Weight: v.Weight})
		} else {
			approvers = append(approvers, votes.Approver{ID: v.Key.ID(), Weight: v.Weight, Required: v.Required})
		}
	}
	w, err := quorum.NewWeights(shares...)
	if err != nil {
		return votes.Electorate{}, err
	}
	return votes.NewElectorate(w, approvers...)
}

// Keys returns the keys of all voters.
func (m *Motion) Keys() (votes.KeySet, error) { return keysOf(m.Voters) }

func keysOf(all []Elector) (votes.KeySet, error) {
	keys := make([]votes.PublicKey, len(all))
	for i := range all {
		keys[i] = all[i].Key
	}
	return votes.NewKeySet(keys...)
}

// Fate is the outcome of a motion.
type Fate uint8

const (
	Carried       Fate = 1 // its approvals sufficed, and it was applied
	Rejected      Fate = 2 // its approvals could not suffice any more
	MotionExpired Fate = 3 // its deadline came first
	Void          Fate = 4 // its approvals sufficed, and it could not be applied as approved
	Withdrawn     Fate = 5 // by its author
	// Superseded is a policy that was proposed from one that is not in force any more.
	Superseded Fate = 6
)

// Ending is how a motion ended.
type Ending struct {
	_         struct{} `cbor:",toarray"`
	Fate      Fate
	Height    aweigh.Height
	Time      aweigh.Instant
	Reason    string // for Void and Superseded
	Revision  int64  // of the key space after it, if it was carried
	Succeeded bool   // likewise: the compares held
	// Effective is, of a decision that was carried, the first epoch under it; 0 before that
	// begins. A decision that could not take effect beside those before it becomes Void as
	// the epoch ends.
	Effective aweigh.Epoch
}

// motionRecord is the stored record of a motion.
type motionRecord struct {
	_      struct{} `cbor:",toarray"`
	Motion Motion
	Due    aweigh.Height // of the block whose ballots carried it, if it waited for its turn; otherwise 0
	Ending *Ending       // nil while it is open
}

func (r *motionRecord) encode() []byte { return canon.Encode(*r) }

// Recorded is a ballot on a motion as a block recorded it.
type Recorded struct {
	_      struct{} `cbor:",toarray"`
	Ballot []byte   // encoding of a votes.MotionBallot
	Height aweigh.Height
	Time   aweigh.Instant
	Entry  int64       // in the lineage
	Late   bool        // the motion was closed before, or carried (P34)
	By     aweigh.Hash // the voter that approves by a mutation, without a Ballot
}

// Vote is the vote of the ballot on a motion; without a ballot it is not signed.
func (r *Recorded) Vote(id votes.MotionID) (votes.CheckedMotionBallot, error) {
	if len(r.Ballot) == 0 {
		return votes.Affirmed(id, r.By), nil
	}
	c, err := votes.StoredMotionBallot(r.Ballot)
	if err != nil {
		err = fmt.Errorf("%w: a ballot on motion %s: %w", ErrCorrupt, id.Short(), err)
	}
	return c, err
}

// MotionIndex states how many motions there are.
type MotionIndex struct {
	_      struct{} `cbor:",toarray"`
	Open   int64
	Due    int64          // of the open ones: that are carried, and wait for their turn
	Closed int64          // of those on record
	Bytes  int64          // of the records of those on keys
	Next   aweigh.Instant // the earliest deadline of one that is open; 0: none is
}

func (d *MotionIndex) append(b []byte) []byte {
	for _, n := range []int64{d.Open, d.Due, d.Closed, d.Bytes, int64(d.Next)} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return b
}

// indexedMotion is the part of a motion that is in the index of motions.
type indexedMotion struct {
	_        struct{}    `cbor:",toarray"`
	Author   aweigh.Hash // whose room it takes: see CheckedMutation.Principal
	Bytes    int64
	Decision aweigh.Hash // zero if it is none
	Outside  bool        // no anchor proposed it
	Signer   aweigh.Hash // of the mutation: the author, or a holder of its grants
	Caller   string      // for whom the signer made it, as it states
}

// eachOpen visits the docket of open motions, by deadline, without those that wait for their turn.
func (v *view) eachOpen(visit func(until aweigh.Instant, id votes.MotionID, line indexedMotion) bool) error {
	return v.eachLine(atOpen, visit)
}

// eachLine visits a docket.
func (v *view) eachLine(kind byte, visit func(at aweigh.Instant, id votes.MotionID, line indexedMotion) bool) error {
	var bad error
	err := v.scanMotionIndex(kind, func(at aweigh.Instant, id votes.MotionID, raw []byte) bool {
		var line indexedMotion
		if bad = canon.Decode(raw, &line); bad != nil {
			return false
		}
		return visit(at, id, line)
	})
	if err == nil && bad != nil {
		err = fmt.Errorf("%w: docket: %w", ErrCorrupt, bad)
	}
	return err
}

// scanMotionIndex visits the motions of one kind in the index, in the order of their instants.
func (v *view) scanMotionIndex(kind byte, visit func(at aweigh.Instant, id votes.MotionID, line []byte) bool) error {
	prefix := v.space.at(kind)
	return v.r.Scan(prefix, kv.PrefixEnd(prefix), false, func(k, line []byte) bool {
		k = k[len(prefix):]
		return visit(aweigh.Instant(binary.BigEndian.Uint64(k)), votes.MotionID(k[8:]), line)
	})
}

func (s *space) motion(id votes.MotionID) []byte { return s.at(atMotion, id[:]...) }

// motionIndexKey is the place of a motion in the index of its kind.
func (s *space) motionIndexKey(kind byte, at aweigh.Instant, id votes.MotionID) []byte {
	return append(binary.BigEndian.AppendUint64(s.at(kind), uint64(at)), id[:]...)
}

// voted is the place of a ballot.
func (s *space) voted(motion votes.MotionID, voter aweigh.Hash, c votes.Choice) []byte {
	return append(append(s.at(atVoted, motion[:]...), voter[:]...), byte(c))
}

// mustMotion reads a motion that a docket names.
func (v *view) mustMotion(id votes.MotionID) (motionRecord, error) {
	rec, ok, err := v.motion(id)
	if err == nil && !ok {
		err = fmt.Errorf("%w: no motion %s", ErrCorrupt, id.Short())
	}
	return rec, err
}

// motion reads one motion, if it is on record.
func (v *view) motion(id votes.MotionID) (rec motionRecord, ok bool, err error) {
	raw, ok, err := v.r.Get(v.space.motion(id))
	if err != nil || !ok {
		return rec, false, err
	}
	if err := canon.Decode(raw, &rec); err != nil {
		return rec, false, fmt.Errorf("%w: motion %s: %w", ErrCorrupt, id.Short(), err)
	}
	return rec, true, nil
}

// Motion is a motion that is on record: it is open, or closed not long ago. The
// ending is nil while it is open.
func (s *State) Motion(id votes.MotionID) (m *Motion, end *Ending, err error) {
	rec, ok, err := s.motion(id)
	if err != nil || !ok {
		return nil, nil, err
	}
	return &rec.Motion, rec.Ending, nil
}

// ApprovedAt is the height of the block whose ballots approved an open motion that waits for its turn to be
// carried; 0 for every other motion.
func (s *State) ApprovedAt(id votes.MotionID) (aweigh.Height, error) {
	if s.head.Docket.Due == 0 {
		return 0, nil
	}
	rec, _, err := s.motion(id)
	if err != nil || rec.Ending != nil {
		return 0, err
	}
	return rec.Due, nil
}

// Motions visits the motions on record until visit returns false: those that are
// open, of which those that wait for their turn come first and the others by deadline, then those
// that are closed, the one that closed last first.
func (s *State) Motions(visit func(id votes.MotionID, open bool) bool) error {
	more := true
	for _, kind := range []byte{atDue, atOpen, atClosed} {
		prefix := s.space.at(kind)
		err := s.r.Scan(prefix, kv.PrefixEnd(prefix), kind == atClosed, func(k, _ []byte) bool {
			more = visit(votes.MotionID(k[len(prefix)+8:]), kind != atClosed)
			return more
		})
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// Ballots are those recorded on a motion, by voter and choice.
func (s *State) Ballots(id votes.MotionID) ([]Recorded, error) { return s.view.ballots(id) }

func (v *view) ballots(id votes.MotionID) (all []Recorded, err error) {
	prefix := v.space.at(atVoted, id[:]...)
	var bad error
	err = v.r.Scan(prefix, kv.PrefixEnd(prefix), false, func(_, raw []byte) bool {
		var r Recorded
		if bad = canon.Decode(raw, &r); bad == nil {
			all = append(all, r)
		}
		return bad == nil
	})
	if err == nil && bad != nil {
		err = fmt.Errorf("%w: a ballot on motion %s: %w", ErrCorrupt, id.Short(), bad)
	}
	return all, err
}

// HasBallot reports whether a ballot is recorded.
func (s *State) HasBallot(b votes.MotionVote, voter aweigh.Hash) (bool, error) {
	_, ok, err := s.r.Get(s.space.voted(b.Motion, voter, b.Choice))
	return ok, err
}

// Tally counts the ballots that were recorded on a motion in time.
func (s *State) Tally(id votes.MotionID) (votes.MotionTally, error) {
	rec, ok, err := s.motion(id)
	if err != nil || !ok {
		return votes.MotionTally{}, err
	}
	return s.view.tally(&rec.Motion)
}

func (v *view) tally(m *Motion) (t votes.MotionTally, err error) {
	id := m.ID()
	all, err := v.ballots(id)
	if err != nil {
		return t, err
	}
	e, err := m.Electorate()
	if err != nil {
		return t, err
	}
	var counted []votes.CheckedMotionBallot
	for i := range all {
		if all[i].Late {
			continue
		}
		c, err := all[i].Vote(id)
		if err != nil {
			return t, err
		}
		counted = append(counted, c)
	}
	return votes.CountMotion(e, m.Rule, counted), nil
}

// String is one word.
func (f Fate) String() string {
	switch f {
	case Carried:
		return "carried"
	case Rejected:
		return "rejected"
	case MotionExpired:
		return "expired"
	case Void:
		return "void"
	case Withdrawn:
		return "withdrawn"
	case Superseded:
		return "superseded"
	}
	return fmt.Sprintf("fate(%d)", uint8(f))
}

// Subject describes the motion in a few words.
func (m *Motion) Subject() string {
	var of Mutation
	var t Txn
	if of.decode(m.Mutation) != nil {
		return "nothing"
	}
	if d := new(Decision); of.Class == Govern && canon.Decode(of.Content, d) == nil {
		return d.About()
	}
	if a := new(Action); of.Class == Act && canon.Decode(of.Content, a) == nil {
		return fmt.Sprintf("%s %q", a.Verb, a.Key)
	}
	if n := new(Naming); of.Class == Name && canon.Decode(of.Content, n) == nil {
		return n.About()
	}
	if of.Class != Write || t.decode(of.Content) != nil {
		return of.Class.String()
	}
	ops := t.Success
	if !m.Success {
		ops = t.Failure
	}
	return subjectOf(ops)
}

func subjectOf(ops []Op) string {
	var first *Op
	n := 0
	for i := range ops {
		if k := ops[i].Kind; k == OpRange || k == OpMerge {
			continue
		}
		if n++; first == nil {
			first = &ops[i]
		}
	}
	var s string
	switch {
	case first == nil:
		return "nothing"
	case first.Kind == OpTxn:
		s = "a transaction"
	case ops[0].Kind == OpMerge:
		return fmt.Sprintf("merge %q into %q", ops[0].Key, first.Key)
	case first.Kind == OpPut:
		s = fmt.Sprintf("put %q", first.Key)
	case len(first.End) == 0:
		s = fmt.Sprintf("delete %q", first.Key)
	case bytes.Equal(first.End, kv.PrefixEnd(first.Key)):
		s = fmt.Sprintf("delete all below %q", first.Key)
	case ToEnd(first.End):
		s = fmt.Sprintf("delete all from %q on", first.Key)
	default:
		s = fmt.Sprintf("delete from %q up to %q", first.Key, first.End)
	}
	if n > 1 {
		s += fmt.Sprintf(" and %d more", n-1)
	}
	return s
}
