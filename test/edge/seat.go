package edge

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/p2p"
	"github.com/aweigh/aweigh/votes"
)

// seat is a node of a world over all of its lives.
type seat struct {
	world    *world
	number   int
	name     string
	identity votes.PrivateKey
	anchor   *votes.PrivateKey // nil: an observer
	id       peer.ID
	disk     *disk
	follow   [][]byte // see node.Config

	// turn holds a token while a life begins. A start waits for its disk in virtual time, which stands still while a
	// goroutine waits for a mutex: so mu is not held meanwhile.
	turn chan struct{}

	mu    sync.Mutex
	lives int
	keep  int   // of the commits that the last life did not sync, so many are still there
	life  *life // nil while the node is down
}

// life is one run of a node.
type life struct {
	node   *node.Node
	host   *host
	disk   *mounted
	stop   context.CancelFunc
	killed bool
	done   chan struct{} // closed when run has returned
	err    error         // of run, once done
}

// node is the seat's node, nil while it is down.
func (s *seat) node() *node.Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life == nil {
		return nil
	}
	return s.life.node
}

// start begins a life on what the disk has.
func (s *seat) start() error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	s.mu.Lock()
	if s.life != nil {
		s.mu.Unlock()
		return nil
	}
	s.lives++
	anchor := s.anchor
	l := &life{disk: s.disk.mount(s.keep), done: make(chan struct{})}
	s.mu.Unlock()
	var err error
	l.node, err = node.New(node.Config{
		Name: s.name, Genesis: s.world.genesis, Identity: s.identity, Anchor: anchor, Store: l.disk, Follow: s.follow,
		SnapshotBehind: s.world.plan.Behind, SnapshotPart: s.world.plan.Part, Prune: s.world.plan.Prune,
		WatchMemory: s.world.plan.WatchMemory, FirstCome: s.world.plan.FirstCome, CopyAfter: 1, Log: s.world.log.With("node", s.name),
		MakeAnchor: func() (votes.PrivateKey, error) { return s.world.anchorKey(s) },
		Transport: func(cfg p2p.Config) (node.Transport, error) {
			l.host = s.world.net.join(s.id, cfg)
			return l.host, nil
		},
	})
	if err != nil {
		return fmt.Errorf("starting %s: %w", s.name, err)
	}
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	s.mu.Lock()
	s.life = l
	s.mu.Unlock()
	go func() {
		err := l.node.Run(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		l.err = err
		close(l.done)
		if s.life == l { // it stopped by itself
			s.life, s.keep = nil, 1<<30
			if l.failing() {
				s.keep = s.kept()
			}
			l.end()
		}
	}()
	return nil
}

// kept draws how many of the commits that a life did not sync a crash leaves.
func (s *seat) kept() int { return s.world.chance.of("keep", s.number, s.lives).below(8) }

// failing reports whether the node's disk has failed.
func (l *life) failing() bool {
	select {
	case <-l.disk.failed:
		return true
	default:
		return false
	}
}

// end lets go of what a life holds.
func (l *life) end() { l.stop() }

// anchorKey makes the anchor's key of a node that applies for a seat, and keeps it.
func (w *world) anchorKey(s *seat) (votes.PrivateKey, error) {
	key, err := votes.GenerateKey(votes.Ed25519, w.chance.of("anchor", s.number))
	if err == nil {
		s.mu.Lock()
		s.anchor = &key
		s.mu.Unlock()
	}
	return key, err
}

// counting counts what nodes log.
type counting struct {
	slog.Handler
	w *world
}

func (h counting) Enabled(context.Context, slog.Level) bool { return true }

func (h counting) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelInfo {
		h.w.count("log: "+r.Message, 1)
	}
	if h.Handler.Enabled(ctx, r.Level) {
		return h.Handler.Handle(ctx, r)
	}
	return nil
}

func (h counting) WithAttrs(a []slog.Attr) slog.Handler { return counting{h.Handler.WithAttrs(a), h.w} }

// closeWithin is how long a node may take to stop.
const closeWithin = 20 * time.Second

// stop ends a life. killed says that the process dies at once: nothing that it does from here on is seen, and the disk
// forgets some of what was not synced.
func (s *seat) stop(killed bool) {
	s.turn <- struct{}{} // a life that begins is stopped, too
	s.mu.Lock()
	l := s.life
	s.life = nil
	<-s.turn
	if l == nil {
		s.mu.Unlock()
		return
	}
	l.killed = killed
	s.keep = 1 << 30
	if killed {
		s.keep = s.kept()
		l.host.kill()
		l.disk.kill()
	}
	s.mu.Unlock()
	began := time.Now()
	l.stop()
	select {
	case <-l.done:
	case <-time.After(closeWithin):
		panic(fmt.Sprintf("%s did not stop within %v", s.name, closeWithin)) // with the stacks of what holds it up
	}
	s.world.count("stops", 1)
	if !killed && l.err != nil {
		s.world.fail("shutdown", "%s stopped after %v with an error: %v", s.name, time.Since(began), l.err)
	}
}
