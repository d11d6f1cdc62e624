package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/sim/scenario"
)

// TestVerifiedReadersAreNotDeceived: a reader that believes no node meets every kind of lie, takes none, and finds an
// honest node.
func TestVerifiedReadersAreNotDeceived(t *testing.T) {
	testshort.SkipUnlessLong(t)
	reached := make(map[string]uint64)
	missing := func() (names []string) {
		for _, g := range scenario.Goals {
			about := strings.HasPrefix(g.Name, "refused: ") || strings.HasPrefix(g.Name, "passed over: ") || g.Name == "verified read over scopes"
			if about && reached[g.Name] == 0 {
				names = append(names, g.Name)
			}
		}
		return names
	}
	for seed := uint64(1); seed <= testshort.Cases[uint64](1, 1, 4) || seed <= 6 && len(missing()) > 0; seed++ {
		r := mustRun(t, library(t, "verified-readers", seed))
		if r.Failed() || !r.Healed.Reached {
			t.Fatalf("seed %d: %s; scopes %+v", seed, r.Failure(), r.Scopes)
		}
		if r.Verdicts[Verified].Checks < 200 {
			t.Errorf("seed %d: %+v", seed, r.Verdicts[Verified])
		}
		reachedGoals(r, reached)
	}
	if names := missing(); len(names) > 0 {
		t.Errorf("not reached: %q", names)
	}
	for _, l := range proofLies {
		if reached["refused: "+l.name] == 0 {
			t.Errorf("%q is in no list of goals", l.name)
		}
	}
}

// TestDeceivedReadersAreSeen changes by hand what a reader takes, and what it refuses.
func TestDeceivedReadersAreSeen(t *testing.T) {
	testshort.SkipUnlessLong(t)
	for name, c := range map[string]struct {
		change func(w *World, q *inquest, p *scope.RangeProof, r *scope.RangeReport)
		breaks bool
	}{
		"nothing is changed": {change: func(*World, *inquest, *scope.RangeProof, *scope.RangeReport) {}},
		"another value": {breaks: true, change: func(_ *World, _ *inquest, p *scope.RangeProof, _ *scope.RangeReport) {
			p.Parts[0].Kvs[0].Value = []byte("false")
		}},
		"a key less": {breaks: true, change: func(_ *World, _ *inquest, p *scope.RangeProof, _ *scope.RangeReport) {
			p.Parts[0].Kvs = p.Parts[0].Kvs[1:]
		}},
		"another block": {breaks: true, change: func(_ *World, _ *inquest, _ *scope.RangeProof, r *scope.RangeReport) {
			r.Parts[0].Head.Block[0] ^= 1
		}},
		"a block before the one that was taken": {breaks: true, change: func(_ *World, q *inquest, _ *scope.RangeProof, r *scope.RangeReport) {
			q.before[r.Parts[0].Scope] = r.Parts[0].Head.Height + 1
		}},
		"what is too old": {breaks: true, change: func(w *World, q *inquest, _ *scope.RangeProof, r *scope.RangeReport) {
			q.atMost = 1
			r.Parts[0].Head.Time = w.now.Add(-time.Second)
		}},
		"a scope that was never founded": {breaks: true, change: func(_ *World, _ *inquest, _ *scope.RangeProof, r *scope.RangeReport) {
			r.Parts[0].Scope[0] ^= 1
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w, q, p := answered(t)
			r, err := p.Verify(w.id)
			if err != nil {
				t.Fatal(err)
			}
			c.change(w, q, p, &r)
			w.believes(q, w.Nodes[1], p, &r)
			if broke := w.findings.verdicts[Verified].Broken > 0; broke != c.breaks {
				t.Errorf("broken: %v; %v", broke, w.findings.broken)
			}
		})
	}
}

// TestHonestProofsThatAreRefusedAreSeen: only what is too old may be refused of an honest node.
func TestHonestProofsThatAreRefusedAreSeen(t *testing.T) {
	testshort.SkipUnlessLong(t)
	w, q, p := answered(t)
	q.hear(w.Nodes[1], p.Encode()[1:], "own block", nil)
	old := scope.NewRangeReader(w.id, 1).Ask(p.Key, p.End)
	q.over, q.question = false, old
	q.hear(w.Nodes[1], p.Encode(), "", nil)
	if x := w.findings; x.goals["refused: own block"] != 1 || x.goals["verified read too old"] != 1 || len(x.broken) > 0 {
		t.Fatalf("%v; %v", x.goals, x.broken)
	}
	q.hear(w.Nodes[1], p.Encode()[1:], "", nil)
	if w.findings.verdicts[Verified].Broken != 1 {
		t.Fatalf("%v", w.findings.broken)
	}
}

// TestReadersWithoutAnAnswerAreSeen: once the faults are over, a reader must be answered.
func TestReadersWithoutAnAnswerAreSeen(t *testing.T) {
	testshort.SkipUnlessLong(t)
	for _, silent := range []bool{false, true} {
		w, _, _ := answered(t)
		w.heal()
		if silent {
			for _, v := range w.readers.all {
				w.wires.clogged[v.beside]++
			}
		}
		err := w.lastRead().await(func(within time.Duration, done func() bool) error {
			w.Run(within, done)
			return nil
		})
		if broke := w.findings.verdicts[Verified].Broken > 0; err != nil || broke != silent {
			t.Errorf("silent %v: %v; %v", silent, err, w.findings.broken)
		}
	}
}

// answered is a world with a question and an honest answer to it.
func answered(t *testing.T) (*World, *inquest, *scope.RangeProof) {
	t.Helper()
	w := newWorld(t, scenario.Scenario{Network: scenario.Network{Anchors: 4}, Load: scenario.Load{Writes: 60, Keys: 3, Verified: 2}, Heal: &scenario.Heal{}})
	w.startClients()
	w.Run(w.Scenario.Stop, nil)
	q := &inquest{
		reader: w.readers.all[0], question: w.readers.all[0].judge.Ask([]byte("/"), []byte("0")), last: true,
		before: make(map[aweigh.ScopeID]aweigh.Height), patience: time.Minute,
	}
	var p *scope.RangeProof
	q.serve(w.Nodes[1], 0, func(raw []byte, _ string, err error) {
		if err == nil {
			p, err = scope.DecodeRangeProof(raw)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	w.Run(time.Minute, func() bool { return p != nil })
	if p == nil || len(p.Parts[0].Kvs) == 0 {
		t.Fatalf("no answer, or an empty one: %+v", p)
	}
	return w, q, p
}
