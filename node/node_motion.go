package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
	"github.com/aweigh/aweigh/votes/box"
)

var (
	// ErrNoMotion is returned for a motion that is not on record here.
	ErrNoMotion = errors.New("node: no such motion is on record; \"aweigh motion ls --all\" lists those that are; those of a scope that this node does not hold are known to nodes that do")
	// ErrManyMotions is returned for the start of an ID that several motions have.
	ErrManyMotions = errors.New("node: several motions begin like that; give more of the ID")
)

// Motion is a motion as this node knows it.
type Motion struct {
	ID       votes.MotionID
	Opening  *scope.Motion
	Ending   *scope.Ending // nil while it is open
	Approved aweigh.Height // of the block whose ballots approved it, while it waits for its turn; otherwise 0
	Mutation scope.Mutation
	Tally    votes.MotionTally
	Recorded []scope.Recorded
	Waiting  []votes.MotionBallot // that are here, and in no block yet
	Changes  []MotionChange
	Doomed   string // why an open one would be void as things stand; empty if it would apply
}

// MotionChange is one put or deletion that a motion would make, or made.
type MotionChange struct {
	Op   scope.Op
	Now  []scope.KeyValue // what is there now, up to maxShown keys
	Was  []scope.KeyValue // what was there when the motion opened, likewise
	Lost bool             // Was is not known any more: it was compacted away

	Found scope.Found // by the operation, when the motion opened
}

// maxShown bounds the keys that are shown of a range.
const maxShown = 100

// maxMotionsShown bounds the motions of one list.
const maxMotionsShown = 2000

// Motions are the motions on record, as of this node's state: those that are open
// by deadline, and then, if closed is set, the others, the last one first.
func (n *Part) Motions(closed bool) (all []Motion, head scope.Head, err error) {
	v, err := n.Read(context.Background(), false)
	if err != nil {
		return nil, scope.Head{}, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	var bad error
	err = v.Motions(func(id votes.MotionID, open bool) bool {
		if !open && !closed || len(all) == maxMotionsShown {
			return false
		}
		var m Motion
		m, bad = motionOf(v, id)
		all = append(all, m)
		return bad == nil
	})
	return all, v.Head(), errors.Join(err, bad)
}

// Motion is the one whose ID begins with some bytes.
func (n *Part) Motion(prefix []byte) (m Motion, head scope.Head, err error) {
	v, err := n.Read(context.Background(), false)
	if err != nil {
		return m, head, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	id, err := findMotion(v, prefix)
	if err != nil {
		return m, v.Head(), err
	}
	if m, err = motionOf(v, id); err != nil {
		return m, v.Head(), err
	}
	if m.Changes, err = m.changes(v); err != nil {
		return m, v.Head(), err
	}
	if m.Ending != nil {
		return m, v.Head(), nil
	}
	if m.Doomed, err = v.Doomed(m.Opening); err == nil {
		m.Waiting, err = waiting(v, id)
	}
	return m, v.Head(), err
}

func findMotion(v *View, prefix []byte) (id votes.MotionID, err error) {
	if len(prefix) == len(id) {
		return votes.MotionID(prefix), nil
	}
	found := 0
	err = v.Motions(func(m votes.MotionID, _ bool) bool {
		if string(m[:len(prefix)]) == string(prefix) {
			id, found = m, found+1
		}
		return found < 2
	})
	switch {
	case err != nil:
		return id, err
	case found == 0:
		return id, ErrNoMotion
	case found > 1:
		return id, ErrManyMotions
	}
	return id, nil
}

func motionOf(v *View, id votes.MotionID) (m Motion, err error) {
	m.ID = id
	if m.Opening, m.Ending, err = v.State.Motion(id); err != nil {
		return m, err
	}
	if m.Opening == nil {
		return m, fmt.Errorf("%w: %s", ErrNoMotion, id.Short())
	}
	if m.Approved, err = v.ApprovedAt(id); err != nil {
		return m, err
	}
	if err := canon.Decode(m.Opening.Mutation, &m.Mutation); err != nil {
		return m, err
	}
	if m.Tally, err = v.Tally(id); err != nil {
		return m, err
	}
	m.Recorded, err = v.Ballots(id)
	return m, err
}

// changes are what the transaction of a motion puts and deletes, what is there, and
// what was there when it opened.
func (m *Motion) changes(v *View) (all []MotionChange, err error) {
	t, err := m.Opening.Txn()
	if err != nil || t == nil {
		return nil, err
	}
	ops := t.Success
	if !m.Opening.Success {
		ops = t.Failure
	}
	for _, op := range ops {
		if op.Kind != scope.OpPut && op.Kind != scope.OpDelete {
			continue
		}
		r, err := v.Range(op.Key, op.End, scope.Range{Limit: maxShown})
		if err != nil {
			return nil, err
		}
		c := MotionChange{Op: op, Now: r.Kvs}
		if n := len(all); n < len(m.Opening.Basis) {
			c.Found = m.Opening.Basis[n]
		}
		was, err := v.Range(op.Key, op.End, scope.Range{Limit: maxShown, Revision: m.Opening.Revision})
		if c.Lost = errors.Is(err, scope.ErrCompacted); err != nil && !c.Lost {
			return nil, err
		}
		c.Was = was.Kvs
		all = append(all, c)
	}
	return all, nil
}

// waiting are the ballots on a motion that this node has and the chain has not.
func waiting(v *View, id votes.MotionID) (all []votes.MotionBallot, err error) {
	var bad error
	err = box.Ballots(v.snapshot, v.Head().Scope, id, func(c votes.CheckedMotionBallot) bool {
		b := c.Ballot()
		var have bool
		if have, bad = v.HasBallot(b.MotionVote, b.Voter); !have && bad == nil {
			all = append(all, b)
		}
		return bad == nil
	})
	return all, errors.Join(err, bad)
}

// awaitEvery is how often AwaitMotion looks, at most.
const awaitEvery = 50 * time.Millisecond

// AwaitMotion tells how a motion stands, now and whenever that changes, until it is
// closed, tell fails or ctx ends.
func (n *Part) AwaitMotion(ctx context.Context, prefix []byte, tell func(Motion, scope.Head) error) error {
	type stand struct {
		recorded, waiting int
		approved, closed  bool
		doomed            string
	}
	last := stand{recorded: -1}
	for {
		changed, looked := n.Changed(), time.Now()
		m, head, err := n.Motion(prefix)
		if err != nil {
			return err
		}
		prefix = m.ID[:]
		if now := (stand{len(m.Recorded), len(m.Waiting), m.Approved > 0, m.Ending != nil, m.Doomed}); now != last {
			if err := tell(m, head); err != nil {
				return err
			}
			last = now
		}
		if m.Ending != nil {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-n.runner.replies.done:
			return n.runner.replies.stopped
		}
		if pause := awaitEvery - time.Since(looked); pause > 0 { // many may wait, and blocks come fast
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// ExportMotion proves a motion to those who know the network alone. Where no block after it becomes final, as without a
// quorum, the proof is bare (scope.MotionReport).
func (n *Part) ExportMotion(ctx context.Context, prefix []byte) (*scope.MotionProof, scope.Head, error) {
	m, head, err := n.Motion(prefix)
	if err != nil {
		return nil, head, err
	}
	within, cancel := context.WithTimeout(ctx, coverWithin)
	defer cancel()
	p, head, err := n.ProveMotion(within, m.ID)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return n.bareMotion(ctx, m.ID)
	}
	return p, head, err
}

// HandIn puts ballots into this node's box, which makes them known to the anchors.
// What came of each is told in order; refusals are no error of the whole.
func (n *Part) HandIn(ctx context.Context, ballots []votes.MotionBallot) ([]Casting, error) {
	return n.handIn(ctx, ballots, false)
}

func (n *Part) handIn(ctx context.Context, ballots []votes.MotionBallot, own bool) (_ []Casting, err error) {
	castings := make([]Casting, len(ballots))
	checked := make([]votes.CheckedMotionBallot, 0, len(ballots))
	places := make([]int, 0, len(ballots))
	v, err := n.Read(ctx, false)
	if err != nil {
		return nil, err
	}
	voters := make(map[votes.MotionID]votes.KeySet)
	for i, b := range ballots {
		keys, ok := voters[b.Motion]
		if !ok {
			if keys, err = v.Voters(b.Motion); err != nil {
				return nil, errors.Join(err, v.Close())
			}
			voters[b.Motion] = keys
		}
		c, err := votes.CheckMotionBallot(b, n.network(), n.id, keys, nil)
		if err != nil {
			castings[i].Err = err
			continue
		}
		checked, places = append(checked, c), append(places, i)
	}
	if err := v.Close(); err != nil || len(checked) == 0 {
		return castings, err
	}
	ctx, cancel := n.deadline(ctx)
	defer cancel()
	id, done := n.runner.replies.read()
	defer n.runner.replies.forgetRead(id)
	select {
	case n.runner.events <- HandIn{ID: id, Ballots: checked, Own: own}:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-n.runner.replies.done:
		return nil, n.runner.replies.stopped
	}
	reply, err := n.runner.replies.wait(ctx, done)
	if err != nil {
		return nil, err
	}
	for i, c := range reply.Cast {
		castings[places[i]] = c
	}
	return castings, nil
}

// Vote signs a ballot with this node's anchor key and hands it in. Errors wrap
// ErrNoAnchor, ErrNoMotion, ErrContrary, or are those for which a box refuses.
func (n *Part) Vote(ctx context.Context, prefix []byte, choice votes.Choice, comment string) (Casting, error) {
	key := n.anchor.Load()
	if key == nil {
		return Casting{}, ErrNoAnchor
	}
	m, _, err := n.Motion(prefix)
	if err != nil {
		return Casting{}, err
	}
	b, err := votes.SignMotionBallot(key.Signer(), votes.MotionVote{Network: n.network(), Scope: n.id, Motion: m.ID, Choice: choice}, comment)
	if err != nil {
		return Casting{}, err
	}
	castings, err := n.handIn(ctx, []votes.MotionBallot{b}, true)
	if err != nil {
		return Casting{}, err
	}
	if castings[0].Err == nil {
		n.recorded(ctx, b)
	}
	return castings[0], castings[0].Err
}

// recorded waits a moment until a block has recorded a ballot, so that who asks next
// sees it. Without a quorum none will.
func (n *Part) recorded(ctx context.Context, b votes.MotionBallot) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for {
		changed := n.Changed()
		v, err := n.Read(ctx, false)
		if err != nil {
			return
		}
		have, err := v.HasBallot(b.MotionVote, b.Voter)
		if err = errors.Join(err, v.Close()); have || err != nil {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		case <-n.runner.replies.done:
			return
		}
	}
}

// Withdraw ends a motion that this node proposed, and waits until that is final.
func (n *Part) Withdraw(ctx context.Context, prefix []byte, once Once) (Receipt, error) {
	m, _, err := n.Motion(prefix)
	if err != nil {
		return Receipt{}, err
	}
	return n.propose(ctx, scope.Withdraw, canon.Encode(scope.Withdrawal{Motion: m.ID}), once)
}

// Box visits the identities of the ballots in this node's box, in order, from one on,
// until visit returns false.
func (v *View) Box(from aweigh.Hash, visit func(aweigh.Hash) bool) error {
	return box.Names(v.snapshot, v.Head().Scope, from, visit)
}

// Load reads a ballot of the box, if it is there.
func (v *View) Load(id aweigh.Hash) (raw []byte, ok bool, err error) {
	return box.Load(v.snapshot, v.Head().Scope, id)
}
