package node

import (
	"context"
	"time"

	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// submission is one mutation on its way into the next bundle.
type submission struct {
	ctx      context.Context // of the client that waits
	mutation scope.Mutation
	reserve  int64              // units of cost; see scope.Bundle
	alone    bool               // in a bundle of its own: its cost has been misjudged before
	done     chan machine.Reply // buffered
	again    bool               // it was denied by a state that may have been old
}

// gathering holds what clients submitted and no bundle has yet. Mutations that are signed, sent, verified and recorded
// together cost little more than a single one, so under load bundles should be large and few; but a mutation that
// comes alone should not wait.
//
// Clients that wait for an answer before they send the next mutation come back together, but not at one instant. So a
// bundle waits while mutations of this node are under way, at most for lingerMost; and then, for as long as the last
// block took, until nearly as many mutations have come as recently waited at a time.
type gathering struct {
	held      []*submission
	since     time.Time // when the first of them came
	idleSince time.Time // since when nothing is under way
	crowd     int       // clients that wait at a time: the highest number seen, which decays
}

// lingerMost bounds how long a mutation waits to be signed.
const lingerMost = 50 * time.Millisecond

func (g *gathering) add(s *submission) {
	if len(g.held) == 0 {
		g.since = time.Now()
	}
	g.held = append(g.held, s)
}

// drain takes what waits already.
func (g *gathering) drain(submits <-chan *submission) {
	for len(g.held) < maxBatch {
		select {
		case s := <-submits:
			g.add(s)
		default:
			return
		}
	}
}

// ripe reports whether it is time to sign what is held.
func (g *gathering) ripe(m *machine.Machine) bool {
	wait, ok := g.due(m)
	return ok && wait <= 0
}

// due returns how long what is held may wait if nothing else happens; ok is false if nothing is held.
func (g *gathering) due(m *machine.Machine) (wait time.Duration, ok bool) {
	switch n := len(g.held); {
	case n == 0:
		return 0, false
	case n >= maxBatch:
		return 0, true
	case m.Unproposed() || m.Flying() > 0:
		g.crowd = max(g.crowd, n+m.Flying())
		g.idleSince = time.Time{}
		return lingerMost - time.Since(g.since), true
	case 8*n < 7*g.crowd:
		if g.idleSince.IsZero() {
			g.idleSince = time.Now()
		}
		return m.Cycle() - time.Since(g.idleSince), true
	}
	return 0, true
}

func (g *gathering) take() []*submission {
	held := g.held
	g.idleSince = time.Time{}
	g.held, g.crowd = nil, max(len(held), g.crowd-(g.crowd+7)/8)
	return held
}

// bundleShare bounds what the mutations of one bundle reserve together to one part in bundleShare of a block's cost,
// so that one misjudged mutation does not delay many.
const bundleShare = 8

// bundle signs submissions together, in as few bundles as the limits allow.
func (r *runner) bundle(held []*submission) (events []machine.Event) {
	limits := r.epochs.checker().Limits
	for len(held) > 0 {
		n, size, cost := 0, 0, int64(0)
		for n < len(held) && n < limits.BlockMutations {
			s := held[n]
			size += len(s.mutation.Content) + 256
			cost += s.reserve
			if n > 0 && (size > limits.BundleBytes/2 || cost > limits.BlockCost/bundleShare || s.alone) {
				break
			}
			if n++; s.alone {
				break
			}
		}
		events = append(events, r.sign(held[:n])...)
		held = held[n:]
	}
	return events
}

// permitted divides the submissions of a bundle into those that the epoch may permit and those that it denies. These
// get bundles of their own: anchors may refuse a bundle for them (scope.Epoch.Admits).
func permitted(e *scope.Epoch, b *scope.CheckedBundle, held []*submission) (may, denied []*submission) {
	if !e.ForbidsAny(b) {
		return held, nil
	}
	for i, s := range held {
		if e.Forbids(&b.Mutations()[i]) != nil {
			denied = append(denied, s)
		} else {
			may = append(may, s)
		}
	}
	return may, denied
}

// sign makes one bundle of submissions. If one of them is bad, each gets a bundle of its own, so that it does not
// spoil the others.
func (r *runner) sign(held []*submission) (events []machine.Event) {
	mutations, reserve := make([]scope.Mutation, len(held)), int64(0)
	for i, s := range held {
		mutations[i] = s.mutation
		reserve += s.reserve
	}
	b, err := scope.SignReserving(reserve, r.key, r.epochs.checker().Limits, mutations...)
	if err == nil && len(held) > 1 {
		if may, denied := permitted(r.epochs.epoch(), b, held); len(denied) > 0 {
			if len(may) > 0 {
				events = r.sign(may)
			}
			for i := range denied {
				events = append(events, r.sign(denied[i:i+1])...)
			}
			return events
		}
	}
	switch {
	case err == nil:
		for i, s := range held {
			r.replies.expect(s.ctx, b.ID(), b.Mutations()[i].ID, s.done)
		}
		r.counts.bundles.Add(1)
		r.counts.mutations.Add(uint64(len(held)))
		return []machine.Event{machine.Submit{Bundle: b}}
	case len(held) == 1:
		held[0].done <- machine.Reply{Refused: err}
		return nil
	}
	for i := range held {
		events = append(events, r.sign(held[i:i+1])...)
	}
	return events
}
