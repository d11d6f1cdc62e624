package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	"connectrpc.com/connect"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/refusal"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
	"github.com/aweigh/aweigh/votes/box"
)

// deciding is the part of a node that the API needs for motions.
type deciding interface {
	Decision(id aweigh.Hash) (*node.Pending, scope.Head, error)
	Motions(closed bool) ([]node.Motion, scope.Head, error)
	Drafts(ctx context.Context) ([]node.Motion, error)
	Motion(prefix []byte) (node.Motion, scope.Head, error)
	AwaitMotion(ctx context.Context, prefix []byte, tell func(node.Motion, scope.Head) error) error
	Vote(ctx context.Context, prefix []byte, c votes.Choice, comment string) (machine.Casting, error)
	HandIn(ctx context.Context, ballots []votes.MotionBallot) ([]machine.Casting, error)
	ExportMotion(ctx context.Context, prefix []byte) (*scope.MotionProof, scope.Head, error)
	Withdraw(ctx context.Context, prefix []byte, once node.Once) (machine.Receipt, error)
}

const (
	leastMotionID = 4   // bytes of the start of a motion's ID
	mostRefusals  = 100 // that one answer lists, and as many ballots that contradict others
)

// motionID checks the ID of a motion, or the start of one.
func motionID(b []byte) ([]byte, error) {
	if len(b) < leastMotionID || len(b) > len(aweigh.Hash{}) {
		return nil, fmt.Errorf("%w: a motion's ID has %d bytes, or the first %d of them at least, not %d", errRequest, len(aweigh.Hash{}), leastMotionID, len(b))
	}
	return b, nil
}

// people are the names of authors: of the anchors' nodes, and of the anchors, whose own
// keys sign decisions.
func (s *service) people() map[aweigh.Hash]string {
	names := maps.Clone(s.names)
	for _, a := range s.at.Authors() {
		if a.Who == scope.OneKey {
			names[a.Key.ID()] = a.Name
		}
	}
	for _, a := range s.at.Overview().Roster.Anchors { // anchors that joined since
		names[machine.AuthorOf(machine.Peer(a.Peer))], names[a.Key.ID()] = a.Name, a.Name
	}
	return names
}

// Motions implements aweighv1connect.NodeHandler.
func (s *service) Motions(ctx context.Context, req *connect.Request[aweighv1.MotionsRequest]) (*connect.Response[aweighv1.MotionsResponse], error) {
	heard := s.hear(ctx, req.Msg.Linearizable)
	all, head, err := s.route.Motions(req.Msg.Closed)
	if err != nil {
		return nil, problem(err)
	}
	if req.Msg.Waiting {
		drafts, err := s.route.Drafts(ctx)
		if err != nil {
			return nil, problem(err)
		}
		all = append(all, drafts...)
	}
	names := s.people()
	out := &aweighv1.MotionsResponse{Header: s.named(s.read(head, heard))}
	for i := range all {
		m := motionOf(&all[i], names)
		m.Mutation, m.Opening, m.Changes = nil, nil, nil
		for _, v := range m.Voters {
			for _, b := range v.Ballots {
				b.Ballot = nil
			}
		}
		out.Motions = append(out.Motions, m)
	}
	if err := s.superseding(out.Motions...); err != nil {
		return nil, err
	}
	return connect.NewResponse(out), nil
}

// Motion implements aweighv1connect.NodeHandler.
func (s *service) Motion(ctx context.Context, req *connect.Request[aweighv1.MotionRequest]) (*connect.Response[aweighv1.MotionResponse], error) {
	heard := s.hear(ctx, req.Msg.Linearizable)
	m, head, err := s.motion(req.Msg.Id)
	if err != nil {
		return nil, err
	}
	out := &aweighv1.MotionResponse{Header: s.named(s.read(head, heard && bytes.Equal(head.Scope[:], s.scope[:]))), Motion: motionOf(&m, s.people())}
	if err := s.superseding(out.Motion); err != nil {
		return nil, err
	}
	return connect.NewResponse(out), nil
}

func (s *service) motion(id []byte) (node.Motion, scope.Head, error) {
	id, err := motionID(id)
	if err != nil {
		return node.Motion{}, scope.Head{}, problem(err)
	}
	m, head, err := s.route.Motion(id)
	return m, head, problem(err)
}

// WatchMotion implements aweighv1connect.NodeHandler.
func (s *service) WatchMotion(ctx context.Context, req *connect.Request[aweighv1.MotionRequest], out *connect.ServerStream[aweighv1.MotionResponse]) error {
	id, err := motionID(req.Msg.Id)
	if err != nil {
		return problem(err)
	}
	return problem(s.route.AwaitMotion(ctx, id, func(m node.Motion, head scope.Head) error {
		answer := &aweighv1.MotionResponse{Header: s.named(s.read(head, false)), Motion: motionOf(&m, s.people())}
		if err := s.superseding(answer.Motion); err != nil {
			return err
		}
		return out.Send(answer)
	}))
}

// ExportMotion implements aweighv1connect.NodeHandler.
func (s *service) ExportMotion(ctx context.Context, req *connect.Request[aweighv1.MotionRequest]) (*connect.Response[aweighv1.ExportMotionResponse], error) {
	id, err := motionID(req.Msg.Id)
	if err != nil {
		return nil, problem(err)
	}
	ctx, cancel := patient(ctx)
	defer cancel()
	p, head, err := s.route.ExportMotion(ctx, id)
	if err != nil {
		return nil, problem(err)
	}
	return connect.NewResponse(&aweighv1.ExportMotionResponse{Header: s.read(head, false), Proof: p.Encode()}), nil
}

// Vote implements aweighv1connect.NodeHandler.
func (s *service) Vote(ctx context.Context, req *connect.Request[aweighv1.VoteRequest]) (*connect.Response[aweighv1.VoteResponse], error) {
	if err := near(ctx); err != nil {
		return nil, err
	}
	id, err := motionID(req.Msg.Motion)
	if err != nil {
		return nil, problem(err)
	}
	choice, err := votes.ParseChoice(req.Msg.Choice)
	if err != nil {
		return nil, problem(fmt.Errorf("%w: %w", errRequest, err))
	}
	ctx, cancel := patient(ctx)
	defer cancel()
	c, err := s.route.Vote(ctx, id, choice, req.Msg.Comment)
	if err != nil {
		return nil, problem(s.saying(err))
	}
	m, head, err := s.motion(id)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&aweighv1.VoteResponse{
		Header: s.named(s.read(head, false)), Motion: motionOf(&m, s.people()), Outcome: c.Outcome.String(), Late: c.Late,
	}), nil
}

// HandIn implements aweighv1connect.NodeHandler.
func (s *service) HandIn(ctx context.Context, req *connect.Request[aweighv1.HandInRequest]) (*connect.Response[aweighv1.HandInResponse], error) {
	var all []votes.MotionBallot
	for r := votes.NewMotionBallotReader(bytes.NewReader(req.Msg.Bundle), votes.BallotFileLimits{}); ; {
		b, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, problem(fmt.Errorf("%w: %w", errRequest, err))
		}
		all = append(all, b)
	}
	ctx, cancel := patient(ctx)
	defer cancel()
	castings, err := s.route.HandIn(ctx, all)
	if err != nil {
		return nil, problem(err)
	}
	out := &aweighv1.HandInResponse{Header: s.written(machine.Receipt{})}
	for i, c := range castings {
		if c.Contrary && len(out.Contrary) < mostRefusals {
			out.Contrary = append(out.Contrary, s.contrary(i, &all[i]))
		}
		switch {
		case c.Err != nil:
			if len(out.Refused) < mostRefusals {
				out.Refused = append(out.Refused, &aweighv1.RefusedBallot{
					Ballot: uint64(i), Motion: all[i].Motion[:], Voter: all[i].Voter[:], Why: c.Err.Error(), Unsound: unsound(c.Err),
				})
			}
		case c.Outcome == box.Repeated:
			out.Repeated++
		case c.Late:
			out.Late++
		case c.Contrary:
			out.Equivocated++
		default:
			out.Added++
		}
	}
	return connect.NewResponse(out), nil
}

// contrary reports that the voter of a ballot at a place in a bundle has also signed the
// opposite.
func (s *service) contrary(place int, b *votes.MotionBallot) *aweighv1.ContraryBallot {
	out := &aweighv1.ContraryBallot{
		Ballot: uint64(place), Motion: b.Motion[:], Voter: b.Voter[:], Choice: b.Choice.String(), Before: b.Choice.Other().String(),
	}
	if m, _, err := s.route.Motion(b.Motion[:]); err == nil && m.Opening != nil {
		for i := range m.Opening.Voters {
			if v := &m.Opening.Voters[i]; v.Key.ID() == b.Voter {
				out.Name = v.Name
			}
		}
	}
	return out
}

// unsound reports whether a ballot was refused for its content, which is invalid
// anywhere, and not because there is no room or it comes too late.
func unsound(err error) bool { return refusal.Of(err).Blame() }

// withdrawable reports why a motion cannot be withdrawn through this node, so that it
// is not ordered in vain. One that is closed may have been by a repetition.
func (s *service) withdrawable(m *node.Motion) (err error) {
	switch {
	case m.Ending != nil:
		return nil
	case m.Draft != nil:
		err = fmt.Errorf("api: no block has opened it yet, so there is nothing to withdraw; no block opens it after %s",
			m.Draft.ValidUntil.Time().UTC().Format(time.RFC3339))
	case m.Mutation.Class == scope.Govern:
		err = errors.New("api: a decision cannot be withdrawn; anchors reject it with \"aweigh ballot reject\"")
	case m.Mutation.Author != machine.AuthorOf(s.at.Overview().Peer):
		who := s.people()[m.Mutation.Author]
		if who == "" {
			who = "the node " + m.Mutation.Author.Short()
		}
		err = fmt.Errorf("api: only %s, through which it was proposed, can withdraw it; ask there, with --api; if it is a key, sign with --as", who)
	default:
		return nil
	}
	return detailed(connect.CodeFailedPrecondition, err, &aweighv1.Problem{Reason: Failed, Mutation: m.ID[:]})
}

// Withdraw implements aweighv1connect.NodeHandler.
func (s *service) Withdraw(ctx context.Context, req *connect.Request[aweighv1.WithdrawRequest]) (*connect.Response[aweighv1.WithdrawResponse], error) {
	id, err := motionID(req.Msg.Motion)
	if err != nil {
		return nil, problem(err)
	}
	ctx, cancel := patient(ctx)
	defer cancel()
	m, _, err := s.motion(id)
	if err != nil {
		return nil, err
	}
	if err := s.withdrawable(&m); err != nil {
		return nil, err
	}
	r, err := s.route.Withdraw(ctx, m.ID[:], onceOf(ctx, req.Msg.Once))
	if err != nil {
		return nil, problem(err)
	}
	if err := failure(r); err != nil {
		return nil, err
	}
	return connect.NewResponse(&aweighv1.WithdrawResponse{Header: s.written(r)}), nil
}

// motionOf converts a motion; names are those of anchors of now, which decisions may be about. Authors have those that
// they had when the motion opened.
func motionOf(m *node.Motion, names map[aweigh.Hash]string) *aweighv1.Motion {
	o := m.Opening
	out := &aweighv1.Motion{
		Id: m.ID[:], Scope: bytesOf(m.Mutation.Scope), ScopePrefix: m.Prefix, Fate: "open", Author: m.Mutation.Author[:], AuthorName: m.Names[m.Mutation.Author],
		Justification: m.Mutation.Justification, Caller: m.Mutation.Caller, Subject: o.Subject(), Height: uint64(o.Height), Epoch: uint64(o.Epoch),
		OpenedNs: int64(o.Opened), DeadlineNs: int64(o.Deadline), Rule: o.Approval.String(), Mutation: o.Mutation,
		Approve: m.Tally.Approve, Reject: m.Tally.Reject, Void: m.Tally.Void, Total: m.Tally.Total, Needed: m.Tally.Threshold,
		Heads: uint32(m.Tally.Anchors), HeadsNeeded: o.Rule.MinAnchors, Doomed: m.Doomed, StepUp: o.Approval.StepUp,
	}
	if out.Principal = m.Mutation.Granted(); len(out.Principal) > 0 {
		out.PrincipalName = m.Names[aweigh.Hash(out.Principal)]
	}
	if out.ApprovedHeight = uint64(m.Approved); m.Approved > 0 {
		out.Fate = "approved"
	}
	if d := m.Draft; d != nil {
		out.Fate, out.Height, out.OpenedNs, out.DeadlineNs = "waiting", 0, 0, 0
		out.ValidUntilNs, out.Kept = int64(d.ValidUntil), d.Kept
	}
	out.Opening = canon.Encode(*o)
	if d := decisionOf(m); d != nil {
		out.Decision = bytesOf(d.ID())
		if name := names[d.Subject]; name != "" && d.Anchor == nil {
			out.Subject = d.AboutAnchor(name)
		}
	}
	if e := m.Ending; e != nil {
		out.Fate, out.Reason, out.ClosedHeight, out.ClosedNs, out.Revision = e.Fate.String(), e.Reason, uint64(e.Height), int64(e.Time), e.Revision
		if out.Effective = uint64(e.Effective); e.Effective > 0 {
			out.Fate = "effective" // as a Proposal has it
		}
	}
	voters := make(map[aweigh.Hash]*aweighv1.Voter)
	for i := range o.Voters {
		e := &o.Voters[i]
		id := e.Key.ID()
		v := voters[id]
		if v == nil {
			v = &aweighv1.Voter{Id: id[:], Name: e.Name}
			voters[id] = v
			out.Voters = append(out.Voters, v)
		}
		v.Weight, v.Anchor, v.Required = v.Weight+e.Weight, v.Anchor || e.Anchor, v.Required || e.Required
	}
	for i := range m.Recorded {
		r := &m.Recorded[i]
		ballot, err := r.Vote(m.ID)
		b := ballot.Ballot()
		if v := voters[b.Voter]; err == nil && v != nil {
			c := castOf(&b)
			c.Ballot = r.Ballot
			c.Height, c.TimeNs, c.Late, c.Early = uint64(r.Height), int64(r.Time), r.Late, r.Height == o.Height
			v.Ballots = append(v.Ballots, c)
		}
	}
	for i := range m.Waiting {
		if v := voters[m.Waiting[i].Voter]; v != nil {
			c := castOf(&m.Waiting[i])
			c.Ballot = m.Waiting[i].Encode()
			v.Ballots = append(v.Ballots, c)
		}
	}
	for i := range m.Changes {
		c := &m.Changes[i]
		out.Changes = append(out.Changes, &aweighv1.MotionChange{
			Delete: c.Op.Kind == scope.OpDelete, Key: c.Op.Key, RangeEnd: c.Op.End, Value: c.Op.Value, Now: kvsOf(c.Now), Was: kvsOf(c.Was), Lost: c.Lost,
			Lease: c.Op.Lease, Ttl: c.Found.TTL, Keeper: bytesOrNone(c.Found.Keeper), KeeperName: m.Names[c.Found.Keeper],
			KeepsValue: c.Op.IgnoreValue, KeepsLease: c.Op.IgnoreLease, Copies: copiesOf(c.Copies),
		})
	}
	return out
}

func copiesOf(p *scope.Parent) *aweighv1.Place {
	if p == nil {
		return nil
	}
	return &aweighv1.Place{Key: p.Key, Revision: p.Revision, Sub: p.Sub}
}

// decisionOf is the decision that a motion is about, nil if it is about none.
func decisionOf(m *node.Motion) *scope.Decision {
	d := new(scope.Decision)
	if m.Mutation.Class != scope.Govern || canon.Decode(m.Mutation.Content, d) != nil {
		return nil
	}
	return d
}

func castOf(b *votes.MotionBallot) *aweighv1.CastBallot {
	return &aweighv1.CastBallot{Choice: b.Choice.String(), Comment: b.Comment, Offline: b.Offline}
}
