package model

// An anchor that lost what it had on record, in whole or in part, starts again and listens (P9). What the others hold
// that answer it is an assumption of the model (docs/decisions/0015-listen-before-signing.md): every vote that it
// forgot is held, or its view was left, by honest anchors of whom each quorum includes one. Where nobody may lie, views
// protect nothing, and all that it forgot above what is final must be held.
//
// An anchor that is reminded of such a vote is silent for the epoch, so that nothing follows; one step stands for all
// from the loss to the end of the listening, as nothing is signed between.

// restart visits the states in which the first anchor lost some of its record, listened, and may sign again.
func (w *world) restart(s state, c *certs, visit func(state)) {
	a := s.anchors[0]
	if w.noListening {
		each(a.votes, func(record votes) {
			t := s
			t.anchors[0] = anchor{votes: a.votes, record: record}
			visit(t)
		})
		return
	}
	for n := range w.epochs {
		if w.epochs[n].honest[0] > 0 && w.begun(&s, c, n) {
			for others := uint(0); others < 1<<w.honest; others += 2 {
				w.listen(s, n, others, visit)
			}
		}
	}
}

// listen visits the states in which the first anchor lost some of its record and may sign again, having listened to
// some others of an epoch, by the bits of their numbers.
func (w *world) listen(s state, n int, others uint, visit func(state)) {
	a, e := s.anchors[0], &w.epochs[n]
	since, floor, quorum, ok := w.heard(&s, n, others)
	if !ok || !quorum && !w.noQuorum {
		return
	}
	asked := a.votes.from(since)
	if w.oneRound {
		asked = a.votes.from(floor)
	}
	if n < len(w.epochs)-1 {
		asked &^= asked.from(e.to + 1)
	}
	each(asked, func(record votes) {
		if record != asked && quorum && !w.deaf {
			return // somebody of a quorum reminds it
		}
		b := anchor{votes: a.votes, record: record, floor: uint8(floor)}
		b.since = uint8(max(since, b.position(w, n)))
		if int(b.since) <= e.to {
			t := s
			t.anchors[0] = b
			visit(t)
		}
	})
}

// heard is the view that an anchor is in that listened to some others, what is closed for it then, and whether they are
// a quorum with it and with all liars. If one of them is in a later epoch, it goes on there: ok is false.
func (w *world) heard(s *state, n int, others uint) (since, floor int, quorum, ok bool) {
	e := &w.epochs[n]
	since, floor = e.from, e.from
	weight := e.liars + e.honest[0]
	for j := 1; j < w.honest; j++ {
		if others>>j&1 == 0 {
			continue
		}
		x := s.anchors[j]
		if e.honest[j] == 0 || int(x.floor) > e.to {
			return 0, 0, false, false
		}
		weight += e.honest[j]
		if !w.oneRound { // where views may end by time, votes do not bring it to the same view at once
			since = max(since, x.position(w, n))
		}
		floor = max(floor, int(x.floor))
	}
	return since, floor, weight >= e.notarize && weight >= e.finalize, true
}

// each calls use with every part of some votes.
func each(all votes, use func(votes)) {
	for part := all; ; part = (part - 1) & all {
		use(part)
		if part == 0 {
			return
		}
	}
}
