package box

import (
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/internal/refusal"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/votes"
	"github.com/aweigh/aweigh/votes/reconcile"
)

// The reasons for which a box refuses a ballot, beside votes.ErrMalformed,
// ErrForeign, ErrOtherScope, ErrNotInRoster and ErrForged.
var (
	// ErrClosed: its motion is closed. The record of late ballots (P34) may
	// take it.
	ErrClosed = refusal.New(refusal.Stale, "box: motion is closed")
	// ErrFull: the box takes no more; offer it again when a motion has closed.
	ErrFull = refusal.New(refusal.Full, "box: full")
	// ErrVoterFull: the box takes no more of this voter.
	ErrVoterFull = refusal.New(refusal.Full, "box: full of this voter's ballots")
	// ErrDamaged: the stored records cannot be those of a box. Stop.
	ErrDamaged = refusal.New(refusal.Internal, "box: stored ballots are damaged")
)

// Limits bound a box, in ballots and in the bytes of their encodings. Early ballots take a quarter of the bytes at
// most, of the box and of each voter. Zero values stand for those of DefaultLimits.
type Limits struct {
	Ballots       int `least:"2"` // in all
	PerVoter      int `least:"2"`
	Early         int `least:"1"` // for motions that are not known yet
	EarlyPerVoter int `least:"1"`
	Bytes         int `least:"32768"` // in all
	VoterBytes    int `least:"32768"`
}

// DefaultLimits leave each voter room for two ballots on each of 1,000 open motions, with the longest comments and
// signatures. Those of 128 voters with Ed25519 keys fit side by side, early ones too, so that none crowds out another;
// of ML-DSA-65, those of 39. Without comments, 1,000,000 of Ed25519 fit.
var DefaultLimits = Limits{
	Ballots: 1_000_000, PerVoter: 4096, Early: 100_000, EarlyPerVoter: 512,
	Bytes: 384 << 20, VoterBytes: 2 * 1000 * votes.MaxMotionBallot,
}

func (l Limits) orDefault() Limits {
	d := DefaultLimits
	if l.Ballots != 0 {
		d.Ballots = l.Ballots
	}
	if l.PerVoter != 0 {
		d.PerVoter = l.PerVoter
	}
	if l.Early != 0 {
		d.Early = l.Early
	}
	if l.EarlyPerVoter != 0 {
		d.EarlyPerVoter = l.EarlyPerVoter
	}
	if l.Bytes != 0 {
		d.Bytes = l.Bytes
	}
	if l.VoterBytes != 0 {
		d.VoterBytes = l.VoterBytes
	}
	return d
}

// State is a motion's state, as far as it is known.
type State uint8

const (
	Unknown State = 0 // not yet: a ballot may come before its motion (P29)
	Open    State = 1
	Closed  State = 2
)

// Motion is a motion as the scope knows it.
type Motion struct {
	State  State
	Voters votes.Voters // of an open one its electorate; of an unknown one all keys that may vote now
}

// Motions knows the scope's motions.
type Motions interface {
	Motion(id votes.MotionID) Motion
}

// Box is the ballot box of one scope. Not safe for concurrent use.
type Box struct {
	network aweigh.NetworkID
	scope   aweigh.ScopeID
	limits  Limits
	tree    reconcile.Tree // of the identities
	load    load
	voters  map[aweigh.Hash]load
	motions map[votes.MotionID]load
}

// load counts the ballots in all, of a voter, or on a motion. Those on one
// motion are all early or none.
type load struct{ all, early sum }

// sum is how many ballots there are, and the bytes of their encodings.
type sum struct{ ballots, bytes int }

func (s *sum) add(n, size int) {
	s.ballots += n
	s.bytes += n * size
}

// Outcome is what became of a ballot that a box did not refuse.
type Outcome uint8

const (
	Added       Outcome = 1 // kept, once the writes are durable
	Repeated    Outcome = 2 // the box has it; whatever differs (signature, comment) is left
	Equivocated Outcome = 3 // kept too, beside the opposite one of the same voter (P33)
)

// String is "added", "repeated" or "equivocated".
func (o Outcome) String() string {
	return [...]string{"refused", "added", "repeated", "equivocated"}[o&3]
}

// Len is the number of ballots.
func (b *Box) Len() int { return b.tree.Len() }

// Early is how many of them are for motions that are not known yet.
func (b *Box) Early() int { return b.load.early.ballots }

// Bytes is how many the encodings of all ballots have.
func (b *Box) Bytes() int { return b.load.all.bytes }

// Has reports whether a ballot is in the box.
func (b *Box) Has(id aweigh.Hash) bool { return b.tree.Has(id) }

// On is how many of them are on a motion.
func (b *Box) On(id votes.MotionID) int { return b.motions[id].all.ballots }

// Set is the identities of all ballots, as they are now.
func (b *Box) Set() reconcile.Set { return b.tree.Snapshot() }

// topic names the network and scope for reconcile.
func (b *Box) topic() aweigh.Hash {
	return aweigh.Sum([]byte("aweigh/ballot-box/1\x00"), b.network[:], b.scope[:])
}

// Side is the box as one side of a reconciliation. r must show at least what
// was in the box at this moment, for as long as the session lasts.
func (b *Box) Side(r kv.Reader) reconcile.Side {
	return reconcile.Side{
		Topic:  b.topic(),
		Set:    b.Set(),
		Load:   func(id aweigh.Hash) ([]byte, bool, error) { return Load(r, b.scope, id) },
		Limits: reconcile.Limits{Item: votes.MaxMotionBallot, Items: b.limits.Ballots},
	}
}

// Examine reports, without looking at the signature, whether the box would take
// a ballot; known is set if it has it already. It is cheap: ask before
// verifying. Errors are those of Offer.
func (b *Box) Examine(v votes.MotionBallot, m Motion) (known bool, err error) {
	if err := v.Admissible(b.network, b.scope); err != nil {
		return false, err
	}
	if m.State == Closed {
		return false, fmt.Errorf("%w: %s", ErrClosed, v.Motion.Short())
	}
	if _, ok := m.Voters.Key(v.Voter); !ok {
		return false, fmt.Errorf("%w: %s may not vote on motion %s", votes.ErrNotInRoster, v.Voter.Short(), v.Motion.Short())
	}
	if b.tree.Has(v.ID()) {
		return true, nil
	}
	of, l := b.voters[v.Voter], &b.limits
	if b.load.all.full(l.Ballots, l.Bytes) {
		return false, fmt.Errorf("%w: %v", ErrFull, b.load.all)
	}
	if of.all.full(l.PerVoter, l.VoterBytes) {
		return false, fmt.Errorf("%w: %v of %s", ErrVoterFull, of.all, v.Voter.Short())
	}
	if !b.isEarly(v.Motion, m.State) {
		return false, nil
	}
	if b.load.early.full(l.Early, l.Bytes/4) {
		return false, fmt.Errorf("%w: %v for motions that are not known yet", ErrFull, b.load.early)
	}
	if of.early.full(l.EarlyPerVoter, l.VoterBytes/4) {
		return false, fmt.Errorf("%w: %v of %s for motions that are not known yet", ErrVoterFull, of.early,
			v.Voter.Short())
	}
	return false, nil
}

// full reports whether there is no room for one more, however long.
func (s sum) full(ballots, bytes int) bool {
	return s.ballots >= ballots || s.bytes+votes.MaxMotionBallot > bytes
}

// String is the text for people.
func (s sum) String() string { return fmt.Sprintf("%d ballots of %d bytes", s.ballots, s.bytes) }

// isEarly: ballots on a motion count as early until Opened is called for it.
func (b *Box) isEarly(id votes.MotionID, s State) bool {
	on, ok := b.motions[id]
	return ok && on.early.ballots > 0 || !ok && s == Unknown
}

// Offer examines a ballot, verifies it and adds it. The verifier may be nil.
// The ballot may be acknowledged, or passed on, once the ops are durable. An
// error wraps ErrClosed, ErrFull or ErrVoterFull, or one of those of
// votes.CheckMotionBallot, and leaves the box as it was.
func (b *Box) Offer(v votes.MotionBallot, m Motion, verify votes.Verifier) (Outcome, []kv.Op, error) {
	if known, err := b.Examine(v, m); err != nil {
		return 0, nil, err
	} else if known {
		return Repeated, nil, nil
	}
	c, err := votes.CheckMotionBallot(v, b.network, b.scope, m.Voters, verify)
	if err != nil {
		return 0, nil, err
	}
	return b.Add(c, m)
}

// Add adds a ballot that was checked. Otherwise it is like Offer.
func (b *Box) Add(c votes.CheckedMotionBallot, m Motion) (Outcome, []kv.Op, error) {
	v := c.Ballot()
	known, err := b.Examine(v, m)
	switch {
	case err != nil:
		return 0, nil, err
	case known:
		return Repeated, nil, nil
	}
	p := placeOf(&v)
	raw := v.Encode()
	b.count(p, b.isEarly(v.Motion, m.State), 1, len(raw))
	must.Hold(b.tree.Add(v.ID()), "box: a ballot that is not there is there")
	ops := []kv.Op{
		kv.Set(b.ballotKey(p), raw),
		kv.Set(b.indexKey(v.ID()), p[:]),
	}
	v.Choice = v.Choice.Other()
	if b.tree.Has(v.ID()) {
		return Equivocated, ops, nil
	}
	return Added, ops, nil
}

// count adds n ballots, 1 or -1, of so many bytes to the loads of the box, of a voter and of a motion.
func (b *Box) count(p place, early bool, n, size int) {
	b.load.add(early, n, size)
	bump(b.voters, p.voter(), early, n, size)
	bump(b.motions, p.motion(), early, n, size)
}

func (l *load) add(early bool, n, size int) {
	if l.all.add(n, size); early {
		l.early.add(n, size)
	}
}

func bump(m map[aweigh.Hash]load, id aweigh.Hash, early bool, n, size int) {
	l := m[id]
	l.add(early, n, size)
	must.Hold(l.all.ballots >= l.early.ballots && l.early.ballots >= 0 && l.early.bytes >= 0,
		"box: %s has %v, %v early", id.Short(), l.all, l.early)
	if l.all.ballots == 0 {
		must.Hold(l.all.bytes == 0, "box: %s has %v", id.Short(), l.all)
		delete(m, id)
	} else {
		m[id] = l
	}
}
