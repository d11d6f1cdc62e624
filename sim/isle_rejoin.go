package sim

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// rejoinWait is how long a member waits for the answer to a Rejoining, or for a block of the island.
const rejoinWait = 3 * time.Second

// tend lets the members bring back what the island decided once their scope decides again: the first members more
// often, and several of them at once.
func (c *isle) tend() {
	for i, p := range c.members {
		n := c.of.Nodes[p.Index]
		if !n.sees() || p.machine == nil || p.busy || n.liar != nil || c.refused[n] {
			continue
		}
		if !c.closed[n] && n.apart() > 0 && n.state().Head().Block == c.Genesis.Descent.Block {
			continue
		}
		c.closed[n] = true
		if n.apart() == 0 && c.busy[n] <= c.now && c.isle.IntN(1+2*i) == 0 {
			c.bringBack(n, p)
		}
	}
}

// record is what a node's state of the scope has on record of the island, nil if nothing.
func (c *isle) record(n *Node) *scope.IslandRecord {
	return islandOn(n, c.id)
}

func islandOn(n *Node, id aweigh.ScopeID) *scope.IslandRecord {
	all, err := n.state().Islands()
	must.OK(err, "reading the islands")
	for i := range all {
		if all[i].ID == id {
			return &all[i]
		}
	}
	return nil
}

// source is what a member can prove of the island, nil if it has no final block of it that it can.
func (c *isle) source(n, p *Node) *scope.IslandSource {
	state, h := p.state(), machine.History{Reader: p.Disk, Scope: c.id}
	final, err := h.Cover(state.Head().Height, 0)
	if errors.Is(err, machine.ErrUncovered) {
		return nil
	}
	must.OK(err, "reading a final block")
	hands, err := h.Handovers(0, 1<<10)
	must.OK(err, "reading the handovers")
	terms, _, err := machine.History{Reader: n.Disk, Scope: c.of.id}.TermsAt(c.of.Genesis, c.Genesis.Descent.Height+1)
	must.OK(err, "reading the terms of an epoch")
	return &scope.IslandSource{State: state, Genesis: c.Genesis, Terms: terms, Handovers: hands, Final: final, Block: h.Block}
}

// bringBack takes one step: mostly the next one, and now and then another.
func (c *isle) bringBack(n, p *Node) {
	r, head, rec := c.isle, p.state().Head(), c.record(n)
	if head.LineageSize == c.Genesis.Descent.Keys || rec != nil && rec.Next >= head.LineageSize {
		return
	}
	src := c.source(n, p)
	if src == nil || src.Final.Header.LineageSize < head.LineageSize { // a block more names what is new
		if c.covers[n] <= c.now {
			c.covers[n] = c.now.Add(rejoinWait)
			p.reserve(0, c.mutation(scope.Txn{}, c.isleNonce()), func(machine.Reply) { c.covers[n] = c.now })
		}
		if src == nil || r.IntN(8) > 0 {
			return
		}
	}
	re, most := src.Announcement(), 1+r.IntN(4000)
	if r.IntN(2) == 0 {
		most = c.Genesis.Policy.Limits.MutationBytes
	}
	from := c.Genesis.Descent.Keys
	switch kind := r.IntN(10); {
	case rec == nil && kind > 0 || rec != nil && kind == 1: // on record, or once more
	case kind == 2 && rec != nil: // what was taken, or comes later
		from += r.Int64N(src.Final.Header.LineageSize - from + 1)
	case rec != nil:
		if from = rec.Next; n.state().Head().Time < rec.Due && r.IntN(4) > 0 {
			return
		}
	}
	if rec == nil && from == c.Genesis.Descent.Keys && r.IntN(10) > 0 {
		from = src.Final.Header.LineageSize
	}
	if rec != nil && from == c.Genesis.Descent.Keys && rec.Next > from && r.IntN(2) == 0 {
		from = src.Final.Header.LineageSize // an announcement
	}
	if from < src.Final.Header.LineageSize {
		var err error
		if re, err = src.Next(from, most); err != nil {
			must.Hold(rec == nil || from != rec.Next, "the changes of an island from %d on: %v", from, err)
			return
		}
	}
	if r.IntN(6) == 0 {
		c.bend(n, re)
	}
	by := n
	if o := c.of.Nodes[r.IntN(len(c.of.Nodes))]; r.IntN(12) == 0 && o.machine != nil && o.liar == nil { // it has heard of it
		by = o
	}
	m := c.rejoining(re)
	m.Author = by.author.Public().ID() // or it is foreseen to be denied, at no cost
	_, reserve, err := by.state().Foresee(m, by.state().Head().Time)
	if err != nil { // Sign says why
		reserve = 0
	}
	b, err := scope.SignReserving(reserve, by.author, c.of.Genesis.Policy.Limits, m)
	if err != nil { // from lies within a mutation
		c.of.holds(Islands, n, rec == nil || from != rec.Next, "what comes next of an island, from entry %d on, is refused: %v", from, err)
		return
	}
	c.busy[n] = c.now.Add(rejoinWait)
	again := c.isle.IntN(10) == 0
	by.propose(machine.Submit{Bundle: b}, func(r machine.Reply) {
		if c.busy[n] = c.now; r.Outcome != nil {
			for _, why := range []error{scope.ErrIslandForked, scope.ErrIslandOld} {
				c.refused[n] = c.refused[n] || r.Outcome.Reason == scope.Reason(why)
			}
			c.of.log(by, "rejoin", "island %d from %d, %d changes: %s %s", c.number, from, len(re.Changes), r.Outcome.Code, r.Outcome.Reason)
		}
		if again && by.machine != nil {
			by.soon(machine.Submit{Bundle: b})
		}
	})
}

// rejoining is a mutation of the scope that brings something of the island back.
func (c *isle) rejoining(re scope.Rejoining) scope.Mutation {
	return c.of.bringing(re)
}

// bend changes a Rejoining, as a member may that lies. No node takes the result.
func (c *isle) bend(n *Node, whole scope.Rejoining) {
	var re scope.Rejoining
	must.OK(canon.Decode(canon.Encode(whole), &re), "copying a Rejoining")
	last := len(re.Changes) - 1
	what := ""
	switch k := c.isle.IntN(8); {
	case k == 0:
		what, re.Final.Header.LineageSize = "a longer lineage", re.Final.Header.LineageSize+1
	case k == 1 && len(re.Final.Certificate.Signatures) > 1:
		s := re.Final.Certificate.Signatures
		what, s[0].Bytes = "another signature", s[1].Bytes
	case k == 2:
		what, re.Final.Certificate.Signatures = "no signatures", nil
	case k == 3 && last >= 0 && bytes.HasPrefix(re.Changes[0].Value.Value, []byte(provisionalMark)):
		what, re.Changes[0].Value.Value = "another value", []byte("bent")
	case k == 4 && last > 0:
		what, re.Changes = "no last change", re.Changes[:last]
		if len(re.After) == 0 && re.Changes[last-1].Entry.Mutation != whole.Changes[last].Entry.Mutation { // the end is missing
			re.After = nil
		}
	case k == 5 && last >= 0:
		what, re.Bundles = "no bundle", nil
	case k == 6 && len(re.After) > 0:
		what, re.After = "no end", nil
	case k == 7 && last >= 0:
		what, re.Changes[0].Entry.Key = "another key", fmt.Appendf(nil, "%sbent", c.prefix)
	default:
		return
	}
	_, err := scope.Sign(n.author, c.of.Genesis.Policy.Limits, c.rejoining(re))
	c.of.holds(Islands, n, errors.Is(err, scope.ErrInvalid), "a Rejoining with %s is taken: %v", what, err)
	c.of.watch.reach("forged island")
}

// provable is how many entries of its lineage honest members of the island can show now.
func (c *isle) provable() (size int64) {
	if c.watch.lost {
		return 0
	}
	for _, p := range c.members {
		n := c.of.Nodes[p.Index]
		if n.excused() || !n.sees() || p.machine == nil || !n.seats(n) {
			continue
		}
		if src := c.source(n, p); src != nil {
			size = max(size, src.Final.Header.LineageSize)
		}
	}
	return size
}

// tooOld reports whether the record of a node's state is full of islands that are newer.
func (c *isle) tooOld(n *Node) bool {
	all, err := n.state().Islands()
	must.OK(err, "reading the islands")
	return len(all) >= n.state().Bounds().Islands && !slices.ContainsFunc(all, func(o scope.IslandRecord) bool {
		return cmp.Or(cmp.Compare(o.Height, c.Genesis.Descent.Height), bytes.Compare(o.ID[:], c.id[:])) < 0
	})
}

// awaited says what of an island the scope has not taken yet, "" if nothing. Where the scope's time has run ahead, it
// passes by a little with each block, and other islands have that long to come on record.
func (w *World) awaited() string {
	if x := &w.watch.time; x.block > w.now.Add(x.lead+time.Second) {
		return ""
	}
	return w.untaken()
}

// untaken is awaited, however long it may take.
func (w *World) untaken() string {
	if w.number > 0 {
		return ""
	}
	for _, c := range w.isles.all {
		size := c.provable()
		if size <= c.Genesis.Descent.Keys {
			continue
		}
		_, best := w.held()
		if rec := c.record(best); rec == nil && !c.tooOld(best) || rec != nil && rec.Next < size {
			return fmt.Sprintf("the scope lacks what island %d decided: %d entries can be shown, and on record is %+v", c.number, size, rec)
		}
	}
	return ""
}
