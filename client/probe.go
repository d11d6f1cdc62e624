package client

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
)

const (
	// recently is how long an answer, or its absence, counts.
	recently = 5 * time.Second
	// patienceToProbe bounds the time that an endpoint has to answer a probe.
	patienceToProbe = 2 * time.Second
)

// liveness knows whether an endpoint answers. A process that hangs still accepts connections, as the kernel does this
// for it, and a request to it lasts until its deadline. A write that was sent there cannot go to another node.
type liveness struct {
	heard, silent atomic.Int64 // Unix times, in nanoseconds: of the last answer, and of the last probe without one
}

// found records whether an endpoint answered. It does not if ctx ended first, for a reason of the caller's.
func (l *liveness) found(ctx context.Context, answered bool) bool {
	switch {
	case answered:
		l.heard.Store(time.Now().UnixNano())
	case ctx.Err() == nil:
		l.silent.Store(time.Now().UnixNano())
	}
	return answered
}

func within(at *atomic.Int64) bool { return time.Since(time.Unix(0, at.Load())) < recently }

// answers reports whether an endpoint answers a probe, or what was found a moment ago.
func (e *endpoint) answers(ctx context.Context) bool {
	switch {
	case within(&e.live.heard):
		return true
	case within(&e.live.silent):
		return false
	}
	return e.live.found(ctx, e.probe(ctx) == nil)
}

// probe asks an endpoint for a sign of life. Any answer is one, as it comes from the process, except that the node is
// not live: /livez, status 503.
func (e *endpoint) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patienceToProbe)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url+"/livez", nil)
	if err != nil {
		return err
	}
	resp, err := e.http.RoundTrip(req)
	if err != nil {
		return err
	}
	if resp.StatusCode == http.StatusServiceUnavailable {
		err = errors.New("client: the node is not live")
	}
	return errors.Join(err, resp.Body.Close())
}

// Networks asks all nodes for their network at the same time, for as long as patience. Of a node that does not answer
// it has nil, and requests go to that node last. They are in the order of Addresses.
func (c *Client) Networks(ctx context.Context, patience time.Duration) [][]byte {
	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	networks := make([][]byte, len(c.endpoints))
	var all sync.WaitGroup
	for i, e := range c.endpoints {
		all.Go(func() {
			r, err := e.node.Status(asking, connect.NewRequest(new(aweighv1.StatusRequest)))
			if e.live.found(ctx, err == nil) {
				networks[i] = r.Msg.Header.GetNetwork()
			}
		})
	}
	all.Wait()
	return networks
}
