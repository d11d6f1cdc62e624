package report

import "slices"

// order puts the nodes that made A final above the liars, and those that made B
// final below; all others come last. Beyond most nodes, it keeps the important
// ones: the node of the breach, the first ones, the proposers.
func (s *scene) order(all []int, lying map[int]bool, most int) []int {
	if len(all) <= most+2 && len(s.branches) < 2 {
		return all
	}
	groups := make([][]int, 4)
	for _, n := range s.ranked(all) {
		at := 3
		switch {
		case lying[n]:
			at = 1
		case s.seals(0, n):
			at = 0
		case s.seals(1, n):
			at = 2
		}
		groups[at] = append(groups[at], n)
	}
	if len(all) > most+2 {
		for range len(all) - most {
			longest := 0
			for i, g := range groups {
				if len(g) >= len(groups[longest]) || i == 3 && len(s.branches) == 2 && len(g) > 1 {
					longest = i
				}
			}
			groups[longest] = groups[longest][:len(groups[longest])-1]
		}
	}
	for _, g := range groups {
		slices.Sort(g)
	}
	return slices.Concat(groups...)
}

// ranked are the nodes, the most important first.
func (s *scene) ranked(all []int) (ranked []int) {
	add := func(n int) {
		if !slices.Contains(ranked, n) && slices.Contains(all, n) {
			ranked = append(ranked, n)
		}
	}
	if s.breach != nil {
		add(s.breach.Node)
	}
	for _, b := range s.branches {
		add(b.first.Node)
	}
	for i := range s.branches {
		from, _ := s.who(i, "propose")
		for _, n := range from {
			add(n)
		}
	}
	for _, m := range s.marks { // then those with a mark here
		if m.Kind == "final" || m.Kind == "lie" || m.Kind == "nullified" {
			add(m.Node)
		}
	}
	for _, n := range all {
		add(n)
	}
	return ranked
}

// seals reports whether a node made the block of a branch final.
func (s *scene) seals(branch, node int) bool {
	return branch < len(s.branches) && slices.Contains(s.branches[branch].sealers, node)
}

// who returns the senders and the receivers of messages of a kind for a branch.
func (s *scene) who(branch int, kind string) (from, to []int) {
	for _, m := range s.marks {
		if k, _ := ballot(m); k == kind && s.about(m) == branch {
			from, to = append(from, m.From), append(to, m.Node)
		}
	}
	return set(from), set(to)
}

// signers are those whose ballots for a branch were seen.
func (s *scene) signers(branch int) []int {
	n, _ := s.who(branch, "notarize")
	f, _ := s.who(branch, "finalize")
	return set(append(n, f...))
}

func set(numbers []int) []int {
	slices.Sort(numbers)
	return slices.Compact(numbers)
}
