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

// Engines of mode fast are told of nullify ballots as well, which no certificate replaces, and of blocks by their
// leader's vote. The liar leads all views, if there is one, and signs every ballot.

// ballotOf is the subject of a nullify ballot of mode fast that names a block, or none: 0.
func ballotOf(v int, b block) quorum.Subject {
	s := quorum.Subject{Kind: quorum.Nullify, View: aweigh.View(v), Block: quorum.NoBlock}
	if b != 0 {
		s.Block = hashOf(b)
	}
	return s
}

// led is an engine of anchor self where each view has a leader.
func (r *replay) led(self int, leaders []int) *quorum.Engine {
	at := fmt.Sprint(leaders)
	if _, ok := r.leads[at]; !ok {
		for i := 0; ; i++ {
			s, fits := aweigh.Sum(fmt.Append(nil, i)), true
			for v, leader := range leaders {
				fits = fits && quorum.Leader(r.all, s, aweigh.View(v+1)) == name(leader)
			}
			if fits {
				r.leads[at] = s
				break
			}
		}
	}
	c := quorum.Config{Weights: r.all, Rules: r.rules, Seed: r.leads[at], Root: hashOf(root)}
	if self >= 0 {
		c.Self = name(self)
	}
	return quorum.NewEngine(c)
}

// leaders are the liar for each view or, if none lies, an anchor that voted for the view's block; not i, if possible.
func (r *replay) leaders(s *state, i int) (all []int) {
	for v := 1; v <= r.world.views; v++ {
		leader := (i + 1) % r.all.Len()
		if r.liar() >= 0 {
			leader = r.liar()
		} else if b := block(2 * v); s.parents[b] != 0 {
			for j := range r.world.honest {
				voted := s.anchors[j].votes.notarized(v) == b
				if voted && (j != i || s.anchors[leader].votes.notarized(v) != b) {
					leader = j
				}
			}
		}
		all = append(all, leader)
	}
	return all
}

// liar is the number of the liar, -1 if none lies.
func (r *replay) liar() int {
	if r.all.Len() > r.world.honest {
		return r.world.honest
	}
	return -1
}

// proposals are those of a view's blocks by its leader, if it voted for them.
func (r *replay) proposals(s *state, v, leader int) (all []quorum.Input) {
	for b := block(2 * v); b <= block(2*v+1); b++ {
		x := subject(quorum.Notarize, v, b)
		if s.parents[b] != 0 && (leader == r.liar() || leader < r.world.honest && s.anchors[leader].votes.has(x)) {
			all = append(all, quorum.Proposal{Vote: r.vote(leader, x), Parent: hashOf(s.parents[b])})
		}
	}
	return all
}

// ballots are the nullify ballots of a view by all anchors but one, and all that the liar can sign.
func (r *replay) ballots(s *state, v, but int) (all []quorum.Input) {
	for _, b := range []block{0, block(2 * v), block(2*v + 1)} {
		for j := range r.all.Len() {
			if j != but && (j == r.liar() && s.parents[b] != 0 || j == r.liar() && b == 0 || s.anchors[j].votes.names(v, b)) {
				all = append(all, r.vote(j, ballotOf(v, b)))
			}
		}
	}
	return all
}

// certificatesFast are those that can be made: of a notarization that decides also one that does not, if there is one.
func (r *replay) certificatesFast(s *state) (all []quorum.Certificate) {
	known := r.world.certs(s)
	for b := block(2); b <= block(2*r.world.views+1); b++ {
		c, notarized := r.certificate(s, subject(quorum.Notarize, b.view(), b))
		f, final := r.certificate(s, subject(quorum.Finalize, b.view(), b))
		if final {
			all = append(all, f)
		}
		decides := notarized && r.rules.Decides(c, r.all, r.rules.FastBounds(r.all))
		if notarized {
			all = append(all, c)
		}
		if less, ok := r.undecided(c); decides && ok {
			all = append(all, less)
		}
		if notarized != known.notarized[b] || (final || decides) != known.finalized[b] {
			r.t.Fatalf("%v: block %d is notarized by the rules: %v, final: %v; the model says %v, %v",
				*s, b, notarized, final || decides, known.notarized[b], known.finalized[b])
		}
	}
	return all
}

// undecided is a notarization of some of the signatures of one, which does not decide.
func (r *replay) undecided(c quorum.Certificate) (less quorum.Certificate, ok bool) {
	for set := range uint(1) << len(c.Signatures) {
		less = quorum.Certificate{Subject: c.Subject}
		weight := uint64(0)
		for n, x := range c.Signatures {
			if set>>n&1 == 1 {
				less.Signatures = append(less.Signatures, x)
				weight += r.all.Of(x.Anchor)
			}
		}
		met := r.rules.Notarize.Met(weight, r.all.Total(), len(less.Signatures))
		if met && !r.rules.Decides(less, r.all, r.rules.FastBounds(r.all)) {
			return less, true
		}
	}
	return less, false
}

// watchedFast compares where a watcher stands that knows all with the model: its view, what is final, and which views
// are passed over.
func (r *replay) watchedFast(s *state, certs []quorum.Certificate) {
	leaders := r.leaders(s, -1)
	e := r.led(-1, leaders)
	var in []quorum.Input
	for v, leader := range leaders {
		in = append(append(in, r.proposals(s, v+1, leader)...), r.ballots(s, v+1, -1)...)
	}
	for _, c := range certs {
		in = append(in, c)
	}
	passed := make(map[aweigh.View]bool)
	for n := range r.world.views + 2 {
		out := e.Step(start.Add(time.Duration(1+2*n)*hour), append(in, quorum.Work(true))...)
		in = nil
		for _, v := range out.Passed {
			passed[v] = true
		}
	}
	known, view, final := r.world.certs(s), 1, 0
	for v := 1; v <= r.world.views; v++ {
		decided := known.finalized[2*v] || known.finalized[2*v+1]
		if known.ended(v) || decided {
			view = v + 1
		}
		if decided {
			final = v
		}
	}
	if int(e.View()) != view || int(e.Final()) != final {
		r.t.Fatalf("%v: the engine is in view %d, and final up to %d; the model %d, %d", *s, e.View(), e.Final(), view, final)
	}
	for v := 1; v <= r.world.views; v++ {
		if passed[aweigh.View(v)] != known.nullified[v] {
			r.t.Fatalf("%v: the engine passes view %d over: %v; the model: %v", *s, v, passed[aweigh.View(v)], known.nullified[v])
		}
	}
	r.saw("passed over", known.nullified[:]...)
	r.saw("carried", known.carried[:]...)
	r.saw("final", known.finalized[:]...)
}

func (r *replay) saw(what string, is ...bool) {
	for _, x := range is {
		if x {
			r.seen[what]++
			return
		}
	}
}

// tellFast gives an engine that goes on from its record some certificates, and the blocks and nullify ballots of some
// views.
func (r *replay) tellFast(s *state, i int, told, views uint, certs []quorum.Certificate, leaders []int) (*quorum.Engine, []quorum.Input) {
	e, under := r.led(i, leaders), r.under(s, i, certs)
	var in []quorum.Input
	for v, leader := range leaders {
		if views>>v&1 == 1 {
			in = append(append(in, r.proposals(s, v+1, leader)...), r.ballots(s, v+1, i)...)
		}
	}
	for n, c := range certs {
		if told>>n&1 == 1 {
			in = append(in, c)
		}
	}
	e.Restore(r.own(s, i), under)
	return e, in
}

// under are the notarizations on an anchor's record (P8): those that do not decide, if there is a choice.
func (r *replay) under(s *state, i int, certs []quorum.Certificate) (record []quorum.Certificate) {
	for v := 1; v <= r.world.views; v++ {
		least := -1
		for n, c := range certs {
			is := c.Subject.Kind == quorum.Notarize && int(c.Subject.View) == v && s.anchors[i].votes.finalized(v) == blockOf(c.Subject.Block)
			if is && (least < 0 || len(c.Signatures) < len(certs[least].Signatures)) {
				least = n
			}
		}
		if least >= 0 {
			record = append(record, certs[least])
		}
	}
	return record
}

// compareFast is compare in mode fast.
func (r *replay) compareFast(s *state, i int, certs []quorum.Certificate, rnd *rand.Rand) map[move]state {
	did := make(map[move]bool)
	for told := range uint(1) << len(certs) {
		for views := range uint(1) << r.world.views {
			how := fmt.Sprintf("certificates %b of %d and ballots %b", told, len(certs), views)
			for v := 1; v <= r.world.views; v++ {
				leaders := r.leaders(s, i)
				e, in := r.tellFast(s, i, told, views, certs, leaders)
				r.held(s, i, r.run(e, i, false, in, nil, s), did, how)
				r.offers(s, i, v, told, views, certs, did, how)
				leaders[v-1] = i
				e, in = r.tellFast(s, i, told, views, certs, leaders)
				r.held(s, i, r.run(e, i, false, in, nil, s), did, fmt.Sprintf("%s, view %d its own", how, v))
			}
		}
	}
	for range testshort.Cases(100, 200, 200) {
		r.scatter(s, i, certs, rnd, did)
	}
	may := r.moves(s, i)
	for m := range may { // order-free: each is looked up alone
		if !did[m] && r.offerable(s, i, m, int(m.subject.View)) && r.divisible(s, i, m) {
			r.t.Fatalf("%v: the model lets anchor %d sign %v on %d, and no engine does", *s, i, m.subject, m.parent)
		}
	}
	return may
}

// divisible reports whether a vote is none to finalize a block that every notarization makes final: engines do not sign
// that.
func (r *replay) divisible(s *state, i int, m move) bool {
	if m.subject.Kind != quorum.Finalize {
		return true
	}
	c, _ := r.certificate(s, subject(quorum.Notarize, int(m.subject.View), blockOf(m.subject.Block)))
	_, ok := r.undecided(c)
	return ok
}

// offers shows an anchor each block that can be proposed in a view, on each parent.
func (r *replay) offers(s *state, i, v int, told, views uint, certs []quorum.Certificate, did map[move]bool, how string) {
	leaders := r.leaders(s, i)
	leader := leaders[v-1]
	for b := block(2 * v); b <= block(2*v+1); b++ {
		x := subject(quorum.Notarize, v, b)
		if leader == i || leader != r.liar() && !s.anchors[leader].votes.has(x) {
			continue
		}
		for parent := root; parent < block(2*v); parent++ {
			if s.parents[b] != 0 && s.parents[b] != parent || parent != root && s.parents[parent] == 0 || b%2 == 1 && s.parents[b-1] == 0 {
				continue
			}
			e, in := r.tellFast(s, i, told, views, certs, leaders)
			offer := quorum.Proposal{Vote: r.vote(leader, x), Parent: hashOf(parent)}
			in = append([]quorum.Input{offer}, in...)
			r.held(s, i, r.run(e, i, true, in, &offer, s), did, fmt.Sprintf("%s and block %d on %d", how, b, parent))
		}
	}
}

// scatter tells an engine of any of all that there is, in any order, with any leaders.
func (r *replay) scatter(s *state, i int, certs []quorum.Certificate, rnd *rand.Rand, did map[move]bool) {
	leaders := r.leaders(s, i)
	for v := range leaders {
		if rnd.Intn(4) == 0 {
			leaders[v] = rnd.Intn(r.all.Len())
		}
	}
	var in []quorum.Input
	for v, leader := range leaders {
		in = append(append(in, r.proposals(s, v+1, leader)...), r.ballots(s, v+1, i)...)
	}
	for _, c := range certs {
		in = append(in, c)
	}
	for j := range r.all.Len() {
		for _, x := range r.subjects() {
			liar := j == r.liar() && s.parents[blockOf(x.Block)] != 0
			if x.Kind != quorum.Nullify && j != i && (liar || j != r.liar() && s.anchors[j].votes.has(x)) {
				in = append(in, r.vote(j, x))
			}
		}
	}
	rnd.Shuffle(len(in), func(a, b int) { in[a], in[b] = in[b], in[a] })
	in = in[:rnd.Intn(len(in)+1)]
	e := r.led(i, leaders)
	e.Restore(r.own(s, i), r.under(s, i, certs))
	r.held(s, i, r.run(e, i, rnd.Intn(2) == 0, in, nil, s), did, fmt.Sprintf("%v, led by %v", in, leaders))
}

// TestTracesOfTheModelAreTheEnginesInModeFast replays random traces of mode fast.
func TestTracesOfTheModelAreTheEnginesInModeFast(t *testing.T) {
	for _, c := range []struct {
		name          string
		honest, liars []uint64
		views, traces int
		want          []string
	}{
		{"four alike, one lies", []uint64{1, 1, 1}, []uint64{1}, 2, testshort.Cases(1, 8, 16), []string{"passed over", "carried", "final"}},
		{"four alike, none lies", []uint64{1, 1, 1, 1}, nil, 2, testshort.Cases(2, 8, 16), []string{"passed over", "carried", "final"}},
		{"4 3 2 1, the 3 lies", []uint64{4, 2, 1}, []uint64{3}, 2, testshort.Cases(1, 6, 12), []string{"passed over", "carried", "final"}},
		{"3 2 and 2 that lies, three views", []uint64{3, 2}, []uint64{2}, 3, testshort.Cases(1, 2, 6), []string{"final"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newReplay(t, fast, c.honest, sum(c.liars), c.views)
			r.leads, r.seen = make(map[string]aweigh.Hash), make(map[string]int)
			traces, steps := c.traces, 0
			if os.Getenv("AWEIGH_MODEL") == "large" {
				traces *= 100
			}
			for seed := range traces {
				rnd := rand.New(rand.NewSource(int64(seed)))
				var s state
				for {
					certs := r.certificatesFast(&s)
					if len(certs) > mostCerts {
						break
					}
					r.watchedFast(&s, certs)
					var next []state
					for i := range c.honest {
						for m, to := range r.compareFast(&s, i, certs, rnd) { // order-free: sorted below
							r.seen[m.subject.Kind.String()]++
							next = append(next, to)
						}
					}
					known := r.world.certs(&s)
					r.world.madeUp(s, &known, func(t state) {
						if t != s {
							next = append(next, t)
						}
					})
					if len(next) == 0 {
						break
					}
					sortStates(next)
					s = next[rnd.Intn(len(next))]
					steps++
				}
			}
			t.Logf("%d traces, %d steps: %v", traces, steps, r.seen)
			if testing.Short() { // one trace may end soon
				c.want = nil
			} else {
				c.want = append(c.want, "finalize")
			}
			for _, k := range append(c.want, "notarize", "nullify") {
				if r.seen[k] == 0 {
					t.Errorf("the traces never reached what they are meant to reach: %s", k)
				}
			}
		})
	}
}
