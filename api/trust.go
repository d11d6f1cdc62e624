package api

import (
	"context"
	"fmt"

	"connectrpc.com/connect"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// trusting is the part of a node that the API needs to report the standing of
// anchors, with its causes.
type trusting interface {
	Explain(a aweigh.AnchorID, limit int) (all []node.Explained, more bool, oldest aweigh.Height, head scope.Head, err error)
	HandoversAfter(at aweigh.Height, most, bytes int) (all [][]byte, more bool, err error)
	Unseated() aweigh.AnchorID
	Absence(aweigh.AnchorID) (why string, err error)
}

// Trust implements aweighv1connect.NodeHandler.
func (s *service) Trust(ctx context.Context, req *connect.Request[aweighv1.TrustRequest]) (*connect.Response[aweighv1.TrustResponse], error) {
	var under *scope.Policy
	if raw := req.Msg.Policy; len(raw) > 0 {
		under = new(scope.Policy)
		if err := canon.Decode(raw, under); err != nil {
			return nil, problem(fmt.Errorf("%w: policy: %w", errRequest, err))
		}
	}
	heard := s.hear(ctx, req.Msg.Linearizable)
	g, err := s.at.Government(under)
	if err != nil {
		return nil, problem(err)
	}
	e, total := g.Epoch, g.Epoch.Roster.Weights.Total()
	rules := e.Policy.Rules
	out := &aweighv1.TrustResponse{
		Header: s.named(s.read(g.Head, heard)), Age: g.Age, EpochBlocks: e.Policy.EpochBlocks,
		BeganNs: int64(e.Time), EndsNs: int64(g.Ends), Due: g.Due,
		Mode: rules.Mode.String(), TotalWeight: total, FaultBudget: rules.Mode.FaultBudget(total),
		Notarize: rules.For(quorum.Notarize).Threshold(total), Finalize: rules.For(quorum.Finalize).Threshold(total),
		Nullify: rules.For(quorum.Nullify).Threshold(total), FewestStop: uint32(g.Few.Stop), FewestBreak: uint32(g.Few.Break),
		NextTotal: g.Next.Weights.Total(), NextSeats: uint32(g.Next.Weights.Len()),
		NextStop: uint32(g.NextFew.Stop), NextBreak: uint32(g.NextFew.Break), NextStoppable: g.Stoppable, Policy: canon.Encode(e.Policy),
	}
	if now := &g.Group; now.On() {
		out.Group = &aweighv1.Group{Least: now.Least, Most: now.Most, Tolerates: now.Tolerates, Changes: now.Changes, Faults: uint32(now.Faults)}
	}
	out.Header.Epoch = uint64(e.Number)
	self := s.at.Overview().Self
	names := make(map[aweigh.AnchorID]string)
	for i := range g.Anchors {
		a := &g.Anchors[i]
		names[a.Anchor] = a.Name
		key := ""
		if len(a.Key.Bytes) > 0 {
			key = a.Key.String()
		}
		out.Anchors = append(out.Anchors, &aweighv1.Standing{
			Id: bytesOf(a.Anchor), Name: a.Name, Peer: a.Peer, Standing: a.Word, Score: uint32(a.Score), Trend: a.Trend,
			Weight: a.Weight, WeighsFrom: uint64(a.Weighs), Sponsor: bytesOrNone(a.Sponsor), Since: uint64(a.Since),
			Self: a.Anchor == self, NextScore: uint32(a.Next.Score), NextWeight: a.Next.Weight, NextSeated: a.Next.Seated, Why: a.Why, Blame: uint32(a.Blame), Key: key,
			Missed: a.Missed,
		})
	}
	for i := range g.Void {
		v := &g.Void[i]
		id := v.Key.ID()
		if names[id] == "" {
			names[id] = v.Name
		}
		out.Void = append(out.Void, &aweighv1.VoidApprover{
			Id: id[:], Name: v.Name, Key: v.Key.String(), Motion: v.Motion[:], Height: uint64(v.Height), TimeNs: int64(v.Time), Proof: v.Proof[:],
		})
	}
	for i := range g.Open {
		out.Proposals = append(out.Proposals, proposalOf(&g.Open[i], names))
	}
	for _, u := range g.Usages {
		out.Usages = append(out.Usages, &aweighv1.Usage{Name: u.Name, Made: u.Made, Bytes: u.Bytes, Leases: u.Leases, Motions: u.Motions})
	}
	return connect.NewResponse(out), nil
}

// Explain implements aweighv1connect.NodeHandler.
func (s *service) Explain(_ context.Context, req *connect.Request[aweighv1.ExplainRequest]) (*connect.Response[aweighv1.ExplainResponse], error) {
	a, err := anchorOf(req.Msg.Anchor)
	if err != nil {
		return nil, problem(err)
	}
	limit, err := entriesWanted(req.Msg.Limit)
	if err != nil {
		return nil, err
	}
	all, more, oldest, head, err := s.at.Explain(a, limit)
	if err != nil {
		return nil, problem(err)
	}
	out := &aweighv1.ExplainResponse{Header: s.read(head, false), More: more, Oldest: uint64(oldest)}
	for i := range all {
		c := &all[i]
		change := &aweighv1.Change{
			Epoch: uint64(c.Epoch), Height: uint64(c.Evidence.Height), Kind: c.Evidence.Kind.String(),
			Before: uint32(c.Before), After: uint32(c.After), Reason: c.Reason,
			Proof: bytesOrNone(c.Evidence.Proof), Evidence: bytesOf(c.Evidence.Hash()),
		}
		if c.Fault != nil {
			change.Fault = c.Fault.Encode()
		}
		out.Changes = append(out.Changes, change)
	}
	return connect.NewResponse(out), nil
}

// How much Handovers gives at a time: by default and at most, and in bytes.
const (
	mostHandovers     = 4096
	mostHandoverBytes = 4 << 20
)

// Handovers implements aweighv1connect.NodeHandler.
func (s *service) Handovers(_ context.Context, req *connect.Request[aweighv1.HandoversRequest]) (*connect.Response[aweighv1.HandoversResponse], error) {
	limit := mostHandovers
	if req.Msg.Limit > 0 {
		limit = int(min(req.Msg.Limit, mostHandovers))
	}
	all, more, err := s.at.HandoversAfter(aweigh.Height(req.Msg.After), limit, mostHandoverBytes)
	if err != nil {
		return nil, problem(err)
	}
	o := s.at.Overview()
	return connect.NewResponse(&aweighv1.HandoversResponse{Header: s.read(o.Head, false), Handovers: all, More: more}), nil
}
