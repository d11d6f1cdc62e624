package node

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/p2p"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
	"github.com/aweigh/aweigh/votes"
)

// Config says who a node is and where it keeps its data. Genesis, Identity and
// Store are required.
type Config struct {
	Name     string // for people; the anchor's name in the genesis by default
	Version  string
	Genesis  scope.Genesis
	Identity votes.PrivateKey  // Ed25519: the libp2p identity, and the author of what this node admits
	Anchor   *votes.PrivateKey // signs ballots; nil for an observer
	// MakeAnchor makes, and keeps, the key of a node without one that applies for
	// a seat in the roster. A node without it cannot apply.
	MakeAnchor func() (votes.PrivateKey, error)
	Store      store.Store // owned by the caller
	// Follow are prefixes: the node holds the scopes below and above them, beside the
	// root scope and those in which it is an anchor. nil: all scopes.
	Follow [][]byte
	Timing quorum.Timing

	Listen    []string // multiaddrs; see p2p.Config
	Announce  []string
	Bootstrap []string // multiaddrs with /p2p/
	Relay     bool
	Relays    []string // multiaddrs with /p2p/
	PerIP     int      // p2p.Config.PerAddressConns

	Trusted scope.Trusted // of the root scope: see Pin
	// Timeout is how long a request waits to become final when its caller
	// set no deadline. Default 10 s.
	Timeout time.Duration

	// SnapshotBehind is how many final blocks a node may lack and still fetch
	// them one by one, instead of a snapshot. Default 5,000.
	SnapshotBehind aweigh.Height
	// Prune drops blocks all of whose changes were compacted, but for the newest 2 × SnapshotBehind
	// and those that opened motions or have proofs of faults.
	Prune bool
	// FirstCome takes what clients hand in first come, first served. Otherwise scopes that are written
	// to far more than others give way to them while processors are short.
	FirstCome bool
	// WatchMemory is how many bytes of the content of changes all watches of the node may hold. Default DefaultWatchMemory.
	WatchMemory int64
	// WatchSlow is how long a client of watches may take nothing of what was read for it while others
	// wait for room, before it is cut off. Default 10 s.
	WatchSlow     time.Duration
	snapshotEvery time.Duration // how often a node looks whether it needs one
	restAfter     time.Duration // how long a scope has nothing to do before it rests
	partBytes     int           // of the parts that it gives
	partTimeout   time.Duration // for a part that it asked for

	Log *slog.Logger
}

// Part is a node's part in one scope: its machine, and what surrounds it. Its methods
// are safe for concurrent use.
type Part struct {
	cfg             *Config // of the node
	genesis         *scope.Genesis
	id              aweigh.ScopeID
	prefix          []byte // of all keys of the scope
	of              *Node
	author          aweigh.Hash
	anchor          atomic.Pointer[votes.PrivateKey] // nil without one; Apply makes it
	peerID          string
	runner          *runner
	roll            roll
	called          *names // of the node
	intake          *intake
	budgets         *accounts
	costs           costs
	host            *p2p.Host // of the node
	given           atomic.Pointer[[]scope.Delegation]
	vacant          atomic.Bool // there is no state of the scope yet
	begun, catching atomic.Bool // a snapshot may have been begun to be fetched; is being fetched
	closing         closing
	offers          atomic.Bool // makeOffers runs
	asked           time.Time   // who hears the gossip, the last time; of the runner
	followed        atomic.Bool // somebody who is no anchor does
	address         address
	log             *slog.Logger

	measured      *measured
	behindSince   atomic.Pointer[time.Time] // nil while this node fetches nothing
	stirred       chan struct{}             // holds a token while there is something to notice; nil where nobody does
	refusals      *refusals                 // what the log says of them
	pace          pace                      // of this node's clients
	expected      expected                  // catch-up answers
	pledges       expected                  // answers to linearizable reads
	shelf         shelf
	views         views
	fetching      atomic.Pointer[SnapshotProgress] // nil while no snapshot is fetched
	excluded      map[peer.ID]bool                 // that gave no good snapshot; of the goroutine that fetches
	snapshotParts atomic.Uint64                    // fetched in this life
	snapshotGiven atomic.Uint64                    // parts given to others
	snapshotLies  atomic.Uint64                    // snapshots that were not what was claimed
	renewals      renewals
	following     atomic.Bool                      // followLeases runs
	ordered       atomic.Pointer[scope.Revocation] // newest that the scope above gave

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when a block became final
}

// withDefaults fills in what is not set.
func (cfg Config) withDefaults() Config {
	if cfg.Timeout <= 0 {
		cfg.Timeout = 10 * time.Second
	}
	if cfg.WatchMemory <= 0 {
		cfg.WatchMemory = DefaultWatchMemory
	}
	if cfg.WatchSlow <= 0 {
		cfg.WatchSlow = 10 * time.Second
	}
	if cfg.SnapshotBehind == 0 {
		cfg.SnapshotBehind = 5000
	}
	if cfg.partBytes == 0 {
		cfg.partBytes = partBytes
	}
	if cfg.partTimeout <= 0 {
		cfg.partTimeout = partTimeout
	}
	if cfg.restAfter <= 0 {
		cfg.restAfter = restAfter
	}
	if cfg.snapshotEvery <= 0 {
		cfg.snapshotEvery = time.Second
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.MakeAnchor == nil {
		cfg.MakeAnchor = func() (votes.PrivateKey, error) { return votes.PrivateKey{}, ErrNoAnchor }
	}
	return cfg
}

// newPart makes the part in a scope whose state the store has.
func newPart(of *Node, g scope.Genesis) (_ *Part, err error) {
	defer brokenAlone(g, &err)
	cfg := &of.cfg
	n := &Part{
		cfg: cfg, id: g.Hash(), prefix: g.Prefix(), of: of, host: of.host, author: cfg.Identity.Public().ID(), peerID: of.peerID,
		changed: make(chan struct{}), log: cfg.Log, excluded: make(map[peer.ID]bool),
		refusals: of.refusals, called: &of.called, shelf: newShelf(),
	}
	if g.Descent != nil {
		n.address = addressOf(n.id)
		n.log = cfg.Log.With("scope", string(n.prefix))
	} else {
		n.stirred = make(chan struct{}, 1)
	}
	n.views.store, n.views.scope = cfg.Store, n.id
	n.views.given = func() []scope.Delegation { return *n.given.Load() }
	n.views.vacant, n.views.pin = &n.vacant, &of.pin
	n.delegates(nil)
	n.anchor.Store(of.anchor.Load())
	if err := resumeInstall(cfg.Store, g); err != nil {
		return nil, fmt.Errorf("node: installing a snapshot that was fetched: %w", err)
	}
	vacant, err := isVacant(cfg.Store, n.id)
	if err != nil {
		return nil, err
	}
	n.vacant.Store(vacant)
	n.begun.Store(true)
	network, err := NewNetwork(g, nil)
	if err != nil {
		return nil, err
	}
	n.genesis = &network.genesis
	awaited, err := awaitedHeight(cfg.Store, n.id)
	if err != nil {
		return nil, err
	}
	m, err := NewMachine(MachineConfig{
		Network: network, Key: n.anchor.Load(), Timing: cfg.Timing,
		SnapshotBehind: cfg.SnapshotBehind, Keep: cfg.keep(), Awaited: awaited, Life: rand.Uint64(),
	}, cfg.Store)
	if err != nil {
		return nil, err
	}
	n.roll.call(m.term)
	if err := n.trusts(m.term.epoch); err != nil {
		return nil, err
	}
	n.measured = newMeasured(m.Epoch(), &of.counted)
	n.intake = newIntake(&n.roll)
	n.budgets = newAccounts(&n.roll, of.strangers)
	waiting := 4096 // events and submissions of clients, before they wait themselves
	if g.Descent != nil {
		waiting = 4 // there may be thousands of scopes
	}
	start := time.Now()
	n.runner = &runner{
		machine: m, roll: &n.roll, store: cfg.Store, carrier: n, repeats: &of.repeats, announces: of.announces, key: cfg.Identity,
		notes: n.note, delegates: n.delegates, restAfter: cfg.restAfter, rests: n.rest, start: start, began: aweigh.InstantOf(start),
		intake: n.intake, events: make(chan Event, waiting), submits: make(chan *submission, waiting), looks: make(chan look), installs: make(chan installing), orders: make(chan *scope.Revocation, 1), replies: newReplies(),
	}
	n.runner.tell()
	n.delegates(m.Delegations())
	return n, nil
}

// reseat lets all around the machine know of another epoch's roster.
func (n *Part) reseat(note EpochBegan) {
	r := note.Epoch.Roster
	n.measured.reseat(note.Epoch)
	n.budgets.reseat()
	n.of.meetMembers(n)
	if o := n.ordered.Load(); o != nil && note.Epoch.Number == n.runner.machine.chain.state.Head().Governed {
		n.log.Warn("others govern this scope now, as the scope above has ordered", "anchors", namesOf(r.Anchors))
	}
	n.log.Info("epoch began", "epoch", note.Epoch.Number, "anchors", len(r.Anchors), "weight", r.Weights.Total(),
		"seated", note.Seated, "after_block", note.Epoch.Start)
	n.stir()
}

// run runs the part until ctx ends or it must stop. It returns nil for the former.
func (n *Part) run(ctx context.Context) error {
	if err := n.settle(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	if n == n.of.Part { // of others, whoever wants to know asks
		watching.Go(func() { n.watchSelf(ctx) })
	}
	err := n.runner.run(ctx)
	cancel()
	watching.Wait()
	return err
}

// release is for after the host is closed, when nobody can ask for anything any more.
func (n *Part) release() error {
	n.shelf.clear()
	return n.views.close()
}

// frame takes a frame from a peer: it is decoded and verified here, in the
// peer's own goroutine, before the machine sees it. A peer above its budget
// waits here.
func (n *Part) frame(from peer.ID, f []byte) {
	if n.vacant.Load() {
		return // it is of no use yet
	}
	p := n.called.of(from)
	count(&n.measured.received, f)
	if isBlocks(f) && !n.expected.take(p) {
		n.note(Dropped{From: p, Class: Unasked, Why: "blocks that were not asked for"})
		n.host.Blame(from)
		return
	}
	if !n.budgets.hear(p, f) {
		n.note(Dropped{From: p, Class: Full, Why: "offers above their budget"})
		n.passed(p, f)
		return
	}
	if d := n.budgets.charge(p, f, n.workOf(p, f)); d > 0 {
		if !n.budgets.anchor(p) && n.budgets.home(p) != nil { // what it sends as an anchor elsewhere must not wait behind this
			n.note(Dropped{From: p, Class: Full, Why: "frames above their budget of an anchor of another scope"})
			n.passed(p, f)
			return
		}
		if !n.pause(d) {
			return
		}
	}
	if n.distant(f) {
		n.note(Dropped{From: p, Class: Stale, Why: "a ballot for a view far ahead"})
		return
	}
	msg, err := n.budgets.check(n.roll.checker(), p, f)
	if err != nil {
		n.refuse(from, err)
		return
	}
	if b, ok := msg.(bundleIn); ok && isSignal(b.bundle) {
		n.note(Dropped{From: p, Class: Invalid, Why: "a signal to be ordered"})
		return
	}
	if b, ok := msg.(bundleIn); ok && !n.paid(p, b.bundle) {
		return
	}
	if proposal, ok := msg.(proposalIn); ok {
		n.clock(p, proposal.Header)
	}
	n.intake.put(p, Arrived{From: p, Message: msg}, len(f))
}

// passed waits after a frame that was not heard.
func (n *Part) passed(p Peer, f []byte) {
	if d := n.budgets.passed(p, f); d > 0 {
		n.pause(d)
	}
}

// gossip judges what is passed on from node to node: announcements, and
// mutations that wait for too long. What there is no room or budget for is not
// passed on.
func (n *Part) gossip(from peer.ID, data []byte) p2p.Verdict {
	if n.vacant.Load() {
		return p2p.Ignore
	}
	p := n.called.of(from)
	count(&n.measured.received, data)
	if !n.budgets.afford(p, data) {
		n.note(Dropped{From: p, Class: Full, Why: "gossip above its budget"})
		return p2p.Ignore
	}
	msg, err := n.budgets.check(n.roll.checker(), p, data)
	if err == nil {
		switch msg := msg.(type) {
		case Announce:
			n.of.announces.heard(n, announced{epoch: msg.Header.Epoch, height: msg.Header.Height})
		case aheadIn: // true or not, it is worth a question; others may know better
			n.intake.offer(p, Arrived{From: p, Message: msg}, len(data))
			return p2p.Ignore
		case bundleIn:
			if b := msg.bundle; b.Scope() != n.id || b.ValidUntil() < n.runner.now() {
				return p2p.Ignore
			} else if isSignal(b) {
				if !n.heard(b) {
					return p2p.Ignore
				}
				return p2p.Accept
			} else if !n.budgets.affordLooks(p, b) {
				n.note(Dropped{From: p, Class: Full, Why: "gossip of mutations above its budget"})
				return p2p.Ignore
			}
		default:
			err = fmt.Errorf("%w: gossip of another kind", ErrFrame)
		}
	}
	if err != nil {
		n.refuse(from, err)
		if !refusalOf(err).Blame() {
			return p2p.Ignore
		}
		return p2p.Reject
	}
	if !n.intake.offer(p, Arrived{From: p, Message: msg}, len(data)) {
		return p2p.Ignore
	}
	return p2p.Accept
}

func (n *Part) peer(id peer.ID, up bool) {
	if n.vacant.Load() {
		return // whoever is there is met when it moves in
	}
	p := n.called.of(id)
	var ev Event = Met{Peer: p}
	if !up {
		ev = Parted{Peer: p}
	}
	if n.budgets.anchor(p) {
		n.intake.force(p, ev)
	} else {
		n.intake.offer(p, ev, 0) // without room there is traffic enough to find each other
	}
	n.stir()
}

// note turns what the machine says into logs, and wakes those who wait.
func (n *Part) note(note Note) {
	switch note := note.(type) {
	case Finalized:
		n.measured.blocks.Add(1)
		n.measured.mutations.Add(uint64(note.Mutations))
		n.measured.inScope.Add(uint64(note.Mutations))
		n.of.sharing.final(n.id, note.Mutations)
		n.shelve(note.Height)
		n.views.expire()
		n.mu.Lock()
		close(n.changed)
		n.changed = make(chan struct{})
		n.mu.Unlock()
		n.of.hasChanged()
		n.log.Debug("final", "height", note.Height, "view", note.View, "block", note.Block.Short(),
			"mutations", note.Mutations, "revision", note.Revision)
	case Installed:
		n.mu.Lock()
		close(n.changed)
		n.changed = make(chan struct{})
		n.mu.Unlock()
		n.of.hasChanged()
		n.shelf.clear() // of the state that was replaced
		n.views.expire()
		n.log.Info("caught up by snapshot", "height", note.Height)
		n.of.grow(n)
	case EpochBegan:
		if err := n.trusts(note.Epoch); err != nil {
			n.of.stop(err)
			return
		}
		n.reseat(note)
		n.of.grow(n)
	case Nullified:
		if a := n.measured.of(note.Leader); a != nil {
			a.nullified.Add(1)
		}
		n.log.Debug("view nullified", "view", note.View, "leader", n.measured.name(note.Leader))
	case Behind:
		n.stir()
		n.log.Debug("catching up", "from", note.From, "peer", note.Peer)
	case Dropped:
		n.measured.refused[note.Class].Add(1)
		n.refusals.log(n.log, note)
	case Faulted:
		n.log.Warn("anchor proven at fault", "anchor", n.measured.name(note.Proof.Anchor()),
			"first", note.Proof.First.Subject, "second", note.Proof.Second.Subject)
	case Listened:
		n.log.Info("heard of a quorum: this anchor signs", "from_view", note.View)
	case LostState:
		n.of.silences.met(n)
		n.of.stir()
		n.log.Debug("a ballot that this anchor signed is not on its record", "view", note.View)
	}
}
