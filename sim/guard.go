package sim

import (
	"bytes"
	"slices"
	"time"

	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/sim/scenario"
	"github.com/aweigh/aweigh/votes"
)

// guardedPrefix is the prefix of the keys that a guard protects: leases hold some of them as well.
const guardedPrefix = "/kept/"

// guarded reports whether a policy of the scenario guards keys, at some time.
func guarded(s *scenario.Scenario) bool {
	return s.Network.Guard != "" || slices.ContainsFunc(s.Govern, func(m scenario.Motion) bool { return m.Guard != "" })
}

// guard puts a guard in the place of the one that a policy's approvals have, if they have one.
func guard(all []scope.Approval, what string) []scope.Approval {
	if what == "" {
		return all
	}
	all = slices.DeleteFunc(slices.Clone(all), func(a scope.Approval) bool { return string(a.Prefix) == guardedPrefix })
	if what == "nothing" {
		return all
	}
	a := scope.Approval{Matter: scope.Deletions, Prefix: []byte(guardedPrefix), Num: 1, Den: 2, Window: time.Hour}
	if what == "changes" {
		a.Matter = scope.Changes
	}
	return append(all, a)
}

// takes reports whether a policy asks for approval of the deletion of a key, or of a put by no action.
func takes(p *scope.Policy, key string, deletion bool) bool {
	return slices.ContainsFunc(p.Approvals, func(a scope.Approval) bool {
		return len(a.Verbs) == 0 && bytes.HasPrefix([]byte(key), a.Prefix) && (a.Matter == scope.Changes || a.Matter == scope.Deletions && deletion)
	})
}

// approve makes the honest anchors approve a motion, each at its own node.
func (w *World) approve(m votes.MotionID) {
	for _, n := range w.sitting() {
		n.handIn(w.ballotOn(m, votes.Approve, *n.key), true, func(machine.Casting) {})
	}
}
