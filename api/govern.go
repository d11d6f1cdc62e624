package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// governing is the part of a node that the API needs for decisions.
type governing interface {
	Government(under *scope.Policy) (node.Government, error)
	Outlook() (scope.Outlook, *scope.Epoch, scope.Head, error)
	Govern(ctx context.Context, d scope.Decision, once node.Once) (machine.Receipt, error)
	Application(ctx context.Context, sponsor aweigh.AnchorID, name string) (scope.Decision, error)
	Apply(ctx context.Context, sponsor aweigh.AnchorID, name string, once node.Once) (scope.Decision, machine.Receipt, error)
}

// Govern implements aweighv1connect.NodeHandler.
func (s *service) Govern(ctx context.Context, req *connect.Request[aweighv1.GovernRequest]) (*connect.Response[aweighv1.GovernResponse], error) {
	if err := near(ctx); err != nil {
		return nil, err
	}
	var d scope.Decision
	if err := canon.Decode(req.Msg.Decision, &d); err != nil {
		return nil, problem(fmt.Errorf("%w: decision: %w", errRequest, err))
	}
	ctx, cancel := patient(ctx)
	defer cancel()
	r, err := s.at.Govern(ctx, d, onceOf(ctx, req.Msg.Once))
	return s.governed(&d, r, err)
}

// Apply implements aweighv1connect.NodeHandler.
func (s *service) Apply(ctx context.Context, req *connect.Request[aweighv1.ApplyRequest]) (*connect.Response[aweighv1.GovernResponse], error) {
	if err := near(ctx); err != nil {
		return nil, err
	}
	sponsor, err := anchorOf(req.Msg.Sponsor)
	if err != nil {
		return nil, problem(err)
	}
	ctx, cancel := patient(ctx)
	defer cancel()
	application, err := s.at.Application(ctx, sponsor, req.Msg.Name)
	if err != nil {
		return nil, problem(s.saying(err))
	}
	switch raw := canon.Encode(application); {
	case len(req.Msg.Application) == 0:
		return connect.NewResponse(&aweighv1.GovernResponse{
			Header: s.named(s.written(machine.Receipt{})), Kind: application.Kind.String(),
			Proposal: &aweighv1.Proposal{Kind: application.Kind.String(), Subject: bytesOf(application.Subject), Decision: raw},
		}), nil
	case !bytes.Equal(req.Msg.Application, raw):
		return nil, problem(fmt.Errorf("%w: this node would sign another application; ask for it first, by a request without one", errRequest))
	}
	d, r, err := s.at.Apply(ctx, sponsor, req.Msg.Name, onceOf(ctx, req.Msg.Once))
	return s.governed(&d, r, err)
}

// governed is the answer to a decision that was submitted.
func (s *service) governed(d *scope.Decision, r machine.Receipt, err error) (*connect.Response[aweighv1.GovernResponse], error) {
	if err != nil {
		return nil, problem(s.saying(err))
	}
	if err := failure(r); err != nil {
		return nil, err
	}
	p, _, err := s.route.Decision(d.ID())
	if err != nil {
		return nil, problem(err)
	}
	out := &aweighv1.GovernResponse{Header: s.named(s.written(r)), Id: bytesOf(d.ID()), Kind: d.Kind.String()}
	if p == nil && d.Kind == scope.Retire { // it needs no motion, which would tell its end
		end := scope.Ending{Fate: scope.Carried, Height: r.Height}
		if _, seated := s.at.Overview().Roster.Seat(d.Subject); seated {
			end = scope.Ending{Fate: scope.Void, Height: r.Height, Reason: "it could not take effect with what was decided before"}
		}
		p = &node.Pending{Proposed: scope.Proposed{ID: d.ID(), Decision: *d}, Sponsored: true, Ending: &end}
	}
	if p != nil {
		out.Proposal = proposalOf(p, nil)
	}
	return connect.NewResponse(out), nil
}

// saying adds to an error about this node's key which node it is: among several on one machine it may be another than
// was meant.
func (s *service) saying(err error) error {
	if errors.Is(err, node.ErrNoAnchor) || errors.Is(err, node.ErrUnseated) {
		return fmt.Errorf("%w (reported by %s)", err, s.at.Overview().Name)
	}
	return err
}

func anchorOf(b []byte) (a aweigh.AnchorID, err error) {
	if len(b) != len(a) {
		return a, fmt.Errorf("%w: an anchor's ID has %d bytes, not %d", errRequest, len(a), len(b))
	}
	return aweigh.AnchorID(b), nil
}

// proposalOf converts a decision on the agenda; names are those of anchors.
func proposalOf(p *node.Pending, names map[aweigh.AnchorID]string) *aweighv1.Proposal {
	d := &p.Decision
	out := &aweighv1.Proposal{
		Id: p.ID[:], Kind: d.Kind.String(), Subject: bytesOrNone(d.Subject), Name: names[d.Subject],
		Sponsor: bytesOrNone(d.Sponsor), Sponsored: p.Sponsored, Weight: p.Tally.Approve, Needed: p.Tally.Threshold,
		Heads: uint32(p.Tally.Anchors), HeadsNeeded: p.Tally.Least, OpenedNs: int64(p.Opened), LapsesNs: int64(p.Deadline),
		Carried: uint64(p.Carried), By: p.By[:], Decision: canon.Encode(*d), Motion: bytesOrNone(p.Motion), Fate: p.Fate(),
	}
	if e := p.Ending; e != nil {
		out.Reason, out.Effective = e.Reason, uint64(e.Effective)
		if e.Fate == scope.Carried {
			out.Carried = uint64(e.Height)
		}
	}
	switch {
	case d.Anchor != nil:
		out.Name = d.Anchor.Name
	case d.Child != nil:
		out.Name = fmt.Sprintf("%q", d.Child.Prefix)
	}
	for _, a := range p.Approvals {
		out.Approvals = append(out.Approvals, bytesOf(a))
	}
	return out
}
