package machine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// Machine is a node without sockets, disks, clocks and goroutines. Its behaviour is a function of its store and of the
// events given to Step.
//
// Before each Step the store must show all Writes of earlier Effects. Nothing else may write to the store.
type Machine struct {
	cfg     MachineConfig
	id      aweigh.ScopeID
	term    *EpochView               // of the current epoch
	roster  scope.Roster             // as in term
	anchors map[Peer]aweigh.AnchorID // likewise
	peers   []Peer                   // of the other anchors, in the order of anchors
	away    map[Peer]bool            // whether an anchor is known to be out of reach; no entry: never met
	silent  map[aweigh.AnchorID]bool // anchors whose nodes said that they sign nothing
	asked   int                      // index of the peer that had the last turn
	around  int                      // index of the peer that received the last offer
	self    aweigh.AnchorID          // zero without a seat in the roster
	keyring *votes.Keyring           // as in term
	guard   *votes.Guard
	engine  *quorum.Engine

	store  kv.Reader
	recent *kv.Overlay // node records written in this step
	chain  chain
	pool   pool
	wants  wants
	reads  reads
	sync   catchUp
	proofs proofs
	polls  polls
	listen startupBarrier
	retain retention
	order  order

	attends  attends
	early    early
	turned   bool           // an epoch began in this step
	fetched  bool           // the blocks that become final now are old ones that this node asked for
	hintedAt aweigh.Instant // when a peer last mentioned a later epoch

	proposal     []byte            // frame of this anchor's newest proposal
	proposed     aweigh.View       // its view
	slot         *quorum.Slot      // to build for, once the parent's content is here
	slotAt       aweigh.Instant    // when the engine asked for it
	finalAt      aweigh.Instant    // when the last block became final
	cycle        time.Duration     // how long the last block took, within gatherFew
	crowd        int               // mutations that are on their way at a time: the highest number seen, which decays
	checks       []quorum.Proposal // that wait for a verdict
	inputs       []quorum.Input    // for the engine's next step
	met          []Peer            // in this step, to be greeted
	told         bool              // what the engine was last given as quorum.Work
	engineWake   aweigh.Instant
	kept         []quorum.Subject   // whose certificates keepCertificate has stored
	finality     quorum.Certificate // of the final block, zero if it has none of its own
	known        aweigh.Height      // the height of the highest final block that any peer announced
	announced    aweigh.Instant     // when this node last announced a block
	announceAt   aweigh.Instant     // when this node announces next, 0: no need
	pollAt       aweigh.Instant     // when an observer next asks an anchor for news
	lastOffer    *framedOffer       // nil: none lately
	helped       nextHelp           // answers to peers' offers
	served       nextHelp           // final blocks sent to peers that asked for them
	reportedLost bool
	signed       [quorum.Finalize + 1]uint64 // ballots by kind, in this life

	now aweigh.Instant
	fx  Effects
}

// network returns the identity of the network that the scope is part of.
func (m *Machine) network() aweigh.NetworkID { return m.cfg.Network.ID() }

// Bootstrap returns the first writes to an empty store.
func Bootstrap(g scope.Genesis) ([]kv.Op, error) {
	ops, err := scope.Init(g)
	if err != nil {
		return nil, err
	}
	return append(ops, kv.Set(KeyGenesis(), g.Encode())), nil
}

// StoredGenesis returns the genesis that the store was bootstrapped with; ok is false if there is none.
func StoredGenesis(r kv.Reader) (g scope.Genesis, ok bool, err error) {
	raw, ok, err := r.Get(KeyGenesis())
	if err != nil || !ok {
		return g, false, err
	}
	return g, true, canon.Decode(raw, &g)
}

// ErrOtherNetwork is returned for a store that holds another network's data.
var ErrOtherNetwork = errors.New("node: the data directory belongs to another network")

// NewMachine returns a Machine that continues from the contents of the store (P8). The store must have been
// bootstrapped with the network's genesis; otherwise the error wraps ErrOtherNetwork.
func NewMachine(cfg MachineConfig, store kv.Reader) (*Machine, error) {
	cfg = cfg.withDefaults()
	net := cfg.Network
	m := &Machine{
		cfg: cfg, id: net.id, store: store,
		away: make(map[Peer]bool),
	}
	if stored, ok, err := store.Get(KeyGenesis()); err != nil {
		return nil, fmt.Errorf("node: reading the genesis: %w", err)
	} else if !ok || scope.GenesisHash(stored) != net.ID() {
		return nil, fmt.Errorf("%w: this is %s", ErrOtherNetwork, net.ID().Short())
	}
	m.recent = kv.NewOverlay(store)
	m.pool = newPool(cfg.Pool)
	m.reads.round, m.sync.told = cfg.Life, cfg.Awaited
	if err := m.restore(); err != nil {
		return nil, err
	}
	if err := m.restorePool(); err != nil {
		return nil, err
	}
	if err := m.openBox(); err != nil {
		return nil, err
	}
	if err := m.retain.open(m.history(), cfg.Keep); err != nil {
		return nil, err
	}
	m.order.hear(m, cfg.Order)
	return m, nil
}

// restore builds the engine and the chain from the store.
func (m *Machine) restore() error {
	if err := m.chain.open(m); err != nil {
		return err
	}
	e, err := m.chain.state.Epoch()
	if err != nil {
		return err
	}
	if err := m.begin(e); err != nil {
		return err
	}
	certs, grounds, err := m.storedCertificates()
	if err != nil {
		return err
	}
	var own []quorum.Vote
	if m.guard != nil {
		own = m.guard.Record()
	}
	m.engine.Restore(slices.Concat(own, grounds), certs)
	for _, v := range own {
		if v.Kind == m.keyring.Rules().Mode.Vouch() && v.View > m.engine.Final() {
			if err := m.chain.restoreCandidate(v.Block); err != nil {
				return err
			}
		}
	}
	return nil
}

// Scope returns the identity of the machine's scope.
func (m *Machine) Scope() aweigh.ScopeID { return m.id }

// Config returns the configuration of the machine.
func (m *Machine) Config() MachineConfig { return m.cfg }

// Height returns the height of the newest final block.
func (m *Machine) Height() aweigh.Height { return m.chain.state.Height() }

// Head returns the head of the newest final state.
func (m *Machine) Head() scope.Head { return m.chain.state.Head() }

// Seated reports whether the machine signs for an anchor of the epoch.
func (m *Machine) Seated() bool { return m.guard != nil }

// Checker returns the Checker of frames for this Machine. It changes when another epoch begins.
func (m *Machine) Checker() *Checker { return m.term.Checker }

// Step handles events, all at the instant now, and returns the effects. Without events it only does what is due at
// that instant. Instants must not decrease.
func (m *Machine) Step(now aweigh.Instant, events ...Event) Effects {
	m.now = max(m.now, now)
	m.fx = Effects{}
	m.chain.settle()
	m.recent.Reset()
	m.write(m.polls.opening...)
	m.polls.opening = nil
	for _, ev := range events {
		m.event(ev)
	}
	m.tick()
	m.greet() // after the tick, where a fetch may end
	m.drive()
	for {
		if m.turned {
			m.turned = false
			m.replay()
		} else if m.guard == nil || !m.listen.end(m) {
			break
		}
		m.drive() // a ballot signed now may be the last vote of an epoch
	}
	m.reads.serve(m)
	if m.guard != nil {
		m.listen.due(m) // a read may have caused something to answer
	}
	m.keep()
	m.retain.due(m)
	m.fx.Wake = m.wake()
	return m.fx
}

func (m *Machine) event(ev Event) {
	switch ev := ev.(type) {
	case Submit:
		m.submit(ev)
	case Read:
		m.reads.add(m, ev.ID)
	case HandIn:
		m.handIn(ev)
	case Keyed:
		m.cfg.Key = &ev.Key
	case Ordered:
		m.cfg.Order = ev.Revocation
		m.order.hear(m, ev.Revocation)
	case Stepwise:
		m.sync.step = true
	case Parted:
		m.linked(ev.Peer, false)
		m.polls.part(ev.Peer)
	case Met:
		m.linked(ev.Peer, true)
		m.meet(ev.Peer)
		if m.guard != nil || m.anchors[ev.Peer] != (aweigh.AnchorID{}) {
			m.met = append(m.met, ev.Peer)
		}
	case Arrived:
		m.arrived(ev.From, ev.Message)
	}
}

// linked notes whether an anchor is within reach. The machine neither waits for an anchor out of reach nor asks it.
func (m *Machine) linked(p Peer, up bool) {
	a, ok := m.anchors[p]
	if !ok || a == m.self {
		return
	}
	if up && m.away[p] {
		m.pool.hurry()
	}
	m.away[p] = !up
	m.inputs = append(m.inputs, quorum.Link{Anchor: a, Up: up && !m.silent[a]})
}

// turn returns the next anchor to ask for something, "" if none is within reach.
func (m *Machine) turn() Peer { return m.next(&m.asked) }

// next returns the next anchor within reach after the one at *last, "" if there is none. An anchor that was never met
// may be out of reach: it gets a turn only if no other anchor is within reach.
func (m *Machine) next(last *int) Peer {
	at, unmet, found := *last, *last, false
	for range m.peers {
		at = (at + 1) % len(m.peers)
		p := m.peers[at]
		switch away, met := m.away[p]; {
		case away:
		case met:
			*last = at
			return p
		case !found:
			unmet, found = at, true
		}
	}
	if !found {
		return ""
	}
	*last = unmet
	return m.peers[unmet]
}

func (m *Machine) arrived(from Peer, msg Message) {
	if away, met := m.away[from]; away { // the event that it is back was lost
		m.linked(from, true)
	} else if _, anchor := m.anchors[from]; anchor && !met { // the event that it is connected was lost
		m.away[from] = false
	}
	switch msg := msg.(type) {
	case BundleIn:
		if err := m.admit(msg.Bundle, from); err != nil {
			m.note(DroppedFrame(from, err))
		}
	case AheadIn:
		m.hinted()
	case earlyFrame:
		m.tooEarly(from, msg)
	case ballotIn:
		if msg.ballot.Domain() == m.keyring.Domain() { // it may have been checked in an epoch that is over
			m.ballot(&msg)
		}
	case ProposalIn:
		if msg.ballot.Domain() == m.keyring.Domain() {
			m.propose(from, msg)
		}
	case offerIn:
		m.offered(from, msg)
	case castIn:
		m.castBy(from, msg)
	case ReconcileMsg:
		m.meeting(from, msg)
	case blockIn:
		m.chain.deliver(m, msg.block)
	case Want:
		m.serveWant(from, msg)
	case Ask:
		m.answer(from, msg)
	case Answer:
		m.reads.answered(m, from, msg)
	case CatchUp:
		m.serveCatchUp(from, msg)
	case blocksIn:
		m.caughtUp(from, msg)
	case Announce:
		m.heardOf(from, msg)
	}
}

// drive steps the engine until nothing more follows.
func (m *Machine) drive() {
	m.resume()
	for first := true; first || len(m.inputs) > 0 || m.told != m.busy() || len(m.placed()) > 0; first = false {
		m.told = m.busy()
		in := append(m.inputs, quorum.Work(m.told))
		in = append(in, m.placed()...)
		out := m.engine.Step(m.now, in...)
		clear(in)
		m.inputs = in[:0]
		m.follow(out)
		m.resume()
	}
}

// resume continues the work that waited for content.
func (m *Machine) resume() {
	if m.slot != nil && m.slot.View != m.engine.View() {
		m.slot = nil
	}
	if m.slot != nil && (m.guard.Lost() || m.speaks()) && m.gatherUntil() == 0 && m.build(*m.slot) {
		m.slot = nil
	}
	m.retryChecks()
}

// follow carries out what the engine asks for, and queues the input that follows from it.
func (m *Machine) follow(out quorum.Output) {
	for _, c := range out.Certified {
		m.certified(c)
	}
	m.left(out)
	for _, f := range out.Faults {
		m.faulted(f)
	}
	in := m.term
	for _, c := range out.Final {
		if m.chain.finalize(m, c); m.term != in {
			return // the output is that of a past epoch's engine
		}
	}
	for _, s := range out.Sign {
		if m.slot != nil && s.Kind == quorum.Nullify && s.View == m.slot.View {
			m.slot = nil // too late
		}
		m.sign(s)
	}
	if out.Build != nil {
		m.slot, m.slotAt = out.Build, m.now
	}
	m.checks = append(m.checks, out.Check...)
	if out.Offer != nil {
		first := len(m.fx.Send)
		if m.guard != nil {
			m.sendAround(Tagged(TagOffer, m.offer(*out.Offer, false)), &m.around)
		}
		if out.Offer.Propose != 0 && out.Offer.Propose == m.proposed {
			m.broadcastFrame(m.proposal)
		}
		m.reofferBundles()
		for i := range m.fx.Send[first:] {
			m.fx.Send[first+i].Again = true
		}
	}
	m.engineWake = out.Wake
}

// tick does what is due at this instant outside the engine.
func (m *Machine) tick() {
	m.wants.due(m)
	m.sync.due(m)
	m.reads.due(m)
	m.meetAgain()
	if m.announceAt != 0 && m.now >= m.announceAt {
		m.announce()
	}
	if m.guard == nil && m.now >= m.pollAt {
		m.poll()
	}
}

func (m *Machine) write(ops ...kv.Op) {
	m.fx.Write = append(m.fx.Write, ops...)
	m.recent.Apply(ops...)
}

func (m *Machine) note(n Note) { m.fx.Notes = append(m.fx.Notes, n) }

func (m *Machine) send(to Peer, tag byte, content any) {
	m.fx.Send = append(m.fx.Send, Packet{To: to, Frame: Tagged(tag, content)})
}

func (m *Machine) broadcast(tag byte, content any) { m.broadcastFrame(Tagged(tag, content)) }

// broadcastFrame sends f to every other anchor.
func (m *Machine) broadcastFrame(f []byte) {
	m.fx.Send = slices.Grow(m.fx.Send, len(m.peers))
	for _, p := range m.peers {
		m.fx.Send = append(m.fx.Send, Packet{To: p, Frame: f})
	}
}
