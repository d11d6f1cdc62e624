package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/p2p"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
	"github.com/aweigh/aweigh/votes"
)

// Node is a running node: one libp2p identity and one store, with a part in each
// scope that it follows. It is what the surfaces (API, command line) use. What
// concerns no key, and no scope by name, is about the root scope, in which every node
// takes part. Its methods are safe for concurrent use.
type Node struct {
	*Part      // in the root scope
	cfg        Config
	peerID     string
	host       *p2p.Host
	anchor     atomic.Pointer[votes.PrivateKey] // of all parts
	called     names
	counted    inAll
	repeats    repeats
	announces  *announcements
	sharing    *sharing
	met        members
	states     *states   // of anchors
	refusals   *refusals // what the log says of them
	strangers  *strangers
	wheres     wheres
	seats      [][]byte   // prefixes of scopes in which the anchor has a seat, as of the start
	foreigners foreigners // scopes that it does not hold
	memory     *Memory    // of its watches
	pin        pinned

	started, shut sync.Once
	startErr      error
	growing       sync.Mutex // of those who open parts

	signals  signals
	afar     afar
	silences silences // of the node's own anchor

	mu     sync.RWMutex
	broken map[aweigh.ScopeID]error
	parts  map[place]*Part
	topics map[p2p.Topic]*Part
	opened chan struct{} // closed and replaced when there is another part
	moved  chan struct{} // closed and replaced when the state of a scope has changed
	life   *life         // nil unless Run runs
}

// life is one run of a node.
type life struct {
	ctx     context.Context
	running sync.WaitGroup
	failed  chan error // holds why the node must stop
}

// stop has the node stop for an error, if it runs.
func (n *Node) stop(err error) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if n.life != nil {
		n.life.fail(err)
	}
}

// fail has the node stop.
func (l *life) fail(err error) {
	select {
	case l.failed <- err:
	default: // it stops already
	}
}

// New makes a node, which does nothing until Run. A store that is empty is
// bootstrapped from the genesis.
func New(cfg Config) (*Node, error) {
	cfg = cfg.withDefaults()
	own, err := PeerOf(cfg.Identity)
	if err != nil {
		return nil, err
	}
	n := &Node{cfg: cfg, peerID: string(own), memory: newMemory(cfg.WatchMemory, cfg.WatchSlow), refusals: newRefusals(), strangers: newStrangers(), repeats: newRepeats(), announces: newAnnouncements(), sharing: newSharing(), met: newMembers(), states: newStates(), parts: make(map[place]*Part), topics: make(map[p2p.Topic]*Part), opened: make(chan struct{}), moved: make(chan struct{})}
	n.anchor.Store(cfg.Anchor)
	n.pin.want = cfg.Trusted
	if _, ok, err := StoredGenesis(cfg.Store); err != nil {
		return nil, err
	} else if !ok {
		ops, err := Bootstrap(cfg.Genesis)
		if err != nil {
			return nil, err
		}
		if err := cfg.Store.Commit(ops, true); err != nil {
			return nil, err
		}
	}
	if err := n.connect(); err != nil {
		return nil, err
	}
	if n.Part, err = newPart(n, cfg.Genesis); err == nil {
		n.add(n.Part)
		if cfg.Follow != nil {
			err = n.findSeats(n.Part.id)
		}
		if err == nil {
			err = n.openChildren(n.Part)
		}
	}
	if err != nil {
		return nil, errors.Join(err, n.host.Close())
	}
	return n, nil
}

// connect makes the libp2p host.
func (n *Node) connect() error {
	key, err := libp2pKey(n.cfg.Identity)
	if err != nil {
		return err
	}
	bootstrap, err := p2p.ParsePeers(n.cfg.Bootstrap)
	if err != nil {
		return err
	}
	relays, err := p2p.ParsePeers(n.cfg.Relays)
	if err != nil {
		return err
	}
	n.host, err = p2p.New(p2p.Config{
		Key: key, Network: n.cfg.Genesis.Network(), Version: n.cfg.Version,
		Listen: n.cfg.Listen, Announce: n.cfg.Announce,
		Bootstrap: bootstrap,
		Relay:     n.cfg.Relay, Relays: relays, PerAddressConns: n.cfg.PerIP,
		Datastore: store.Datastore(n.cfg.Store, []byte("p")),
		Log:       n.cfg.Log,
		Handler: p2p.Handler{
			Frame:   n.frame,
			Request: n.request,
			Gossip:  n.gossip,
			Peer:    n.peer,
		},
	})
	return err
}

// Start listens and begins to connect, so that Addrs says where. Run does it if
// it was not done before.
func (n *Node) Start() error {
	n.started.Do(func() {
		n.meetMembers(n.Parts()...)
		if n.startErr = n.host.Start(); n.startErr != nil {
			return
		}
		for _, p := range n.Parts() {
			if n.startErr = n.host.Join(p.topic()); n.startErr != nil {
				return
			}
		}
	})
	return n.startErr
}

// Run runs the node until ctx ends or it must stop. It returns nil for the
// former, and leaves the store open.
func (n *Node) Run(ctx context.Context) error {
	err := n.Start()
	if err == nil {
		err = n.live(ctx)
	}
	parts := n.Parts()
	for _, p := range parts {
		p.intake.close()
		p.runner.replies.close(ErrStopped)
	}
	n.announces.close()
	return errors.Join(err, n.Close())
}

// Close releases what a node holds. Run does it; it is for one that was not run.
func (n *Node) Close() (err error) {
	n.shut.Do(func() {
		err = n.host.Close()
		for _, p := range n.Parts() {
			err = errors.Join(err, p.release())
		}
	})
	return err
}

// live runs all parts, those that are opened meanwhile too.
func (n *Node) live(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := &life{ctx: ctx, failed: make(chan error, 1)}
	n.mu.Lock()
	n.life = l
	for _, p := range n.parts {
		n.start(p)
	}
	l.running.Go(func() { n.watchLag(ctx) })
	l.running.Go(func() { n.watchStates(ctx) })
	l.running.Go(func() { n.followLeases(ctx) })
	n.mu.Unlock()
	var err error
	select {
	case <-ctx.Done():
	case err = <-l.failed:
	}
	n.mu.Lock()
	n.life = nil // no more parts run from here on
	n.mu.Unlock()
	cancel()
	l.running.Wait()
	select {
	case err = <-l.failed:
	default:
	}
	return err
}

// goes runs something while the node runs, and reports whether it does.
func (n *Node) goes(f func(context.Context)) bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	l := n.life
	if l != nil {
		l.running.Go(func() { f(l.ctx) })
	}
	return l != nil
}

// start runs a part. n.mu is held, and the node runs.
func (n *Node) start(p *Part) {
	l := n.life
	l.running.Go(func() {
		err := p.run(l.ctx)
		var broken must.Violation
		switch {
		case err == nil:
		case p != n.Part && errors.As(err, &broken): // the others are none the worse for it
			p.intake.close() // those who hand on what comes for it must not wait there
			p.log.Error("this scope stopped here to stay safe; the others go on", "error", err)
		default:
			l.fail(err)
		}
	})
}

// add makes a part known.
func (n *Node) add(p *Part) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.parts[placeOf(p.id)], n.topics[p.topic()] = p, p
	close(n.opened)
	n.opened = make(chan struct{})
	if n.life != nil {
		n.start(p)
	}
}

// Parts are the node's parts in all scopes that it follows, the root's first, and a
// child's after its parent's.
func (n *Node) Parts() []*Part {
	all := []*Part{n.Part}
	for i := 0; i < len(all); i++ {
		for _, d := range *all[i].given.Load() {
			if p := n.part(d.Child); p != nil {
				all = append(all, p)
			}
		}
	}
	return all
}

// Changed is closed when the state of any scope has changed after the call.
func (n *Node) Changed() <-chan struct{} {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.moved
}

// hasChanged notes that the state of a scope has changed.
func (n *Node) hasChanged() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.moved)
	n.moved = make(chan struct{})
}

// part is the node's part in a scope, nil if it has none.
func (n *Node) part(id aweigh.ScopeID) *Part {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.parts[placeOf(id)]
}

// grow opens, in its own time, the parts in scopes to which a part's scope has
// delegated since.
func (n *Node) grow(p *Part) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	l := n.life
	if l == nil {
		return
	}
	l.running.Go(func() {
		if err := n.openChildren(p); err != nil {
			l.fail(err)
		}
	})
}

// openChildren opens the parts in all scopes below a part's that are not open, and tells
// those that are what a part's scope has ordered.
func (n *Node) openChildren(p *Part) error {
	n.growing.Lock()
	defer n.growing.Unlock()
	return n.openBelow(p)
}

func (n *Node) openBelow(p *Part) error {
	for _, d := range *p.given.Load() {
		if c := n.part(d.Child); c != nil {
			c.hearOrder(d.Revocation)
			continue
		}
		if n.forsaken(d.Child) != nil || n.foreign(d.Child) != nil && !n.named(d.Revocation) {
			continue
		}
		c, err := n.open(p, d)
		if errors.Is(err, ErrStopped) {
			n.forsake(d, err)
			continue
		}
		if err == nil && c != nil {
			c.hearOrder(d.Revocation)
			err = n.openBelow(c)
		}
		if err != nil {
			return fmt.Errorf("node: scope %q: %w", d.Prefix, err)
		}
	}
	return nil
}

// open opens the part in a scope that a part's scope has delegated to, nil if this node
// is not to hold it.
func (n *Node) open(p *Part, d scope.Delegation) (*Part, error) {
	g, err := p.childGenesis(d)
	if err != nil {
		return nil, err
	}
	p.share(g.Anchors)
	if held, err := n.holds(&g); err != nil {
		return nil, err
	} else if !held && !n.named(d.Revocation) {
		_, err := n.refer(g)
		n.mu.Lock()
		defer n.mu.Unlock()
		close(n.opened)
		n.opened = make(chan struct{})
		return nil, err
	}
	if err := prepare(n.cfg.Store, g); err != nil {
		return nil, err
	}
	c, err := newPart(n, g)
	if err != nil {
		return nil, err
	}
	n.add(c)
	n.mu.RLock()
	runs := n.life != nil
	n.mu.RUnlock()
	if !runs { // Start does the rest
		return c, nil
	}
	n.meetMembers(c)
	for _, info := range n.host.Peers() {
		c.peer(info.ID, true)
	}
	return c, n.host.Join(c.topic())
}

// delegates notes which prefixes the scope has delegated.
func (n *Part) delegates(all []scope.Delegation) { n.given.Store(&all) }

// addressee is whose a frame is, without its address; nil if this node has no part
// there.
func (n *Node) addressee(frame []byte) (*Part, []byte) {
	to, rest, ok := addressed(frame)
	if !ok {
		return n.Part, frame
	}
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.parts[to], rest
}

func (n *Node) frame(from peer.ID, frame []byte) {
	p, rest := n.addressee(frame)
	if p == nil { // it may be founded in a block that is not here yet
		n.note(Dropped{From: n.called.of(from), Class: Stale, Why: "a frame of a scope that this node does not follow"})
		return
	}
	p.frame(from, rest)
}

// errNoPart answers those who ask for what concerns a scope that this node does not
// follow.
var errNoPart = errors.New("node: no part in this scope here")

func (n *Node) request(ctx context.Context, from peer.ID, req []byte) ([]byte, error) {
	if body, ok := stateRequest(req); ok {
		return n.serveStates(ctx, n.called.of(from), body)
	}
	p, rest := n.addressee(req)
	if p == nil {
		return nil, errNoPart
	}
	return p.request(ctx, from, rest)
}

func (n *Node) gossip(from peer.ID, topic p2p.Topic, data []byte) p2p.Verdict {
	n.mu.RLock()
	p := n.topics[topic]
	n.mu.RUnlock()
	if p == nil {
		return p2p.Ignore
	}
	return p.gossip(from, data)
}

func (n *Node) peer(id peer.ID, up bool) {
	n.states.linked(id, up)
	for _, p := range n.Parts() {
		p.peer(id, up)
	}
}
