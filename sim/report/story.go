package report

import (
	"fmt"
	"slices"

	"github.com/aweigh/aweigh/sim"
	"github.com/aweigh/aweigh/sim/scenario"
)

// tell is the title and the caption of a scene.
func (s *scene) tell(r *sim.Result) (title, caption string) {
	switch {
	case len(s.branches) == 2:
		return "How the fork happened", fmt.Sprintf("The moments in which two blocks became final at height %d. Lanes are sorted: nodes that made A final above, nodes that made B final below, and between them the liars. "+
			"Each slanted line is a message on its way, in the colour of the block that it is for. Look for lines of both colours that leave one lane: that node lies, and signs for both.", s.height)
	case s.breach != nil:
		return "The moments before " + s.breach.Invariant + " broke", "What was said and done shortly before the first breach: " + breach(*s.breach)
	case len(s.branches) == 1:
		return "One block, close up", fmt.Sprintf("How block %s became final at height %d: a proposal, a round of notarize ballots, and a round of finalize ballots. Each slanted line is a message on its way; a steep one was fast.", s.branches[0].block, s.height)
	}
	return "The beginning, close up", "Nothing became final among the marks that were kept; these are the first of them."
}

// steps tell how a fork came about, as far as the marks show.
func (s *scene) steps(r *sim.Result, lying map[int]bool) (steps []string) {
	if len(s.branches) != 2 {
		return nil
	}
	a, b := s.branches[0], s.branches[1]
	for i, br := range s.branches {
		from, to := s.who(i, "propose")
		if len(from) == 0 {
			continue
		}
		who := nodes(from) + " send"
		if len(from) == 1 {
			who = nodes(from) + " proposes"
			if lying[from[0]] {
				who = nodes(from) + ", which lies, proposes"
			}
		}
		steps = append(steps, fmt.Sprintf("%s block %s (%s) in view %s to %s.", who, br.name, br.block, br.view, nodes(to)))
	}
	forA, forB := s.signers(0), s.signers(1)
	if len(forA) > 0 && len(forB) > 0 {
		text := fmt.Sprintf("Ballots for A come from %s; ballots for B come from %s.", nodes(forA), nodes(forB))
		var both []int
		for _, n := range forA {
			if slices.Contains(forB, n) {
				both = append(both, n)
			}
		}
		if len(both) > 0 {
			text += fmt.Sprintf(" %s signed for both.", nodes(both))
		}
		steps = append(steps, text)
	}
	other := fmt.Sprintf("n%d makes B final at the same height. Neither can see that the other did.", b.first.Node)
	if a.first.Node == b.first.Node {
		other = "B is final there too, at the same height."
		if slices.ContainsFunc(r.Scenario.Roles, func(c scenario.Role) bool {
			return slices.Contains(c.Attacks, "fork") || slices.Contains(c.Attacks, "twins")
		}) {
			other = "B is final there too, at the same height: it runs twice on one key."
		}
	}
	steps = append(steps,
		fmt.Sprintf("%s after the start, n%d has the weight for A and makes it final at height %d.", exact(a.first.At), a.first.Node, s.height),
		fmt.Sprintf("%s later, %s", brief(b.first.At-a.first.At), other))
	if r.Faulty > r.Budget {
		last := beyond(r)
		if len(r.Proven) > 0 {
			last += fmt.Sprintf(" The ballots on hand prove %s at fault.", nodes(r.Proven))
		}
		steps = append(steps, last)
	}
	return steps
}
