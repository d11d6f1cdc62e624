package etcd

import (
	"context"
	"sync"

	"google.golang.org/grpc/stats"
)

// lightConn remembers which ranges a connection's client has read, and since which revision. A revision names what
// the keys of a range held only together with the memory that gave it: one that a client has from elsewhere, from an
// earlier process or from a range that was forgotten meanwhile, may name something else.
type lightConn struct {
	mu    sync.Mutex
	since map[uint64]int64 // the first revision read, by provenRange.id
}

// tell notes that the client gets what a range held.
func (c *lightConn) tell(x *provenRange, revision int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.since[x.id]; ok {
		return
	}
	if len(c.since) >= mostTold {
		clear(c.since)
	}
	c.since[x.id] = revision
}

// knows reports whether the client may have a revision from this memory of a range.
func (c *lightConn) knows(x *provenRange, revision int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	since, ok := c.since[x.id]
	return ok && since <= revision
}

// mostTold bounds the ranges of a lightConn.
const mostTold = 4096

type lightConnKey struct{}

// lightConnOf is that of a call.
func lightConnOf(ctx context.Context) *lightConn { return ctx.Value(lightConnKey{}).(*lightConn) }

// lightConns is the stats.Handler that gives each connection a lightConn.
type lightConns struct{}

// TagConn implements stats.Handler.
func (lightConns) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return context.WithValue(ctx, lightConnKey{}, &lightConn{since: make(map[uint64]int64)})
}

// HandleConn implements stats.Handler.
func (lightConns) HandleConn(context.Context, stats.ConnStats) {}

// TagRPC implements stats.Handler.
func (lightConns) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements stats.Handler.
func (lightConns) HandleRPC(context.Context, stats.RPCStats) {}
