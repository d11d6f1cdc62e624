package sim

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/sim/scenario"
)

// homecoming is how a scope goes back to the one above. What the code of a real node around its machines does about it
// (P65) is done here.
type homecoming struct {
	closed  bool
	at      aweigh.Height // of the last block
	ordered time.Duration // when the first node heard the order, 0: there is none
	came    time.Duration // when it was home, 0: it is not
	home    bool          // the scope above has the keys again, as the first honest node knows
	height  aweigh.Height // of the block above that took them, 0: none was counted yet
	busy    map[*Node]aweigh.Instant
	brought []*scope.Bringing // steps so far
}

const (
	// homeTick is how often the nodes look whether a scope is to be brought home.
	homeTick = 200 * time.Millisecond
	// bringWait is how long a node waits for the answer to a step.
	bringWait = 3 * time.Second
	// homeAgain is how long a client waits before it asks again for a key that is on its way home.
	homeAgain = 150 * time.Millisecond
)

// foundedFor is the scopes that a prefix had so far, in the order in which they were founded.
func (w *World) foundedFor(prefix string) (all []*World) {
	for _, c := range w.scopes[1:] {
		if !c.island && string(c.Genesis.Prefix()) == prefix {
			all = append(all, c)
		}
	}
	return all
}

// fold makes the anchors of the scope above order that the nth scope of a prefix comes home, and asks again until that
// is ordered.
func (w *World) fold(m scenario.Motion, nth int) {
	if !w.firing {
		return
	}
	again := func() { w.at(delegateAgain, func() { w.fold(m, nth) }) }
	all := w.foundedFor(m.Prefix)
	if len(all) <= nth { // not founded yet
		again()
		return
	}
	c := all[nth]
	if c.homing.home || c.mustLeave() {
		return
	}
	w.say("%q shall come home, it is asked", m.Prefix)
	above := c.above()
	above.carry(scope.Folding([]byte(m.Prefix)), above.sitting())
	again()
}

// leaving reports whether the scope goes back to the one above, or has.
func (w *World) leaving() bool {
	return w.number > 0 && !w.island && (w.homing.closed || w.homing.home || w.mustLeave())
}

// mustLeave reports whether the scope above has ordered that this one comes home.
func (w *World) mustLeave() bool {
	return slices.ContainsFunc(w.above().orders, func(r *scope.Revocation) bool { return r.Folds() && w.ordered(r) })
}

// ordered reports whether an order is about this scope, and not about one that had its prefix before or has it later.
func (w *World) ordered(r *scope.Revocation) bool {
	if !bytes.Equal(r.Child.Prefix, w.Genesis.Prefix()) || r.Height <= w.Genesis.Descent.Height {
		return false
	}
	for _, c := range w.foundedFor(string(w.Genesis.Prefix())) {
		if h := c.Genesis.Descent.Height; c.Genesis.Descent.Parent == w.Genesis.Descent.Parent && h > w.Genesis.Descent.Height && h < r.Height {
			return false
		}
	}
	return true
}

// closes notes that a scope closed.
func (w *World) closes(e *scope.Epoch) {
	h := &w.homing
	h.closed, h.at = true, e.Start
	h.busy = make(map[*Node]aweigh.Instant)
	w.watch.reach("scope closed")
	if w.firing && (w.faultsActive() || w.scopes[0].faultsActive()) {
		w.watch.reach("scope closed under fire")
	}
	var tick func()
	tick = func() {
		if !h.home {
			w.bringHome(func(p *Node) bool { return p.machine.Closed() })
			w.at(homeTick, tick)
		}
	}
	w.at(homeTick, tick)
}

// returned notes which scopes came home to a node's scope, as its state has it.
func (n *Node) returned(given []scope.Delegation) {
	if !n.honest() {
		return
	}
	height := n.machine.Status().Head.Height
	for _, c := range n.world.scopes[1:] {
		gone := c.Genesis.Descent.Parent == n.world.id && !c.island && !c.homing.home && c.Genesis.Descent.Height <= height
		if !gone || slices.ContainsFunc(given, func(d scope.Delegation) bool { return d.Child == c.id }) {
			continue
		}
		c.homing.home, c.homing.came = true, n.world.Now()
		n.world.holds(Obeyed, n, c.mustLeave() && (c.homing.closed || c.watch.lost), "%q is taken back, and did not close by an order", c.Genesis.Prefix())
		n.world.log(n, "home", "%q", c.Genesis.Prefix())
		n.world.watch.reach("scope came home")
		if c.called {
			n.world.watch.reach("home by itself")
		}
		if n.world.firing && (n.world.faultsActive() || c.faultsActive()) {
			n.world.watch.reach("scope came home under fire")
		}
		if c.watch.lost {
			n.world.watch.reach("hostile scope came home")
		}
	}
}

// bringHome lets nodes of anchors of the scope above bring what this one held, or show that it is quiet, where their
// own part is that far: the first of them more often, and several at once.
func (w *World) bringHome(far func(*Node) bool) {
	above, rank := w.above(), 0
	for _, n := range above.Nodes {
		p := w.Nodes[n.Index]
		if n.machine == nil || n.busy || n.paused || n.Face != 0 || p.machine == nil || p.busy || !far(p) {
			continue
		}
		if !n.seats(n) && w.folds.IntN(40) > 0 { // its steps are refused
			continue
		}
		if p.liar != nil && p.liar.has("stubborn") && p.liar.on() && w.folds.IntN(3) == 0 {
			p.bendOne(n)
		}
		if w.homing.busy[n] <= w.now && w.folds.IntN(1+3*rank) == 0 {
			w.bringStep(n, p)
		}
		rank++
	}
}

// homingAt is how far the scope has come home in a node's state of the scope above; nil if it is not to.
func (w *World) homingAt(n *Node) *scope.Homing {
	all, err := n.state().Homings()
	must.OK(err, "reading what comes home")
	i := slices.IndexFunc(all, func(h scope.Homing) bool { return h.Child == w.id })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// bringStep takes one step: mostly the next one, and now and then another.
func (w *World) bringStep(n, p *Node) {
	h, r, state := w.homingAt(n), w.folds, p.state()
	if h == nil {
		return
	}
	src := &scope.HomeSource{State: state, Genesis: w.Genesis, Handovers: machine.History{Reader: p.Disk, Scope: w.id}.Handovers}
	kind, bent := r.IntN(14), ""
	var b *scope.Bringing
	switch {
	case kind == 0 && len(w.homing.brought) > 0: // taken already
		b = w.homing.brought[r.IntN(len(w.homing.brought))]
	case h.Closed && h.Next >= h.Parts:
		return
	default:
		at := *h
		if kind == 1 && h.Closed { // comes later, if there are so many
			at.Next = min(at.Next+1+r.Int64N(2), at.Parts-1)
		}
		most := []int{1, 2000, w.Genesis.Policy.Limits.MutationBytes / 2}[r.IntN(3)]
		if at.Closed { // a part is whole
			most = w.Genesis.Policy.Limits.MutationBytes
		}
		var err error
		b, err = src.Next(&at, most)
		if err != nil || b == nil {
			w.holds(Handover, p, err == nil, "what a scope held cannot be brought: %v", err)
			return
		}
		if kind == 2 {
			b, bent = w.bendHome(b)
		}
	}
	w.bring(n, b, bent)
}

// bring asks the scope above for a step.
func (w *World) bring(n *Node, b *scope.Bringing, bent string) {
	above := w.above()
	above.motions++
	m := scope.Mutation{
		Scope: above.id, Class: scope.Bring, Content: canon.Encode(b), Nonce: binary.BigEndian.AppendUint64(nil, above.motions), ValidUntil: above.watch.time.from(w.now).Add(time.Minute),
	}
	signed, err := scope.Sign(n.author, above.Genesis.Policy.Limits, m)
	if err != nil {
		above.holds(Handover, n, errors.Is(err, scope.ErrInvalid) && (bent != "" || w.watch.lost), "a step in which %q comes home is refused: %v", b.Prefix, err)
		w.watch.reach("bent step refused")
		return
	}
	if bent == "" {
		w.homing.brought = append(w.homing.brought, b)
	}
	w.homing.busy[n] = w.now.Add(bringWait)
	seated := n.seats(n)
	crash := w.folds.IntN(8) == 0
	n.propose(machine.Submit{Bundle: signed}, func(r machine.Reply) {
		w.homing.busy[n] = w.now
		if r.Outcome != nil {
			above.log(n, "bring", "%q, part %d of %d bytes, %d handovers%s: %s %s", b.Prefix, b.Index, len(b.Part), len(b.Handovers), bent, r.Outcome.Code, r.Outcome.Reason)
			above.holds(Handover, n, bent == "" || r.Outcome.Code != scope.Applied, "a step in which %q comes home is taken with %s", b.Prefix, bent)
		}
		if bent != "" || !seated {
			w.watch.reach("bent step refused")
		}
		if crash && w.firing && n.honest() { // in the middle
			w.at(time.Duration(w.folds.Int64N(int64(20*time.Millisecond))), func() { n.root().restartNow() })
		}
	})
}

// restartNow lets a node die, and starts it again at once.
func (n *Node) restartNow() {
	if n.world.firing && n.machine != nil {
		n.crash(n.Disk.Unsynced())
		n.Up()
	}
}

// bendHome changes a step, as a node may that lies, and says how.
func (w *World) bendHome(whole *scope.Bringing) (*scope.Bringing, string) {
	b := new(scope.Bringing)
	must.OK(canon.Decode(canon.Encode(whole), b), "copying a Bringing")
	flip := func(raw []byte) { raw[w.folds.IntN(len(raw))] ^= 1 << w.folds.IntN(8) }
	switch k := w.folds.IntN(6); {
	case len(b.Part) > 0 && k < 3:
		var items []scope.Item
		must.OK(canon.Decode(b.Part, &items), "reading a part")
		items[w.folds.IntN(len(items))].Value = []byte("bent")
		b.Part = canon.Encode(items)
		return b, "other records"
	case len(b.Part) > 0 && k == 3:
		flip(b.Part)
		return b, "a flipped bit"
	case len(b.Part) > 0:
		b.Index += 1 + int64(w.folds.IntN(3))
		return b, "another place"
	case k == 0 && len(b.Parts) > 0:
		flip(b.Parts[w.folds.IntN(len(b.Parts))][:])
		return b, "other hashes"
	case k == 1:
		if s := b.Handovers[0].Final.Certificate.Signatures; len(s) > 0 {
			s[0].Bytes = bytes.Clone(s[0].Bytes)
			flip(s[0].Bytes)
			return b, "a forged certificate"
		}
	case k == 2:
		b.Handovers[len(b.Handovers)-1].Terms.Policy.EpochBlocks++
		return b, "other terms"
	case k == 3 && len(b.Genesis) > 0:
		flip(b.Genesis)
		return b, "another genesis"
	case k == 4 && len(b.Epoch) > 0:
		flip(b.Epoch)
		return b, "another epoch"
	}
	if len(b.Parts) == 0 {
		b.Parts = []aweigh.Hash{{1}}
		return b, "hashes of a scope that is open"
	}
	b.Parts = b.Parts[1:]
	return b, "fewer hashes"
}

// homeless says which scope closed and is not home, "" if none is that has to.
func (w *World) homeless() string {
	for _, c := range w.scopes[1:] {
		if c.island || c.Genesis.Descent.Parent != w.id || !c.leaving() || c.homing.home || c.watch.lost {
			continue
		}
		if !c.homing.closed {
			if _, lacks := c.core(); lacks == 0 && c.mayClose() {
				return fmt.Sprintf("the scope of %q has not closed, as it was ordered", c.Genesis.Prefix())
			}
			continue
		}
		for _, n := range w.Nodes {
			if p := c.Nodes[n.Index]; n.honest() && n.machine != nil && n.seats(n) && n.Face == 0 && p.machine != nil && p.machine.Closed() {
				return fmt.Sprintf("the scope of %q closed, and is not home", c.Genesis.Prefix())
			}
		}
	}
	return ""
}

// mayClose reports whether a scope can go home: all that it delegated is home, and it holds no more than can go.
func (w *World) mayClose() bool {
	_, best := w.held()
	if best == nil || best.state().Head().Delegated > 0 {
		return false
	}
	_, _, failure, err := best.state().Parts(aweigh.Hash{})
	must.OK(err, "reading what a scope holds")
	return failure == nil
}
