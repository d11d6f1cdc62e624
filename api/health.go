package api

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/aweigh/aweigh/node"
)

// Health is what probes need of a scope; *node.Replica is one.
type Health interface {
	Live(ctx context.Context) []node.Check
	Ready(ctx context.Context) []node.Check
}

// Live answers 200 while the process can do its work, whatever the other nodes
// do, and otherwise 503: then only a restart helps.
func Live(root Health) http.Handler { return &probe{name: "livez", ask: root.Live} }

// Ready answers 200 if the node could answer a linearizable read now, and
// otherwise 503, with one line for each reason. With ?scope=PREFIX it does so for that
// scope, by prefix or identity, and answers 404 if the node does not hold it; without, for the root scope.
func Ready(root Health, n Node) http.Handler {
	return &readiness{root: &probe{name: "readyz", ask: root.Ready}, of: n, parts: make(map[*node.Replica]*probe)}
}

// readiness is a probe for each scope that was asked about.
type readiness struct {
	root *probe
	of   Node

	mu    sync.Mutex
	parts map[*node.Replica]*probe
}

// ServeHTTP implements http.Handler.
func (h *readiness) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("scope")
	if name == "" {
		h.root.ServeHTTP(w, r)
		return
	}
	p, err := h.of.In(name)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	h.mu.Lock()
	of := h.parts[p]
	if of == nil {
		of = &probe{name: "readyz", ask: p.Ready}
		h.parts[p] = of // of no more scopes than the node holds
	}
	h.mu.Unlock()
	of.ServeHTTP(w, r)
}

// fresh is for how long one look serves all requests, so that frequent requests
// cost the node nothing.
const fresh = 100 * time.Millisecond

// probe serves checks as etcd and Kubernetes do: "ok", or a line for each check
// that failed; with ?verbose a line for each check.
type probe struct {
	name string
	ask  func(context.Context) []node.Check

	mu     sync.Mutex // held while one request asks; the others wait for its result
	at     time.Time
	checks []node.Check
}

// ServeHTTP implements http.Handler.
func (p *probe) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	checks := p.look()
	var body strings.Builder
	bad := 0
	_, verbose := r.URL.Query()["verbose"]
	for _, c := range checks {
		switch {
		case c.Err != nil:
			bad++
			fmt.Fprintf(&body, "[-]%s failed: %s\n", c.Name, strings.ReplaceAll(c.Err.Error(), "\n", "; "))
		case verbose:
			fmt.Fprintf(&body, "[+]%s ok", c.Name)
			if c.Note != "" {
				fmt.Fprintf(&body, ": %s", strings.ReplaceAll(c.Note, "\n", "; "))
			}
			body.WriteByte('\n')
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	switch {
	case bad > 0:
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintf(&body, "%s check failed\n", p.name)
	case verbose:
		fmt.Fprintf(&body, "%s check passed\n", p.name)
	default:
		body.WriteString("ok\n")
	}
	_, _ = w.Write([]byte(body.String()))
}

// look returns the results of the checks, not older than fresh. It asks for all
// waiting requests, so a request that gives up must not end it.
func (p *probe) look() []node.Check {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.checks == nil || time.Since(p.at) > fresh {
		p.checks, p.at = p.ask(context.Background()), time.Now()
	}
	return p.checks
}

// ListenHealth opens an address that shows metrics and the node's health to every
// client that reaches it, and accepts no other requests.
func ListenHealth(address string, n Node, metrics http.Handler) (*Server, error) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	mux.Handle("GET /livez", Live(n.Root()))
	mux.Handle("GET /readyz", Ready(n.Root(), n))
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	s := newServer(l, new(limits).limited(mux), nil)
	s.http.ReadTimeout, s.http.WriteTimeout = shortly, shortly // any client may hold connections open
	return s, nil
}

// shortly bounds one exchange with a client.
const shortly = 20 * time.Second
