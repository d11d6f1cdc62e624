package api

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// maxConns bounds the connections of a server. It is above maxWatches, so that
// watches alone cannot take all.
const maxConns = 2048

// conns bounds the connections of a server. If new ones had to wait, idle ones
// could keep all clients out, so the one that is idle for longest is closed
// instead. A request that has not arrived whole counts as idle.
type conns struct {
	most int

	mu   sync.Mutex
	idle map[net.Conn]time.Time // all; since when they do nothing, zero while they do something
}

func newConns(most int) *conns { return &conns{most: most, idle: make(map[net.Conn]time.Time)} }

// note is an http.Server's ConnState.
func (c *conns) note(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	var excess net.Conn
	switch state {
	case http.StateNew, http.StateIdle:
		c.idle[conn] = time.Now()
		if len(c.idle) > c.most {
			excess = c.idlest(conn)
			delete(c.idle, excess)
		}
	case http.StateClosed, http.StateHijacked:
		delete(c.idle, conn)
	}
	c.mu.Unlock()
	if excess != nil {
		_ = excess.Close()
	}
}

// idlest is the connection that has been idle for longest, or fresh, which has
// just become so, if all others do something.
func (c *conns) idlest(fresh net.Conn) net.Conn {
	found, at := fresh, c.idle[fresh]
	for conn, t := range c.idle {
		if !t.IsZero() && t.Before(at) {
			found, at = conn, t
		}
	}
	return found
}

// connKey is where a request's context keeps its connection's note of work.
type connKey struct{}

// context is an http.Server's ConnContext.
func (c *conns) context(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if _, ok := c.idle[conn]; ok {
			c.idle[conn] = time.Time{}
		}
	})
}

// busy notes that the connection of a request is busy, until the server reports
// that it is idle again.
func busy(r *http.Request) {
	if note, ok := r.Context().Value(connKey{}).(func()); ok {
		note()
	}
}
