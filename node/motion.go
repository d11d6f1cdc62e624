package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
	"github.com/aweigh/aweigh/votes/box"
)

var (
	// ErrManyMotions is returned for the beginning of an ID that several motions share.
	ErrManyMotions = errors.New("node: several motions begin like that; give more of the ID")
)

// Motion is a motion as this node knows it.
type Motion struct {
	ID       votes.MotionID
	Prefix   []byte // of all keys of the scope that decides it
	Opening  *scope.Motion
	Ending   *scope.Ending // nil while it is open
	Approved aweigh.Height // of the block whose ballots approved it, while it waits for its turn; otherwise 0
	Mutation scope.Mutation
	Tally    votes.MotionTally
	Recorded []scope.Recorded
	Waiting  []votes.MotionBallot // ballots that are here but in no block yet
	Changes  []MotionChange
	Draft    *Draft // nil for a motion that a block has opened
	Doomed   string // why an open motion would be void as things stand; empty if it would apply

	Names map[aweigh.Hash]string // of authors, under the policy and the roster of its epoch; of a draft, those of now
}

// state orders lists: motions that wait for ballots, those that wait for their turn, and those that are closed.
func (m *Motion) state() int {
	switch {
	case m.Ending != nil:
		return 2
	case m.Approved > 0:
		return 1
	}
	return 0
}

// MotionChange is one put or deletion that a motion makes if it is carried, or has made.
type MotionChange struct {
	Op   scope.Op
	Now  []scope.KeyValue // the values now, of up to maxShown keys
	Was  []scope.KeyValue // the values when the motion opened, likewise
	Lost bool             // Was is no longer known: it was compacted

	Found  scope.Found   // by the operation, when the motion opened
	Copies *scope.Parent // the version whose value a change of names puts, nil for other puts
}

// maxShown bounds the keys of a range that are shown.
const maxShown = 100

// maxMotionsShown bounds the motions of one list.
const maxMotionsShown = 2000

// Motions returns the motions on record, as of this node's state: the open ones by deadline, and then, if closed is
// set, the others, the last one first.
func (n *Replica) Motions(closed bool) (all []Motion, head scope.Head, err error) {
	v, err := n.Read(context.Background(), false)
	if err != nil {
		return nil, scope.Head{}, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	var bad error
	names := n.namesThen()
	err = v.Motions(func(id votes.MotionID, open bool) bool {
		if !open && !closed || len(all) == maxMotionsShown {
			return false
		}
		var m Motion
		if m, bad = names.motionOf(v, id); bad == nil && m.Ending == nil {
			m.Doomed, bad = v.Doomed(m.Opening)
		}
		all = append(all, m)
		return bad == nil
	})
	return all, v.Head(), errors.Join(err, bad)
}

// motionOrDraft returns the motion whose ID begins with prefix, or if none is on record, the draft.
func (n *Replica) motionOrDraft(ctx context.Context, prefix []byte) (m Motion, head scope.Head, err error) {
	m, head, err = n.Motion(prefix)
	if !errors.Is(err, machine.ErrNoMotion) {
		return m, head, err
	}
	all, failure := n.drafts(ctx, prefix)
	switch {
	case failure != nil:
		return m, head, failure
	case len(all) > 1:
		return m, head, ErrManyMotions
	case len(all) == 1:
		return all[0], head, nil
	}
	return m, head, err
}

// Motion returns the motion on record whose ID begins with prefix.
func (n *Replica) Motion(prefix []byte) (m Motion, head scope.Head, err error) {
	v, err := n.Read(context.Background(), false)
	if err != nil {
		return m, head, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	id, err := findMotion(v, prefix)
	if err != nil {
		return m, v.Head(), err
	}
	if m, err = n.namesThen().motionOf(v, id); err != nil {
		return m, v.Head(), err
	}
	if m.Changes, err = m.changes(v); err != nil {
		return m, v.Head(), err
	}
	if m.Ending != nil {
		return m, v.Head(), nil
	}
	if m.Doomed, err = v.Doomed(m.Opening); err == nil {
		m.Waiting, err = unrecorded(v, id)
	}
	return m, v.Head(), err
}

func findMotion(v *View, prefix []byte) (id votes.MotionID, err error) {
	if len(prefix) == len(id) {
		return votes.MotionID(prefix), nil
	}
	found := 0
	err = v.Motions(func(m votes.MotionID, _ bool) bool {
		if bytes.HasPrefix(m[:], prefix) {
			id, found = m, found+1
		}
		return found < 2
	})
	switch {
	case err != nil:
		return id, err
	case found == 0:
		return id, machine.ErrNoMotion
	case found > 1:
		return id, ErrManyMotions
	}
	return id, nil
}

func (n *namesThen) motionOf(v *View, id votes.MotionID) (m Motion, err error) {
	m.ID, m.Prefix = id, n.prefix
	if m.Opening, m.Ending, err = v.State.Motion(id); err != nil {
		return m, err
	}
	if m.Opening == nil {
		return m, fmt.Errorf("%w: %s", machine.ErrNoMotion, id.Short())
	}
	if m.Approved, err = v.ApprovedAt(id); err != nil {
		return m, err
	}
	if err := canon.Decode(m.Opening.Mutation, &m.Mutation); err != nil {
		return m, err
	}
	if m.Names, err = n.in(v, m.Opening.Epoch, m.Opening.Height); err != nil {
		return m, err
	}
	if m.Tally, err = v.Tally(id); err != nil {
		return m, err
	}
	m.Recorded, err = v.Ballots(id)
	return m, err
}

// changes returns what the transaction of a motion puts and deletes, the present values, and the values when it
// opened.
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
		if op.Kind == scope.OpPut && !op.IgnoreValue {
			c.Copies = m.Opening.Copies()
		}
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

// unrecorded returns the ballots on a motion that this node has and the chain has not.
func unrecorded(v *View, id votes.MotionID) (all []votes.MotionBallot, err error) {
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

// awaitEvery is the least time between two looks of AwaitMotion.
const awaitEvery = 50 * time.Millisecond

// AwaitMotion calls tell with the state of a motion, now and whenever that changes, until the motion is closed, tell
// returns an error or ctx ends.
func (n *Replica) AwaitMotion(ctx context.Context, prefix []byte, tell func(Motion, scope.Head) error) error {
	type stand struct {
		recorded, waiting int
		approved, closed  bool
		draft             bool
		doomed            string
	}
	last := stand{recorded: -1}
	for {
		changed, looked := n.Changed(), time.Now()
		m, head, err := n.motionOrDraft(ctx, prefix)
		if errors.Is(err, machine.ErrNoMotion) && last.draft {
			return fmt.Errorf("%w: it waits here no longer, and no block has opened it", err)
		}
		if err != nil {
			return err
		}
		prefix = m.ID[:]
		if now := (stand{len(m.Recorded), len(m.Waiting), m.Approved > 0, m.Ending != nil, m.Draft != nil, m.Doomed}); now != last {
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
		if pause := awaitEvery - time.Since(looked); pause > 0 { // many calls may wait, and blocks come fast
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// ExportMotion returns a proof of a motion for verifiers that know only the network. If no block after the motion's
// becomes final, for example without a quorum, the proof is bare (scope.MotionReport).
func (n *Replica) ExportMotion(ctx context.Context, prefix []byte) (*scope.MotionProof, scope.Head, error) {
	m, head, err := n.motionOrDraft(ctx, prefix)
	if err != nil {
		return nil, head, err
	}
	if m.Draft != nil {
		return n.proveDraft(ctx, &m)
	}
	within, cancel := context.WithTimeout(ctx, coverWithin)
	defer cancel()
	p, head, err := n.ProveMotion(within, m.ID)
	if err != nil && (within.Err() != nil || errors.Is(err, scope.ErrDenied)) && ctx.Err() == nil {
		return n.bareMotion(ctx, m.ID)
	}
	return p, head, err
}

// HandIn puts ballots into this node's box, from which they reach the anchors. It returns the outcomes in order; a
// refused ballot is not an error of the call.
func (n *Replica) HandIn(ctx context.Context, ballots []votes.MotionBallot) ([]machine.Casting, error) {
	return n.handIn(ctx, ballots, false)
}

func (n *Replica) handIn(ctx context.Context, ballots []votes.MotionBallot, own bool) (_ []machine.Casting, err error) {
	castings := make([]machine.Casting, len(ballots))
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
	case n.runner.events <- machine.HandIn{ID: id, Ballots: checked, Own: own}:
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
func (n *Replica) Vote(ctx context.Context, prefix []byte, choice votes.Choice, comment string) (machine.Casting, error) {
	key := n.anchor.Load()
	if key == nil {
		return machine.Casting{}, ErrNoAnchor
	}
	m, _, err := n.motionOrDraft(ctx, prefix)
	if err != nil {
		return machine.Casting{}, err
	}
	b, err := votes.SignMotionBallot(key.Signer(), votes.MotionVote{Network: n.network(), Scope: n.id, Motion: m.ID, Choice: choice}, comment)
	if err != nil {
		return machine.Casting{}, err
	}
	castings, err := n.handIn(ctx, []votes.MotionBallot{b}, true)
	if err != nil {
		return machine.Casting{}, err
	}
	if castings[0].Err == nil {
		n.recorded(ctx, b)
	}
	return castings[0], castings[0].Err
}

// recorded waits a moment until a block has recorded a ballot, so that the next request of the client sees it. Without
// a quorum no block will.
func (n *Replica) recorded(ctx context.Context, b votes.MotionBallot) {
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
func (n *Replica) Withdraw(ctx context.Context, prefix []byte, once Once) (machine.Receipt, error) {
	m, _, err := n.Motion(prefix)
	if err != nil {
		return machine.Receipt{}, err
	}
	return n.propose(ctx, scope.Withdraw, canon.Encode(scope.Withdrawal{Motion: m.ID}), once)
}

// Box visits the IDs of the ballots in this node's box, in order, beginning with from, until visit returns false.
func (v *View) Box(from aweigh.Hash, visit func(aweigh.Hash) bool) error {
	return box.Names(v.snapshot, v.Head().Scope, from, visit)
}

// Load reads a ballot of the box, if it is there.
func (v *View) Load(id aweigh.Hash) (raw []byte, ok bool, err error) {
	return box.Load(v.snapshot, v.Head().Scope, id)
}
