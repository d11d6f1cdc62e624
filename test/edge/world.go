package edge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/fsck"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// world is nodes, what befalls them, and their clients.
type world struct {
	plan    Plan
	chance  chance
	log     *slog.Logger
	genesis scope.Genesis
	net     *network
	seats   []*seat
	truth   *truth
	began   time.Time

	register register
	leases   tenancies
	busy     sync.WaitGroup // faults that end later

	mu        sync.Mutex
	healed    time.Time // when all faults were over
	acked     int64     // the highest revision that was acknowledged
	compacted int64     // the highest that clients asked to compact up to
	failures  []Failure
	counts    map[string]int
}

// Failure is something that must not be.
type Failure struct{ What, Text string }

// Result is what came of a world.
type Result struct {
	Seed     uint64
	Plan     Plan
	Failures []Failure
	Counts   map[string]int // of what happened
}

// run runs the world of a seed, in a bubble of testing/synctest.
func run(seed uint64, log *slog.Logger) *Result {
	return draw(seed).Run(log)
}

// run runs the world.
func (p Plan) Run(log *slog.Logger) *Result {
	w := &world{plan: p, chance: chance(p.Seed).of("world"), log: log, counts: make(map[string]int), began: time.Now()}
	w.truth, w.log = newTruth(w), slog.New(counting{log.Handler(), w})
	if err := w.found(); err != nil {
		w.fail("founding", "%v", err)
		return w.result()
	}
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { w.net.run(stop) })
	for _, s := range w.seats {
		if !s.late() {
			w.start(s)
		}
	}
	w.live()
	for _, s := range w.seats {
		s.stop(false)
	}
	close(stop)
	running.Wait()
	w.audit()
	return w.result()
}

func (w *world) result() *Result {
	w.mu.Lock()
	defer w.mu.Unlock()
	return &Result{Seed: w.plan.Seed, Plan: w.plan, Failures: slices.Clone(w.failures), Counts: w.counts}
}

// fail notes that something is wrong. The first few of a kind are enough.
func (w *world) fail(what, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	same := 0
	for _, f := range w.failures {
		if f.What == what {
			same++
		}
	}
	if same < 3 {
		w.failures = append(w.failures, Failure{what, fmt.Sprintf(format, args...)})
	}
}

// count counts what happened.
func (w *world) count(what string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[what] += n
}

// found makes the genesis and the seats.
func (w *world) found() error {
	p := &w.plan
	w.net = newNetwork(w.chance.of("network"), p.Weather, func(by, whom peer.ID) {
		if w.count("blames", 1); p.Weather.Spoil == 0 {
			w.fail("blame", "%s blames %s", w.nameOf(by), w.nameOf(whom))
		}
	})
	var founders []machine.Founder
	for i := range p.Anchors + p.Observers {
		s := &seat{world: w, number: i, name: fmt.Sprintf("n%d", i), disk: newDisk(), keep: 1 << 30, turn: make(chan struct{}, 1)}
		var err error
		if s.identity, err = votes.GenerateKey(votes.Ed25519, w.chance.of("identity", i)); err != nil {
			return err
		}
		own, err := machine.PeerOf(s.identity)
		if err != nil {
			return err
		}
		if s.id, err = peer.Decode(string(own)); err != nil {
			return err
		}
		if i < p.Anchors {
			key, err := votes.GenerateKey(votes.Ed25519, w.chance.of("anchor", i))
			if err != nil {
				return err
			}
			s.anchor = &key
			founders = append(founders, machine.Founder{Name: s.name, Key: key.Public(), Peer: own})
		}
		if p.Foreign {
			s.follow = [][]byte{}
		}
		w.seats = append(w.seats, s)
	}
	var err error
	w.genesis, err = machine.NewGenesis("edge", aweigh.InstantOf(time.Now()), w.policy(), founders...)
	return err
}

func (w *world) policy() scope.Policy {
	p := scope.OpenPolicy(w.plan.Mode)
	p.Limits.Rate, p.Actions = w.plan.Rate, verbs
	if w.plan.Epoch > 0 {
		p.EpochBlocks = w.plan.Epoch
	}
	if w.plan.Vote {
		p.Approvals = []scope.Approval{{Matter: scope.Changes, Prefix: []byte(guarded), Num: 1, Den: 2, Window: time.Hour}}
	}
	return p
}

func (w *world) nameOf(id peer.ID) string {
	for _, s := range w.seats {
		if s.id == id {
			return s.name
		}
	}
	return id.String()
}

// start starts a node; that must succeed, unless its disk is full: then it is started when that is over.
func (w *world) start(s *seat) {
	if err := s.start(); err != nil && !errors.Is(err, errFull) {
		w.fail("start", "%v", err)
	}
}

// audit has the store of each node checked, as "aweigh doctor --state" does.
func (w *world) audit() {
	for _, s := range w.seats {
		if s.lives == 0 {
			continue
		}
		if _, err := fsck.Store(s.disk.mount(1<<30), w.genesis, nil); err != nil {
			w.fail("audit", "%s: its store: %v", s.name, err)
		}
	}
}

// late reports whether the node joins when the world is old.
func (s *seat) late() bool { return s.world.plan.Late && s.number == len(s.world.seats)-1 }

// since is a moment of the world's time.
func (w *world) since(t time.Time) time.Duration { return t.Sub(w.began) }

// acknowledge notes that a change was acknowledged.
func (w *world) acknowledge(revision int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acked = max(w.acked, revision)
}

func (w *world) acknowledged() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.acked
}

// compactedMost is the highest revision below which anything may have been compacted.
func (w *world) compactedMost() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.compacted
}

// old is errGone for what may have been compacted.
func (w *world) old(n *node.Node, err error, revision int64) error {
	if !errors.Is(err, scope.ErrCompacted) {
		return err
	}
	most := w.compactedMost()
	for _, d := range n.Root().Delegations() {
		most = max(most, d.Revision+1) // a scope has nothing of the time before its founding
	}
	if revision >= most {
		return err
	}
	return errGone
}

// sleep lets time pass.
func sleep(d time.Duration) { rest(context.Background(), d) }
