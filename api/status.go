package api

import (
	"cmp"
	"context"
	"slices"
	"time"

	"connectrpc.com/connect"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// Status implements aweighv1connect.NodeHandler.
func (s *service) Status(ctx context.Context, _ *connect.Request[aweighv1.StatusRequest]) (*connect.Response[aweighv1.StatusResponse], error) {
	s.node.AskAnchors(ctx)
	o := s.at.Overview()
	total := o.Roster.Weights.Total()
	fast := o.Rules.FastBounds(o.Roster.Weights)
	out := &aweighv1.StatusResponse{
		Header: s.read(o.Head, false), Version: o.Version, NetworkName: o.Network, NodeName: o.Name,
		Peer: string(o.Peer), Addresses: o.Addrs, Anchor: bytesOrNone(o.Self),
		View: uint64(o.View), Leader: bytesOrNone(o.Leader), Mode: o.Rules.Mode.String(), TotalWeight: total,
		FaultBudget:     o.Rules.Mode.FaultBudget(total),
		Notarize:        o.Rules.For(quorum.Notarize).Threshold(total),
		Finalize:        o.Rules.For(quorum.Finalize).Threshold(total),
		Nullify:         max(o.Rules.For(quorum.Nullify).Threshold(total), fast.Leave),
		OneRound:        fast.Final,
		ReachableWeight: o.Reach.Weight, FailuresLeft: int64(o.Reach.Failures),
		Waiting: uint64(o.Pool), LostState: o.Lost, Listening: o.Listening, CatchingUp: o.Behind, Compacted: o.Head.Compacted,
		StateDigest: o.Head.Digest[:], Block: o.Head.Block[:], BlockTimeNs: int64(o.Head.Time), Dropped: o.Dropped,
		LineageSize: o.Lineage.Size, LineageRoot: o.Lineage.Root[:],
	}
	out.Header.Epoch, out.Insecure = uint64(o.Epoch), s.open
	if p := o.Snapshot; p != nil {
		out.Snapshot = &aweighv1.Snapshot{Height: uint64(p.Height), Parts: p.Parts, Of: p.Of, Bytes: p.Bytes}
		for _, from := range p.Peers {
			out.Snapshot.Peers = append(out.Snapshot.Peers, string(from))
		}
	}
	if p := s.node.Pin(); !p.None() {
		out.Pin = &aweighv1.Pin{Roster: p.Trusted.String(), Reached: p.Reached, SinceNs: int64(p.Since)}
	}
	out.LostScopes = s.at.LostBelow()
	if a := s.at.Unseated(); !a.IsZero() {
		out.Unseated = a[:]
		out.UnseatedWhy, _ = s.at.Absence(a) // unknown while the state is replaced
	}
	if o.Head.Height > o.Began {
		out.EpochAge = uint64(o.Head.Height - o.Began)
	}
	out.EpochBlocks, out.OpenDecisions = o.EpochBlocks, uint64(o.Agenda)
	for _, f := range o.Faults {
		out.Faulty = append(out.Faulty, bytesOf(f.Anchor()))
	}
	addresses := make(map[string]string)
	for _, p := range o.Neighbours {
		addresses[string(p.Peer)] = p.Address
		out.Peers = append(out.Peers, &aweighv1.Peer{Id: string(p.Peer), Address: p.Address, Inbound: p.Inbound})
	}
	for _, a := range o.Roster.Anchors {
		id := a.Key.ID()
		out.Anchors = append(out.Anchors, &aweighv1.Anchor{
			Id: id[:], Name: a.Name, Peer: a.Peer, Weight: o.Roster.Weights.Of(id), Self: id == o.Self,
			Reachable: slices.Contains(o.Reach.Anchors, id), Address: addresses[a.Peer], LastView: uint64(o.Heard[id]),
			State: o.Reach.Says[id].State.String(), SilentUntil: uint64(o.Reach.Says[id].Until),
		})
	}
	out.VoidApprovers, out.Partitions = s.voidApprovers(ctx), s.partitions((*node.Partition).Brief)
	out.ClockBehindNs, out.NowNs = int64(o.ClockBehind), int64(o.Now)
	return connect.NewResponse(out), nil
}

// voidApprovers are the names of the approvers that are void in this node's state; none while it cannot be read.
func (s *service) voidApprovers(ctx context.Context) (names []string) {
	v, err := s.at.Read(ctx, false)
	if err != nil {
		return nil
	}
	defer func() { _ = v.Close() }() // it was only read
	all, err := v.Voided()
	if err != nil {
		return nil
	}
	for i := range all {
		names = append(names, all[i].Name)
	}
	return names
}

func bytesOrNone(h aweigh.Hash) []byte {
	if h.IsZero() {
		return nil
	}
	return h[:]
}

// Invite implements aweighv1connect.NodeHandler.
func (s *service) Invite(ctx context.Context, req *connect.Request[aweighv1.InviteRequest]) (*connect.Response[aweighv1.InviteResponse], error) {
	t := node.Tickets{Name: req.Msg.Name, Uses: int(cmp.Or(req.Msg.Uses, 1)), For: time.Duration(cmp.Or(req.Msg.ForNs, int64(24*time.Hour)))}
	i, r, err := s.node.Invite(ctx, t, onceOf(ctx, req.Msg.Once))
	if err != nil {
		return nil, problem(err)
	}
	resp := &aweighv1.InviteResponse{Invite: i.String(), Name: i.Ticket}
	switch {
	case i.Ticket == "": // nothing was written
	case r.Code == scope.Pending:
		resp.Motion = r.Mutation[:]
	default:
		if err := failure(r); err != nil {
			return nil, err
		}
	}
	return connect.NewResponse(resp), nil
}

// Genesis implements aweighv1connect.NodeHandler.
func (s *service) Genesis(context.Context, *connect.Request[aweighv1.GenesisRequest]) (*connect.Response[aweighv1.GenesisResponse], error) {
	return connect.NewResponse(&aweighv1.GenesisResponse{Genesis: s.at.Genesis().Encode()}), nil
}
