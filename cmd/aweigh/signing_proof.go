package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/scope"
)

// vouched is what shows that a motion is as a node states it, beside its mutation, which its identity names.
type vouched struct {
	header *aweighv1.Header
	own    bool                // the node is the one that signs, with its anchor's key
	proof  *scope.MotionReport // nil: nothing is proven
	pinned bool                // proof is for a network that is known from elsewhere
	lacks  error               // why nothing is proven
}

// vouch asks the node that answers for a proof of a motion, and verifies it for a network that the user named or that
// is known on this machine. A proof that does not hold is an error; so is none, where the user named the network.
func (a *app) vouch(ctx context.Context, s *session, m *aweighv1.MotionResponse, network string) (*vouched, error) {
	id := aweigh.NetworkID(m.Header.Network)
	v := &vouched{header: m.Header}
	if named := cmp.Or(network, s.network); named != "" {
		known, err := networkOf(named)
		if err != nil {
			return nil, err
		}
		if v.pinned = true; known != id {
			return nil, otherNetwork("the motion", id, known)
		}
	}
	ctx, cancel := s.limited(ctx)
	defer cancel()
	p, err := s.Client.ExportMotion(ctx, m.Motion.Id)
	if err == nil {
		err = a.verifies(v, p, m.Motion, id)
	} else if network == "" && !errors.Is(err, scope.ErrProof) {
		v.lacks, err = err, nil
	}
	if err != nil {
		return nil, err
	}
	if v.proof == nil {
		return v, nil
	}
	if err := a.trusts.check(p.Ancestry.Root()); err != nil {
		if network != "" || a.trusts.roster != "" {
			return nil, err
		}
		v.proof, v.lacks = nil, err
	}
	return v, nil
}

// verifies sets the proof of a motion, if it holds and shows what the node states.
func (a *app) verifies(v *vouched, p *scope.MotionProof, m *aweighv1.Motion, id aweigh.NetworkID) error {
	mo, err := show.Opening(m)
	if err != nil {
		return err
	}
	r, err := p.Verify(id)
	if err != nil {
		return err
	}
	proven := r.Motion.ID()
	switch {
	case !bytes.Equal(proven[:], m.Id) || !bytes.Equal(r.Mutation.Scope[:], m.Scope):
		return fmt.Errorf("%w: it is of another motion than the node was asked for", scope.ErrProof)
	case r.Draft != (m.Fate == "waiting"):
		return fmt.Errorf("%w: motion %s was opened or ended meanwhile; run the command again", errState, proven.Short())
	case !r.Draft && !bytes.Equal(canon.Encode(r.Motion), canon.Encode(*mo)):
		return fmt.Errorf("%w: the node shows motion %s as opened otherwise than it proves", scope.ErrProof, proven.Short())
	case mo.Policy != r.Under.Policy.Hash():
		return fmt.Errorf("%w: the node shows motion %s with another policy than the one in force", scope.ErrProof, proven.Short())
	}
	v.proof = &r
	return nil
}

// base is the policy to which one that a motion sets is shown as a difference, nil if it must be shown in full: the one
// that is proven to be in force; or the one that the node which signs states, if the motion names it.
func (v *vouched) base(mo *scope.Motion, stated *scope.Policy) *scope.Policy {
	switch {
	case v.proof != nil:
		return &v.proof.Under.Policy
	case v.own && stated != nil && stated.Hash() == mo.Policy:
		return stated
	}
	return nil
}

// worth reports what of a motion that was shown is proven.
func (v *vouched) worth() string {
	switch {
	case v.proof != nil:
		return "proven " + show.ProvenBy(v.proof) + "\n" + compared(v.proof, v.pinned)
	case v.own:
		return "all of this but the mutation is as " + nodeOf(v.header) + " states, which signs"
	}
	return fmt.Sprintf("all of this but the mutation is as %s states, and nothing proves it: rule, voters, deadline and what it found.\n"+
		"A policy is shown in full. There is no proof: %s", nodeOf(v.header), show.Line(forPeople(v.lacks.Error())))
}
