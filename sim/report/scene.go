package report

import (
	"slices"
	"strings"
	"time"

	"github.com/aweigh/aweigh/sim"
)

// scene is the stretch of a run worth a closer look: how a fork came about, or
// what led to a breach, or else how one block became final.
type scene struct {
	from, to time.Duration
	height   uint64
	branches []branch // two for a fork, one for a decision, else none
	breach   *sim.Breach
	marks    []sim.Mark // within from and to
	flight   time.Duration
}

// branch is one of the blocks in question, with those that build on it.
type branch struct {
	name    string // A or B; empty if there is no other
	block   string
	view    string
	blocks  map[string]bool
	sealers []int // the nodes that made it final, in order of time
	first   sim.Mark
}

// sceneOf picks the scene of a run; false if its marks show none.
func sceneOf(r *sim.Result, lying map[int]bool) (s scene, ok bool) {
	if len(r.Marks) == 0 {
		return s, false
	}
	s.flight = max(flight(r.Marks), 100*time.Microsecond)
	if len(r.Broken) > 0 {
		s.breach = gravest(r.Broken)
	}
	switch {
	case s.fork(r.Marks, func(m sim.Mark) bool { return !lying[m.Node] }) || s.fork(r.Marks, anyone):
		s.around(r.Marks)
	case s.breach != nil && s.cause(r.Marks):
		s.around(r.Marks)
	case s.breach != nil:
		s.from, s.to = max(0, s.breach.At-30*s.flight), s.breach.At+2*s.flight
	case s.decision(r.Marks):
		s.around(r.Marks)
	default:
		s.from, s.to = r.Marks[0].At, min(r.Marks[len(r.Marks)-1].At, r.Marks[0].At+60*s.flight)
	}
	for _, m := range r.Marks {
		if m.At >= s.from && m.At <= s.to {
			s.marks = append(s.marks, m)
		}
	}
	return s, len(s.marks) > 0
}

// fork looks for the first height at which two blocks were made final.
func (s *scene) fork(marks []sim.Mark, counts func(sim.Mark) bool) bool {
	first := make(map[uint64]sealed)
	for _, m := range marks {
		b, ok := sealedOf(m)
		if !ok || !counts(m) {
			continue
		}
		a, known := first[b.height]
		if !known {
			first[b.height] = b
		} else if a.block != b.block {
			s.height = b.height
			s.branches = []branch{newBranch("A", a, marks, counts), newBranch("B", b, marks, counts)}
			for i := range s.branches { // blocks that both made final do not distinguish them
				for block := range s.branches[i].blocks {
					if block != s.branches[i].block && s.branches[1-i].blocks[block] {
						delete(s.branches[i].blocks, block)
					}
				}
			}
			return true
		}
	}
	return false
}

// decision picks a block that became final: the first one amid lies, or the
// second, of those with kept messages.
func (s *scene) decision(marks []sim.Mark) bool {
	lied, kept := time.Duration(-1), time.Duration(0)
	if i := slices.IndexFunc(marks, func(m sim.Mark) bool { return m.Kind == "message" }); i >= 0 {
		kept = marks[i].Sent
	}
	early := make(map[string]bool) // final before that
	var pick *sealed
	seen := make(map[string]bool)
	for _, m := range marks {
		if m.Kind == "lie" {
			lied = m.At
		}
		b, ok := sealedOf(m)
		if !ok || seen[b.block] || early[b.block] {
			continue
		}
		if m.At < kept+4*s.flight {
			early[b.block] = true
			continue
		}
		seen[b.block] = true
		if len(seen) <= 2 {
			pick = &b
		}
		if len(seen) <= 40 && lied >= 0 && m.At-lied < 4*s.flight {
			pick = &b
			break
		}
	}
	if pick == nil {
		return false
	}
	s.height = pick.height
	s.branches = []branch{alone(*pick, marks)}
	return true
}

// cause picks the block whose finality is the breach, if it is one.
func (s *scene) cause(marks []sim.Mark) bool {
	for _, m := range marks {
		if b, ok := sealedOf(m); ok && m.At == s.breach.At && m.Node == s.breach.Node {
			s.height, s.branches = b.height, []branch{alone(b, marks)}
			return true
		}
	}
	return false
}

// alone is the branch of one block and no others.
func alone(of sealed, marks []sim.Mark) branch {
	b := newBranch("", of, marks, anyone)
	b.blocks = map[string]bool{of.block: true}
	return b
}

func anyone(sim.Mark) bool { return true }

// newBranch is the branch of a block: those that its sealers made final with it.
// Its first mark is of a node that counts.
func newBranch(name string, of sealed, marks []sim.Mark, counts func(sim.Mark) bool) branch {
	b := branch{name: name, block: of.block, view: of.view, blocks: map[string]bool{of.block: true}}
	var at time.Duration
	for _, m := range marks {
		x, ok := sealedOf(m)
		switch {
		case !ok:
		case x.block == of.block:
			if len(b.sealers) == 0 {
				at = m.At
			}
			if b.first.Kind == "" && counts(m) {
				b.first = m
			}
			if !slices.Contains(b.sealers, m.Node) {
				b.sealers = append(b.sealers, m.Node)
			}
		case len(b.sealers) > 0 && m.At == at && m.Node == b.sealers[0] && x.height > of.height:
			b.blocks[x.block] = true
		}
	}
	return b
}

// around sets the window from the first message about the branches to the last
// node that takes part.
func (s *scene) around(marks []sim.Mark) {
	s.from = s.branches[0].first.At
	for _, b := range s.branches {
		s.to = max(s.to, b.first.At)
	}
	if s.breach != nil {
		s.to = max(s.to, min(s.breach.At, s.to+20*s.flight))
	} else {
		for _, m := range marks { // until the others have it too, unless they lag behind
			if x, ok := sealedOf(m); ok && x.block == s.branches[0].block && m.At < s.branches[0].first.At+8*s.flight {
				s.to = max(s.to, m.At)
			}
		}
	}
	for _, m := range marks {
		if m.From >= 0 && m.At <= s.to && s.about(m) >= 0 {
			s.from = min(s.from, m.Sent)
		}
	}
	margin := max((s.to-s.from)/40, s.flight/4)
	s.from, s.to = max(0, s.from-margin), s.to+margin
}

// about is the number of the branch that a message is a proposal or ballot for, or -1.
func (s *scene) about(m sim.Mark) int {
	if m.From < 0 || m.From == m.Node {
		return -1
	}
	kind, block := ballot(m)
	if kind == "" || kind == "nullify" {
		return -1
	}
	return slices.IndexFunc(s.branches, func(b branch) bool { return b.blocks[block] })
}

// ballot reads the content of a proposal or ballot, as sim describes it.
func ballot(m sim.Mark) (kind, block string) {
	w := strings.Fields(m.Text)
	switch {
	case len(w) == 3 && (w[0] == "notarize" || w[0] == "finalize"):
		return w[0], w[2]
	case len(w) > 5 && w[0] == "propose" && w[1] == "view":
		return "propose", w[5]
	case len(w) == 2 && w[0] == "nullify":
		return "nullify", ""
	}
	return "", ""
}
