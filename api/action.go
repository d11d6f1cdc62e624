package api

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/action"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// acting is the part of a node that the API needs to carry out verbs.
type acting interface {
	Act(ctx context.Context, a scope.Action, once node.Once) (machine.Receipt, error)
	Signal(ctx context.Context, verb string, key, value []byte, once node.Once) (int, error)
	WatchSignals(ctx context.Context, key, end []byte, begun func() error, deliver func(x node.Signal, lost uint64) error) error
}

// Act implements aweighv1connect.NodeHandler.
func (s *service) Act(ctx context.Context, req *connect.Request[aweighv1.ActRequest]) (*connect.Response[aweighv1.ActResponse], error) {
	m := req.Msg
	q := node.ActionQuery{Verb: m.Verb, Key: m.Key}
	if err := checkQuery(q); err != nil {
		return nil, problem(err)
	}
	ctx, cancel := patient(ctx)
	defer cancel()
	said, err := s.route.Judge(ctx, q, false)
	if err != nil {
		return nil, problem(err)
	}
	last := &said[len(said)-1]
	class := last.Class
	// Blocks decide about writes and claims: a repeated request may have been
	// allowed before. But no node knows the effect of an unknown verb.
	if d := node.Denied(said); d != nil && class != action.Write && class != action.Claim {
		return nil, problem(&node.Denial{By: *d})
	}
	if err := mayAct(ctx, class, m.Key); err != nil {
		return nil, err
	}
	out := &aweighv1.ActResponse{Class: class.String()}
	if err := suits(m, class); err != nil {
		return nil, problem(err)
	}
	switch class {
	case action.Read:
		if out.Resolved, err = s.look(ctx, m, q); err == nil {
			out.Header = out.Resolved.Header
		}
	case action.Signal:
		var to int
		to, err = s.node.Signal(ctx, m.Verb, m.Key, m.Value, onceOf(ctx, m.Once))
		out.Watchers, err = uint64(to), problem(err)
		out.Header = &aweighv1.Header{Network: s.id, Scope: bytesOf(last.Scope)}
	default:
		err = s.order(ctx, m, last, out)
	}
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(out), nil
}

func checkQuery(q node.ActionQuery) error {
	if len(q.Key) == 0 {
		return scope.ErrEmptyKey
	}
	return action.CheckVerb(q.Verb)
}

// suits reports a field of a request that its verb has no use for, or that is missing.
func suits(m *aweighv1.ActRequest, class action.Class) (err error) {
	switch takes := class == action.Write || class == action.Signal; {
	case class == action.Write && !m.HasValue:
		err = fmt.Errorf("%w: %s is of class write, and takes a value", errRequest, m.Verb)
	case !takes && (m.HasValue || len(m.Value) > 0):
		err = fmt.Errorf("%w: %s is of class %s, and takes no value", errRequest, m.Verb, class)
	case class != action.Read && m.Version != 0:
		err = fmt.Errorf("%w: %s is of class %s, and versions that are there do not change; leave out .v%d", errRequest, m.Verb, class, m.Version)
	}
	return err
}

// look carries out a verb that reads: rules judge it by the content read.
func (s *service) look(ctx context.Context, m *aweighv1.ActRequest, q node.ActionQuery) (*aweighv1.ResolveResponse, error) {
	said, err := s.route.Judge(ctx, q, !m.Serializable)
	if err == nil {
		if d := node.Denied(said); d != nil {
			err = &node.Denial{By: *d}
		} else if said[len(said)-1].Class != action.Read {
			err = scope.ErrClass
		}
	}
	if err != nil {
		return nil, problem(err)
	}
	r, err := s.Resolve(ctx, connect.NewRequest(&aweighv1.ResolveRequest{Key: m.Key, Version: m.Version, Serializable: m.Serializable}))
	if err != nil {
		return nil, err
	}
	return r.Msg, nil
}

// order carries out a verb that writes or claims.
func (s *service) order(ctx context.Context, m *aweighv1.ActRequest, by *node.Said, out *aweighv1.ActResponse) error {
	a := scope.Action{Verb: m.Verb, Class: by.Class, Key: m.Key, Value: m.Value}
	if m.Uid != "" {
		u, err := aweigh.ParseUID(m.Uid)
		if err != nil {
			return problem(fmt.Errorf("%w: %w", errRequest, err))
		}
		a.Object = u
	}
	r, err := s.node.Act(ctx, a, onceOf(ctx, m.Once))
	if err != nil {
		return problem(err)
	}
	if why := scope.Failure(r.Reason); errors.Is(why, scope.ErrDenied) {
		denied := *by
		denied.Scope = r.Scope
		denied.Why = denialOf(why)
		return detailed(connect.CodePermissionDenied, &node.Denial{By: denied}, &aweighv1.Problem{Reason: Denied, Mutation: bytesOf(r.Mutation)})
	}
	if m.Uid == "" && errors.Is(scope.Failure(r.Reason), scope.ErrUnnamed) { // named by the key alone
		return detailed(connect.CodeNotFound, scope.ErrKeyNotFound, &aweighv1.Problem{Reason: NotFound, Mutation: bytesOf(r.Mutation)})
	}
	if err := failure(r); err != nil {
		return err
	}
	out.Header, out.Repeated = s.written(r), r.Code == scope.Duplicate
	if a.Class == action.Write {
		if out.Repeated = out.Repeated || len(r.Responses) == 0; !out.Repeated {
			out.Uid = uidOf(r.Responses[0].UID)
		}
	}
	return nil
}

// denialOf is the reason of a denial, without the words that it is one.
func denialOf(err error) string { return err.Error()[len(scope.ErrDenied.Error())+len(": "):] }

// Judge implements aweighv1connect.NodeHandler.
func (s *service) Judge(ctx context.Context, req *connect.Request[aweighv1.JudgeRequest]) (*connect.Response[aweighv1.JudgeResponse], error) {
	m := req.Msg
	q := node.ActionQuery{Verb: m.Verb, Key: m.Key, Caller: machine.AuthorOf(s.at.Overview().Peer)}
	err := checkQuery(q)
	if err == nil && len(m.Caller) > 0 {
		if len(m.Caller) != len(q.Caller) {
			err = fmt.Errorf("%w: a caller is the hash of a key, of %d bytes, not %d", errRequest, len(q.Caller), len(m.Caller))
		}
		copy(q.Caller[:], m.Caller)
	}
	if err == nil && m.Class != "" {
		q.Try = &action.Rule{Verb: m.Verb, When: m.When}
		if q.Try.Class, err = action.ParseClass(m.Class); err == nil {
			err = q.Try.Check()
		}
		if r := rightsIn(ctx); r != nil && !r.Root() {
			q.MayRead = func(key []byte) error {
				if err := r.MayRead(key, nil); err != nil {
					return refused(err)
				}
				return nil
			}
		}
	}
	if err != nil {
		return nil, problem(err)
	}
	ctx, cancel := patient(ctx)
	defer cancel()
	said, err := s.route.Judge(ctx, q, !m.Serializable)
	if err != nil {
		return nil, problem(err)
	}
	out := &aweighv1.JudgeResponse{Caller: bytesOf(q.Caller)}
	for i := range said {
		out.Said = append(out.Said, saidOf(&said[i]))
	}
	return connect.NewResponse(out), nil
}

func saidOf(x *node.Said) *aweighv1.Said {
	out := &aweighv1.Said{
		Scope: bytesOf(x.Scope), Prefix: x.Prefix, Decides: x.Decides, Allowed: x.Allowed, Rule: x.Rule, Why: x.Why,
	}
	if x.Class != 0 {
		out.Class = x.Class.String()
	}
	if x.Detail != nil {
		out.Detail = x.Detail.Error()
	}
	return out
}

// Signals implements aweighv1connect.NodeHandler. The first response comes at once and
// confirms that the stream watches.
func (s *service) Signals(ctx context.Context, req *connect.Request[aweighv1.SignalsRequest], out *connect.ServerStream[aweighv1.SignalsResponse]) error {
	m := req.Msg
	if len(m.Key) == 0 {
		return problem(scope.ErrEmptyKey)
	}
	people := s.people()
	begun := func() error { return out.Send(&aweighv1.SignalsResponse{Created: true}) }
	return problem(s.node.WatchSignals(ctx, m.Key, m.RangeEnd, begun, func(x node.Signal, lost uint64) error {
		return out.Send(&aweighv1.SignalsResponse{
			Verb: x.Verb, Key: x.Key, Value: x.Value, Author: bytesOf(x.Author), AuthorName: people[x.Author],
			Scope: bytesOf(x.Scope), TimeNs: int64(x.At), Lost: lost,
		})
	}))
}
