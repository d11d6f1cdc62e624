package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/node/admission"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/p2p"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
	"github.com/aweigh/aweigh/votes"
)

// Node is a running node: one libp2p identity and one store, with a replica in each scope that it follows. Its methods
// concern the node as a whole, or find the scope by the keys of a request; Root and In return one replica. They are
// safe for concurrent use.
type Node struct {
	root       *Replica // in the root scope
	cfg        Config
	peerID     string
	host       Transport
	anchor     atomic.Pointer[votes.PrivateKey] // of all replicas
	called     names
	counted    inAll
	repeats    *admission.Repeats
	announces  *admission.Announcements
	sharing    *admission.Sharing
	met        members
	states     *states       // of anchors
	older      chan struct{} // holds a token while a proof as of an earlier block is made
	refusals   *refusals     // limits what the log says of refused input
	nonMembers *admission.NonMembers
	endpoints  endpointCache
	seats      [][]byte     // prefixes of scopes in which the anchor had a seat at the start
	remotes    remoteScopes // scopes that it does not hold
	memory     *WatchBudget // of its watches
	answers    *AnswerBudget
	copies     *remoteCopies
	pin        pinned
	tasks      *tasks // that work for callers

	started, shut sync.Once
	startErr      error
	growing       sync.Mutex // held while a replica is opened

	signals      signals
	remoteLeases remoteLeases
	silences     silences // of the node's own anchor
	islands      islands
	folds        folds
	transfers    transfers

	mu       sync.RWMutex
	broken   map[aweigh.ScopeID]error
	replicas map[place]*Replica
	topics   map[p2p.Topic]*Replica
	opened   chan struct{} // closed and replaced when there is another replica
	moved    chan struct{} // closed and replaced when the state of a scope has changed
	session  *session      // nil unless Run runs
}

// session is one run of a node.
type session struct {
	*tasks
	failed chan error // holds the reason why the node must stop
}

// stop makes the node stop with an error, if it runs.
func (n *Node) stop(err error) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if n.session != nil {
		n.session.fail(err)
	}
}

// fail makes the node stop with an error.
func (l *session) fail(err error) {
	select {
	case l.failed <- err:
	default: // it is stopping already
	}
}

// New returns a node, which does nothing until Run. An empty store is bootstrapped from the genesis.
func New(cfg Config) (*Node, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	own, err := machine.PeerOf(cfg.Identity)
	if err != nil {
		return nil, err
	}
	n := &Node{cfg: cfg, peerID: string(own), memory: newWatchBudget(cfg.WatchMemory, cfg.WatchSlow), answers: NewAnswerBudget(cfg.AnswerMemory, cfg.Timeout, cfg.WatchSlow), copies: newRemoteCopies(cfg.CopyMemory, cfg.CopyAfter), tasks: newTasks(context.Background()), refusals: newRefusals(), nonMembers: admission.NewNonMembers(), repeats: admission.NewRepeats(), announces: admission.NewAnnouncements(), sharing: admission.NewSharing(admission.RunQueue(time.Now)), met: newMembers(), states: newStates(), older: make(chan struct{}, 1), replicas: make(map[place]*Replica), topics: make(map[p2p.Topic]*Replica), opened: make(chan struct{}), moved: make(chan struct{}), islands: islands{since: make(map[*Replica]time.Time), tries: make(map[string]islandTry)}}
	n.anchor.Store(cfg.Anchor)
	n.pin.want = cfg.Trusted
	if _, ok, err := machine.StoredGenesis(cfg.Store); err != nil {
		return nil, err
	} else if !ok {
		ops, err := machine.Bootstrap(cfg.Genesis)
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
	if n.root, err = newReplica(n, cfg.Genesis); err == nil {
		n.nonMembers.SetReaders(n.root.named)
		n.add(n.root)
		if cfg.Follow != nil {
			err = n.findSeats(n.root.id)
		}
		if err == nil {
			err = n.openChildren(n.root)
		}
	}
	if err == nil {
		err = n.openIslands()
	}
	if err != nil {
		return nil, errors.Join(err, n.host.Close())
	}
	return n, nil
}

// connect creates the transport.
func (n *Node) connect() error {
	key, err := machine.HostKey(n.cfg.Identity)
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
	n.host, err = n.cfg.Transport(p2p.Config{
		Key: key, Network: n.cfg.Genesis.Network(), Version: n.cfg.Version,
		Listen: n.cfg.Listen, Announce: n.cfg.Announce,
		Bootstrap: bootstrap,
		Relay:     n.cfg.Relay, Relays: relays, PerAddressConns: n.cfg.PerIP,
		Datastore: store.Datastore(n.cfg.Store, []byte("p")),
		Admit:     n.admits,
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

// Start listens and begins to connect, so that Addrs returns the addresses. Run calls it if it was not called before.
func (n *Node) Start() error {
	n.started.Do(func() {
		n.meetMembers(n.parts()...)
		if n.startErr = n.host.Start(); n.startErr != nil {
			return
		}
		for _, p := range n.parts() {
			if n.startErr = n.host.Join(p.topic()); n.startErr != nil {
				return
			}
		}
	})
	return n.startErr
}

// Run runs the node until ctx ends or it must stop. It returns nil if ctx ended. It leaves the store open.
func (n *Node) Run(ctx context.Context) error {
	err := n.Start()
	if err == nil {
		err = n.live(ctx)
	}
	for _, p := range n.parts() {
		p.intake.Close()
		p.runner.replies.close(ErrStopped)
	}
	n.announces.Close()
	return errors.Join(err, n.Close())
}

// Close releases what a node holds. Run calls it; call it for a node that was never run.
func (n *Node) Close() (err error) {
	n.shut.Do(func() {
		slow := time.AfterFunc(closeSlow, func() { n.cfg.Log.Warn("still closing", "waits_for", n.tasks.names()) })
		defer slow.Stop()
		n.tasks.close() // before what they use
		err = n.host.Close()
		for _, p := range n.parts() {
			err = errors.Join(err, p.release())
		}
		err = errors.Join(err, n.folds.close())
	})
	return err
}

// closeSlow is after how long Close logs what it waits for.
const closeSlow = 5 * time.Second

// live runs all replicas, including those that are opened meanwhile.
func (n *Node) live(ctx context.Context) error {
	l := &session{tasks: newTasks(ctx), failed: make(chan error, 1)}
	n.mu.Lock()
	n.session = l
	for _, p := range n.replicas {
		n.start(p)
	}
	l.start("lag", n.watchLag)
	l.start("anchors' states", n.watchStates)
	l.start("leases", n.followLeases)
	l.start("islands", n.tendIslands)
	l.start("folds", n.tendFolds)
	l.start("names on their way", n.tendTransfers)
	n.mu.Unlock()
	var err error
	select {
	case <-ctx.Done():
	case err = <-l.failed:
	}
	n.mu.Lock()
	n.session = nil // no more parts run from here on
	n.mu.Unlock()
	l.close()
	select {
	case err = <-l.failed:
	default:
	}
	return err
}

// spawn calls f in a goroutine while the node runs. It reports whether the node runs.
func (n *Node) spawn(name string, f func(context.Context)) bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.session != nil && n.session.start(name, f)
}

// start runs a replica. n.mu is held, and the node runs.
func (n *Node) start(p *Replica) {
	l := n.session
	l.start("running a scope", func(ctx context.Context) {
		err := p.run(ctx)
		close(p.hasRun)
		var broken must.Violation
		switch {
		case err == nil:
		case p != n.root && errors.As(err, &broken): // the others are none the worse for it
			p.intake.Close() // goroutines that hand frames to it must not wait there
			p.log.Error("this scope stopped here to stay safe; the others go on", "error", err)
		default:
			l.fail(err)
		}
	})
}

// add adds a replica to the node's.
func (n *Node) add(p *Replica) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.replicas[placeOf(p.id)], n.topics[p.topic()] = p, p
	close(n.opened)
	n.opened = make(chan struct{})
	if n.session != nil {
		n.start(p)
	}
}

// Replicas returns the node's replicas in all scopes that it follows: the root's first, and a child's after its
// parent's.
func (n *Node) Replicas() []*Replica {
	all := []*Replica{n.root}
	for i := 0; i < len(all); i++ {
		for _, d := range all[i].Delegations() {
			if p := n.replica(d.Child); p != nil {
				all = append(all, p)
			}
		}
	}
	return all
}

// Changed returns a channel that is closed when the state of any scope has changed after the call.
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

// replica returns the node's replica in a scope, nil if it has none.
func (n *Node) replica(id aweigh.ScopeID) *Replica {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.replicas[placeOf(id)]
}

// grow opens, in the background, the replicas in scopes to which a replica's scope has delegated since.
func (n *Node) grow(p *Replica) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	l := n.session
	if l == nil {
		return
	}
	l.start("opening scopes", func(context.Context) {
		if err := n.openChildren(p); err != nil {
			l.fail(err)
		}
	})
}

// openChildren opens the replicas that are missing in the scopes below a replica's, and passes the orders of the
// replica's scope to those that are open.
func (n *Node) openChildren(p *Replica) error {
	n.growing.Lock()
	defer n.growing.Unlock()
	return n.openBelow(p)
}

func (n *Node) openBelow(p *Replica) error {
	for _, d := range p.Delegations() {
		if c := n.replica(d.Child); c != nil {
			c.hearOrder(d.Revocation)
			continue
		}
		if n.failure(d.Child) != nil || n.foreign(d.Child) != nil && !n.named(d.Revocation) {
			continue
		}
		c, err := n.open(p, d)
		if errors.Is(err, ErrStopped) {
			n.markFailed(d, err)
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

// open opens the replica in a scope to which a replica's scope has delegated. It returns nil if this node is not to
// hold that scope, or not yet.
func (n *Node) open(p *Replica, d scope.Delegation) (*Replica, error) {
	g, ok, err := p.childGenesis(d)
	if err != nil || !ok {
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
	c, err := newReplica(n, g)
	if err != nil {
		return nil, err
	}
	return c, n.join(c)
}

// join adds a replica to the node's, and lets it meet the peers.
func (n *Node) join(c *Replica) error {
	n.add(c)
	n.mu.RLock()
	runs := n.session != nil
	n.mu.RUnlock()
	if !runs { // Start does the rest
		return nil
	}
	n.meetMembers(c)
	for _, info := range n.host.Peers() {
		c.peer(info.ID, true)
	}
	return n.host.Join(c.topic())
}

// delegates notes which prefixes the scope has delegated, and which came home.
func (n *Replica) delegates(t scope.Territory) { n.given.Store(&t) }
