package model

import "github.com/aweigh/aweigh/quorum"

// epoch is the voters of one epoch, with their thresholds.
type epoch struct {
	honest                      []uint64 // weights; 0: the anchor has no seat
	liars                       uint64   // the weight of all liars together
	from, to                    int      // its views
	notarize, nullify, finalize uint64   // thresholds
	fast                        quorum.FastBounds
	lightest                    uint64 // the weight of the lightest liar; 0: none lies
}

// world is the constant part of a run: the weights, and the rules, whole or
// broken.
type world struct {
	epochs  []epoch
	islands int // how many of the epochs, the last ones, are islands
	honest  int // anchors
	views   int // of all epochs together

	oneRound bool // anchors finalize proposals, as in mode crash
	fast     bool // one round may decide, although anchors lie
	named    bool // anchors are told apart by name: none stands for others alike
	closes   bool // anchors close views below one that gave a block
	attends  bool // anchors sign final blocks as well, in views that they left (P27)
	forgets  bool // the first anchor may lose its record, any part of it, any number of times (P9)

	broken
}

// broken are the rules that do not hold.
type broken struct {
	noExclusion bool // an anchor may both nullify and finalize a view
	twoBlocks   bool // leaders of one round propose twice
	noSkipProof bool // the views between a block and its parent need no nullification

	signsClosed bool // an anchor votes in views that it closed, whose votes it forgot

	noListening bool // an anchor that starts again signs at once
	deaf        bool // an anchor that is reminded of votes that it forgot signs all the same
	noQuorum    bool // it listens to any anchors, however few
	noSince     bool // and votes in views before the one that it is in then
	listensOnce bool // having listened in one epoch, it does not in the next

	nameless     bool // mode fast: ballots pass a view over, whatever they name
	leaderTwice  bool // a leader that lied may have voted for a block as well
	limitLess    bool // ballots may be passed over that weigh one less than is safe
	lightFinal   bool // a block is final by one less
	lateNotarize bool // an anchor notarizes after it nullified
	nowhere      bool // a block is carried that stands nowhere

	notFinal   bool // an epoch begins where the last block of the one before is not final
	applied    bool // what stands above the last block of an epoch is applied
	mixed      bool // votes of one epoch count in another
	oldWeights bool // an anchor without the new weights counts by those of the epoch before

	noDomain      bool // ballots of one scope count in another, if they name no block
	foreignProofs bool // and so do certificates
	takesIslands  bool // what is final in an island is applied in the scope
}

// newWorld takes the thresholds from the rules, as the engine does.
func newWorld(r quorum.Rules, honest []uint64, liars uint64, views int) world {
	w := world{honest: len(honest), oneRound: r.Mode == quorum.Crash, fast: r.Mode == quorum.Fast}
	return w.then(r, honest, liars, views)
}

// then adds one more epoch.
func (w world) then(r quorum.Rules, honest []uint64, liars uint64, views int) world {
	total := liars + sum(honest)
	w.epochs = append(w.epochs[:len(w.epochs):len(w.epochs)], epoch{
		honest: honest, liars: liars, from: w.views + 1, to: w.views + views,
		notarize: r.Notarize.Threshold(total), nullify: r.Nullify.Threshold(total), finalize: r.Finalize.Threshold(total),
		fast: r.FastBounds(weights(honest, liars)), lightest: liars,
	})
	w.views += views
	return w
}

// of is the number of the epoch of a view.
func (w *world) of(v int) int {
	for e := range w.epochs {
		if v <= w.epochs[e].to {
			return e
		}
	}
	return len(w.epochs) - 1
}

// alike reports whether two anchors differ by name alone.
func (w *world) alike(i, j int) bool {
	for e := range w.epochs {
		if w.epochs[e].honest[i] != w.epochs[e].honest[j] {
			return false
		}
	}
	return !w.named && (!w.forgets || i > 0)
}

// ends reports whether a block ends its epoch: the first one does. What stands above is empty, and is never applied
// (P25).
func (w *world) ends(s *state, b block) bool {
	if b <= root || w.of(b.view()) >= w.last() {
		return false
	}
	return s.parents[b] == root || w.of(s.parents[b].view()) != w.of(b.view())
}

// certs states which certificates the votes of a state can make.
type certs struct {
	notarized, finalized [2*maxViews + 2]bool
	nullified            [maxViews + 1]bool
	carried              [2*maxViews + 2]bool // of mode fast: nullify ballots let the next block stand on it (P58)
	divided              [maxViews + 1]bool   // of one round: the remaining anchors may have voted
	final                [2*maxViews + 2]bool
}

func (w *world) certs(s *state) (c certs) {
	for v := 1; v <= w.views; v++ {
		e := w.of(v)
		w.count(s, v, &w.epochs[e], &c)
		if w.oldWeights && e > 0 {
			old := w.epochs[e-1]
			old.from = w.epochs[e].from
			w.count(s, v, &old, &c)
		}
		w.settle(s, v, &c) // what the ballots of a later epoch may carry stands on it
	}
	if w.foreignProofs {
		w.share(&c)
	}
	for v := 1; v <= w.views; v++ {
		w.settle(s, v, &c)
	}
	return c
}

// settle notes what is final by the finalizations of a view.
func (w *world) settle(s *state, v int, c *certs) {
	for b := block(2 * v); b <= block(2*v+1); b++ {
		for a := b; c.finalized[b] && a > root && w.of(a.view()) == w.of(v); a = s.parents[a] {
			c.final[a] = true
		}
	}
}

// count adds the certificates of a view, by the weights and thresholds of an epoch.
func (w *world) count(s *state, v int, e *epoch, c *certs) {
	if w.fast {
		w.countFast(s, v, e, c)
		return
	}
	var n, f [2]uint64
	nulls, voted := e.liars, e.liars
	for i, x := range e.honest {
		at := s.anchors[i].votes
		null := at.nullified(v) || w.noDomain && w.elsewhere(at, v) || w.mixed && w.of(v) > 0 && at.nullified(w.epochs[w.of(v)-1].from+v-e.from)
		if null {
			nulls += x
		}
		if null || at.finalized(v) != 0 {
			voted += x
		}
		for k := range n {
			if b := block(2*v + k); at.notarizes(b) {
				n[k] += x
			}
			if b := block(2*v + k); at.finalizes(b) {
				f[k] += x
			}
		}
	}
	c.nullified[v] = c.nullified[v] || nulls >= e.nullify
	c.divided[v] = c.divided[v] || w.oneRound && voted >= e.nullify && voted >= e.finalize
	for k := range n {
		if b := 2*v + k; s.parents[b] != 0 {
			c.notarized[b] = c.notarized[b] || n[k]+e.liars >= e.notarize
			c.finalized[b] = c.finalized[b] || f[k]+e.liars >= e.finalize
		}
	}
}

// ended reports whether a view can be left (P11).
func (c *certs) ended(v int) bool {
	return c.nullified[v] || c.notarized[2*v] || c.notarized[2*v+1] || c.divided[v] || c.carried[2*v] || c.carried[2*v+1]
}

// entered reports whether an anchor can be in a view: the one before was left, or the epoch begins.
func (w *world) entered(s *state, c *certs, v int) bool {
	e := w.of(v)
	return v > w.epochs[e].from && c.ended(v-1) || v == w.epochs[e].from && w.begun(s, c, e)
}

// begun reports whether an anchor can be in an epoch: it holds the finality of the last block of the one before
// (P25).
func (w *world) begun(s *state, c *certs, e int) bool {
	for b := root; b <= block(2*w.views+1); b++ {
		if w.begins(s, c, e, b) {
			return true
		}
	}
	return false
}

// begins reports whether an epoch begins with a block.
func (w *world) begins(s *state, c *certs, e int, b block) bool {
	if first := e == 0 || e > w.last(); first || b == root {
		return first && b == root
	}
	final := c.final[b] || w.notFinal && s.parents[b] != 0 && (c.notarized[b] || w.oneRound)
	return final && w.of(b.view()) == e-1 && w.ends(s, b)
}

// forked reports whether two blocks that are applied stand on different branches.
func (w *world) forked(s *state, c *certs) bool {
	for x := block(2); x <= block(2*w.views+1); x++ {
		for y := x + 1; y <= block(2*w.views+1) && c.finalized[x]; y++ {
			if !c.finalized[y] || !w.oneScope(x, y) {
				continue
			}
			if a, b := w.tip(s, x), w.tip(s, y); !s.descends(b, a) && !s.descends(a, b) {
				return true
			}
		}
	}
	return false
}

// tip is the last block that is applied when one is final.
func (w *world) tip(s *state, b block) block {
	for w.of(b.view()) < w.last() && !w.ends(s, b) && !w.applied {
		b = s.parents[b]
	}
	return b
}

// contradicted reports whether certificates of one view contradict each other, at which engines stop (lemma 1).
func (w *world) contradicted(_ *state, c *certs) bool {
	for v := 1; v <= w.views; v++ {
		a, b := 2*v, 2*v+1
		blocks := c.notarized[a] && c.notarized[b] && !w.oneRound || c.finalized[a] && c.finalized[b]
		if blocks || c.nullified[v] && (c.finalized[a] || c.finalized[b]) {
			return true
		}
	}
	return false
}

// linked reports whether P12 allows b on a parent.
func (w *world) linked(s *state, c *certs, b, parent block) bool {
	e, above := w.of(b.view()), parent.view()
	switch {
	case w.begins(s, c, e, parent):
		above = w.epochs[e].from - 1
	case parent == root || w.of(above) != e || !c.notarized[parent] && !c.carried[parent] && !w.oneRound:
		return false
	}
	for v := above + 1; v < b.view() && !w.noSkipProof; v++ {
		if !c.nullified[v] {
			return false
		}
	}
	return true
}

// may reports whether an anchor may vote in a view at all, or nullify it.
func (w *world) may(i int, a anchor, v int, nullify bool) bool {
	e := w.of(v)
	if w.epochs[e].honest[i] == 0 || v < int(a.floor) && !w.signsClosed {
		return false
	}
	if a.since == 0 { // it never forgot
		return true
	}
	if e > w.of(int(a.since)) && !w.listensOnce {
		return false
	}
	return v >= int(a.since) || w.noSince || w.oneRound && nullify
}

// closed is an anchor that closed the views below one, and forgot its votes there.
func (a anchor) closed(v int) anchor {
	if v > int(a.floor) {
		a.floor = uint8(v)
		a.record = a.record.from(v)
	}
	return a
}

// next calls visit with every state that one more step leads to.
func (w *world) next(s state, c *certs, visit func(state)) {
	for i := range w.honest {
		if i > 0 && w.alike(i-1, i) && s.anchors[i] == s.anchors[i-1] {
			continue // the same by another name
		}
		for e := range w.epochs {
			w.votes(s, c, i, e, visit)
		}
		if w.closes {
			w.close(s, c, i, visit)
		}
		if w.forgets && i == 0 {
			w.restart(s, c, visit)
		}
	}
	if w.fast {
		w.madeUp(s, c, visit)
	}
}

// votes visits the states in which an anchor cast one more vote in an epoch.
func (w *world) votes(s state, c *certs, i, e int, visit func(state)) {
	a := s.anchors[i]
	cast := func(t state, x votes) {
		b := a
		if e > 0 && e <= w.last() {
			b = b.closed(w.epochs[e].from) // it is in this epoch now
		}
		t.anchors[i] = b.vote(x)
		visit(t)
	}
	x, at := a.record, a.position(w, e)
	for v := w.epochs[e].from; v < at && w.oneRound; v++ {
		if !x.nullified(v) && (x.finalized(v) == 0 || w.noExclusion) && w.may(i, a, v, true) {
			cast(s, votes(0).nullify(v)) // left without a vote
		}
	}
	for v := at; v <= w.epochs[e].to && w.entered(&s, c, v); v++ {
		if x.nullified(v) && !(w.oneRound && w.noExclusion) && !w.lateNotarize || !w.may(i, a, v, false) {
			continue
		}
		if (x.finalized(v) == 0 || w.noExclusion) && !x.nullified(v) {
			cast(s, w.ballot(x, v)) // P15
		}
		if w.oneRound && x.finalized(v) == 0 {
			w.propose(s, c, v, func(t state, b block) { cast(t, votes(0).finalize(b)) }) // P13
		}
		if !w.oneRound && x.notarized(v) == 0 {
			w.propose(s, c, v, func(t state, b block) { cast(t, votes(0).notarize(b)) }) // P13
		}
	}
	for b := block(2 * w.epochs[e].from); w.attends && b.view() < at; b++ {
		switch v := b.view(); {
		case !c.final[b] || x.nullified(v) || !w.may(i, a, v, false):
		case w.fast && x.notarized(v) == 0:
			cast(s, votes(0).notarize(b))
		case !w.fast && x.finalized(v) == 0:
			cast(s, votes(0).finalize(b))
		}
	}
	for v := w.epochs[e].from; v <= w.epochs[e].to && !w.oneRound; v++ { // P14
		for b := block(2 * v); b <= block(2*v+1); b++ {
			if c.notarized[b] && x.finalized(v) == 0 && (!x.nullified(v) || w.noExclusion) && w.may(i, a, v, false) {
				cast(s, votes(0).finalize(b))
			}
		}
	}
}

// close visits the states in which an anchor closed the views below one that gave a block.
func (w *world) close(s state, c *certs, i int, visit func(state)) {
	for b := block(2); b <= block(2*w.views+1); b++ {
		v, floor := b.view(), int(s.anchors[i].floor)
		if (c.finalized[b] || c.notarized[b] && !w.oneRound) && v > floor {
			t := s
			t.anchors[i] = t.anchors[i].closed(v)
			visit(t)
		}
	}
}

// once reports whether the leader of a view proposes one block alone: where one round decides, an anchor that does not
// lie or forget.
func (w *world) once(v int) bool {
	return (w.oneRound || w.fast && w.epochs[w.of(v)].liars == 0) && !w.twoBlocks
}

// propose calls use with every block that may be voted for in a view: one that
// was proposed, or the next of the two on any parent.
func (w *world) propose(s state, c *certs, v int, use func(state, block)) {
	for b := block(2 * v); b <= block(2*v+1); b++ {
		if s.parents[b] != 0 {
			use(s, b)
			if w.once(v) {
				return
			}
			continue
		}
		for parent := root; parent < block(2*v); parent++ {
			if (parent == root || s.parents[parent] != 0) && w.linked(&s, c, b, parent) {
				t := s
				t.parents[b] = parent
				use(t, b)
			}
		}
		return // the second of two blocks only after the first: names do not matter
	}
}

// explore visits every reachable state, breadth first, until one breaks what must
// hold, or it has seen them all. It returns how many states it saw.
func (w *world) explore(breaks ...func(*state, *certs) bool) (states int, found *state) {
	seen := map[state]struct{}{{}: {}}
	for frontier := []state{{}}; len(frontier) > 0; {
		var later []state
		for _, s := range frontier {
			c := w.certs(&s)
			for _, b := range breaks {
				if b(&s, &c) {
					return len(seen), &s
				}
			}
			w.next(s, &c, func(t state) {
				t.canonical(w)
				if _, ok := seen[t]; !ok {
					seen[t] = struct{}{}
					later = append(later, t)
				}
			})
		}
		frontier = later
	}
	return len(seen), nil
}
