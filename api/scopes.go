package api

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"connectrpc.com/connect"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/requestlog"
	"github.com/aweigh/aweigh/node"
)

// scopeHeader is the header of a request about another scope than the root's: its
// prefix, or the start of its identity in hex. Requests about keys need none: they
// go to the scope that decides about them. Prefixes with bytes that are not visible
// ASCII are named by their identities.
const scopeHeader = "Aweigh-Scope"

// scoped passes requests that name a scope to the handler of that scope.
type scoped struct {
	of       Node
	root     http.Handler
	wrong    *connect.ErrorWriter
	open     []string // as of the service
	gate     *gate
	requests *requestlog.Log

	mu    sync.Mutex
	parts map[aweigh.ScopeID]http.Handler
}

// ServeHTTP implements http.Handler.
func (s *scoped) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := s.root
	if name := r.Header.Get(scopeHeader); name != "" {
		p, err := s.of.In(name)
		if err != nil {
			_ = s.wrong.Write(w, r, problem(err)) // no client is left
			return
		}
		h = s.part(p)
	}
	h.ServeHTTP(w, r)
}

func (s *scoped) part(p *node.Replica) http.Handler {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.parts[p.Scope()]
	if h == nil {
		of := newService(s.of, p, p)
		of.open, of.gate, of.requests = s.open, s.gate, s.requests
		h = handler(of)
		s.parts[p.Scope()] = h
	}
	return h
}

// Scopes implements aweighv1connect.NodeHandler.
func (s *service) Scopes(ctx context.Context, req *connect.Request[aweighv1.ScopesRequest]) (*connect.Response[aweighv1.ScopesResponse], error) {
	if s.at != Part(s.node.Root()) { // of one scope, which has no others to tell of
		return nil, problem(fmt.Errorf("%w: scopes are listed without %s", errRequest, scopeHeader))
	}
	out := new(aweighv1.ScopesResponse)
	heard := s.hear(ctx, req.Msg.Linearizable)
	s.node.AskAnchors(ctx)
	for _, i := range s.node.Scopes() {
		id := i.Head.Scope
		if out.Header == nil {
			out.Header = s.named(s.read(i.Head, heard))
			out.Header.Epoch = uint64(i.Epoch.Number) // the next block's, as in the list
		}
		x := &aweighv1.Scope{
			Id: bytesOf(id), Prefix: i.Genesis.Prefix(), Name: i.Genesis.Name, Mode: i.Epoch.Policy.Rules.Mode.String(),
			Epoch: uint64(i.Epoch.Number), Height: uint64(i.Head.Height), Revision: i.Head.Revision, BlockTimeNs: int64(i.Head.Time),
			Delegated: uint64(i.Head.Delegated), Anchor: i.Anchor, FailuresLeft: int64(i.Failures), CatchingUp: i.Behind, LostState: i.Lost,
		}
		if d := i.Genesis.Descent; d != nil {
			x.Parent, x.Depth, x.KeysHanded = bytesOf(d.Parent), d.Depth, d.Keys
		}
		x.NoticeNs = int64(i.Genesis.Notice())
		if o := i.Order; o != nil {
			x.YieldsNs = int64(o.Time.Add(i.Genesis.Notice()))
			x.Folds = o.Folds()
			for _, a := range o.Child.Anchors {
				x.Successors = append(x.Successors, a.Name)
			}
		}
		x.Closed = i.Epoch.Home != nil
		x.Held, x.Bytes, x.BytesAllowed = i.Held, i.Head.Bytes, i.Epoch.Policy.Limits.ScopeBytes
		x.Rate, x.RateAllowed = i.Rate, i.Epoch.Policy.Limits.Rate
		for _, a := range i.Epoch.Roster.Anchors {
			x.Anchors = append(x.Anchors, a.Name)
		}
		out.Scopes = append(out.Scopes, x)
	}
	return connect.NewResponse(out), nil
}
