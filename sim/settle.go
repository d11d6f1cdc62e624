package sim

import (
	"time"

	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// settling is a healed world before any new request: earlier requests must be answered without help. This is
// checked only for scopes in which the honest have the weight for every rule.
type settling []*World

// settling is the scopes of the world that have to settle, none if the root scope has not.
func (w *World) settling() (all settling) {
	for _, c := range w.scopes {
		if c.watch.lost || c.watch.outgrown || c.leaving() {
			continue
		}
		if _, lacks := c.core(); lacks == 0 {
			all = append(all, c)
		} else if c == w {
			return nil
		}
	}
	for _, c := range all {
		c.watch.verdicts[Settled].Checks += c.unanswered()
	}
	return all
}

// unanswered is how many requests of honest nodes wait for a reply.
func (w *World) unanswered() (all uint64) {
	core, _ := w.core()
	for _, n := range core {
		if n.unanswered() != nil {
			all++
		}
	}
	return all
}

// done reports whether all is settled.
func (s settling) done() bool {
	for _, w := range s {
		if w.leaving() {
			continue
		}
		if w.unanswered() > 0 || w.watch.lacks() != "" || w.awaited() != "" || w.homeless() != "" {
			return false
		}
	}
	return true
}

// demand holds that nothing is left to settle.
func (s settling) demand(within time.Duration) {
	for _, w := range s {
		if w.leaving() {
			continue
		}
		core, _ := w.core()
		for _, n := range core {
			if r := n.unanswered(); r != nil {
				w.breach(Settled, n, "%s, has no reply %v after the faults were over", r, within)
			}
		}
		if why := w.awaited(); why != "" {
			w.breach(Islands, nil, "%v after the faults were over %s", within, why)
		}
		if why := w.homeless(); why != "" {
			w.breach(Settled, nil, "%v after the faults were over %s", within, why)
		}
		if why := w.watch.lacks(); why != "" {
			w.breach(Settled, nil, "%v after the faults were over %s", within, why)
		}
	}
}

// pass advances virtual time: at most so much, until done, and no longer than the run can still show
// something.
type pass func(within time.Duration, done func() bool) error

// settle waits until all that was asked is answered, and demands it.
func (w *World) settle(pass pass) error {
	s, within := w.settling(), w.Scenario.Heal.Within
	err := pass(within, s.done)
	if err == nil && !w.watch.over() {
		s.demand(within)
	}
	return err
}

// healing ends all faults, and waits for the effects: first earlier requests are answered, then writes at many nodes
// are done and all nodes have them, and a verified read is answered; then, if no anchor lies, the network becomes
// quiet, and later requests are answered.
func (w *World) healing(pass pass) (h Healing, err error) {
	h.Asked = true
	w.heal()
	w.collect()
	if err = w.settle(pass); err != nil || w.watch.over() {
		return h, err
	}
	began, wishes := w.Now(), w.startAllHealChecks()
	if wishes == nil {
		return h, nil
	}
	h.Possible = true
	read := w.lastRead()
	if err = pass(w.Scenario.Heal.Within, wishes.met); err != nil {
		return h, err
	}
	h.Reached, h.After, h.Why = wishes.met(), w.Now()-began, wishes.why()
	if !h.Reached {
		return h, nil
	}
	w.watch.reach("healed")
	if err = read.await(pass); err != nil || w.watch.over() {
		return h, err
	}
	if len(w.Scenario.Roles) > 0 || w.Scenario.LyingDisk() { // liars may wake any node at any time
		return h, nil
	}
	if err = w.waitForQuiet(pass); err != nil {
		return h, err
	}
	w.askLast()
	return h, w.settle(pass)
}

// quietWithin is how long a network may go on talking although nothing is asked of it. It is quiet when its nodes send
// no more than one frame each in a second.
const quietWithin = 30 * time.Second

// stubbornWithin is how long the node that takes what the policy denies may go on before that: no other anchor takes
// such a bundle, so it waits until that node leads a view.
const stubbornWithin = 10 * quietWithin

// waitForQuiet waits until a healed world is quiet (P18). With other bounds, nodes may ask each other more often.
func (w *World) waitForQuiet(pass pass) (err error) {
	if w.Scenario.Bounds.Node != (machine.Bounds{}) || w.untaken() != "" { // members of islands go on
		return nil
	}
	var sent uint64
	quiet := func() bool { return sent <= uint64(len(w.Nodes)*len(w.scopes)) }
	stubborn := func() bool {
		n := w.Nodes[0]
		return (w.Scenario.Revokes() || w.Scenario.Leaves()) && n.machine != nil && n.Status().Waiting > 0
	}
	began := w.Now()
	for end, first := began+quietWithin, true; first || !quiet() && w.Now() < end && !w.watch.over(); first = false {
		before := w.wires.messages
		if err = pass(time.Second, func() bool { return false }); err != nil {
			return err
		}
		if sent = w.wires.messages - before; stubborn() && w.Now() < began+stubbornWithin {
			end = w.Now() + quietWithin
		}
	}
	if !w.watch.over() {
		w.holds(Settled, nil, quiet(), "nothing has been asked for %v, and %d frames were sent in the last second", w.Now()-began, sent)
	}
	return nil
}

// askLast asks two honest nodes for a read and a write when no other event could wake a waiting node.
func (w *World) askLast() {
	core, _ := w.core()
	some := func() *Node { return core[w.probes.rand.IntN(len(core))] }
	some().Read(func(machine.Reply) {})
	t := scope.Txn{Success: []scope.Op{{Kind: scope.OpPut, Key: []byte(w.key("last")), Value: []byte("asked")}}}
	some().Submit(w.mutation(t, []byte("asked last")), func(machine.Reply) {})
}
