package box

import (
	"errors"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/votes"
	"github.com/aweigh/aweigh/votes/reconcile"
)

// The reasons for which a box refuses a ballot, beside votes.ErrMalformed,
// ErrForeign, ErrOtherScope, ErrStranger and ErrForged.
var (
	// ErrClosed: its motion is closed. Whoever keeps the record of late ballots
	// (P34) may want it.
	ErrClosed = errors.New("box: motion is closed")
	// ErrFull: the box takes no more; offer it again when a motion has closed.
	ErrFull = errors.New("box: full")
	// ErrVoterFull: the box takes no more of this voter.
	ErrVoterFull = errors.New("box: full of this voter's ballots")
	// ErrDamaged: what is stored cannot have been written by a box. Stop.
	ErrDamaged = errors.New("box: stored ballots are damaged")
)

// Limits bound a box, in ballots. Zero values stand for those of DefaultLimits.
type Limits struct {
	Ballots       int // in all
	PerVoter      int
	Early         int // for motions that nobody knows yet
	EarlyPerVoter int
}

// DefaultLimits leave each voter room for two ballots on each of 1,000 open
// motions, and the early ballots of 128 anchors fit side by side, so that none
// crowds out another.
var DefaultLimits = Limits{Ballots: 1_000_000, PerVoter: 4096, Early: 100_000, EarlyPerVoter: 512}

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
	return d
}

// State is what is known of a motion.
type State uint8

const (
	Unknown State = 0 // not yet: a ballot may come before its motion (P29)
	Open    State = 1
	Closed  State = 2
)

// Motion is a motion as the scope knows it.
type Motion struct {
	State  State
	Voters votes.Voters // of an open one its electorate; of an unknown one all who may vote now
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
	early   int
	voters  map[aweigh.Hash]load
	motions map[votes.MotionID]load
}

// load is how many ballots there are of a voter, or on a motion. Those on one
// motion are all early or none.
type load struct{ all, early int }

// Outcome is what became of a ballot that a box did not refuse.
type Outcome uint8

const (
	Added       Outcome = 1 // kept, once the writes are durable
	Repeated    Outcome = 2 // the box has it; whatever differs (signature, comment) is left
	Equivocated Outcome = 3 // kept too, beside one of the same voter that says the opposite (P33)
)

// String is "added", "repeated" or "equivocated".
func (o Outcome) String() string {
	return [...]string{"refused", "added", "repeated", "equivocated"}[o&3]
}

// Len is the number of ballots.
func (b *Box) Len() int { return b.tree.Len() }

// Early is how many of them are for motions that nobody knows yet.
func (b *Box) Early() int { return b.early }

// Has reports whether a ballot is in the box.
func (b *Box) Has(id aweigh.Hash) bool { return b.tree.Has(id) }

// On is how many of them are on a motion.
func (b *Box) On(id votes.MotionID) int { return b.motions[id].all }

// Set is the identities of all ballots, as they are now.
func (b *Box) Set() reconcile.Set { return b.tree.Snapshot() }

// Topic names the network and scope for reconcile.
func (b *Box) Topic() aweigh.Hash {
	return aweigh.Sum([]byte("aweigh/ballot-box/1\x00"), b.network[:], b.scope[:])
}

// Side is the box as one side of a reconciliation. r must show at least what
// was in the box at this moment, for as long as the session lasts.
func (b *Box) Side(r kv.Reader) reconcile.Side {
	return reconcile.Side{
		Topic:  b.Topic(),
		Set:    b.Set(),
		Load:   func(id aweigh.Hash) ([]byte, bool, error) { return Load(r, b.scope, id) },
		Limits: reconcile.Limits{Item: votes.MaxMotionBallot, Items: b.limits.Ballots},
	}
}

// Examine says, without looking at the signature, whether the box would take a
// ballot; known is set if it has it already. It is cheap: ask before verifying.
// Errors are those of Offer.
func (b *Box) Examine(v votes.MotionBallot, m Motion) (known bool, err error) {
	if err := v.Admissible(b.network, b.scope); err != nil {
		return false, err
	}
	if m.State == Closed {
		return false, fmt.Errorf("%w: %s", ErrClosed, v.Motion.Short())
	}
	if _, ok := m.Voters.Key(v.Voter); !ok {
		return false, fmt.Errorf("%w: %s may not vote on motion %s", votes.ErrStranger, v.Voter.Short(), v.Motion.Short())
	}
	if b.tree.Has(v.ID()) {
		return true, nil
	}
	of, l := b.voters[v.Voter], &b.limits
	switch {
	case b.Len() >= l.Ballots:
		return false, fmt.Errorf("%w: %d ballots", ErrFull, b.Len())
	case of.all >= l.PerVoter:
		return false, fmt.Errorf("%w: %d of %s", ErrVoterFull, of.all, v.Voter.Short())
	case !b.isEarly(v.Motion, m.State):
	case b.early >= l.Early:
		return false, fmt.Errorf("%w: %d ballots for motions that are not known yet", ErrFull, b.early)
	case of.early >= l.EarlyPerVoter:
		return false, fmt.Errorf("%w: %d of %s for motions that are not known yet", ErrVoterFull, of.early, v.Voter.Short())
	}
	return false, nil
}

// isEarly: ballots on a motion count as early until Opened is called for it.
func (b *Box) isEarly(id votes.MotionID, s State) bool {
	on, ok := b.motions[id]
	return ok && on.early > 0 || !ok && s == Unknown
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
	b.count(p, b.isEarly(v.Motion, m.State), 1)
	must.Hold(b.tree.Add(v.ID()), "box: a ballot that is not there is there")
	ops := []kv.Op{
		kv.Set(b.ballotKey(p), v.Encode()),
		kv.Set(b.indexKey(v.ID()), p[:]),
	}
	v.Choice = v.Choice.Other()
	if b.tree.Has(v.ID()) {
		return Equivocated, ops, nil
	}
	return Added, ops, nil
}

// count adds n, 1 or -1, to the loads of a ballot's voter and motion.
func (b *Box) count(p place, early bool, n int) {
	e := 0
	if early {
		e = n
	}
	b.early += e
	bump(b.voters, p.voter(), n, e)
	bump(b.motions, p.motion(), n, e)
}

func bump(m map[aweigh.Hash]load, id aweigh.Hash, all, early int) {
	l := m[id]
	l.all += all
	l.early += early
	must.Hold(l.all >= l.early && l.early >= 0, "box: %s has %d ballots, %d of them early", id.Short(), l.all, l.early)
	if l.all == 0 {
		delete(m, id)
	} else {
		m[id] = l
	}
}
