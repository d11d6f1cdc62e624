package etcd

import (
	"context"
	"sync"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node"
)

// source is a scope whose changes are watched.
type source struct {
	part *node.Replica
	feed feed
}

// sources are those of a server. The zero value is ready.
type sources struct {
	mu  sync.Mutex
	all map[aweigh.ScopeID]*source
}

func (s *sources) of(p *node.Replica) *source {
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
