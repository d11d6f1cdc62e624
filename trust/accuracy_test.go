package trust_test

import (
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/trust"
)

// council is a scope whose anchors attend everything alike and differ in skill: each
// honest one approves what is good, and rejects what is bad, with a chance of its own.
type council struct {
	r       *rand.Rand
	p       trust.Params
	skill   []float64 // of the honest anchors, which come after the coalition
	bad     int       // size of the coalition
	plan    plan
	ledger  trust.Ledger
	weights quorum.Weights
	counts  []trust.Attendance // of the epoch
	undone  [][]int            // in the epoch: those that had warned
}

// plan is what a coalition does on a motion. It knows what is good.
type plan struct {
	name string
	more int // easy motions that the coalition opens in each epoch
	// vote is the choice of a member; when is its place among the honest anchors: 0 is before all, 1 after all.
	vote func(c *council, i int, good, easy bool) (approve bool)
	when float64
	// follow makes members wait until the outcome is clear, and take the leading side.
	follow float64 // share of the needed weight from which on it leads; 0: members do not follow
	quick  bool    // all motions end before the time for an answer; otherwise half of them do
	undone bool    // the honest carry all easy motions, and reverse them in the same epoch
	heavy  bool    // three quarters of the weight carry a motion, so that just over one quarter rejects it
}

const (
	epochsJudged  = 200
	motionsJudged = 4
)

func newCouncil(seed uint64, p trust.Params, skill []float64, bad int, by plan) *council {
	c := &council{r: rand.New(rand.NewPCG(seed, 26)), p: p, skill: skill, bad: bad, plan: by}
	for i := range c.size() {
		c.ledger = c.ledger.Apply(p, founded(named(i), 500_000))
	}
	c.weights, _ = c.ledger.Next(p, 0, quorum.Weights{})
	return c
}

func (c *council) size() int { return c.bad + len(c.skill) }

// share is the part of the weight that the coalition has.
func (c *council) share() float64 {
	sum := uint64(0)
	for i := range c.bad {
		sum += c.weights.Of(named(i))
	}
	return float64(sum) / float64(c.weights.Total())
}

// epoch goes through an epoch's motions, and on to the next one.
func (c *council) epoch(t testing.TB, e aweigh.Epoch) {
	c.counts, c.undone = make([]trust.Attendance, c.size()), nil
	for i := range motionsJudged + c.plan.more {
		c.motion(i >= motionsJudged)
	}
	var all []trust.Evidence
	for i, r := range c.counts {
		r.Blocks, r.Timely, r.Led = 64, 64, 8
		all = append(all, trust.Evidence{Anchor: named(i), Kind: trust.Attended, Epoch: e, Record: r})
	}
	var reversed []trust.Reversed
	for _, who := range c.undone {
		var r trust.Reversed
		for _, i := range who {
			n := &c.counts[i]
			r.Warned = append(r.Warned, trust.Warner{Anchor: named(i), Cost: c.p.Cost(uint64(n.With) + uint64(n.Against) + uint64(n.Silent))})
		}
		reversed = append(reversed, r)
	}
	c.ledger = c.ledger.Apply(c.p, append(all, c.p.Credits(reversed, e, 0)...)...)
	next, err := c.ledger.Next(c.p, e+1, c.weights)
	if err != nil {
		t.Fatal(err)
	}
	c.weights = next
}

// motion is one motion from its opening to its end. Each block records up to three
// ballots, in a random order of honest anchors.
func (c *council) motion(easy bool) {
	good := c.r.IntN(2) == 0 || easy && c.plan.undone
	type turn struct {
		anchor int
		at     float64
	}
	order := make([]turn, c.size())
	for i := range order {
		order[i] = turn{i, c.r.Float64()}
		if i < c.bad && c.plan.name != "" {
			order[i].at = c.plan.when*2 - 0.5 + c.r.Float64()/100
		}
	}
	slices.SortFunc(order, func(a, b turn) int {
		if a.at < b.at {
			return -1
		}
		return 1
	})
	total := c.weights.Total()
	carries := quorum.DefaultRules(quorum.BFT).Finalize.Threshold(total)
	if c.plan.heavy {
		carries = quorum.Rule{Num: 3, Den: 4}.Threshold(total)
	}
	rejects := total - carries + 1
	var casts []trust.Cast
	var who []int
	var approved []bool
	var sides [2]uint64 // approve, reject
	cast := func(i int, yes bool, height uint64) {
		w := c.weights.Of(named(i))
		casts, who, approved = append(casts, trust.Cast{Height: height, Weight: w}), append(who, i), append(approved, yes)
		if yes {
			sides[0] += w
		} else {
			sides[1] += w
		}
	}
	height, room := uint64(1), 1+c.r.IntN(3)
	var waits []int
	open := func() bool { return sides[0] < carries && sides[1] < rejects }
	leads := func() (yes, ok bool) {
		a, b := float64(sides[0])/float64(carries), float64(sides[1])/float64(rejects)
		return a > b, max(a, b) >= c.plan.follow
	}
	for len(order) > 0 && open() {
		if yes, ok := leads(); ok && c.plan.follow > 0 && len(waits) > 0 {
			height++
			for _, i := range waits {
				if open() {
					cast(i, yes, height)
				}
			}
			waits = nil
			height++
			continue
		}
		i := order[0].anchor
		order = order[1:]
		switch {
		case i < c.bad && c.plan.follow > 0:
			waits = append(waits, i)
			continue
		case i < c.bad && c.plan.name != "":
			cast(i, c.plan.vote(c, i, good, easy), height)
		case easy:
			cast(i, good, height)
		default:
			cast(i, c.right(i) == good, height)
		}
		if room--; room == 0 {
			height, room = height+1, 1+c.r.IntN(3)
		}
	}
	for _, i := range waits {
		if yes, _ := leads(); open() {
			cast(i, yes, height+1)
		}
	}
	c.judge(casts, who, approved, sides, carries, rejects, !c.plan.quick && c.r.IntN(2) == 0, easy && c.plan.undone)
}

func (c *council) right(i int) bool { return c.r.Float64() < c.skill[i-c.bad] }

// judge is what a scope makes of a motion that has ended.
func (c *council) judge(casts []trust.Cast, who []int, approved []bool, sides [2]uint64, carries, rejects uint64, late, undone bool) {
	won, needed, with, against := true, carries, sides[0], sides[1]
	switch {
	case sides[0] >= carries:
	case sides[1] >= rejects:
		won, needed, with, against = false, rejects, sides[1], sides[0]
	default:
		return
	}
	if !c.p.Contested(with, against, c.weights.Total()) {
		return
	}
	for i := range casts {
		casts[i].With = approved[i] == won
	}
	silent := make([]bool, c.size())
	for i := range silent {
		silent[i] = late
	}
	var warned []int
	for i, counts := range trust.Counted(needed, casts) {
		if n := &c.counts[who[i]]; counts {
			silent[who[i]] = false
			if casts[i].With {
				n.With++
			} else {
				n.Against++
				warned = append(warned, who[i])
			}
		}
	}
	if won && undone {
		c.undone = append(c.undone, warned)
	}
	for i := range silent {
		if silent[i] {
			c.counts[i].Silent++
		}
	}
}

// worlds is how many councils a test goes through.
func worlds(few int) int {
	if n, err := strconv.Atoi(os.Getenv("AWEIGH_COUNCILS")); err == nil {
		return n
	}
	return few
}

// skills are n of them, from low to high.
func skills(n int, low, high float64) []float64 {
	all := make([]float64, n)
	for i := range all {
		all[i] = low + (high-low)*float64(i)/float64(n-1)
	}
	return all
}

// TestWeightRanksBySkill: after 200 epochs, the order of weights is that of skills.
func TestWeightRanksBySkill(t *testing.T) {
	mean := func(p trust.Params) (sum, least float64) {
		n := worlds(12)
		least = 1
		for seed := range n {
			c := newCouncil(uint64(seed), p, skills(12, 0.55, 0.95), 0, plan{})
			c.r.Shuffle(len(c.skill), func(i, j int) { c.skill[i], c.skill[j] = c.skill[j], c.skill[i] })
			for e := range epochsJudged {
				c.epoch(t, aweigh.Epoch(e))
			}
			weights := make([]float64, c.size())
			for i := range weights {
				weights[i] = float64(c.weights.Of(named(i)))
			}
			rho := spearman(weights, c.skill)
			sum, least = sum+rho/float64(n), min(least, rho)
		}
		return sum, least
	}
	got, least := mean(trust.DefaultParams())
	t.Logf("rank correlation of weight and skill: %.3f on average, %.3f at least, over %d councils", got, least, worlds(12))
	if got < 0.8 {
		t.Errorf("weight ranks by skill with %.3f", got)
	}
	blind := trust.DefaultParams()
	blind.Blame = math.MaxUint32
	if got, _ := mean(blind); got > 0.2 {
		t.Errorf("without judgement, weight ranks by skill with %.3f: the test shows nothing", got)
	}
}

// spearman is the rank correlation; equal values share their ranks.
func spearman(a, b []float64) float64 {
	x, y := ranks(a), ranks(b)
	mean := float64(len(x)-1) / 2
	var xy, xx, yy float64
	for i := range x {
		dx, dy := x[i]-mean, y[i]-mean
		xy, xx, yy = xy+dx*dy, xx+dx*dx, yy+dy*dy
	}
	if xx == 0 || yy == 0 {
		return 0
	}
	return xy / math.Sqrt(xx*yy)
}

func ranks(all []float64) []float64 {
	out := make([]float64, len(all))
	for i, v := range all {
		for j, w := range all {
			switch {
			case w < v:
				out[i]++
			case w == v && j != i:
				out[i] += 0.5
			}
		}
	}
	return out
}

var plans = []plan{
	{name: "farming", more: 12, vote: func(c *council, i int, good, easy bool) bool {
		if easy && i < 2 { // these two make the motion a contested one
			return !good
		}
		return good
	}},
	{name: "nodding", follow: 0.75},
	{name: "nodding at once", follow: 0.75, quick: true},
	{name: "copying", follow: 0.3},
	{name: "splitting", when: 0.5, vote: func(_ *council, i int, _, _ bool) bool { return i%2 == 0 }},
	{name: "baiting", when: 0, vote: func(_ *council, _ int, good, _ bool) bool { return false }},
	{name: "undoing", more: 12, undone: true, vote: func(c *council, i int, good, easy bool) bool {
		return good && !easy
	}},
	{name: "undoing, at random", more: 12, undone: true, vote: func(c *council, _ int, good, easy bool) bool {
		return !easy && c.r.IntN(2) == 0
	}},
	{name: "veto at 3/4", when: 0.35, heavy: true, vote: func(_ *council, _ int, _, _ bool) bool { return false }},
	{name: "contrary", when: 0.5, vote: func(_ *council, _ int, good, _ bool) bool { return !good }},
	{name: "knowing", when: 0, vote: func(_ *council, _ int, good, _ bool) bool { return good }},
}

// TestNoCoalitionGainsAThirdByJudgement: five of sixteen that play on judgement hold
// less than a third at any time.
func TestNoCoalitionGainsAThirdByJudgement(t *testing.T) {
	testshort.Skip(t)
	n := worlds(6)
	for _, by := range plans {
		t.Run(by.name, func(t *testing.T) {
			var first, most, last float64
			for seed := range n {
				c := newCouncil(uint64(seed), trust.DefaultParams(), skills(11, 0.6, 0.95), 5, by)
				first = c.share()
				for e := range epochsJudged {
					c.epoch(t, aweigh.Epoch(e))
					most = max(most, c.share())
				}
				last += c.share() / float64(n)
			}
			t.Logf("| %s | %d | %.1f %% | %.1f %% | %.1f %% |", by.name, n, 100*first, 100*most, 100*last)
			if by.heavy && most > first {
				t.Errorf("%.2f %% of the weight, from %.2f %%", 100*most, 100*first)
			}
			if by.undone && last > first+0.0025 {
				t.Errorf("%.2f %% of the weight in the end, from %.2f %%", 100*last, 100*first)
			}
			if 3*most >= 1 {
				t.Errorf("%.2f %% of the weight", 100*most)
			}
		})
	}
}
