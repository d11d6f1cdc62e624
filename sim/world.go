package sim

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/sim/scenario"
	"github.com/aweigh/aweigh/votes"
)

// World is a network of real machines in virtual time: one goroutine, one heap
// of events ordered by (instant, sequence). It is that of one scope; those of the
// scopes below stand on the same stage.
type World struct {
	*stage
	Genesis scope.Genesis
	Nodes   []*Node // anchors, observers, then the second faces of nodes that run twice

	id      aweigh.ScopeID // of Genesis
	number  int            // in stage.scopes
	island  bool           // anchors without a quorum decide in it
	began   time.Duration  // when the first node got there
	network *machine.Network
	epochs  []*scope.Epoch // by number, as the first honest node to reach it has it
	weights quorum.Weights
	rules   quorum.Rules
	byPeer  map[machine.Peer][]*Node

	roles []*plan
	polls polls
	watch watch
	marks marks

	answered int64                         // the highest revision as of which an honest node answered visitors
	shown    map[aweigh.Epoch]votes.Domain // epochs that visitors were shown before a node was seen there

	motions   uint64              // approvals asked for
	decisions []scope.Decision    // likewise, what they approve
	moves     []aweigh.Epoch      // that began as the scope split by itself, or ordered one home
	byItself  bool                // the scope above split this one off, and no decision asked for it
	called    bool                // and ordered it home by itself
	welcomed  int                 // liars' applications that the honest approved
	orders    []*scope.Revocation // that the scope gave to those below, as honest nodes know them
	homing    homecoming
}

// stage is shared by the scopes of a world.
type stage struct {
	Scenario scenario.Scenario
	scopes   []*World // the root scope's first, then as they were founded
	verify   votes.Verifier
	made     signatures
	anchors  map[aweigh.AnchorID]int
	bounds   *scope.Bounds

	now   aweigh.Instant
	queue queue
	seq   uint64

	streams  // of random numbers
	wires    wires
	probes   probes
	script   script
	isles    isles
	clients  []*client
	readers  readers
	acting   []*actor
	findings findings

	events uint64
	trace  hash.Hash
	line   []byte // of the trace, the last
	text   io.Writer
	firing bool // faults and clients are still at it

	founding []func() // faults that begin when a scope is founded
}

// streams are the sources of chance, split by purpose, so that one more use of
// one does not reshuffle another.
type streams struct {
	links    *rand.Rand // delays and losses
	chance   *rand.Rand // faults without a plan
	ask      *rand.Rand // what clients do
	naming   *rand.Rand // their changes of aliases
	dear     *rand.Rand // their requests that exceed their cost
	disks    *rand.Rand // which lie, and the fate of their records
	programs *rand.Rand // what their programs are
	acts     *rand.Rand // what actors do
	early    *rand.Rand // when machines are woken before their alarms
	folds    *rand.Rand // what nodes bring of scopes that come home
	isle     *rand.Rand // who founds islands, and what they and their scope are asked for
}

// start is the instant at which every world begins: shortly before the end of a minute, for receipts of void mutations
// are forgotten by the minute.
var start = aweigh.InstantOf(time.Date(2026, 1, 1, 0, 0, 58, 0, time.UTC))

// NewWorld makes the world of a scenario, with all nodes up and connected.
// Errors wrap scenario.ErrInvalid.
func NewWorld(s scenario.Scenario, o Options) (*World, error) {
	s = s.WithDefaults()
	if err := s.Check(); err != nil {
		return nil, err
	}
	stream := func(purpose uint64) *rand.Rand { return rand.New(rand.NewPCG(s.Seed, purpose)) }
	w := &World{byPeer: make(map[machine.Peer][]*Node), marks: marks{most: o.Marks}, stage: &stage{
		Scenario: s, now: start, anchors: make(map[aweigh.AnchorID]int), bounds: scopeBounds(&s.Bounds),
		streams: streams{links: stream(1), chance: stream(2), ask: stream(4), naming: stream(5), dear: stream(6), disks: stream(7), programs: stream(8), acts: stream(12), early: stream(22), isle: stream(23), folds: stream(24)},
		trace:   sha256.New(), text: o.Trace, firing: true, made: newSignatures(),
	}}
	w.scopes = []*World{w}
	w.findings.open(s)
	if err := w.found(stream(3), votes.NewMemory(votes.Verify, 1<<16)); err != nil {
		return nil, err
	}
	w.polls.rand = stream(5)
	w.probes.rand = stream(7)
	w.wires.open(w)
	w.script.open(w)
	if err := w.assignRoles(); err != nil {
		return nil, err
	}
	w.watch.open(w)
	w.watch.follower.states = o.States
	ops, err := machine.Bootstrap(w.Genesis)
	if err != nil {
		return nil, err
	}
	for _, n := range w.Nodes {
		if err := n.Disk.Commit(ops, true); err != nil {
			return nil, err
		}
		if err := n.start(); err != nil {
			return nil, err
		}
	}
	if _, lacks := w.core(); s.Heal != nil && lacks != 0 {
		return nil, fmt.Errorf("%w: heal: the honest anchors have not the weight to %s, so nothing could become final: name fewer liars and bad disks, or leave heal out",
			scenario.ErrInvalid, lacks)
	}
	for _, n := range w.Nodes { // connected from the start, without meet
		if n.key == nil {
			n.soon()
		}
	}
	return w, nil
}

// found makes keys, nodes and the genesis. Signatures are real; signatures by
// keys of this world are remembered, and all others are verified.
func (w *World) found(r *rand.Rand, memory *votes.Memory) error {
	newKey := func() (votes.PrivateKey, error) {
		b := make([]byte, 32)
		for i := 0; i < len(b); i += 8 {
			binary.LittleEndian.PutUint64(b[i:], r.Uint64())
		}
		key, err := votes.KeyFromSeed(votes.Ed25519, b)
		return key.Telling(func(key votes.PublicKey, ctx votes.Context, message, signature []byte) {
			w.made.add(key, ctx, message, signature)
			memory.Signed(key, ctx, message, signature)
		}), err
	}
	n := w.Scenario.Network
	mode, err := quorum.ParseMode(n.Mode)
	if err != nil {
		return fmt.Errorf("%w: %w", scenario.ErrInvalid, err)
	}
	var founders []machine.Founder
	for i := range n.Anchors + n.Observers {
		author, err := newKey()
		if err != nil {
			return err
		}
		peer, err := machine.PeerOf(author)
		if err != nil {
			return err
		}
		x := newNode(w, i, peer, author)
		if w.Scenario.HoldsKey(i) {
			key, err := newKey()
			if err != nil {
				return err
			}
			x.key = &key
			w.anchors[key.Public().ID()] = i
		}
		if i < n.Anchors {
			founders = append(founders, machine.Founder{
				Name: fmt.Sprintf("n%d", i), Key: x.key.Public(), Peer: peer, Score: uint32(n.Trust[i%len(n.Trust)]),
			})
		}
		w.add(x)
	}
	if err := w.appoint(newKey); err != nil {
		return err
	}
	policy := scope.OpenPolicy(mode)
	policy.Transfers = w.Scenario.Network.Transfers
	if policy.Authors, err = w.Scenario.Authors(); err != nil {
		return fmt.Errorf("%w: network: %w", scenario.ErrInvalid, err)
	}
	policy.Authors = w.withOwner(policy.Authors)
	waits, err := w.waits(newKey)
	if err != nil {
		return err
	}
	policy.Approvals = guard(append(approvals(&w.Scenario.Approval, w.polls.voters), waits...), n.Guard)
	policy.Limits.Anchors = max(policy.Limits.Anchors, n.Anchors)
	policy.Limits.Pending = w.Scenario.Approval.Pending
	policy.Limits.TTL = 300 * time.Millisecond // so that visitors come to the end of it
	policy.Trust.Whole, policy.Trust.Judged, policy.Trust.Reversal = uint32(n.Whole), uint32(n.Judged), uint32(n.Reversal)
	if policy.Trust.Group, err = w.Scenario.GroupOf(n.Group); err != nil {
		return fmt.Errorf("%w: network: %w", scenario.ErrInvalid, err)
	}
	if policy.Topology, err = w.Scenario.Topology(); err != nil {
		return fmt.Errorf("%w: network: %w", scenario.ErrInvalid, err)
	}
	policy.EpochBlocks, policy.EpochTime = uint64(n.EpochBlocks), n.EpochTime
	policy.Children.Notice = n.Notice
	if policy.Partitions, err = w.Scenario.Partitions(); err != nil {
		return fmt.Errorf("%w: network: %w", scenario.ErrInvalid, err)
	}
	if w.Scenario.Load.Acts > 0 {
		policy.Actions = w.Scenario.Rules()
	}
	if n.Finalize != 0 {
		policy.Rules.Finalize = quorum.Rule{Num: uint64(n.Finalize), Den: million}
	}
	w.rules = policy.Rules
	if w.Genesis, err = machine.NewGenesis("sim", start, policy, founders...); err != nil {
		return fmt.Errorf("%w: network: %w", scenario.ErrInvalid, err)
	}
	if w.network, err = machine.NewNetwork(w.Genesis, memory.Verify); err != nil {
		return err
	}
	w.network.Within(w.bounds)
	w.id = w.network.ID()
	first, err := w.Genesis.Epoch()
	if err != nil {
		return err
	}
	w.enter(first)
	w.verify = memory.Verify
	return nil
}

func (w *World) add(n *Node) {
	w.Nodes = append(w.Nodes, n)
	w.byPeer[n.Peer] = append(w.byPeer[n.Peer], n)
}

// enter makes an epoch known; the newest one's weights and rules are those that
// faults and liars reckon with.
func (w *World) enter(e *scope.Epoch) {
	if d, shown := w.shown[e.Number]; shown {
		w.holds(Referred, nil, d == e.Domain(), "a visitor took other anchors for those of epoch %d in %q", e.Number, w.Genesis.Prefix())
	}
	w.epochs = append(w.epochs, e)
	w.weights, w.rules = e.Roster.Weights, e.Policy.Rules
}

// voteKind is how anchors vote for a proposal of an epoch: a scope that is revoked may change its mode.
func (w *World) voteKind(in aweigh.Epoch) quorum.Kind {
	if int(in) < len(w.epochs) {
		return w.epochs[in].Policy.Rules.Mode.Vouch()
	}
	return w.rules.Mode.Vouch()
}

// weight is that of a node's anchor.
func (w *World) weight(n *Node) uint64 {
	if n.key == nil {
		return 0
	}
	return w.weights.Of(n.anchorID())
}

// Now is the virtual time since Start.
func (w *World) Now() time.Duration { return w.now.Sub(start) }

// Events is how many events have happened.
func (w *World) Events() uint64 { return w.events }

// traceHash names all that has happened.
func (w *World) traceHash() aweigh.Hash { return aweigh.Hash(w.trace.Sum(nil)) }

// at calls do after a delay.
func (w *World) at(after time.Duration, do func()) {
	w.push(event{at: w.now.Add(max(0, after)), do: do})
}

func (w *World) push(e event) {
	w.seq++
	e.seq = w.seq
	w.queue.push(e)
}

// Run advances virtual time until d is up, done reports true, or an invariant
// breaks that is not expected to. It reports whether done did.
func (w *World) Run(d time.Duration, done func() bool) bool {
	end := w.now.Add(d)
	for !w.watch.over() {
		if done != nil && done() {
			return true
		}
		if next := w.queue.next(); next == nil || next.at > end {
			w.now = end
			return false
		}
		e := w.queue.pop()
		w.now = e.at
		w.events++
		if e.do != nil {
			e.do()
		} else {
			e.to.world.arrive(e)
		}
	}
	return false
}

// record adds to the trace what happens to a node, by its kind and content.
func (w *World) record(kind byte, n, from int, content []byte) {
	b := binary.BigEndian.AppendUint64(w.line[:0], uint64(w.now))
	if b = append(b, kind); w.number > 0 {
		b = append(b, 'S', byte(w.number))
	}
	b = binary.BigEndian.AppendUint64(b, uint64(n))
	b = binary.BigEndian.AppendUint64(b, uint64(from))
	w.line = append(b, content...)
	w.trace.Write(w.line)
}

// recordFrame adds to the trace that a frame arrived, by the hash of its content:
// whether two equal frames are one in memory makes no difference.
func (w *World) recordFrame(to, from *Node, f *frame) {
	if f.hash.IsZero() {
		f.hash = aweigh.Sum(f.raw)
	}
	w.record(f.raw[0], to.Index, from.Index, f.hash[:])
}

// log adds one line about a node to the trace, and a mark for the diagram.
func (w *World) log(n *Node, kind, format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	w.record('l', n.Index, -1, []byte(line))
	w.say("%s %s %s", n, kind, line)
	w.mark(Mark{Node: n.number(), From: -1, Kind: kind, Text: line})
}

// say writes one readable line to the trace.
func (w *World) say(format string, args ...any) {
	if w.text != nil {
		fmt.Fprintf(w.text, "%12.6f ", w.Now().Seconds())
		fmt.Fprintf(w.text, format+"\n", args...)
	}
}
