package quorum_test

import (
	"slices"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
)

// TestP19ALeaderThatFailedProposesInTheTimeThatOthersGive: one finalization took a minute, and another block is
// notarized only. There is no work, so leaders wait for its finalization before they propose an empty block. Views fail
// meanwhile, and anchors give each leader less time. A leader that waited on would propose in vain for ever.
func TestP19ALeaderThatFailedProposesInTheTimeThatOthersGive(t *testing.T) {
	leader, other := newLone(t, 3), newLone(t, 2)
	both := func(do func(l *lone)) { do(leader); do(other) }
	both(func(l *lone) {
		root := l.cfg.Root
		l.step(quorum.Work(true), l.cert(quorum.Notarize, 1, "b1", root, 1, 2, 4))
		l.now = l.now.Add(time.Minute)
		l.step(l.cert(quorum.Finalize, 1, "b1", root, 1, 2, 4))
		l.step(quorum.Work(false), l.cert(quorum.Notarize, 2, "b2", l.at(quorum.Notarize, 1, "b1", root).Block, 1, 2, 4))
	})
	// until returns how long after now an engine does something, at most a minute.
	until := func(l *lone, done func(quorum.Output) bool) time.Duration {
		began := l.now
		for out := l.step(); !done(out) && l.now.Sub(began) < time.Minute; out = l.step() {
			l.now = out.Wake
		}
		return l.now.Sub(began)
	}
	turns := 0
	for v := aweigh.View(3); turns < 20; v++ {
		if leader.engine.Leader(v) == anchor(3) {
			builds := until(leader, func(out quorum.Output) bool { return out.Build != nil })
			gives := until(other, func(out quorum.Output) bool {
				return slices.ContainsFunc(out.Sign, func(s quorum.Subject) bool { return s.Kind == quorum.Nullify })
			})
			if turns > 0 && 2*builds > gives {
				t.Errorf("turn %d, view %d: proposes after %v, and the others give it %v", turns, v, builds, gives)
			}
			turns++
		}
		both(func(l *lone) {
			in := []quorum.Input{l.cert(quorum.Nullify, v, "", l.cfg.Root, 1, 2, 4)}
			for _, id := range []int{1, 3, 4} { // all show that they live
				in = append(in, l.sign(id, l.at(quorum.Nullify, v, "", l.cfg.Root)))
			}
			l.step(in...)
		})
	}
}
