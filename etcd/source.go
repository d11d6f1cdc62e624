package etcd

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
)

// source is a scope whose changes are watched.
type source struct {
	part *node.Part
	feed feed

	asking atomic.Bool // somebody asks it to close revisions
}

// sources are those of a server. The zero value is ready.
type sources struct {
	mu  sync.Mutex
	all map[aweigh.ScopeID]*source
}

func (s *sources) of(p *node.Part) *source {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = make(map[aweigh.ScopeID]*source)
	}
	src := s.all[p.Scope()]
	if src == nil {
		src = &source{part: p}
		s.all[p.Scope()] = src
	}
	return src
}

// look gives use a view of this node's state of the scope, and closes it.
func (s *source) look(ctx context.Context, use func(*node.View) error) error {
	v, err := s.part.Read(ctx, false)
	if err != nil {
		return err
	}
	return used(v, use)
}

// closeEvery is how often, at most, a scope is asked to close revisions.
const closeEvery = 50 * time.Millisecond

// close has the scope make a block, by whose time it is closed up to about now: a
// watch of several scopes waits for it. It does not wait.
func (s *source) close(ctx context.Context) {
	if !s.asking.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer s.asking.Store(false)
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		_, err := s.part.Txn(ctx, scope.Txn{}, node.Once{Justification: "to close revisions for a watch of several scopes"})
		if !errors.Is(err, context.Canceled) {
			time.Sleep(closeEvery)
		}
	}()
}
