package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
	"github.com/aweigh/aweigh/votes/box"
)

// fates compares the motions of all nodes in the end.
func (x *watch) fates(held []*Node, best *Node) {
	w := x.w
	for _, n := range held {
		state := n.state()
		head := state.Head().Height
		for _, p := range x.motions.order {
			mo, end, err := state.Motion(p.id)
			must.OK(err, "reading a motion")
			if mo == nil && x.forgettable(p) {
				continue
			}
			w.holds(Closed, n, (mo != nil) == (p.opened <= head), "motion %s opened at height %d; at height %d it is on record: %v", p.id.Short(), p.opened, head, mo != nil)
			same := end == nil && (p.fate == 0 || p.closed > head) || end != nil && end.Fate == p.fate && end.Height == p.closed
			w.holds(Closed, n, same, "motion %s was %s at height %d; in the end, at height %d, it is %s", p.id.Short(), named(p.fate), p.closed, head, outcomeOf(end))
		}
	}
	x.applied(best)
	for _, n := range held {
		x.taken(n, best.recorded)
	}
}

// taken checks that a node still has the ballots that it took, at the end and when it
// restarts. It may have lost ballots that are on the chain: others have them.
func (x *watch) taken(n *Node, recorded func(*votes.MotionBallot) bool) {
	if n.excused() {
		return
	}
	for _, s := range x.w.polls.slips {
		for _, t := range s.taken {
			if t.at == n {
				x.w.holds(Boxes, n, x.kept(s, n) || recorded(&s.ballot), "the ballot of %s on motion %s was taken, and is neither in the chain nor kept for it", s.by.name, s.on.id.Short())
			}
		}
	}
}

// applied checks that motions that were open at once, as a node has them, change
// a key once, and that the keys have the content of the motions (P32).
func (x *watch) applied(n *Node) {
	w, r := x.w, &x.motions
	if n.state().Head().Height+1 != r.next {
		return // it knows of blocks that no other node knows to be final
	}
	ends := make([]*scope.Ending, len(r.order))
	for i, p := range r.order {
		mo, end, err := n.state().Motion(p.id)
		must.OK(err, "reading a motion")
		if mo == nil && x.forgettable(p) {
			return // some were forgotten, so that what each of them did is not known
		}
		ends[i] = end
	}
	for i, p := range r.order {
		for j, q := range r.order[:i] {
			w.holds(Conflicts, n, !r.contrary(i, j, ends), "motions %s and %s change one key, were open at once, and are both applied", q.id.Short(), p.id.Short())
		}
	}
	for i := range w.Scenario.Approval.Keys {
		key := fmt.Sprintf("%s%d", prefix, i)
		kv, there := n.get(key)
		want := r.keys[key]
		w.holds(Conflicts, n, there == want, "%s is there: %v; the motions that were carried say %v", key, there, want)
		if there && want {
			last := slices.Index(r.order, r.by[key])
			w.holds(Conflicts, n, last >= 0 && ends[last] != nil && kv.ModRevision == ends[last].Revision, "%s was changed at revision %d, which is not that of the motion that put it last", key, kv.ModRevision)
		}
	}
}

// contrary reports whether two motions that were applied were open at once, and the
// later one changes a key that the other put.
func (r *recount) contrary(i, j int, ends []*scope.Ending) bool {
	if !applies(ends[i]) || !applies(ends[j]) ||
		r.order[i].opened > ends[j].Height || r.order[j].opened > ends[i].Height { // in a block motions open before any is carried
		return false
	}
	if ends[i].Height < ends[j].Height {
		i, j = j, i
	}
	later, first := r.order[i], r.order[j]
	return slices.ContainsFunc(first.puts, func(key string) bool {
		return slices.Contains(later.puts, key) || ends[i].Height != ends[j].Height && slices.Contains(later.drops, key)
	})
}

func applies(e *scope.Ending) bool { return e != nil && e.Fate == scope.Carried }

// lacks reports what voters still wait for although it must come: a motion that honest
// ballots close, or whose deadline is over, and a ballot that an honest node took, also
// one that makes no blocks.
func (x *watch) lacks() string {
	w := x.w
	if b := &w.Scenario.Bounds.Node; b.Due != 0 || b.Box != (box.Limits{}) { // ballots find no room
		return ""
	}
	for _, p := range x.motions.order {
		switch {
		case p.fate != 0:
		case w.now > p.deadline.Add(-soon):
			return fmt.Sprintf("motion %s is open, with a deadline at %v", p.id.Short(), p.deadline.Sub(start))
		case x.decided(p):
			return fmt.Sprintf("motion %s is open, and honest voters have decided it", p.id.Short())
		}
	}
	for _, s := range w.polls.slips {
		p := x.motions.all[s.on.id]
		if p == nil || !p.has(s.by) || x.forgettable(p) {
			continue
		}
		for _, t := range s.taken {
			if t.at.honest() && !x.motions.recorded(&s.ballot) {
				return fmt.Sprintf("the ballot of %s on motion %s is in no block, and %s took it", s.by.name, s.on.id.Short(), t.at)
			}
		}
	}
	return ""
}

// soon is the time in which a deadline is waited for.
const soon = 30 * time.Second

// decided reports whether the honest ballots close a motion, whatever others do.
func (x *watch) decided(p *poll) bool {
	if p.decided == nil {
		said := make(map[aweigh.Hash]uint8)
		for _, s := range x.w.polls.slips {
			if s.on.id == p.id {
				said[s.ballot.Voter] |= 1 << s.ballot.Choice
			}
		}
		d := p.verdict(said) != 0
		p.decided = &d
	}
	return *p.decided
}

// settled reports whether a ballot cannot count any more.
func (r *recount) settled(s *pendingBallot) bool {
	p := r.all[s.on.id]
	return p != nil && (p.fate != 0 || !p.has(s.by))
}

// recorded reports whether a final block has a ballot.
func (r *recount) recorded(b *votes.MotionBallot) bool {
	p := r.all[b.Motion]
	return p != nil && (p.said[b.Voter]|p.late[b.Voter])>>b.Choice&1 != 0
}

// kept reports whether a ballot that a node took is in its chain, or still there for a
// block to come, or of a key that may not vote on the motion.
func (x *watch) kept(s *pendingBallot, at *Node) bool {
	if at.recorded(&s.ballot) || at.holds(&s.ballot) {
		return true
	}
	p := x.motions.all[s.on.id]
	return p != nil && (!p.has(s.by) || x.forgettable(p))
}

func (p *poll) has(v *voter) bool {
	_, ok := p.voters[v.key.Public().ID()]
	return ok
}
