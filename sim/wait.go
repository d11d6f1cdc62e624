package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/sim/scenario"
	"github.com/aweigh/aweigh/votes"
)

// waits are the approvals of a policy that changes of actors take. A second person gets a key for those that it
// decides.
func (w *World) waits(newKey func() (votes.PrivateKey, error)) (all []scope.Approval, err error) {
	for _, of := range w.Scenario.Network.Waits {
		a := scope.Approval{
			Matter: scope.Changes, Prefix: []byte(of.Prefix), Verbs: of.Verbs, Num: uint32(of.Share), Den: uint32(scenario.Whole), Window: of.Window,
		}
		if of.StepUp {
			if w.polls.second == nil {
				w.polls.second = &voter{name: "the second person"}
				if w.polls.second.key, err = newKey(); err != nil {
					return nil, err
				}
			}
			a.Num, a.Den, a.StepUp = 0, 1, true
			a.Approvers = []scope.Approver{{Name: w.polls.second.name, Key: w.polls.second.key.Public()}}
		}
		all = append(all, a)
	}
	return all, nil
}

// mostDoubt is how long the voters think about what an actor asks for, at most.
const mostDoubt = 4 * time.Second

// voters vote on a change that waits for approval: mostly alike, now and then not alike, or not at all.
func (a *actor) voters(m votes.MotionID) {
	w, r := a.w, a.w.acts
	how := r.IntN(10)
	if how == 0 {
		return
	}
	choice := func() votes.Choice {
		if how == 1 || how < 4 && r.IntN(2) == 0 {
			return votes.Reject
		}
		return votes.Approve
	}
	w.at(time.Duration(r.Int64N(int64(mostDoubt))), func() {
		if !w.firing {
			return
		}
		for _, n := range w.sitting() {
			n.handIn(w.ballotOn(m, choice(), *n.key), true, func(machine.Casting) {})
		}
		if w.polls.second != nil {
			a.at.handIn(w.ballotOn(m, choice(), w.polls.second.key), false, func(machine.Casting) {})
		}
	})
}

// counts reports whether the motions of the scope are counted afresh.
func (x *watch) counts() bool {
	s := &x.w.Scenario
	return x.w.number == 0 && (s.Approval.Motions > 0 || len(s.Network.Waits) > 0)
}

// touchesOthers reports whether a change of a key may change further keys that fall under another approval: other
// aliases of its object, or the rest of a range that begins with it.
func (w *World) touchesOthers(key string) bool {
	return len(w.Scenario.Network.Waits) > 0 && strings.HasPrefix(key, scenario.RuledPrefix)
}

// actionTakes is the approval that a policy asks for where an action with a verb puts a key: of the longest prefix, and
// of one prefix that which names the verb. It is nil if the policy asks for none.
func actionTakes(p *scope.Policy, key []byte, verb string) (found *scope.Approval) {
	for i := range p.Approvals {
		a := &p.Approvals[i]
		named := slices.Contains(a.Verbs, verb)
		if a.Matter != scope.Changes || !named && len(a.Verbs) > 0 || !strings.HasPrefix(string(key), string(a.Prefix)) {
			continue
		}
		if found == nil || len(a.Prefix) > len(found.Prefix) || len(a.Prefix) == len(found.Prefix) && named {
			found = a
		}
	}
	return found
}

// actionOpens takes up a motion that an action opened.
func (x *watch) actionOpens(n *Node, state *scope.State, m *scope.CheckedMutation, code scope.Code, h *scope.Header) {
	w, asks := x.w, m.Action
	if x.motions.all[m.ID] != nil { // it stands in the block twice
		return
	}
	var a *scope.Approval
	if asks.Class == action.Write {
		a = actionTakes(&w.epochs[h.Epoch].Policy, asks.Key, asks.Verb)
	}
	other := a == nil && asks.Class == action.Write && w.touchesOthers(string(asks.Key)) // under another alias of the object it may take one
	w.holds(Motions, n, (a != nil) == (code == scope.Pending) || other, "an action by %s on %q at height %d is %s", asks.Verb, asks.Key, h.Height, code)
	if code != scope.Pending {
		return
	}
	if other {
		a = x.recordedApproval(n, state, m, h)
	}
	if a == nil {
		x.conduct.opinions.others = true
		return
	}
	if slices.Contains(a.Verbs, asks.Verb) {
		x.reach("action waits")
	}
	x.takeUp(n, &poll{id: m.ID, verb: asks.Verb, author: m.Author, puts: []string{string(asks.Key)}, values: map[string]string{string(asks.Key): string(asks.Value)}}, a, h)
}

// recordedApproval is the approval of the policy that the record of an action's motion has, nil if the motion is
// forgotten.
func (x *watch) recordedApproval(n *Node, state *scope.State, m *scope.CheckedMutation, h *scope.Header) *scope.Approval {
	mo, _, err := state.Motion(m.ID)
	if must.OK(err, "reading a motion"); mo == nil {
		return nil
	}
	all := x.w.epochs[h.Epoch].Policy.Approvals
	i := slices.IndexFunc(all, func(a scope.Approval) bool {
		return a.String() == mo.Approval.String() && (len(a.Verbs) == 0 || slices.Contains(a.Verbs, m.Action.Verb))
	})
	x.w.holds(Motions, n, i >= 0, "an action by %s on %q at height %d waits for %s, which the policy does not ask for", m.Action.Verb, m.Action.Key, h.Height, &mo.Approval)
	if i < 0 {
		return nil
	}
	return &all[i]
}

// carried is the fate of a motion that has the approvals. Whether an action can be done still depends on its object
// and on rules, of which the model of execution knows; the record must say one of two things.
func (x *watch) carried(p *poll, state *scope.State, h *scope.Header) scope.Fate {
	if p.verb == "" {
		return x.motions.apply(p, x.w.asked(h))
	}
	if fate, _ := x.fateAt(p, state, h.Height); fate == scope.Void {
		return scope.Void
	}
	return scope.Carried
}

// fateAt is the fate of a motion that ended at a height, as a node has it on record; 0: it did not end there. A motion
// that is forgotten shows nothing, and blame that may follow from it is not counted afresh.
func (x *watch) fateAt(p *poll, state *scope.State, at aweigh.Height) (fate scope.Fate, forgotten bool) {
	mo, end, err := state.Motion(p.id)
	switch must.OK(err, "reading a motion"); {
	case mo == nil:
		x.conduct.opinions.others = true
		return 0, true
	case end == nil || end.Height != at:
		return 0, false
	}
	return end.Fate, false
}

// expires reports whether a block at a height closes a motion whose deadline is over. If the scenario bounds how many a
// block closes, the record says which.
func (x *watch) expires(p *poll, state *scope.State, at aweigh.Height) bool {
	if x.w.Scenario.Bounds.Scope.ExpiredAtOnce == 0 {
		return true
	}
	fate, forgotten := x.fateAt(p, state, at)
	return forgotten || fate == scope.MotionExpired
}

// giveWay closes the motions that give way to those that a block opens. The record says which, if the scenario bounds
// how many are open.
func (x *watch) giveWay(state *scope.State, at aweigh.Height) {
	if !givesWay(&x.w.Scenario.Bounds) {
		return
	}
	for _, p := range x.motions.order {
		if p.fate != 0 {
			continue
		}
		if fate, _ := x.fateAt(p, state, at); fate == scope.MotionExpired {
			x.motions.close(p, scope.MotionExpired, at)
		}
	}
}
