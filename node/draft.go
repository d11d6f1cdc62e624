package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// Draft is what is known of a motion that no block has opened yet: its mutation waits at this node for a quorum. The
// rest of the Motion is what it would open as, by this node's state.
type Draft struct {
	Height     aweigh.Height  // of the newest block here
	Kept       bool           // this node has the mutation on disk, and continues with it after a restart
	ValidUntil aweigh.Instant // a block must have opened the motion by then
	bundle     *scope.CheckedBundle
	nth        int // of the bundle's mutations
}

// maxDrafts bounds the mutations that one question about drafts executes.
const maxDrafts = 256

// waits returns the mutations that wait, as a look asks for.
func (l *look) waits(m *machine.Machine) (all []queued) {
	if l.most == 0 {
		return nil
	}
	m.Waits(func(b *scope.CheckedBundle, kept bool) bool {
		for i := range b.Mutations() {
			x := &b.Mutations()[i]
			if len(all) < l.most && (x.Txn != nil || x.Naming != nil || x.Decision != nil) && bytes.HasPrefix(x.ID[:], l.named) {
				all = append(all, queued{b, i, kept})
			}
		}
		return len(all) < l.most
	})
	return all
}

// Drafts returns the motions that what waits at this node for a block would open, in order of arrival: of the first
// maxDrafts changes of keys and names, and decisions.
func (n *Replica) Drafts(ctx context.Context) ([]Motion, error) { return n.drafts(ctx, nil) }

// drafts is Drafts, of the mutations whose IDs begin with named.
func (n *Replica) drafts(ctx context.Context, named []byte) (all []Motion, err error) {
	s, err := n.take(ctx, look{most: maxDrafts, named: named})
	if err != nil || len(s.waits) == 0 {
		return nil, err
	}
	v, err := n.Read(ctx, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	e, err := v.State.Epoch()
	if err != nil {
		return nil, err
	}
	now := e.Terms()
	names := now.AuthorNames()
	for _, w := range s.waits {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		m, err := n.draft(v, &w)
		if errors.Is(err, scope.ErrNoDraft) {
			continue
		}
		if err != nil {
			return nil, err
		}
		m.Names = names
		all = append(all, m)
	}
	return all, nil
}

func (n *Replica) draft(v *View, w *queued) (m Motion, err error) {
	x := &w.bundle.Mutations()[w.nth]
	m.ID, m.Prefix = x.ID, n.prefix
	m.Draft = &Draft{v.Height(), w.kept, x.ValidUntil, w.bundle, w.nth}
	if m.Opening, err = v.State.Draft(w.bundle, w.nth, aweigh.InstantOf(n.of.Clock())); err != nil {
		return m, err
	}
	if err := canon.Decode(m.Opening.Mutation, &m.Mutation); err != nil {
		return m, err
	}
	if m.Waiting, err = unrecorded(v, m.ID); err != nil {
		return m, err
	}
	if m.Changes, err = m.changes(v); err != nil {
		return m, err
	}
	m.Tally, err = m.count()
	return m, err
}

// count counts the ballots that wait, as if the motion were open.
func (m *Motion) count() (t votes.MotionTally, err error) {
	e, err := m.Opening.Electorate()
	if err != nil {
		return t, err
	}
	keys, err := m.Opening.Keys()
	if err != nil {
		return t, err
	}
	var all []votes.CheckedMotionBallot
	for _, b := range m.Waiting {
		if c, err := votes.CheckMotionBallot(b, b.Network, b.Scope, keys, nil); err == nil { // not of a voter
			all = append(all, c)
		}
	}
	return votes.CountMotion(e, m.Opening.Rule, all), nil
}

// proveDraft proves a draft up to the newest final block here.
func (n *Replica) proveDraft(ctx context.Context, m *Motion) (p *scope.MotionProof, head scope.Head, err error) {
	v, err := n.Read(ctx, false)
	if err != nil {
		return nil, head, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	p, err = n.prover(ctx, v).Draft(m.Draft.bundle, m.Draft.nth, m.Opening)
	if errors.Is(err, machine.ErrUncovered) {
		err = fmt.Errorf("node: this node has no final block yet, which would prove who may vote: %w", err)
	}
	return p, v.Head(), err
}
