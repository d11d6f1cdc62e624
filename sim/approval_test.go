package sim

import (
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/sim/scenario"
	"github.com/aweigh/aweigh/votes"
)

// debate is a world in which motions are put to the vote.
var debate = scenario.Scenario{
	Network: scenario.Network{Anchors: 5}, Approval: scenario.Approval{Motions: 10, Keys: 2, Share: 600_000}, Load: scenario.Load{Writes: 3, Reads: 3}, Stop: 4 * time.Second,
}

// midRun is a world in the middle of a run.
func midRun(t *testing.T, s scenario.Scenario, d time.Duration) *World {
	t.Helper()
	w := newWorld(t, s)
	w.startMotions()
	w.Run(d, nil)
	if len(w.watch.broken) > 0 || len(w.watch.motions.order) < 2 {
		t.Fatalf("%d motions, %v", len(w.watch.motions.order), w.watch.broken)
	}
	return w
}

// TestFalseCountsAreSeen gives the watch other voters, another rule, ballots that
// were not cast, or another deadline than the nodes have: the nodes' counts must
// break the invariant.
func TestFalseCountsAreSeen(t *testing.T) {
	for name, bend := range map[string]func(*poll){
		"heavier":        func(p *poll) { p.total = new(big.Int).Mul(p.total, big.NewInt(3)) },
		"another rule":   func(p *poll) { p.num = big.NewInt(1_000_000) },
		"more anchors":   func(p *poll) { p.anchors = 5 },
		"early deadline": func(p *poll) { p.deadline = start },
		"no voters":      func(p *poll) { clear(p.voters) },
		"changed key":    func(p *poll) { p.found[slices.Concat(p.puts, p.drops)[0]]-- },
		"nothing":        func(*poll) {},
	} {
		w := newWorld(t, debate)
		w.startMotions()
		bent := 0
		for i := range 800 {
			w.Run(time.Duration(i)*5*time.Millisecond-w.Now(), nil)
			for _, p := range w.watch.motions.order[bent:] {
				bend(p)
				bent++
			}
		}
		if v := w.watch.verdicts[Motions]; v.Checks == 0 || (v.Broken > 0) != (name != "nothing") {
			t.Errorf("%s: %+v of %d motions", name, v, bent)
		}
	}
}

// TestFatesThatChangeAreSeen gives the watch other fates than nodes report.
func TestFatesThatChangeAreSeen(t *testing.T) {
	testshort.Skip(t)
	for name, bend := range map[string]func(*poll){
		"another fate":   func(p *poll) { p.fate = scope.Withdrawn },
		"another height": func(p *poll) { p.closed++ },
		"still open":     func(p *poll) { p.fate = 0 },
		"opened later":   func(p *poll) { p.opened += 1000 },
		"nothing":        func(*poll) {},
	} {
		w := midRun(t, debate, debate.Stop)
		i := slices.IndexFunc(w.watch.motions.order, func(p *poll) bool { return p.fate != 0 })
		bend(w.watch.motions.order[i])
		w.audit()
		if v := w.watch.verdicts[Closed]; v.Checks == 0 || (v.Broken > 0) != (name != "nothing") {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// TestConflictsAreSeen hands the watch motions that were applied although they
// conflict, and others.
func TestConflictsAreSeen(t *testing.T) {
	testshort.Skip(t)
	put := func(key string, opened, closed aweigh.Height) *poll {
		return &poll{opened: opened, closed: closed, puts: []string{key}}
	}
	drop := func(key string, opened, closed aweigh.Height) *poll {
		return &poll{opened: opened, closed: closed, drops: []string{key}}
	}
	for _, c := range []struct {
		name string
		all  []*poll
		seen bool
	}{
		{"two puts", []*poll{put("a", 1, 5), put("a", 2, 6)}, true},
		{"two puts in one block", []*poll{put("a", 1, 5), put("a", 2, 5)}, true},
		{"opened in the block of the other's end", []*poll{put("a", 1, 5), put("a", 5, 6)}, true},
		{"a deletion of what was put", []*poll{drop("a", 2, 6), put("a", 1, 5)}, true},
		{"two keys", []*poll{put("a", 1, 5), put("b", 2, 6)}, false},
		{"one after the other", []*poll{put("a", 1, 5), put("a", 6, 7)}, false},
		{"a deletion first", []*poll{drop("a", 1, 5), put("a", 2, 6)}, false},
		{"deleted in between", []*poll{put("a", 1, 5), put("a", 2, 9), drop("a", 6, 7)}, true},
	} {
		r := recount{order: c.all}
		var ends []*scope.Ending
		for _, p := range c.all {
			ends = append(ends, &scope.Ending{Fate: scope.Carried, Height: p.closed})
		}
		if r.contrary(0, 1, ends) != c.seen || r.contrary(1, 0, ends) != c.seen {
			t.Errorf("%s: seen is not %v", c.name, c.seen)
		}
		if ends[0].Fate = scope.Void; r.contrary(0, 1, ends) {
			t.Errorf("%s: one of them is void", c.name)
		}
	}
	for name, bend := range map[string]func(*recount){
		"another motion":  func(r *recount) { r.by[prefix+"0"], r.by[prefix+"1"] = &poll{}, &poll{} },
		"a key is absent": func(r *recount) { clear(r.keys) },
		"nothing":         func(*recount) {},
	} {
		s := debate
		s.Approval.Keys, s.Approval.Motions = 2, 20
		w := midRun(t, s, s.Stop)
		bend(&w.watch.motions)
		w.audit()
		if v := w.watch.verdicts[Conflicts]; v.Checks == 0 || (v.Broken > 0) != (name != "nothing") {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// TestLostBallotsAreSeen makes all disks forget synced writes: ballots that were
// taken are lost.
func TestLostBallotsAreSeen(t *testing.T) {
	seen := false
	for seed := uint64(1); seed <= 20 && !seen; seed++ {
		r := mustRun(t, scenario.Scenario{
			Seed: seed, Network: scenario.Network{Anchors: 3, Mode: "crash"}, Approval: scenario.Approval{Motions: 20, Early: scenario.Whole, Absent: 400_000},
			Faults: scenario.Faults{Timed: []scenario.Fault{{Kind: "forgetful", At: time.Second, For: 4 * time.Second, Nodes: []int{0, 1, 2}}}},
			Expect: []string{scenario.Invariants[Boxes].Name},
		})
		seen = slices.ContainsFunc(r.Broken, func(b Breach) bool { return b.Invariant == scenario.Invariants[Boxes].Name })
	}
	if !seen {
		t.Error("ballots that were taken are gone, and nobody noticed")
	}
}

// TestDecidedMotionsMustClose holds back the ballots of a network without faults: the
// required closing does not come, and comes when they are handed in.
func TestDecidedMotionsMustClose(t *testing.T) {
	s := debate
	s.Approval.Lost, s.Heal = scenario.Whole, &scenario.Heal{}
	w := midRun(t, s, s.Stop)
	w.heal()
	wishes := w.startHealChecks()
	if w.Run(time.Minute, wishes.met); !strings.Contains(wishes.why, "honest voters have decided it") {
		t.Fatalf("without ballots: %q", wishes.why)
	}
	w.collect()
	if !w.Run(time.Minute, wishes.met) {
		t.Fatalf("with all ballots: %s", wishes.why)
	}
}

// TestRecountAgreesWithTheCount compares the recount with the count of package votes,
// for electorates and ballots of all kinds.
func TestRecountAgreesWithTheCount(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	fates := map[votes.Verdict]scope.Fate{votes.Open: 0, votes.Carried: scope.Carried, votes.Rejected: scope.Rejected}
	met := make(map[scope.Fate]int)
	keys := make([]votes.PrivateKey, 8)
	for i := range keys {
		var err error
		if keys[i], err = votes.KeyFromSeed(votes.Ed25519, slices.Repeat([]byte{byte(i)}, 32)); err != nil {
			t.Fatal(err)
		}
	}
	w := newWorld(t, scenario.Scenario{Network: scenario.Network{Anchors: 1}})
	for range testshort.Cases(1000, 3000, 3000) {
		var shares []quorum.Share
		var approvers []votes.Approver
		p := poll{voters: make(map[aweigh.Hash]seat), total: new(big.Int), num: big.NewInt(int64(r.IntN(10))), den: big.NewInt(10), anchors: r.IntN(4)}
		for i := range 2 + r.IntN(7) {
			id, weight, required := keys[i].Public().ID(), uint64(1+r.IntN(9)), i > 5
			if i < 5 {
				shares = append(shares, quorum.Share{Anchor: id, Weight: weight})
			} else {
				approvers = append(approvers, votes.Approver{ID: id, Weight: weight, Required: required})
			}
			p.voters[id] = seat{new(big.Int).SetUint64(weight), i < 5, i >= 5 && required}
			p.total.Add(p.total, p.voters[id].weight)
		}
		weights, err := quorum.NewWeights(shares...)
		if err != nil {
			t.Fatal(err)
		}
		e, err := votes.NewElectorate(weights, approvers...)
		if err != nil {
			t.Fatal(err)
		}
		total := e.Total()
		need := max(1, (total*p.num.Uint64()+9)/10)
		rule := quorum.Rule{Num: need - 1, Den: total, MinAnchors: uint32(p.anchors)}
		said := make(map[aweigh.Hash]uint8)
		var ballots []votes.CheckedMotionBallot
		for id := range p.voters { // order-free: the count is one of sets
			said[id] = uint8(r.IntN(4)) << 1
			for _, c := range []votes.Choice{votes.Approve, votes.Reject} {
				if said[id]&(1<<c) == 0 {
					continue
				}
				i := slices.IndexFunc(keys, func(k votes.PrivateKey) bool { return k.Public().ID() == id })
				b := w.ballotOn(aweigh.Hash{1}, c, keys[i])
				checked, err := votes.StoredMotionBallot(b.Encode())
				if err != nil {
					t.Fatal(err)
				}
				ballots = append(ballots, checked)
			}
		}
		want, got := fates[votes.CountMotion(e, rule, ballots).Verdict], p.verdict(said)
		if got != want {
			t.Fatalf("recounted %v, counted %v: %+v, %v", named(got), named(want), p, said)
		}
		met[got]++
	}
	for _, f := range fates {
		if met[f] < testshort.Cases(30, 100, 100) {
			t.Errorf("%s %d times: too seldom to prove anything", named(f), met[f])
		}
	}
}

// TestMotionScenariosShowWhatTheySay looks for the subjects of the library's
// scenarios, under a few seeds.
func TestMotionScenariosShowWhatTheySay(t *testing.T) {
	testshort.SkipUnlessLong(t)
	for name, goals := range map[string][]string{
		"motions":               {"motion carried", "motion rejected", "motion void", "motion withdrawn"},
		"offline-voters":        {"early ballot", "late ballot", "motion carried"},
		"couriers":              {"late ballot", "motion carried"},
		"buried-ballots":        {"motion carried"},
		"both-ways":             {"two choices", "barred liar", "barred voter"},
		"ballots-in-partition":  {"no quorum", "early ballot", "lost writes"},
		"motions-across-epochs": {"epoch change", "anchor left", "motion ordered", "motion carried"},
		"barred-elector":        {"barred liar", "proven equivocator", "two choices"},
		"full-boxes":            {"full box", "early ballot", "motion carried"},
		"counterfeit-ballots":   {"refused frame", "motion carried"},
	} {
		s, err := scenario.FromLibrary(name)
		if err != nil {
			t.Fatal(err)
		}
		reached := make(map[string]uint64)
		missing := func(g string) bool { return reached[g] == 0 }
		s.Seed = max(1, s.Seed)
		for first := s.Seed; s.Seed < first+8 && slices.ContainsFunc(goals, missing); s.Seed++ {
			r := mustRun(t, s)
			if r.Failed() {
				t.Errorf("%s, seed %d: %s", name, s.Seed, r.Failure())
			}
			reachedGoals(r, reached)
		}
		for _, g := range goals {
			if missing(g) {
				t.Errorf("%s: never %s", name, g)
			}
		}
	}
}

// TestLateBallotsSurviveRestarts hands a ballot in at a node that is cut off, an anchor
// or an observer, after its motion was carried. The node dies, and comes back: the ballot
// is recorded (P34).
func TestLateBallotsSurviveRestarts(t *testing.T) {
	for _, at := range []int{0, 4} {
		w := newWorld(t, scenario.Scenario{Network: scenario.Network{Anchors: 4, Observers: 1}, Approval: scenario.Approval{Motions: 1, Share: 600_000, Lost: scenario.Whole}})
		w.startMotions()
		order := func() []*poll { return w.watch.motions.order }
		if !w.Run(time.Minute, func() bool { return len(order()) == 1 }) {
			t.Fatal("no motion opened")
		}
		n := w.Nodes[at]
		for _, s := range w.polls.slips[:3] {
			s.handIn(w.Nodes[1])
		}
		closed := func() bool {
			_, end, err := n.state().Motion(order()[0].id)
			return err == nil && end != nil
		}
		if !w.Run(time.Minute, closed) || order()[0].fate != scope.Carried {
			t.Fatalf("the motion is %s", named(order()[0].fate))
		}
		join := w.cutLinks(scenario.Fault{Kind: "cut"}, []*Node{n})
		last := w.polls.slips[3]
		last.handIn(n)
		if !w.Run(time.Second, func() bool { return len(last.taken) == 1 }) || !last.taken[0].late {
			t.Fatalf("%s: taken: %+v", n, last.taken)
		}
		w.Run(time.Second, nil) // its messages are lost
		n.crash(0)
		n.Up()
		join()
		if !w.Run(time.Minute, func() bool { return order()[0].late[last.ballot.Voter] != 0 }) {
			t.Fatalf("%s: the ballot is lost", n)
		}
		w.Run(time.Second, nil)
		if w.audit(); len(w.watch.broken) > 0 || n.holds(&last.ballot) {
			t.Fatalf("%s: %v, still kept: %v", n, w.watch.broken, n.holds(&last.ballot))
		}
	}
}

// TestBallotsOfClosedMotionsAreKept: a node takes a ballot while it is cut off, and
// then learns that the motion was carried without it. The node dies with all that it
// wrote: the ballot is still there, and is recorded as late.
func TestBallotsOfClosedMotionsAreKept(t *testing.T) {
	w := newWorld(t, scenario.Scenario{Network: scenario.Network{Anchors: 4}, Approval: scenario.Approval{Motions: 1, Share: 600_000, Lost: scenario.Whole}})
	w.startMotions()
	order := func() []*poll { return w.watch.motions.order }
	n, last := w.Nodes[0], w.polls.slips[3]
	known := func(closed bool) func() bool {
		return func() bool {
			if len(order()) == 0 {
				return false
			}
			mo, end, err := n.state().Motion(order()[0].id)
			return err == nil && mo != nil && (end != nil) == closed
		}
	}
	if !w.Run(time.Minute, known(false)) {
		t.Fatal("no motion opened")
	}
	mute := func(on bool) {
		for _, o := range w.Nodes[1:] {
			w.wires.block(n, o, on)
		}
	}
	mute(true)
	last.handIn(n)
	for _, s := range w.polls.slips[:3] {
		s.handIn(w.Nodes[1])
	}
	if !w.Run(time.Minute, known(true)) || len(last.taken) != 1 || last.taken[0].late {
		t.Fatalf("taken: %+v", last.taken)
	}
	n.crash(n.Disk.Unsynced())
	mute(false)
	if !n.holds(&last.ballot) || n.recorded(&last.ballot) {
		t.Fatal("the ballot is not kept for a block to come")
	}
	n.Up()
	if !w.Run(time.Minute, func() bool { return order()[0].late[last.ballot.Voter] != 0 }) {
		t.Fatal("the ballot is lost")
	}
}
