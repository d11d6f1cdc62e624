package sim

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/sim/scenario"
	"github.com/aweigh/aweigh/trust"
)

// askAgain is how long an anchor waits before it approves a motion again that
// was not carried: its node may have died with the approval.
const askAgain = time.Second

// government schedules the motions of the scenario.
func (w *World) government() {
	gone, back := make(map[string]int), make(map[string]int)
	for _, m := range w.Scenario.Govern {
		if m.Kind == "delegate" {
			nth := gone[m.Prefix]
			gone[m.Prefix]++
			w.at(m.At, func() { w.delegate(m, nth) })
			continue
		}
		if m.Kind == "fold" {
			nth := back[m.Prefix]
			back[m.Prefix]++
			w.at(m.At, func() { w.fold(m, nth) })
			continue
		}
		if m.Kind == "revoke" {
			w.at(m.At, func() { w.revoke(m) })
			continue
		}
		w.at(m.At, func() {
			w.say("%s of n%d is asked for", m.Kind, m.Node)
			w.carry(w.decision(m), w.approvers(m))
		})
	}
}

// decision is the decision that a motion proposes.
func (w *World) decision(m scenario.Motion) scope.Decision {
	n := w.Nodes[m.Node]
	switch m.Kind {
	case "admit":
		return w.admission(n, w.Nodes[m.Sponsor])
	case "retire":
		return scope.Decision{Kind: scope.Retire, Subject: n.anchorID()}
	case "evict":
		return scope.Decision{Kind: scope.Evict, Subject: n.anchorID()}
	case "attest":
		return scope.Decision{Kind: scope.Attest, Subject: n.anchorID(), Score: trust.Score(m.Score), Reason: "as the scenario says"}
	case "readmit":
		is := scope.Anchor{Name: n.String(), Key: n.key.Public(), Peer: string(n.Peer)}
		return scope.Decision{Kind: scope.Readmit, Subject: n.anchorID(), Anchor: &is}
	}
	p := w.epochs[len(w.epochs)-1].Policy
	if m.Mode != "" {
		p.Rules.Mode = modeNamed(m.Mode)
	}
	if m.Group != "" {
		g, err := w.Scenario.GroupOf(m.Group)
		must.OK(err, "reading a group")
		p.Trust.Group = g
	}
	if m.EpochBlocks > 0 {
		p.EpochBlocks = uint64(m.EpochBlocks)
	}
	if m.EpochTime > 0 {
		p.EpochTime = m.EpochTime
	}
	if m.Share > 0 {
		p.Approvals = slices.Clone(p.Approvals)
		a := &p.Approvals[0]
		if a.Num = uint32(m.Share); a.StepUp { // it is none any more
			a.StepUp, a.Den, a.Approvers = false, uint32(scenario.Whole), slices.Clone(a.Approvers)
			for i := range a.Approvers {
				a.Approvers[i].Share = uint32(scenario.Whole / 10)
			}
		}
	}
	p.Approvals = guard(p.Approvals, m.Guard)
	p.Authors = toggled(p.Authors, w.Genesis.Policy.Authors, m.Author)
	return scope.Decision{Kind: scope.SetPolicy, Policy: &p}
}

// toggled is the authors without the entry of a name, or with it again as it was at first.
func toggled(all, first []scope.Author, name string) []scope.Author {
	named := func(a scope.Author) bool { return a.Name == name }
	if slices.ContainsFunc(all, named) {
		return slices.DeleteFunc(slices.Clone(all), named)
	}
	if i := slices.IndexFunc(first, named); i >= 0 {
		at, _ := slices.BinarySearchFunc(all, name, func(a scope.Author, name string) int { return strings.Compare(a.Name, name) })
		return slices.Insert(slices.Clone(all), at, first[i])
	}
	return all
}

func (w *World) admission(n, sponsor *Node) scope.Decision {
	return scope.Admission(w.id, *n.key, n.String(), string(n.Peer), sponsor.anchorID())
}

// approvers are the nodes that approve a motion.
func (w *World) approvers(m scenario.Motion) (by []*Node) {
	switch {
	case m.Kind == "retire":
		return []*Node{w.Nodes[m.Node]}
	case len(m.By) > 0:
		for _, i := range m.By {
			by = append(by, w.Nodes[i])
		}
		return by
	}
	return w.sitting()
}

// sitting is the honest anchors that weigh something now.
func (w *World) sitting() (all []*Node) {
	for _, n := range w.Nodes {
		if n.liar == nil && n.Face == 0 && w.weight(n) > 0 {
			all = append(all, n)
		}
	}
	return all
}

// carry makes anchors approve a decision, each with its own key through its own
// node, and again until the chain has it.
func (w *World) carry(d scope.Decision, by []*Node) {
	for _, n := range by {
		n.approve(d)
	}
}

// approve asks for a decision, until it is answered.
func (n *Node) approve(d scope.Decision) {
	w := n.world
	w.motions++
	w.decisions = append(w.decisions, d)
	m := scope.Mutation{
		Scope: w.id, Class: scope.Govern, Content: canon.Encode(d), Caller: fmt.Sprintf("local:%d", w.motions),
		Nonce: binary.BigEndian.AppendUint64(nil, w.motions), ValidUntil: w.watch.time.from(w.now).Add(5 * time.Minute),
	}
	b, err := scope.Sign(*n.key, w.Genesis.Policy.Limits, m)
	must.OK(err, "signing an approval")
	id, answered := b.Mutations()[0].ID, false
	w.log(n, "approves", "to %s, %s", d.Kind, id.Short())
	var ask func()
	ask = func() {
		if answered || !w.firing {
			return
		}
		if n.machine != nil {
			n.propose(machine.Submit{Bundle: b}, func(r machine.Reply) {
				if r.Outcome != nil {
					answered = true
					w.watch.reach("motion ordered")
					w.say("%s approved to %s: %v %s", n, d.Kind, r.Outcome.Code, r.Outcome.Reason)
				}
			})
		}
		w.at(askAgain, ask)
	}
	ask()
}

// apply makes a liar ask for a seat, on the surety of sponsor, with the approval
// of its friends, and of the honest as long as they are fooled.
func (w *World) apply(n, sponsor *Node, friends []*Node) {
	by := slices.DeleteFunc(slices.Clone(friends), func(f *Node) bool { return f.Face != 0 || w.weight(f) == 0 })
	if w.welcomed < w.Scenario.Network.Welcome {
		w.welcomed++
		by = append(by, w.sitting()...)
	}
	w.carry(w.admission(n, sponsor), by)
}
