package model

import (
	"fmt"
	"math/rand"
	"os"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/quorum"
)

// The model and quorum.Engine are held against each other: in each state of a trace of the model, what an engine signs,
// whatever it is told of, must be a step of the model; and what the model lets an anchor do next, an engine must do
// once it is told of enough. Certificates, views and finality are compared as well.

// replay is a world of the model with engines in it.
type replay struct {
	t     *testing.T
	world world
	rules quorum.Rules
	all   quorum.Weights // honest anchors, and one liar if there is weight that lies
	seeds map[[3]uint8]aweigh.Hash
	leads map[string]aweigh.Hash // mode fast: by the leaders of all views
	seen  map[string]int         // mode fast: what the traces reached
}

func newReplay(t *testing.T, rules quorum.Rules, honest []uint64, liars uint64, views int) *replay {
	r := &replay{t: t, world: newWorld(rules, honest, liars, views), rules: rules, seeds: make(map[[3]uint8]aweigh.Hash)}
	r.world.named = true
	var shares []quorum.Share
	for i, x := range honest {
		shares = append(shares, quorum.Share{Anchor: name(i), Weight: x})
	}
	if liars > 0 {
		shares = append(shares, quorum.Share{Anchor: name(len(honest)), Weight: liars})
	}
	var err error
	if r.all, err = quorum.NewWeights(shares...); err != nil {
		t.Fatal(err)
	}
	return r
}

func name(i int) aweigh.AnchorID { return aweigh.AnchorID{byte(i + 1)} }
func hashOf(b block) aweigh.Hash { return aweigh.Hash{byte(b)} }
func blockOf(h aweigh.Hash) block {
	if h == quorum.NoBlock {
		return 0
	}
	return block(h[0])
}

func subject(k quorum.Kind, v int, b block) quorum.Subject {
	s := quorum.Subject{Kind: k, View: aweigh.View(v)}
	if k != quorum.Nullify {
		s.Block = hashOf(b)
	}
	return s
}

// seed gives a view to a leader, and the others to it as well, or to others if it is the anchor itself.
func (r *replay) seed(v, leader, self int) aweigh.Hash {
	own := uint8(0)
	if leader == self {
		own = 1
	}
	at := [3]uint8{uint8(v), uint8(leader), own}
	if s, ok := r.seeds[at]; ok {
		return s
	}
	for i := 0; ; i++ {
		s := aweigh.Sum(fmt.Append(nil, i))
		fits := true
		for u := 1; u <= r.world.views; u++ {
			leads := quorum.Leader(r.all, s, aweigh.View(u)) == name(leader)
			fits = fits && leads == (u == v || own == 0)
		}
		if fits {
			r.seeds[at] = s
			return s
		}
	}
}

func (r *replay) engine(self, v, leader int) *quorum.Engine {
	c := quorum.Config{Weights: r.all, Rules: r.rules, Seed: r.seed(v, leader, self), Root: hashOf(root)}
	if self >= 0 {
		c.Self = name(self)
	}
	return quorum.NewEngine(c)
}

func (r *replay) vote(i int, s quorum.Subject) quorum.Vote {
	return quorum.Vote{Subject: s, Signature: quorum.Signature{Anchor: name(i), Bytes: fmt.Append(nil, i, s)}}
}

// subjects are those of all votes of a world.
func (r *replay) subjects() (all []quorum.Subject) {
	for v := 1; v <= r.world.views; v++ {
		if r.world.fast {
			all = append(all, ballotOf(v, 0), ballotOf(v, block(2*v)), ballotOf(v, block(2*v+1)))
		} else {
			all = append(all, subject(quorum.Nullify, v, 0))
		}
		for b := block(2 * v); b <= block(2*v+1); b++ {
			all = append(all, subject(quorum.Notarize, v, b), subject(quorum.Finalize, v, b))
		}
	}
	return all
}

// has reports whether an anchor's votes hold one.
func (x votes) has(s quorum.Subject) bool {
	v, b := int(s.View), blockOf(s.Block)
	switch s.Kind {
	case quorum.Notarize:
		return x.notarized(v) == b
	case quorum.Finalize:
		return x.finalized(v) == b
	}
	return x.names(v, b)
}

// own are the votes that an anchor has on record.
func (r *replay) own(s *state, i int) (all []quorum.Vote) {
	for _, x := range r.subjects() {
		if s.anchors[i].votes.has(x) {
			all = append(all, r.vote(i, x))
		}
	}
	return all
}

// certificate is one of a subject, of the votes that were cast, and those of the liar, who says everything.
func (r *replay) certificate(s *state, x quorum.Subject) (c quorum.Certificate, ok bool) {
	weight := uint64(0)
	c.Subject = x
	for seat := range r.all.Len() {
		i := int(r.all.At(seat).Anchor[0]) - 1
		if i >= r.world.honest || s.anchors[i].votes.has(x) {
			v := r.vote(i, x)
			c.Signatures = append(c.Signatures, v.Signature)
			weight += r.all.At(seat).Weight
		}
	}
	if x.Kind != quorum.Nullify && s.parents[blockOf(x.Block)] == 0 {
		return c, false
	}
	return c, r.rules.For(x.Kind).Met(weight, r.all.Total(), len(c.Signatures))
}

// certificates are all that can be made, which the model must find as well, and it no others.
func (r *replay) certificates(s *state) (all []quorum.Certificate) {
	known := r.world.certs(s)
	for _, x := range r.subjects() {
		if r.world.oneRound && x.Kind == quorum.Notarize {
			continue
		}
		c, ok := r.certificate(s, x)
		if ok {
			all = append(all, c)
		}
		model := known.nullified[x.View]
		switch x.Kind {
		case quorum.Notarize:
			model = known.notarized[blockOf(x.Block)]
		case quorum.Finalize:
			model = known.finalized[blockOf(x.Block)]
		}
		if model != ok {
			r.t.Fatalf("%v: a certificate of %v by the rules: %v, in the model: %v", *s, x, ok, model)
		}
	}
	return all
}

// watched compares where a watcher stands that knows all with the model: its view, and what is final.
func (r *replay) watched(s *state, certs []quorum.Certificate) {
	e := r.engine(-1, 1, 0)
	var in []quorum.Input
	for _, c := range certs {
		in = append(in, c)
	}
	for i := range r.world.honest {
		for _, v := range r.own(s, i) {
			in = append(in, v)
		}
	}
	e.Step(start, append(in, quorum.Work(true))...)
	out := e.Step(start.Add(hour), quorum.Work(true))
	for range r.world.views { // a timer for each view that the votes divide
		out = e.Step(max(out.Wake, start.Add(2*hour)).Add(hour), quorum.Work(true))
	}
	known, view, final := r.world.certs(s), 1, 0
	for v := 1; v <= r.world.views; v++ {
		if known.ended(v) || known.finalized[2*v] || known.finalized[2*v+1] {
			view = v + 1
		}
		if known.finalized[2*v] || known.finalized[2*v+1] {
			final = v
		}
	}
	if int(e.View()) != view || int(e.Final()) != final {
		r.t.Fatalf("%v: the engine is in view %d, and final up to %d; the model %d, %d", *s, e.View(), e.Final(), view, final)
	}
}

const hour = time.Hour

var start = aweigh.Instant(hour)

// move is a vote of one anchor, for a block on a parent.
type move struct {
	subject quorum.Subject
	parent  block
}

// moves are those of an anchor that the model lets pass.
func (r *replay) moves(s *state, i int) map[move]state {
	all := make(map[move]state)
	c := r.world.certs(s)
	r.world.next(*s, &c, func(t state) {
		if t.anchors[i].votes == s.anchors[i].votes {
			return
		}
		for _, x := range r.subjects() {
			if t.anchors[i].votes.has(x) && !s.anchors[i].votes.has(x) {
				all[move{x, t.parents[blockOf(x.Block)]}] = t
			}
		}
	})
	return all
}

// probe is what an anchor may be told of: certificates by number, and, where one round decides, all votes of views.
type probe struct {
	certs, votes uint
	from         int // the one anchor whose votes they are; -1: all
}

// tell gives an engine that goes on from its record what a probe holds.
func (r *replay) tell(s *state, i int, p probe, certs []quorum.Certificate, v, leader int) (*quorum.Engine, []quorum.Input) {
	e := r.engine(i, v, leader)
	var record []quorum.Certificate
	var in []quorum.Input
	for n, c := range certs {
		under := c.Subject.Kind == quorum.Notarize && s.anchors[i].votes.finalized(int(c.Subject.View)) == blockOf(c.Subject.Block)
		if under {
			record = append(record, c) // P8
		} else if p.certs>>n&1 == 1 {
			in = append(in, c)
		}
	}
	e.Restore(r.own(s, i), record)
	for j := range r.world.honest {
		for _, x := range r.own(s, j) {
			if p.votes>>x.View&1 == 1 && j != i && (p.from < 0 || p.from == j) {
				in = append(in, x)
			}
		}
	}
	return e, in
}

// run steps an engine, answers its questions, and returns what it signs, for blocks on which parents.
func (r *replay) run(e *quorum.Engine, i int, patient bool, in []quorum.Input, offered *quorum.Proposal, s *state) (signed []move) {
	now, idle, placed := start, 0, s.parents
	if offered != nil {
		placed[blockOf(offered.Vote.Block)] = blockOf(offered.Parent)
	}
	for range 12 {
		out := e.Step(now, append(in, quorum.Work(true))...)
		in = nil
		for _, x := range out.Sign {
			signed = append(signed, move{subject: x, parent: placed[blockOf(x.Block)]})
			in = append(in, r.vote(i, x))
		}
		for _, c := range out.Check {
			in = append(in, quorum.Verdict{View: c.Vote.View, Block: c.Vote.Block, Valid: true})
		}
		if b := out.Build; b != nil && int(b.View) <= r.world.views {
			v := int(b.View)
			m := move{subject(r.rules.Mode.Vouch(), v, block(2*v)), blockOf(b.Parent)}
			if s.parents[2*v] != 0 {
				if s.anchors[i].votes.in(v) == 0 {
					return signed // another leads the view in this trace
				}
				m.subject = subject(r.rules.Mode.Vouch(), v, block(2*v+1)) // a second block of one leader
			}
			placed[blockOf(m.subject.Block)] = m.parent
			signed = append(signed, m)
			in = append(in, quorum.Proposal{Vote: r.vote(i, m.subject), Parent: b.Parent})
		}
		if len(in) > 0 {
			idle = 0
			continue
		}
		if idle++; patient || idle > 2 {
			return signed
		}
		now = now.Add(hour)
	}
	return signed
}

// held checks that all that an engine signed are steps of the model, one after another, and notes them.
func (r *replay) held(s *state, i int, signed []move, did map[move]bool, how string) {
	at := *s
	for n, m := range signed {
		if int(m.subject.View) > r.world.views {
			return
		}
		t, ok := r.moves(&at, i)[m]
		if !ok {
			r.t.Fatalf("%v: anchor %d, told of %s, signs %v on %d after %v, which the model forbids", *s, i, how, m.subject, m.parent, signed[:n])
		}
		did[m] = true
		at = t
	}
}

// compare holds the engine of an anchor against the model in one state. It returns the steps that the model lets pass.
func (r *replay) compare(s *state, i int, certs []quorum.Certificate) map[move]state {
	did := make(map[move]bool)
	liar, views := r.world.honest, 0
	if r.world.oneRound {
		views = r.world.views
	}
	for c := range uint(1) << len(certs) {
		for votes := range uint(1) << views {
			p := probe{c, votes << 1, -1}
			how := fmt.Sprintf("certificates %b of %d and votes %b", c, len(certs), p.votes)
			for v := 1; v <= r.world.views; v++ {
				for _, leader := range []int{i, (i + 1) % r.all.Len()} {
					for p.from = -1; p.from < r.world.honest; p.from++ {
						e, in := r.tell(s, i, p, certs, v, leader)
						r.held(s, i, r.run(e, i, false, in, nil, s), did, fmt.Sprintf("%s from %d, %d led by %d", how, p.from, v, leader))
						if votes == 0 {
							break
						}
					}
					p.from = -1
				}
				for b := block(2 * v); b <= block(2*v+1); b++ {
					leader := -1
					if liar < r.all.Len() {
						leader = liar
					}
					for j := range r.world.honest {
						if j != i && s.anchors[j].votes.has(subject(r.rules.Mode.Vouch(), v, b)) && leader < 0 {
							leader = j
						}
					}
					if leader < 0 {
						continue
					}
					for parent := root; parent < block(2*v); parent++ {
						if s.parents[b] != 0 && s.parents[b] != parent || parent != root && s.parents[parent] == 0 || b%2 == 1 && s.parents[b-1] == 0 {
							continue
						}
						e, in := r.tell(s, i, p, certs, v, leader)
						offer := quorum.Proposal{Vote: r.vote(leader, subject(r.rules.Mode.Vouch(), v, b)), Parent: hashOf(parent)}
						r.held(s, i, r.run(e, i, !r.world.oneRound, append(in, offer), &offer, s), did, fmt.Sprintf("%s and block %d on %d", how, b, parent))
					}
				}
			}
		}
	}
	may := r.moves(s, i)
	for m := range may { // order-free: each is looked up alone
		if v := int(m.subject.View); !did[m] && r.offerable(s, i, m, v) {
			r.t.Fatalf("%v: the model lets anchor %d sign %v on %d, and no engine does", *s, i, m.subject, m.parent)
		}
	}
	return may
}

// offerable reports whether somebody can have proposed what is voted for: the anchor itself, a liar, or one who voted
// so.
func (r *replay) offerable(s *state, i int, m move, v int) bool {
	b := blockOf(m.subject.Block)
	switch {
	case m.subject.Kind != r.rules.Mode.Vouch() || r.all.Len() > r.world.honest:
		return true
	case s.parents[b] == 0: // as leader, on the parent that the engine chooses
		return false
	}
	for j := range r.world.honest {
		if j != i && s.anchors[j].votes.has(m.subject) {
			return true
		}
	}
	return false
}

// mostCerts ends a trace: an engine is tried with every choice among the certificates that there are.
const mostCerts = 6

// TestTracesOfTheModelAreTheEngines replays random traces: a bounded number of them, or a hundred times as many with
// AWEIGH_MODEL=large.
func TestTracesOfTheModelAreTheEngines(t *testing.T) {
	for _, c := range []struct {
		name          string
		rules         quorum.Rules
		honest, liars []uint64
		views, traces int
	}{
		{"bft, four alike, one lies", bft, []uint64{1, 1, 1}, []uint64{1}, 2, testshort.Cases(2, 12, 12)},
		{"bft, four alike, none lies", bft, []uint64{1, 1, 1, 1}, nil, 2, 12},
		{"bft, 4 3 2 1, the 3 lies", bft, []uint64{4, 2, 1}, []uint64{3}, 2, testshort.Cases(2, 6, 6)},
		{"bft, 3 2 and 2 that lies, three views", bft, []uint64{3, 2}, []uint64{2}, 3, testshort.Cases(1, 3, 6)},
		{"crash, three alike", crash, []uint64{1, 1, 1}, nil, 3, testshort.Cases(1, 2, 5)},
		{"crash, four alike", crash, []uint64{1, 1, 1, 1}, nil, 3, testshort.Cases(1, 1, 2)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.views == 3 { // which takes a second each
				testshort.Skip(t)
			}
			r := newReplay(t, c.rules, c.honest, sum(c.liars), c.views)
			traces, steps, kinds := c.traces, 0, map[quorum.Kind]int{}
			if os.Getenv("AWEIGH_MODEL") == "large" {
				traces *= 100
			}
			for seed := range traces {
				rnd := rand.New(rand.NewSource(int64(seed)))
				var s state
				for {
					certs := r.certificates(&s)
					if len(certs) > mostCerts {
						break
					}
					r.watched(&s, certs)
					var next []state
					for i := range c.honest {
						for m, to := range r.compare(&s, i, certs) { // order-free: sorted below
							kinds[m.subject.Kind]++
							next = append(next, to)
						}
					}
					if len(next) == 0 {
						break
					}
					sortStates(next)
					s = next[rnd.Intn(len(next))]
					steps++
				}
			}
			t.Logf("%d traces, %d steps, choices %v", traces, steps, kinds)
			if kinds[quorum.Nullify] == 0 || kinds[quorum.Finalize] == 0 {
				t.Error("the traces never reached what they are meant to reach")
			}
		})
	}
}
