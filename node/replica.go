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
	"github.com/aweigh/aweigh/internal/refusal"
	"github.com/aweigh/aweigh/node/admission"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/p2p"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// Replica is a node's part in one scope: its machine, and what surrounds it. Its methods are safe for concurrent use.
type Replica struct {
	cfg             *Config // of the node
	genesis         *scope.Genesis
	id              aweigh.ScopeID
	prefix          []byte // of all keys of the scope
	of              *Node
	author          aweigh.Hash
	anchor          atomic.Pointer[votes.PrivateKey] // nil without one; Apply makes it
	peerID          string
	runner          *runner
	epochs          epochView
	called          *names // of the node
	intake          *admission.Intake
	budgets         *admission.Accounts
	costs           admission.Costs
	host            Transport // of the node
	given           atomic.Pointer[scope.Territory]
	refused         atomic.Bool // anchors do not let this node read the scope: see noteRefusals
	vacant          atomic.Bool // there is no state of the scope yet
	begun, catching atomic.Bool // a snapshot fetch may have begun; it is under way
	closing         closing
	answered        answeredIslands
	left            chan struct{} // closed when the node is to have no part in the scope any more
	hasRun          chan struct{} // closed when the run has ended
	offers          atomic.Bool   // makeOffers runs
	asked           time.Time     // when the node last looked which peers hear the gossip; of the runner
	followed        atomic.Bool   // a peer that is no anchor hears it
	address         address
	log             *slog.Logger

	measured      *measured
	behindSince   atomic.Pointer[time.Time] // nil while this node fetches nothing
	woken         chan struct{}             // holds a token if there is something to notice; nil without a watcher
	refusals      *refusals                 // limits what the log says of refused input
	pace          admission.Pace            // of this node's clients
	snapshots     snapshotStore
	views         views
	fetching      atomic.Pointer[SnapshotProgress] // nil while no snapshot is fetched
	excluded      map[peer.ID]bool                 // peers that gave no good snapshot; of the goroutine that fetches
	snapshotParts atomic.Uint64                    // fetched in this life
	snapshotGiven atomic.Uint64                    // parts given to others
	snapshotLies  atomic.Uint64                    // snapshots that were not what was claimed
	renewals      renewals
	following     atomic.Bool                      // followLeases runs
	knocked       atomic.Bool                      // the quorum is asked for an invite that is not here
	ordered       atomic.Pointer[scope.Revocation] // the newest order of the scope above
	readers       readers

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when a block became final
}

// newReplica returns the replica in a scope whose state the store has.
func newReplica(of *Node, g scope.Genesis) (_ *Replica, err error) {
	defer brokenAlone(g, &err)
	cfg := &of.cfg
	n := &Replica{
		cfg: cfg, id: g.Hash(), prefix: g.Prefix(), of: of, host: of.host, author: cfg.Identity.Public().ID(), peerID: of.peerID,
		changed: make(chan struct{}), left: make(chan struct{}), hasRun: make(chan struct{}), log: cfg.Log, excluded: make(map[peer.ID]bool),
		refusals: of.refusals, called: &of.called, snapshots: newSnapshotStore(), renewals: renewals{running: make(chan struct{}, 1)},
	}
	if g.Descent != nil {
		n.address = addressOf(n.id)
		n.log = cfg.Log.With("scope", string(n.prefix))
	} else {
		n.woken = make(chan struct{}, 1)
	}
	n.views.store, n.views.scope, n.views.durable.turn = cfg.Store, n.id, make(chan struct{}, 1)
	n.views.given = func() scope.Territory { return *n.given.Load() }
	n.views.final = func() *scope.State {
		if told := n.runner.stand.Load(); told != nil {
			return told.State
		}
		return nil
	}
	n.views.vacant, n.views.pin = &n.vacant, &of.pin
	n.delegates(scope.Territory{})
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
	network, err := machine.NewNetwork(g, nil)
	if err != nil {
		return nil, err
	}
	genesis := network.Genesis()
	n.genesis = &genesis
	awaited, err := awaitedHeight(cfg.Store, n.id)
	if err != nil {
		return nil, err
	}
	m, err := machine.NewMachine(machine.MachineConfig{
		Network: network, Key: n.anchor.Load(), Timing: cfg.Timing,
		SnapshotBehind: cfg.SnapshotBehind, Keep: cfg.keep(), Awaited: awaited, Life: rand.Uint64(),
		Bounds: cfg.bounds,
	}, cfg.Store)
	if err != nil {
		return nil, err
	}
	n.epochs.set(m.EpochView())
	if err := n.trusts(m.Epoch()); err != nil {
		return nil, err
	}
	n.measured = newMeasured(m.Epoch(), &of.counted)
	n.intake = admission.NewIntake(&n.epochs)
	n.budgets = admission.NewAccounts(&n.epochs, of.nonMembers)
	waiting := 4096 // events and submissions of clients, before they wait themselves
	if g.Descent != nil {
		waiting = 4 // there may be thousands of scopes
	}
	n.runner = &runner{
		machine: m, epochs: &n.epochs, store: cfg.Store, views: &n.views, carrier: n, repeats: of.repeats.Scope(), announces: of.announces, key: cfg.Identity,
		notes: n.note, delegates: n.delegates, idleAfter: cfg.idleAfter, onIdle: n.onIdle, start: time.Now(), began: aweigh.InstantOf(of.Clock()),
		intake: n.intake, events: make(chan machine.Event, waiting), submits: make(chan *submission, waiting), looks: make(chan look), installs: make(chan installing), orders: make(chan *scope.Revocation, 1), replies: newReplies(),
	}
	n.runner.tell()
	n.delegates(m.Territory())
	return n, nil
}

// reseat tells everything around the machine the roster of another epoch.
func (n *Replica) reseat(note machine.EpochBegan) {
	r := note.Epoch.Roster
	n.measured.reseat(note.Epoch)
	n.budgets.Reseat()
	n.of.meetMembers(n)
	n.relist(true)
	if o := n.ordered.Load(); o != nil && note.Epoch.Number == n.runner.machine.Head().Governed {
		n.log.Warn("others govern this scope now, as the scope above has ordered", "anchors", namesOf(r.Anchors))
	}
	n.log.Info("epoch began", "epoch", note.Epoch.Number, "anchors", len(r.Anchors), "weight", r.Weights.Total(),
		"seated", note.Seated, "after_block", note.Epoch.Start)
	n.wakeWatcher()
}

// run runs the replica until ctx ends or it must stop. It returns nil if ctx ended.
func (n *Replica) run(ctx context.Context) error {
	if err := n.settle(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-n.left:
			cancel()
		case <-ctx.Done():
		}
	})
	if n == n.of.root { // the status of other scopes is asked for
		watching.Go(func() { n.watchSelf(ctx) })
	}
	err := n.runner.run(ctx)
	cancel()
	watching.Wait()
	return err
}

// release frees the rest when no request can find the replica any more.
func (n *Replica) release() error {
	n.snapshots.clear()
	return n.views.close()
}

// frame takes a frame from a peer. It decodes and verifies the frame in the peer's own goroutine, before the machine
// handles it. A peer above its budget waits here.
func (n *Replica) frame(from peer.ID, f []byte) {
	if n.vacant.Load() {
		return // it is of no use yet
	}
	p := n.called.of(from)
	count(&n.measured.received, f)
	if c := machine.FrameClassOf(f); c.Is(machine.ClassQuestion) && !c.Is(machine.ClassContent) && !n.mayRead(p) {
		n.measured.unread.Add(1) // it gets no answer
		return
	}
	if n.budgets.Unasked(p, f) {
		n.note(machine.Dropped{From: p, Class: refusal.Unasked, Why: "blocks that were not asked for"})
		n.host.Blame(from)
		return
	}
	if !n.budgets.AllowOffer(p, f) {
		n.note(machine.Dropped{From: p, Class: refusal.Full, Why: "offers above their budget"})
		n.passed(p, f)
		return
	}
	if d := n.budgets.Wait(p, f); d > 0 {
		if n.budgets.Neighbour(p) { // what it sends as an anchor elsewhere must not wait behind this
			n.note(machine.Dropped{From: p, Class: refusal.Full, Why: "frames above their budget of an anchor of another scope"})
			n.passed(p, f)
			return
		}
		if !n.pause(d) {
			return
		}
	}
	if n.distant(f) {
		n.note(machine.Dropped{From: p, Class: refusal.Stale, Why: "a ballot for a view far ahead"})
		return
	}
	msg, err := n.budgets.Check(n.epochs.checker(), p, f, false)
	if err != nil {
		n.refuse(from, err)
		return
	}
	if b, ok := msg.(machine.BundleIn); ok && isSignal(b.Bundle) {
		n.note(machine.Dropped{From: p, Class: refusal.Invalid, Why: "a signal to be ordered"})
		return
	}
	if b, ok := msg.(machine.BundleIn); ok && (n.hidesFrame(p, b.Bundle) || !n.payForPrice(p, b.Bundle)) {
		return
	}
	if proposal, ok := msg.(machine.ProposalIn); ok {
		n.clock(p, proposal.Header)
	}
	n.intake.Put(p, machine.Arrived{From: p, Message: msg}, len(f))
}

// passed waits after a frame that was not handled.
func (n *Replica) passed(p machine.Peer, f []byte) {
	if d := n.budgets.WaitIgnored(p, f); d > 0 {
		n.pause(d)
	}
}

// gossip judges what nodes pass on to each other: announcements, and mutations that have waited for too long. Messages
// for which there is no room or budget are not passed on.
func (n *Replica) gossip(from peer.ID, data []byte) p2p.Verdict {
	if n.vacant.Load() {
		return p2p.Ignore
	}
	p := n.called.of(from)
	count(&n.measured.received, data)
	if !n.budgets.AllowGossip(p, data) {
		n.note(machine.Dropped{From: p, Class: refusal.Full, Why: "gossip above its budget"})
		return p2p.Ignore
	}
	msg, err := n.budgets.Check(n.epochs.checker(), p, data, true)
	if err == nil {
		switch msg := msg.(type) {
		case machine.Announce:
			n.of.announces.Heard(n, admission.Announced{Epoch: msg.Header.Epoch, Height: msg.Header.Height})
		case machine.AheadIn: // true or not, it is worth a question; other nodes may be able to verify it
			n.intake.Offer(p, machine.Arrived{From: p, Message: msg}, len(data))
			return p2p.Ignore
		case machine.BundleIn:
			if b := msg.Bundle; b.Scope() != n.id || b.ValidUntil() < n.runner.now() {
				return p2p.Ignore
			} else if isSignal(b) {
				if !n.heard(b) {
					return p2p.Ignore
				}
				return p2p.Accept
			} else if n.hidesFrame(p, b) {
				return p2p.Ignore
			} else if !n.budgets.AllowGossipLooks(p, b.Looks()) {
				n.note(machine.Dropped{From: p, Class: refusal.Full, Why: "gossip of mutations above its budget"})
				return p2p.Ignore
			}
		default:
			err = fmt.Errorf("%w: gossip of another kind", machine.ErrFrame)
		}
	}
	if err != nil {
		n.refuse(from, err)
		if !refusal.Of(err).Blame() {
			return p2p.Ignore
		}
		return p2p.Reject
	}
	if !n.intake.Offer(p, machine.Arrived{From: p, Message: msg}, len(data)) {
		return p2p.Ignore
	}
	return p2p.Accept
}

func (n *Replica) peer(id peer.ID, up bool) {
	if n.vacant.Load() {
		return // connected peers are met when it moves in
	}
	p := n.called.of(id)
	var ev machine.Event = machine.Met{Peer: p}
	if !up {
		ev = machine.Parted{Peer: p}
	}
	if n.epochs.Anchor(p) {
		n.intake.Force(p, ev)
	} else {
		n.intake.Offer(p, ev, 0) // without room there is traffic enough to find each other
	}
	n.wakeWatcher()
}

// hasChanged wakes what waits for a change of the state.
func (n *Replica) hasChanged() {
	n.mu.Lock()
	close(n.changed)
	n.changed = make(chan struct{})
	n.mu.Unlock()
	n.of.hasChanged()
}

// note turns notes of the machine into logs, and wakes what waits for them.
func (n *Replica) note(note machine.Note) {
	switch note := note.(type) {
	case machine.Finalized:
		n.measured.blocks.Add(1)
		n.measured.mutations.Add(uint64(note.Mutations))
		n.measured.inScope.Add(uint64(note.Mutations))
		n.of.sharing.Final(n.id, note.Mutations)
		n.relist(false)
		n.storeSnapshot(note.Height)
		n.views.expire()
		n.hasChanged()
		n.log.Debug("final", "height", note.Height, "view", note.View, "block", note.Block.Short(),
			"mutations", note.Mutations, "revision", note.Revision)
	case machine.Installed:
		n.hasChanged()
		n.snapshots.clear() // of the state that was replaced
		n.views.expire()
		n.relist(true)
		n.log.Info("caught up by snapshot", "height", note.Height)
		n.of.grow(n)
	case machine.EpochBegan:
		if err := n.trusts(note.Epoch); err != nil {
			n.of.stop(err)
			return
		}
		n.reseat(note)
		n.of.grow(n)
	case machine.Nullified:
		if a := n.measured.of(note.Leader); a != nil {
			a.nullified.Add(1)
		}
		n.log.Debug("view nullified", "view", note.View, "leader", n.measured.name(note.Leader))
	case machine.Behind:
		n.wakeWatcher()
		n.log.Debug("catching up", "from", note.From, "peer", note.Peer)
	case machine.Dropped:
		n.measured.refused[note.Class].Add(1)
		n.refusals.log(n.log, note)
	case machine.Faulted:
		n.log.Warn("anchor proven at fault", "anchor", n.measured.name(note.Proof.Anchor()),
			"first", note.Proof.First.Subject, "second", note.Proof.Second.Subject)
	case machine.Listened:
		n.log.Info("has answers of a quorum: this anchor signs", "from_view", note.View)
	case machine.LostState:
		n.of.silences.met(n)
		n.of.root.wakeWatcher()
		n.log.Debug("a ballot that this anchor signed is not on its record", "view", note.View)
	}
}
