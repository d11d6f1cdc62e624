package box

import (
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/votes"
)

// A box in the store: the letter b and the scope, and below
//
//	m, motion, voter, choice (1 byte)  -> the ballot's encoding
//	i, identity                        -> motion, voter, choice
const (
	boxSpace = 'b'
	atBallot = 'm'
	atIndex  = 'i'
)

// place is the motion, voter and choice of a ballot: where it is stored.
type place [2*len(aweigh.Hash{}) + 1]byte

func placeOf(v *votes.MotionBallot) (p place) {
	copy(p[:], v.Motion[:])
	copy(p[len(v.Motion):], v.Voter[:])
	p[len(p)-1] = byte(v.Choice)
	return p
}

func (p *place) motion() aweigh.Hash { return aweigh.Hash(p[:32]) }
func (p *place) voter() aweigh.Hash  { return aweigh.Hash(p[32:64]) }

// id is the identity of the ballot at a place.
func (b *Box) id(p *place) aweigh.Hash {
	return votes.MotionVote{Network: b.network, Scope: b.scope, Motion: p.motion(), Choice: votes.Choice(p[64])}.ID(p.voter())
}

func (b *Box) prefix(space byte) []byte { return prefix(b.scope, space) }

func prefix(scope aweigh.ScopeID, space byte) []byte {
	return append(append(append(make([]byte, 0, 128), boxSpace), scope[:]...), space)
}

func (b *Box) ballotKey(p place) []byte       { return ballotKey(b.scope, p) }
func (b *Box) indexKey(id aweigh.Hash) []byte { return indexKey(b.scope, id) }

func ballotKey(scope aweigh.ScopeID, p place) []byte { return append(prefix(scope, atBallot), p[:]...) }

func indexKey(scope aweigh.ScopeID, id aweigh.Hash) []byte {
	return append(prefix(scope, atIndex), id[:]...)
}

// New opens the box of a scope with the ballots that r holds. The ops take away
// those that can no longer count, as of motions that have closed since. The
// error wraps that of r, or ErrDamaged.
func New(network aweigh.NetworkID, scope aweigh.ScopeID, limits Limits, r kv.Reader, motions Motions) (*Box, []kv.Op, error) {
	b := &Box{
		network: network, scope: scope, limits: limits.orDefault(),
		voters: make(map[aweigh.Hash]load), motions: make(map[votes.MotionID]load),
	}
	var ops []kv.Op
	var bad error
	known := make(map[votes.MotionID]Motion)
	over := func(p *place) (early, over bool) { // whether it can no longer count
		m, ok := known[p.motion()]
		if !ok {
			m = motions.Motion(p.motion())
			known[p.motion()] = m
		}
		return m.State == Unknown, m.State == Closed || m.State == Open && !mayVote(m.Voters, p.voter())
	}
	prefix := b.prefix(atIndex)
	err := r.Scan(prefix, kv.PrefixEnd(prefix), false, func(key, value []byte) bool {
		var p place
		if len(key) != len(prefix)+len(aweigh.Hash{}) || len(value) != len(p) {
			bad = fmt.Errorf("%w: key %x", ErrDamaged, key)
			return false
		}
		copy(p[:], value)
		id := aweigh.Hash(key[len(prefix):])
		if b.id(&p) != id {
			bad = fmt.Errorf("%w: ballot %s is not what it says", ErrDamaged, id.Short())
			return false
		}
		if _, over := over(&p); over {
			ops = append(ops, kv.Del(b.ballotKey(p)), kv.Del(b.indexKey(id)))
			return true
		}
		b.tree.Add(id)
		return true
	})
	prefix = b.prefix(atBallot)
	if err == nil && bad == nil {
		err = kv.Sift(r, prefix, kv.PrefixEnd(prefix), func(key []byte, size int) bool {
			var p place
			if len(key) != len(prefix)+copy(p[:], key[len(prefix):]) {
				bad = fmt.Errorf("%w: key %x", ErrDamaged, key)
			} else if early, over := over(&p); !over {
				b.count(p, early, 1, size)
			}
			return false
		}, nil)
	}
	if bad == nil && err == nil && b.load.all.ballots != b.tree.Len() {
		bad = fmt.Errorf("%w: %d ballots, %d in the index", ErrDamaged, b.load.all.ballots, b.tree.Len())
	}
	if err == nil {
		err = bad
	}
	if err != nil {
		return nil, nil, fmt.Errorf("box: scope %s: %w", scope.Short(), err)
	}
	return b, ops, nil
}

func mayVote(voters votes.Voters, voter aweigh.Hash) bool {
	_, ok := voters.Key(voter)
	return ok
}

// Opened takes note that a motion has opened: its ballots are early no longer.
// The ops take away those of voters who are not in its electorate. r must show
// all writes that the box has handed out.
func (b *Box) Opened(r kv.Reader, id votes.MotionID, electorate votes.Voters) ([]kv.Op, error) {
	if b.motions[id].early.ballots == 0 {
		return nil, nil
	}
	return b.revise(r, id, func(p *place) bool { return mayVote(electorate, p.voter()) })
}

// Closed takes note that a motion has closed: the ops take all its ballots away.
// r must show all writes that the box has handed out.
func (b *Box) Closed(r kv.Reader, id votes.MotionID) ([]kv.Op, error) {
	if b.motions[id].all.ballots == 0 {
		return nil, nil
	}
	return b.revise(r, id, func(*place) bool { return false })
}

// revise takes those of a motion's ballots away that are not kept, and counts
// the others as known.
func (b *Box) revise(r kv.Reader, id votes.MotionID, keep func(*place) bool) (ops []kv.Op, err error) {
	prefix := motionKey(b.scope, id)
	type stored struct {
		place
		size int
	}
	var places []stored
	err = r.Scan(prefix, kv.PrefixEnd(prefix), false, func(key, raw []byte) bool {
		p := stored{size: len(raw)}
		copy(p.place[:], key[len(prefix)-len(id):])
		places = append(places, p)
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("box: motion %s: %w", id.Short(), err)
	}
	before := b.motions[id]
	must.Hold(len(places) == before.all.ballots,
		"box: the reader shows %d ballots of motion %s, %d are there", len(places), id.Short(), before.all.ballots)
	for _, p := range places {
		b.count(p.place, before.early.ballots > 0, -1, p.size)
		if keep(&p.place) {
			b.count(p.place, false, 1, p.size)
			continue
		}
		name := b.id(&p.place)
		must.Hold(b.tree.Remove(name), "box: ballot %s is stored, and not there", name.Short())
		ops = append(ops, kv.Del(b.ballotKey(p.place)), kv.Del(b.indexKey(name)))
	}
	return ops, nil
}

// Ballots visits the ballots on a motion, by voter and then by choice, until
// visit returns false. The error wraps that of r, or ErrDamaged.
func (b *Box) Ballots(r kv.Reader, id votes.MotionID, visit func(votes.CheckedMotionBallot) bool) error {
	return Ballots(r, b.scope, id, visit)
}

// BallotsFrom is Ballots from a voter on.
func (b *Box) BallotsFrom(r kv.Reader, id votes.MotionID, voter aweigh.Hash, visit func(votes.CheckedMotionBallot) bool) error {
	return ballotsFrom(r, b.scope, id, voter, visit)
}

func motionKey(scope aweigh.ScopeID, m votes.MotionID) []byte {
	return append(prefix(scope, atBallot), m[:]...)
}

// Ballots reads what the box of a scope holds on a motion, without opening it.
func Ballots(r kv.Reader, scope aweigh.ScopeID, id votes.MotionID, visit func(votes.CheckedMotionBallot) bool) error {
	return ballotsFrom(r, scope, id, aweigh.Hash{}, visit)
}

func ballotsFrom(r kv.Reader, scope aweigh.ScopeID, id votes.MotionID, voter aweigh.Hash, visit func(votes.CheckedMotionBallot) bool) error {
	prefix := motionKey(scope, id)
	end := kv.PrefixEnd(prefix)
	var bad error
	err := r.Scan(append(prefix, voter[:]...), end, false, func(key, value []byte) bool {
		c, err := stored(key, value)
		if err != nil {
			bad = err
			return false
		}
		return visit(c)
	})
	if err == nil {
		err = bad
	}
	return err
}

func stored(key, value []byte) (votes.CheckedMotionBallot, error) {
	c, err := votes.StoredMotionBallot(value)
	if err != nil {
		return c, fmt.Errorf("%w: key %x: %w", ErrDamaged, key, err)
	}
	return c, nil
}

// equivocation is the proof that a voter chose both things on a motion, if the
// box holds it.
func (b *Box) equivocation(r kv.Reader, id votes.MotionID, voter aweigh.Hash) (e votes.MotionEquivocation, ok bool, err error) {
	var both [2]votes.MotionBallot
	for i, choice := range []votes.Choice{votes.Approve, votes.Reject} {
		v := votes.MotionBallot{MotionVote: votes.MotionVote{Motion: id, Choice: choice}, Voter: voter}
		key := b.ballotKey(placeOf(&v))
		raw, ok, err := r.Get(key)
		if !ok || err != nil {
			return e, false, err
		}
		c, err := stored(key, raw)
		if err != nil {
			return e, false, err
		}
		both[i] = c.Ballot()
	}
	e, err = votes.NewMotionEquivocation(both[0], both[1])
	return e, err == nil, err
}

// Load reads the encoding of a ballot that the box of a scope holds, without opening it.
func Load(r kv.Reader, scope aweigh.ScopeID, id aweigh.Hash) (raw []byte, ok bool, err error) {
	at, ok, err := r.Get(indexKey(scope, id))
	if !ok || err != nil {
		return nil, false, err
	}
	if len(at) != len(place{}) {
		return nil, false, fmt.Errorf("%w: ballot %s", ErrDamaged, id.Short())
	}
	return r.Get(ballotKey(scope, place(at)))
}

// Names visits the identities of the ballots that the box of a scope holds, in order, from
// one on, until visit returns false, without opening it.
func Names(r kv.Reader, scope aweigh.ScopeID, from aweigh.Hash, visit func(aweigh.Hash) bool) error {
	all := prefix(scope, atIndex)
	var bad error
	err := r.Scan(indexKey(scope, from), kv.PrefixEnd(all), false, func(key, _ []byte) bool {
		if len(key) != len(all)+len(from) {
			bad = fmt.Errorf("%w: key %x", ErrDamaged, key)
			return false
		}
		return visit(aweigh.Hash(key[len(all):]))
	})
	if err == nil {
		err = bad
	}
	return err
}
