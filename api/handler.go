package api

import (
	"context"
	"net/http"
	"time"

	"connectrpc.com/connect"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/api/aweigh/v1/aweighv1connect"
	"github.com/aweigh/aweigh/internal/requestlog"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// Node is the part of a whole node that the API needs; *node.Node is one.
type Node interface {
	Routes
	acting
	permitting
	Root() *node.Replica
	Answers() *node.AnswerBudget
	In(name string) (*node.Replica, error)
	Scopes() []node.ScopeInfo
	AskAnchors(ctx context.Context)
	Invite(ctx context.Context, t node.Tickets, once node.Once) (node.Invite, machine.Receipt, error)
	Pin() node.Pin
	Backup(give func([]node.BackupFile) error) error
	Islands() []node.Island
	Partitions(in aweigh.ScopeID) []node.Partition
	TxnProvisional(ctx context.Context, t scope.Txn, once node.Once) (machine.Receipt, node.Island, error)
	RangeProvisional(ctx context.Context, key, end []byte, r scope.Range) (scope.RangeResult, scope.Head, node.Island, error)
}

// Routes answers requests about keys and motions: *node.Node finds their scope, *node.Replica asks its own.
type Routes interface {
	Names
	deciding
	foreseeing
	Txn(ctx context.Context, t scope.Txn, once node.Once) (machine.Receipt, error)
	Compact(ctx context.Context, revision int64, once node.Once) (machine.Receipt, error)
	Submit(ctx context.Context, bundle []byte) ([]machine.Receipt, error)
	Range(ctx context.Context, key, end []byte, r scope.Range, linearizable bool) (scope.RangeResult, scope.Head, error)
	Watch(ctx context.Context, key, end []byte, from int64, deliver func(node.Changes) error) error
	Lineage(ctx context.Context, key []byte, limit int) (node.KeyLineage, scope.Head, error)
	Prove(ctx context.Context, key []byte) (*scope.KeyProof, scope.Head, error)
	ProveRange(ctx context.Context, key, end []byte, at aweigh.Height) (*scope.RangeProof, scope.Head, error)
	Judge(ctx context.Context, q node.ActionQuery, linearizable bool) ([]node.Said, error)
}

// Part is what the API asks about one scope; *node.Replica is one.
type Part interface {
	Health
	governing
	trusting
	foreseeingDecisions
	Read(ctx context.Context, linearizable bool) (*node.View, error)
	Checkpoint(ctx context.Context, old int64, cosign bool) (node.Checkpoint, scope.Head, error)
	Tail(ctx context.Context, t node.Tail, deliver func(node.TailPage) error) error
	Overview() node.Overview
	Authors() []scope.Author
	LostBelow() [][]byte
	CatchingUp() bool
	Genesis() scope.Genesis
}

var (
	_ Node   = (*node.Node)(nil)
	_ Routes = (*node.Replica)(nil)
	_ Part   = (*node.Replica)(nil)
)

const (
	// maxRequest bounds a request, in bytes; it leaves room for the largest mutation.
	maxRequest = 4 << 20
	// minCompress is the size from which answers are compressed for clients that
	// ask for it.
	minCompress = 64 << 10
)

// routes serves the API, and metrics if there are any.
func routes(s *service, metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	h := &scoped{of: s.node, root: handler(s), wrong: connect.NewErrorWriter(), open: s.open, gate: s.gate,
		requests: s.requests,
		parts:    make(map[aweigh.ScopeID]http.Handler)}
	mux.Handle("/"+aweighv1connect.NodeName+"/", h)
	mux.Handle("GET /livez", Live(s.at))
	mux.Handle("GET /readyz", Ready(s.at, s.node))
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	if metrics != nil {
		mux.Handle("GET /metrics", metrics)
	}
	return mux
}

// handler serves the API's calls.
func handler(s *service) http.Handler {
	_, h := aweighv1connect.NewNodeHandler(s, connect.WithReadMaxBytes(maxRequest),
		connect.WithCompressMinBytes(minCompress),
		connect.WithInterceptors(s.requests.Interceptor("api", sight), s.gate))
	return h
}

// service implements the handlers.
type service struct {
	aweighv1connect.UnimplementedNodeHandler
	node     Node
	route    Routes // of requests that name keys or motions
	at       Part   // in the scope of the other requests
	network  aweigh.NetworkID
	id       []byte // network
	scope    aweigh.ScopeID
	names    map[aweigh.Hash]string // of the anchors and their nodes, as authors
	open     []string               // ports of the node that take clients without certificates
	gate     *gate
	requests *requestlog.Log // nil: requests are not recorded
	reading  chan struct{}   // holds a token while a request reads the whole box
}

func newService(n Node, route Routes, at Part) *service {
	g := at.Genesis()
	id := g.Network()
	s := &service{node: n, route: route, at: at, network: id, id: id[:], scope: g.Hash(), names: make(map[aweigh.Hash]string), reading: make(chan struct{}, 1), gate: new(gate)}
	for _, a := range g.Anchors {
		s.names[machine.AuthorOf(machine.Peer(a.Peer))], s.names[a.Key.ID()] = a.Name, a.Name
	}
	return s
}

// written is the header of an answer to a mutation.
func (s *service) written(r machine.Receipt) *aweighv1.Header {
	return &aweighv1.Header{
		Network: s.id, Scope: r.Scope[:], Epoch: uint64(r.Epoch), Height: uint64(r.Height), Revision: r.Revision, Linearizable: true,
	}
}

// read is the header of an answer read from a state.
func (s *service) read(h scope.Head, linearizable bool) *aweighv1.Header {
	return &aweighv1.Header{
		Network: s.id, Scope: bytesOrNone(h.Scope), Epoch: uint64(h.Epoch), Height: uint64(h.Height),
		Revision: h.Revision, Linearizable: linearizable, CatchingUp: !linearizable && s.at.CatchingUp(),
	}
}

// named adds the name of the node.
func (s *service) named(h *aweighv1.Header) *aweighv1.Header {
	h.Node = s.at.Overview().Name
	return h
}

// hearWithin bounds how long a question about government waits for a quorum.
const hearWithin = 2 * time.Second

// hear waits until the node's state is as new as a quorum's, if that is wanted. It is false
// if no quorum answered in time: the node then answers alone, so that an operator can find
// the reason. Half of the caller's time is left for that.
func (s *service) hear(ctx context.Context, wanted bool) bool {
	if !wanted {
		return false
	}
	within := hearWithin
	if at, ok := ctx.Deadline(); ok {
		within = min(within, time.Until(at)/2)
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	v, err := s.at.Read(ctx, true)
	return err == nil && v.Close() == nil
}

// margin is how much earlier than its caller this side gives up, so that the
// caller gets the reason.
const margin = 100 * time.Millisecond

// patient is ctx with the margin taken off its deadline.
func patient(ctx context.Context) (context.Context, context.CancelFunc) {
	at, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, at.Add(-min(margin, time.Until(at)/4)))
}
