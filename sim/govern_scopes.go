package sim

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/sim/scenario"
	"github.com/aweigh/aweigh/trust"
)

// delegateAgain is how long the anchors that found a scope wait before they ask
// again: the prefix may belong to another scope by then.
const delegateAgain = 2 * time.Second

// delegate makes the anchors of the scope that has a prefix hand it to a scope of
// its own, and asks again until that is founded. nth counts the scopes that the prefix had before.
func (w *World) delegate(m scenario.Motion, nth int) {
	from := w.governing(m.Prefix)
	if !w.firing || len(w.foundedFor(m.Prefix)) > nth {
		return
	}
	if string(from.Genesis.Prefix()) == m.Prefix { // it has to come home first
		w.at(delegateAgain, func() { w.delegate(m, nth) })
		return
	}
	by := from.sitting()
	if len(m.By) > 0 {
		by = nil
		for _, i := range m.By {
			by = append(by, from.Nodes[i])
		}
	}
	w.say("a scope for %q is asked for", m.Prefix)
	from.carry(scope.Decision{Kind: scope.Delegate, Child: w.descendant(m)}, by)
	w.at(delegateAgain, func() { w.delegate(m, nth) })
}

// descendant is the scope that a motion founds.
func (w *World) descendant(m scenario.Motion) *scope.Child {
	n := w.Scenario.Network
	name := m.Mode
	if name == "" {
		name = n.Mode
	}
	p := scope.OpenPolicy(modeNamed(name))
	p.Limits.Anchors = max(p.Limits.Anchors, n.Anchors)
	p.Limits.TTL = w.Genesis.Policy.Limits.TTL
	p.Trust.Whole, p.Trust.Judged, p.Trust.Reversal = uint32(n.Whole), uint32(n.Judged), uint32(n.Reversal)
	p.EpochBlocks, p.EpochTime = uint64(n.EpochBlocks), n.EpochTime
	p.Topology, p.Children.Notice = w.Genesis.Policy.Topology, n.Notice
	c := &scope.Child{Prefix: []byte(m.Prefix), Name: m.Prefix, Policy: p}
	for _, o := range w.Nodes {
		if o.Face != 0 || o.key == nil || len(m.Anchors) > 0 && !slices.Contains(m.Anchors, o.Index) || len(m.Anchors) == 0 && o.Index >= n.Anchors {
			continue
		}
		c.Anchors = append(c.Anchors, scope.Anchor{
			Name: fmt.Sprintf("n%d", o.Index), Key: o.key.Public(), Peer: string(o.Peer), Score: trust.Score(n.Trust[o.Index%len(n.Trust)]),
		})
	}
	slices.SortFunc(c.Anchors, func(a, b scope.Anchor) int {
		x, y := a.Key.ID(), b.Key.ID()
		return bytes.Compare(x[:], y[:])
	})
	return c
}

// modeNamed is a mode of a scenario that was checked.
func modeNamed(name string) quorum.Mode {
	mode, err := quorum.ParseMode(name)
	must.OK(err, "a mode that was checked")
	return mode
}
