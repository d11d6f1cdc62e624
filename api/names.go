package api

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
)

// Names is the part of a node that the API needs to serve names.
type Names interface {
	Naming(ctx context.Context, n scope.Naming, once node.Once) (machine.Receipt, error)
	Object(ctx context.Context, prefix string, limit int, linearizable bool) (node.Object, error)
	Resolve(ctx context.Context, key []byte, version int64, linearizable bool) (referral.Resolved, scope.Head, error)
	Redirects(ctx context.Context, key, end []byte, most int, linearizable bool) ([]scope.Redirect, scope.Head, error)
}

// Name implements aweighv1connect.NodeHandler.
func (s *service) Name(ctx context.Context, req *connect.Request[aweighv1.NameRequest]) (*connect.Response[aweighv1.NameResponse], error) {
	n, err := NamingOf(req.Msg)
	if err != nil {
		return nil, problem(err)
	}
	ctx, cancel := patient(ctx)
	defer cancel()
	r, err := s.route.Naming(ctx, n, onceOf(ctx, req.Msg.Once))
	if err != nil {
		return nil, problem(err)
	}
	if err := failure(r); err != nil {
		return nil, err
	}
	out := &aweighv1.NameResponse{Header: s.written(r), Repeated: len(r.Responses) == 0, Sent: r.Sent}
	if !out.Repeated {
		out.Uid = uidOf(r.Responses[0].UID)
	}
	return connect.NewResponse(out), nil
}

// NamingOf converts a request. An unknown kind becomes 0, which every node refuses.
func NamingOf(m *aweighv1.NameRequest) (n scope.Naming, err error) {
	n = scope.Naming{
		Kind: scope.NameKind(m.Kind), Key: m.Key, To: m.To, Until: aweigh.Instant(m.UntilNs),
		From: m.Place.GetKey(), Revision: m.Place.GetRevision(), Sub: m.Place.GetSub(),
	}
	if m.Kind < 0 || m.Kind > aweighv1.NameRequest_KIND_ROLLBACK {
		n.Kind = 0
	}
	if m.Uid != "" {
		if n.Object, err = aweigh.ParseUID(m.Uid); err != nil {
			return n, fmt.Errorf("%w: %w", errRequest, err)
		}
	}
	return n, nil
}

// Resolve implements aweighv1connect.NodeHandler.
func (s *service) Resolve(ctx context.Context, req *connect.Request[aweighv1.ResolveRequest]) (*connect.Response[aweighv1.ResolveResponse], error) {
	m := req.Msg
	if len(m.Key) == 0 {
		return nil, problem(scope.ErrEmptyKey)
	}
	if m.Version < 0 {
		return nil, problem(fmt.Errorf("%w: version %d; versions count from 1", errRequest, m.Version))
	}
	ctx, cancel := patient(ctx)
	defer cancel()
	var trace *node.Trace
	if m.Trace {
		ctx, trace = node.Traced(ctx)
	}
	ctx, age := node.Aged(ctx)
	r, head, err := s.route.Resolve(ctx, m.Key, m.Version, !m.Serializable)
	if err != nil {
		return nil, problem(err)
	}
	out := &aweighv1.ResolveResponse{
		Header: s.read(head, !m.Serializable), Key: r.Key, Uid: uidOf(r.Kv.UID), Claims: r.Claims, Newest: r.Newest, Number: r.Number,
		Kv: kvOf(&r.Kv), Place: placeOf(r.Kv.Key, r.Kv.ModRevision, r.Kv.Sub),
	}
	if m.Serializable {
		out.Header.AgeNs = int64(age.Oldest())
	}
	if r.Moved != nil {
		out.Moved = movedOf(r.Moved)
	}
	if trace != nil {
		out.Trips = tripsOf(trace)
	}
	return connect.NewResponse(out), nil
}

func tripsOf(t *node.Trace) (all []*aweighv1.Trip) {
	for _, trip := range t.Trips() {
		out := &aweighv1.Trip{Prefix: trip.Prefix}
		for i := range trip.Asked {
			a := &trip.Asked[i]
			id := a.Why.Anchor.Key.ID()
			x := &aweighv1.Asked{
				Anchor: a.Why.Anchor.Name, Id: id[:], Trust: uint32(a.Why.Trust), Last: a.Why.Last(),
				TookNs: a.Why.Took.Nanoseconds(), Fails: uint32(a.Why.Fails), Class: uint32(a.Why.Class()),
			}
			switch {
			case errors.Is(a.Err, referral.ErrOutrun):
			case a.Err != nil:
				x.Failure = a.Err.Error()
			default:
				x.AnswerNs = a.Answer.Nanoseconds()
			}
			out.Asked = append(out.Asked, x)
		}
		all = append(all, out)
	}
	return all
}

func placeOf(key []byte, revision int64, sub uint32) *aweighv1.Place {
	return &aweighv1.Place{Key: key, Revision: revision, Sub: sub}
}

func movedOf(r *scope.Redirect) *aweighv1.Moved {
	return &aweighv1.Moved{Key: r.Key, To: r.To, Uid: uidOf(r.Object), UntilNs: int64(r.Until)}
}

// Object implements aweighv1connect.NodeHandler.
func (s *service) Object(ctx context.Context, req *connect.Request[aweighv1.ObjectRequest]) (*connect.Response[aweighv1.ObjectResponse], error) {
	limit, err := entriesWanted(req.Msg.Limit)
	if err != nil {
		return nil, err
	}
	ctx, cancel := patient(ctx)
	defer cancel()
	o, err := s.route.Object(ctx, req.Msg.Uid, limit, !req.Msg.Serializable)
	if err != nil {
		return nil, problem(err)
	}
	out := &aweighv1.ObjectResponse{
		Header: s.read(o.Head, !req.Msg.Serializable), Uid: uidOf(o.UID), Aliases: o.Aliases, Entries: entriesOf(o.Deeds), More: o.More,
	}
	if p := o.Parent; p != nil {
		out.Parent, out.Place = uidOf(p.Object), placeOf(p.Key, p.Revision, p.Sub)
	}
	return connect.NewResponse(out), nil
}

// Redirects implements aweighv1connect.NodeHandler.
func (s *service) Redirects(ctx context.Context, req *connect.Request[aweighv1.RedirectsRequest]) (*connect.Response[aweighv1.RedirectsResponse], error) {
	m := req.Msg
	if len(m.Key) == 0 {
		return nil, problem(scope.ErrEmptyKey)
	}
	limit, err := entriesWanted(m.Limit)
	if err != nil {
		return nil, err
	}
	ctx, cancel := patient(ctx)
	defer cancel()
	all, head, err := s.route.Redirects(ctx, m.Key, m.RangeEnd, limit+1, !m.Serializable)
	if err != nil {
		return nil, problem(err)
	}
	out := &aweighv1.RedirectsResponse{Header: s.read(head, !m.Serializable), More: len(all) > limit}
	for i := range all[:min(len(all), limit)] {
		out.Moved = append(out.Moved, movedOf(&all[i]))
	}
	return connect.NewResponse(out), nil
}
