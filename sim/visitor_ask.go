package sim

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
)

var (
	errRefused = errors.New("sim: the connection is refused")
	errGiveUp  = errors.New("sim: no answer in time")
)

// inquire asks the anchors of a scope, until done has an answer. check verifies answers that
// carry a proof.
func (v *visitor) inquire(f *referral.Scope, ask referral.Question, until aweigh.Instant, check func([]byte) error, done func(a referral.Answer, cached bool, err error)) {
	w := v.w
	q := f.Inquire(ask, w.now)
	if a, err, ended := q.Result(); ended {
		done(a, true, err)
		return
	}
	over := false
	var step func()
	step = func() {
		for x, ok := q.Next(); ok; x, ok = q.Next() {
			begun := w.now
			v.put(f, x, check, func(a referral.Answer, err error) {
				q.Hear(x, w.now.Sub(begun), a, err)
				step()
			})
		}
		if a, err, ended := q.Result(); ended && !over {
			over = true
			if q.Outvoted() > 0 {
				w.watch.reach("answer outvoted")
			}
			if q.Pinned() {
				w.watch.reach("asked as of one revision")
			}
			done(a, false, err)
		}
	}
	var hedge func()
	hedge = func() {
		if !over {
			q.Hedge()
			step()
			w.at(referral.HedgeAfter, hedge)
		}
	}
	w.at(referral.HedgeAfter, hedge)
	w.at(until.Sub(w.now), func() {
		q.GiveUp(errGiveUp)
		step()
	})
	step()
}

// put asks one anchor, has it prove another epoch, and verifies what proves itself.
func (v *visitor) put(f *referral.Scope, x referral.Query, check func([]byte) error, hear func(referral.Answer, error)) {
	at := v.anchor(f, x.Anchor)
	if at == nil {
		hear(referral.Answer{}, errRefused)
		return
	}
	v.travel(at, func() {
		v.serve(at, x.Ask, func(a referral.Answer, err error) {
			a.Shorten(&x.Ask)
			v.travel(at, func() {
				v.settle(f, at, a, err, func(err error) {
					if err == nil && a.Failure == "" && check != nil {
						if err = check(a.Body); err != nil {
							err = fmt.Errorf("%w: %w", scope.ErrProof, err)
						}
					}
					hear(a, err)
				})
			})
		})
	})
}

// anchor is the part of the node that a scope's anchor runs on.
func (v *visitor) anchor(f *referral.Scope, a *scope.Anchor) *Node {
	c := v.w.find(f.ID())
	i, known := v.w.anchors[a.Key.ID()]
	if c == nil || !known {
		return nil
	}
	n := c.Nodes[i]
	if n.twin != nil && v.rand.IntN(2) == 0 {
		n = n.twin
	}
	return n
}

// settle goes on to the epoch that an answer names, if its anchor proves that.
func (v *visitor) settle(f *referral.Scope, at *Node, a referral.Answer, err error, then func(error)) {
	if err != nil || a.Epoch <= f.Epoch().Number {
		then(err)
		return
	}
	from := f.Epoch().Start
	v.travel(at, func() {
		var raw []byte
		if !at.disk.failing() {
			raw = at.handovers(from)
		}
		v.travel(at, func() {
			fresh := true
			e, err := f.Follow(v.store, f.Epoch(), a.Epoch, func(above aweigh.Height) ([]byte, error) {
				if above != from || !fresh {
					return nil, errors.New("sim: handovers of another height")
				}
				fresh = false
				return raw, nil
			})
			if err == nil && e.Number > f.Epoch().Number {
				v.w.proven(v, f, e)
				f.Enter(e)
			}
			then(err)
		})
	})
}

// handovers are those above a height that a node returns.
func (n *Node) handovers(above aweigh.Height) []byte {
	all, err := machine.History{Reader: n.Disk, Scope: n.world.id}.Handovers(above, machine.HandoversAtOnce)
	if err != nil {
		return nil
	}
	return canon.Encode(all)
}

// serve answers a question as a node does, or as a liar likes to.
func (v *visitor) serve(at *Node, ask referral.Question, answer func(referral.Answer, error)) {
	if at.liar != nil && at.liar.on() {
		honest := answer
		answer = func(a referral.Answer, err error) { at.liar.mislead(v, &ask, a, err, honest) }
	}
	if at.machine == nil || at.disk.failing() || at.spoiled || at.key == nil {
		answer(referral.Answer{}, errRefused)
		return
	}
	switch {
	case !at.seated():
		answer(referral.Unseated(at.machine.Epoch().Number), nil)
	case ask.Kind == referral.AskSubmit:
		v.hand(at, ask.Body, answer)
	case ask.Newest:
		at.Read(func(r machine.Reply) {
			if r.Refused != nil {
				answer(referral.Answer{}, r.Refused)
				return
			}
			answer(at.tell(&ask))
		})
	default:
		answer(at.tell(&ask))
	}
}

// seated reports whether the node's anchor has a seat now.
func (n *Node) seated() bool {
	if n.key == nil {
		return false
	}
	_, ok := n.machine.Epoch().Roster.Seat(n.anchorID())
	return ok
}

func (n *Node) tell(ask *referral.Question) (referral.Answer, error) {
	if n.disk.failing() { // since it was asked
		return referral.Answer{}, errRefused
	}
	a, err := referral.Tell(n.state(), machine.History{Reader: n.Disk, Scope: n.world.id}, ask)
	if n.honest() {
		n.world.answered = max(n.world.answered, a.Revision)
	}
	return a, err
}

// hand gives a bundle to a node, and reports the outcome.
func (v *visitor) hand(at *Node, raw []byte, answer func(referral.Answer, error)) {
	b, err := scope.CheckBundle(bytes.Clone(raw), at.machine.Epoch().Policy.Limits, v.w.verify)
	if err != nil || b.Scope() != at.world.id {
		answer(referral.Answer{}, fmt.Errorf("sim: no bundle for this scope (%w)", err))
		return
	}
	at.propose(machine.Submit{Bundle: b, From: "visitor"}, func(r machine.Reply) {
		a := referral.Answer{Epoch: at.machine.Epoch().Number, Height: r.Height}
		if r.Refused != nil {
			answer(a, r.Refused)
			return
		}
		a.Revision = r.Outcome.Revision
		a.Body = referral.EncodeReceipts([]machine.Receipt{{Outcome: *r.Outcome, Height: r.Height}})
		answer(a, nil)
	})
}
