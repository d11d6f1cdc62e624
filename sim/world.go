package sim

import (
	"container/heap"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
	"github.com/aweigh/aweigh/votes"
)

// Config describes a world. The zero value of each field means the default.
type Config struct {
	Seed    uint64
	Nodes   int              // anchors; 4
	Scores  []uint32         // genesis trust of each anchor in ppm, cyclic; all 500,000
	Mode    quorum.Mode      // quorum.BFT
	Timing  quorum.Timing    // of every engine
	Rules   *quorum.Rules    // of the policy; the default ones of the mode
	Latency [2]time.Duration // least and most delay of a frame; 1 ms to 5 ms
	Loss    int              // frames lost, in parts per thousand
	Twice   int              // frames delivered twice, in parts per thousand
	Twins   int              // anchors, the last ones, that run twice on one key: they equivocate
	Trace   io.Writer        // one line per event; nil: none
}

func (c Config) withDefaults() Config {
	if c.Nodes == 0 {
		c.Nodes = 4
	}
	if c.Scores == nil {
		c.Scores = []uint32{500_000}
	}
	if c.Mode == 0 {
		c.Mode = quorum.BFT
	}
	if c.Latency == ([2]time.Duration{}) {
		c.Latency = [2]time.Duration{time.Millisecond, 5 * time.Millisecond}
	}
	return c
}

// World is a simulated network.
type World struct {
	cfg     Config
	Genesis scope.Genesis
	Nodes   []*Node
	now     aweigh.Instant
	queue   queue
	seq     uint64
	links   *rand.Rand // delays and losses
	client  *rand.Rand // what clients do
	hash    hash.Hash
	final   map[aweigh.Height]aweigh.Hash // what some node made final
	acked   aweigh.Height                 // the highest block whose writes a client was told of
	events  int
	Err     error // the first invariant broken
}

// Node is one simulated node: a real machine on a disk that can crash.
type Node struct {
	world   *World
	Index   int
	Peer    node.Peer
	Disk    *store.Mem
	key     votes.PrivateKey // anchor key
	author  votes.PrivateKey
	machine *node.Machine // nil while down
	twin    bool          // one of two that share a key
	life    int           // counts restarts, so that alarms of a past life are ignored
	alarm   aweigh.Instant
	cut     bool // sends and receives nothing

	// Doomed, if set, is asked before every effect of a step, the first being
	// number 1, whether the node dies there: before it commits, between commit
	// and sending, between two frames, or before it replies.
	Doomed   func(boundary int) bool
	boundary int
	dead     bool // in the middle of a step

	Done   map[aweigh.Hash]node.Reply // outcomes told to this node's clients
	Reads  map[uint64]aweigh.Height   // linearizable reads answered
	floor  map[uint64]aweigh.Height   // what each read must reach
	Height aweigh.Height              // final here
	signed map[slot]quorum.Subject
}

// slot is what one anchor may fill only once.
type slot struct {
	view aweigh.View
	kind quorum.Kind
}

// Start is the instant at which every world begins.
var Start = aweigh.InstantOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))

// New makes a world with all its nodes up.
func New(cfg Config) (*World, error) {
	cfg = cfg.withDefaults()
	stream := func(purpose uint64) *rand.Rand { return rand.New(rand.NewPCG(cfg.Seed, purpose)) }
	w := &World{
		cfg: cfg, now: Start, links: stream(1), client: stream(2),
		hash: sha256.New(), final: make(map[aweigh.Height]aweigh.Hash),
	}
	keys := stream(3)
	seed := func() []byte {
		b := make([]byte, 32)
		for i := 0; i < len(b); i += 8 {
			binary.LittleEndian.PutUint64(b[i:], keys.Uint64())
		}
		return b
	}
	var members []node.Founder
	for i := range cfg.Nodes {
		key, err := votes.KeyFromSeed("ed25519", seed())
		if err != nil {
			return nil, err
		}
		author, err := votes.KeyFromSeed("ed25519", seed())
		if err != nil {
			return nil, err
		}
		peer, err := node.PeerOf(author)
		if err != nil {
			return nil, err
		}
		w.Nodes = append(w.Nodes, &Node{
			world: w, Index: i, Peer: peer, Disk: store.NewMem(), key: key, author: author,
			Done: make(map[aweigh.Hash]node.Reply), Reads: make(map[uint64]aweigh.Height),
			signed: make(map[slot]quorum.Subject), floor: make(map[uint64]aweigh.Height),
		})
		members = append(members, node.Founder{
			Name: fmt.Sprintf("n%d", i), Key: key.Public(), Peer: peer, Score: cfg.Scores[i%len(cfg.Scores)],
		})
	}
	var err error
	policy := scope.DefaultPolicy(cfg.Mode)
	if cfg.Rules != nil {
		policy.Rules = *cfg.Rules
	}
	if w.Genesis, err = node.NewGenesis("sim", Start, policy, members...); err != nil {
		return nil, err
	}
	ops, err := node.Bootstrap(w.Genesis)
	if err != nil {
		return nil, err
	}
	for _, n := range w.Nodes[cfg.Nodes-cfg.Twins:] {
		twin := *n
		n.twin, twin.twin = true, true
		twin.Index, twin.Disk, twin.signed = len(w.Nodes), store.NewMem(), make(map[slot]quorum.Subject)
		twin.Done, twin.Reads, twin.floor = make(map[aweigh.Hash]node.Reply), make(map[uint64]aweigh.Height), make(map[uint64]aweigh.Height)
		w.Nodes = append(w.Nodes, &twin)
	}
	for _, n := range w.Nodes {
		if err := n.Disk.Commit(ops, true); err != nil {
			return nil, err
		}
		if err := n.Up(); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// Now is the virtual time.
func (w *World) Now() aweigh.Instant { return w.now }

// Trace is the hash of all that has happened.
func (w *World) TraceHash() aweigh.Hash { return aweigh.Hash(w.hash.Sum(nil)) }

// Events is how many events have happened.
func (w *World) Events() int { return w.events }

// Rand is the stream for what clients and tests decide.
func (w *World) Rand() *rand.Rand { return w.client }

func (w *World) trace(format string, args ...any) {
	line := fmt.Sprintf("%12.6f ", w.now.Sub(Start).Seconds()) + fmt.Sprintf(format, args...) + "\n"
	io.WriteString(w.hash, line)
	if w.cfg.Trace != nil {
		io.WriteString(w.cfg.Trace, line)
	}
}

// fail records the first invariant broken.
func (w *World) fail(n *Node, format string, args ...any) {
	if w.Err == nil {
		w.Err = fmt.Errorf("seed %d, after %v, node %d: %s", w.cfg.Seed, w.now.Sub(Start), n.Index, fmt.Sprintf(format, args...))
		w.trace("BROKEN %v", w.Err)
	}
}

// At lets do happen after a delay.
func (w *World) At(after time.Duration, do func()) {
	w.seq++
	heap.Push(&w.queue, event{at: w.now.Add(after), seq: w.seq, do: do})
}

// Run lets virtual time pass, until nothing is left to happen, or done reports
// true, or an invariant breaks. It reports whether done did, or the time is up
// without done being given.
func (w *World) Run(d time.Duration, done func() bool) bool {
	end := w.now.Add(d)
	for w.Err == nil {
		if done != nil && done() {
			return true
		}
		if len(w.queue) == 0 || w.queue[0].at > end {
			w.now = end
			return done == nil
		}
		e := heap.Pop(&w.queue).(event)
		w.now = e.at
		w.events++
		e.do()
	}
	return false
}

// event is something that will happen.
type event struct {
	at  aweigh.Instant
	seq uint64
	do  func()
}

type queue []event

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(event)) }
func (q *queue) Pop() any {
	old := *q
	e := old[len(old)-1]
	old[len(old)-1] = event{}
	*q = old[:len(old)-1]
	return e
}
