package scenario

import (
	"slices"
	"time"
)

// reads draws reads where answers may be old, and in half of the worlds delays that make them so. Then half of the
// coalitions do nothing but answer reads with old blocks: a node that lags gets no other answers in time.
func (d drawing) reads(s *Scenario) {
	n := s.Network.Anchors
	s.Load.Probes = d.IntN(max(8, 300/n))
	if d.one(2) {
		return
	}
	f := Fault{Kind: "lag", At: d.between(0, s.Stop/2), By: d.between(50*time.Millisecond, 1500*time.Millisecond), Rate: int64(d.IntN(6))}
	if d.one(3) {
		f = Fault{Kind: "firsthand", At: f.At, By: 2 * f.By, Nodes: []int{d.IntN(n)}}
	}
	f.For = d.between(s.Stop/4, s.Stop-f.At)
	s.Faults.Timed = append(s.Faults.Timed, f)
	if d.one(2) { // nodes that asked or voted restart
		churn := Fault{Kind: "churn", At: f.At, For: f.For, Rate: int64(1 + d.IntN(8)), Nodes: d.Perm(n)[:1+d.IntN(n-1)]}
		s.Faults.Timed = append(s.Faults.Timed, churn)
	}
	others := slices.DeleteFunc(slices.Clone(s.Roles), func(r Role) bool { return r.In == "" })
	if len(others) < len(s.Roles) && f.Kind == "lag" && d.one(2) {
		s.Roles = append(others, Role{Attacks: []string{"stale"}, Weight: "budget", Rate: Whole})
	}
}
