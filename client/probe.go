package client

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	// recently is how long an endpoint counts as one that answers after an answer.
	recently = 5 * time.Second
	// patienceToProbe bounds the time that an endpoint has to answer a probe.
	patienceToProbe = 2 * time.Second
)

// liveness knows when an endpoint answered last. A process that hangs still accepts connections, as the kernel does this
// for it, and a request to it lasts until its deadline. A write that was sent there cannot go to another node.
type liveness struct {
	at atomic.Int64 // Unix time of the last answer, in nanoseconds
}

func (l *liveness) answered() { l.at.Store(time.Now().UnixNano()) }

func (l *liveness) recent() bool { return time.Since(time.Unix(0, l.at.Load())) < recently }

// answers reports whether an endpoint answered recently or answers a probe now. Any answer counts, as it comes from the
// process, except that it is not live: /livez, status 503.
func (e *endpoint) answers(ctx context.Context) bool {
	if e.live.recent() {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, patienceToProbe)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s/livez", e.address), nil)
	if err != nil {
		return false
	}
	resp, err := e.http.RoundTrip(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	if resp.StatusCode == http.StatusServiceUnavailable {
		return false
	}
	e.live.answered()
	return true
}
