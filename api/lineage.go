package api

import (
	"context"
	"fmt"

	"connectrpc.com/connect"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
)

// How many entries History gives: by default, and at most.
const (
	defaultEntries = 100
	mostEntries    = 1000
)

// entriesWanted is how many entries a request asks for. It refuses what makes no
// sense.
func entriesWanted(limit int64) (int, error) {
	if limit < 0 {
		return 0, problem(fmt.Errorf("%w: a limit of %d", errRequest, limit))
	}
	if limit == 0 {
		return defaultEntries, nil
	}
	return int(min(limit, mostEntries)), nil
}

// History implements aweighv1connect.NodeHandler.
func (s *service) History(ctx context.Context, req *connect.Request[aweighv1.HistoryRequest]) (*connect.Response[aweighv1.HistoryResponse], error) {
	if len(req.Msg.Key) == 0 {
		return nil, problem(scope.ErrEmptyKey)
	}
	limit, err := entriesWanted(req.Msg.Limit)
	if err != nil {
		return nil, err
	}
	ctx, cancel := patient(ctx)
	defer cancel()
	l, head, err := s.route.Lineage(ctx, req.Msg.Key, limit)
	if err != nil {
		return nil, problem(err)
	}
	return connect.NewResponse(&aweighv1.HistoryResponse{
		Header: s.read(head, true), More: l.More, Entries: entriesOf(l.Entries), BeforeUid: uidOf(l.Before),
	}), nil
}

func entriesOf(deeds []node.LineageEntry) (out []*aweighv1.Entry) {
	for i := range deeds {
		out = append(out, entryOf(&deeds[i]))
	}
	return out
}

func entryOf(d *node.LineageEntry) *aweighv1.Entry {
	return &aweighv1.Entry{
		Index: d.Index, Height: uint64(d.Height), Class: d.Class.String(), Mutation: d.Mutation[:],
		Author: d.Author[:], AuthorName: d.Name, Uid: uidOf(d.Object), Revision: d.Revision,
		TimeNs: int64(d.Time), Block: d.Block[:], Justification: d.Justification, Reason: d.Reason, Key: d.Key,
		Version: d.Version, Caller: d.Caller, Principal: d.Principal, PrincipalName: d.Acts, Scope: d.Entry.Scope[:],
	}
}

// Prove implements aweighv1connect.NodeHandler.
func (s *service) Prove(ctx context.Context, req *connect.Request[aweighv1.ProveRequest]) (*connect.Response[aweighv1.ProveResponse], error) {
	if len(req.Msg.Key) == 0 {
		return nil, problem(scope.ErrEmptyKey)
	}
	ctx, cancel := patient(ctx)
	defer cancel()
	p, head, err := s.route.Prove(ctx, req.Msg.Key)
	if err != nil {
		return nil, problem(err)
	}
	return connect.NewResponse(&aweighv1.ProveResponse{Header: s.read(head, true), Proof: p.Encode()}), nil
}

// ProveRange implements aweighv1connect.NodeHandler.
func (s *service) ProveRange(ctx context.Context, req *connect.Request[aweighv1.ProveRangeRequest]) (*connect.Response[aweighv1.ProveRangeResponse], error) {
	if len(req.Msg.Key) == 0 {
		return nil, problem(scope.ErrEmptyKey)
	}
	a := s.answer()
	defer a.Until(ctx)
	ctx, cancel := patient(a.In(ctx))
	defer cancel()
	p, head, err := s.route.ProveRange(ctx, req.Msg.Key, req.Msg.RangeEnd, aweigh.Height(req.Msg.Height))
	if err != nil {
		return nil, problem(err)
	}
	return connect.NewResponse(&aweighv1.ProveRangeResponse{Header: s.read(head, true), Proof: p.Encode()}), nil
}

// Checkpoint implements aweighv1connect.NodeHandler.
func (s *service) Checkpoint(ctx context.Context, req *connect.Request[aweighv1.CheckpointRequest]) (*connect.Response[aweighv1.CheckpointResponse], error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	c, head, err := s.at.Checkpoint(ctx, req.Msg.Old, req.Msg.Cosign)
	if err != nil {
		return nil, problem(err)
	}
	resp := &aweighv1.CheckpointResponse{Header: s.read(head, true), Ancestry: c.Ancestry.Encode()}
	for _, h := range c.Consistency.Path {
		resp.Consistency = append(resp.Consistency, h[:])
	}
	for i := range c.Cosigned {
		by := c.Cosigned[i].Key.ID()
		resp.Cosignatures = append(resp.Cosignatures, &aweighv1.Cosignature{Anchor: by[:], Time: c.Cosigned[i].Time, Signature: c.Cosigned[i].Signature})
	}
	return connect.NewResponse(resp), nil
}
