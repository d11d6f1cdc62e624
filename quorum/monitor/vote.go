package monitor

import (
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
)

// Vote counts a vote, and returns which rule forbids it, nil if none does. A vote may come more than once. For a
// block that has no proposal yet, P12 is checked when the vote comes again.
func (e *Epoch) Vote(a aweigh.AnchorID, s quorum.Subject) error {
	seat, ok := e.weights.Seat(a)
	if !ok || !s.Valid() || e.anchors[seat].lies {
		return nil
	}
	if e.has(seat, s) {
		return e.placed(s)
	}
	err := e.may(seat, s)
	e.count(seat, s)
	return err
}

// May reports which rule forbids a vote that an anchor has not cast.
func (e *Epoch) May(a aweigh.AnchorID, s quorum.Subject) error {
	seat, ok := e.weights.Seat(a)
	if !ok {
		return fmt.Errorf("it has no seat (P1)")
	}
	return e.may(seat, s)
}

func (e *Epoch) may(seat int, s quorum.Subject) error {
	x, v := &e.anchors[seat], s.View
	var c cast
	if old := e.views[v]; old != nil {
		c = old.cast[seat]
	}
	forgone := e.oneRound && s.Kind == quorum.Nullify // views below its own, left without a vote
	switch {
	case x.left:
		return fmt.Errorf("it is in a later epoch (P25)")
	case !e.begun():
		return fmt.Errorf("the epoch before has no final end (P25)")
	case x.listens:
		return fmt.Errorf("it has not listened since it started (P9)")
	case v < x.floor:
		return fmt.Errorf("it closed the views below %d", x.floor)
	case v < x.since && !forgone:
		return fmt.Errorf("it was in view %d when it had listened (P9)", x.since)
	case s.Kind == quorum.Nullify && c.finalized != 0, s.Kind == quorum.Finalize && c.nullified:
		return fmt.Errorf("it nullified and finalized one view (P7)")
	case s.Kind == quorum.Finalize && c.finalized != 0, s.Kind == quorum.Notarize && c.notarized != 0:
		return fmt.Errorf("it voted for another block of the view (P7)")
	case s.Kind == e.rules.Mode.Attends() && e.final(s.Block) && !c.nullified: // which changes nothing (P27)
		return nil
	case s.Kind == quorum.Nullify && e.rules.Mode == quorum.Fast && s.Block != e.named(seat, v):
		return fmt.Errorf("it notarized another block of the view than its ballot to nullify names (P57)")
	case s.Kind == quorum.Finalize && !e.oneRound:
		if !e.certified(quorum.Notarize, v, s.Block) {
			return fmt.Errorf("the block is not notarized (P14)")
		}
		return nil
	case s.Kind == quorum.Notarize && e.oneRound:
		return fmt.Errorf("mode crash has no such vote")
	case v < x.at && !forgone:
		return fmt.Errorf("it is in view %d already", x.at)
	case c.nullified:
		return fmt.Errorf("it gave the view up before (P13)")
	case v > 1 && !e.ended(v-1):
		return fmt.Errorf("view %d has not ended (P11)", v-1)
	}
	return e.placed(s)
}

// placed reports what is wrong with the place of the block that a vote vouches for: its parent is certified, and all
// views between are nullified (P12). A block without a proposal passes.
func (e *Epoch) placed(s quorum.Subject) error {
	b := e.blocks[s.Block]
	if s.Kind != e.rules.Mode.Vouch() || b == nil || b.linked || b.final {
		return nil
	}
	from := aweigh.View(0)
	if b.parent != e.root {
		parent := e.blocks[b.parent]
		if parent == nil || !e.oneRound && !e.certified(quorum.Notarize, parent.view, b.parent) && !e.carried(parent.view, b.parent) {
			return fmt.Errorf("the block stands on one that is not certified (P12)")
		}
		from = parent.view
	}
	if b.view != s.View {
		return fmt.Errorf("the block is of view %d (P10)", b.view)
	}
	for v := from + 1; v < s.View; v++ {
		if !e.passed(v) {
			return fmt.Errorf("the block passes over view %d, which is not nullified (P12)", v)
		}
	}
	b.linked = true
	return nil
}

// named is what an anchor's ballot to nullify a view has to name: the block that it notarized there, or none (P57).
func (e *Epoch) named(seat int, v aweigh.View) aweigh.Hash {
	if x := e.views[v]; x != nil && x.cast[seat].notarized > 0 {
		return x.blocks[x.cast[seat].notarized-1].hash
	}
	return quorum.NoBlock
}

func (e *Epoch) has(seat int, s quorum.Subject) bool {
	x := e.views[s.View]
	if x == nil {
		return false
	}
	c := &x.cast[seat]
	switch s.Kind {
	case quorum.Notarize:
		return c.notarized > 0 && x.blocks[c.notarized-1].hash == s.Block
	case quorum.Finalize:
		return c.finalized > 0 && x.blocks[c.finalized-1].hash == s.Block
	}
	return c.nullified
}

// count adds a vote. Of two that contradict each other the first one counts.
func (e *Epoch) count(seat int, s quorum.Subject) {
	a, x, weight := &e.anchors[seat], e.in(s.View), e.weights.At(seat).Weight
	c := &x.cast[seat]
	a.at, e.top = max(a.at, s.View), max(e.top, s.View)
	if s.Kind != quorum.Notarize && !c.nullified && c.finalized == 0 {
		x.spoken.add(weight)
	}
	switch {
	case s.Kind == quorum.Nullify:
		c.nullified = true
		x.nullified.add(weight)
		switch {
		case e.rules.Mode != quorum.Fast:
		case s.Block == quorum.NoBlock:
			x.nameless += weight
		default:
			x.blocks[x.place(s.Block)-1].named += weight
		}
	case s.Kind == quorum.Notarize && c.notarized == 0:
		c.notarized = x.place(s.Block)
		x.blocks[c.notarized-1].notarized.add(weight)
		if e.decided(s.View, s.Block) {
			e.finalize(s.Block)
		}
	case s.Kind == quorum.Finalize && c.finalized == 0:
		c.finalized = x.place(s.Block)
		x.blocks[c.finalized-1].finalized.add(weight)
		if !e.oneRound {
			a.at = max(a.at, s.View+1)
		}
		if e.certified(quorum.Finalize, s.View, s.Block) {
			e.finalize(s.Block)
		}
	}
}

// finalize makes a block final, and all below it.
func (e *Epoch) finalize(hash aweigh.Hash) {
	for b := e.blocks[hash]; b != nil && !b.final; b = e.blocks[b.parent] {
		b.final = true
	}
}
