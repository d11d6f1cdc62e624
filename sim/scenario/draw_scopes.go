package scenario

import (
	"slices"
	"time"
)

// nested draws scopes below the root's: their anchors, the liars in one of them, and
// faults when they are founded.
func (d drawing) nested(s *Scenario) {
	n := &s.Network
	n.EpochBlocks = 3 + d.IntN(12)
	s.Load.Keys, s.Load.Under = 3+d.IntN(6), []string{"/", "/b/", "/b/c/"}
	s.Load.Writes, s.Load.Give = s.Load.Writes*2, min(s.Load.Give, 2*time.Second)
	var founded []string
	found := func(prefix string, from, until time.Duration) {
		m := Motion{Kind: "delegate", Prefix: prefix, At: d.between(from, until), Anchors: d.Perm(n.Anchors)[:1+d.IntN(min(n.Anchors, 7))]}
		if d.one(3) {
			m.Mode = []string{"bft", "crash"}[d.IntN(2)]
		}
		s.Govern, founded = append(s.Govern, m), append(founded, prefix)
	}
	found("/b/", 0, s.Stop/3)
	if d.one(2) {
		found("/b/c/", s.Stop/4, s.Stop/2)
	}
	if d.one(2) {
		found("/c/", 0, s.Stop/2)
		s.Load.Under = append(s.Load.Under, "/c/")
	}
	if d.one(2) {
		in := founded[d.IntN(len(founded))]
		s.Roles = append(slices.Clone(s.Roles), Role{Attacks: d.hostile(), In: in, Weight: "all", From: d.between(0, s.Stop/2), Rate: d.share(900_000) + 100_000})
	}
	for range d.IntN(3) {
		f := Fault{Kind: []string{"crash", "cut", "clog", "churn", "slow"}[d.IntN(5)], During: DuringHandover, For: d.between(50*time.Millisecond, 2*time.Second)}
		if f.Kind == "churn" {
			f.Rate = int64(1 + d.IntN(4))
		}
		if f.Kind == "slow" {
			f.By = d.between(10*time.Millisecond, time.Second)
		}
		s.Faults.Timed = append(s.Faults.Timed, f)
	}
	if d.one(2) {
		d.revoked(s, founded)
	}
}

// revoked draws orders to founded scopes, and the liars that invent some.
func (d drawing) revoked(s *Scenario, founded []string) {
	n := &s.Network
	n.Notice = d.between(time.Second, 3*time.Second)
	for _, prefix := range founded {
		for range d.IntN(3) {
			m := Motion{Kind: "revoke", Prefix: prefix, At: d.between(s.Stop/4, s.Stop*3/4), Anchors: d.Perm(n.Anchors)[:1+d.IntN(min(n.Anchors, 7))]}
			if d.one(3) {
				m.Mode = []string{"bft", "crash"}[d.IntN(2)]
			}
			s.Govern = append(s.Govern, m)
		}
	}
	if d.one(2) {
		s.Roles = append(slices.Clone(s.Roles), Role{Attacks: slices.Clone(scopeAttacks), In: founded[d.IntN(len(founded))], Anchors: []int{d.IntN(n.Anchors)}, From: d.between(0, s.Stop/2)})
	}
}

// hostile draws the attacks of the anchors of one scope in it.
func (d drawing) hostile() (attacks []string) {
	for _, i := range d.Perm(len(usual()))[:2+d.IntN(4)] {
		if name := Attacks[i].Name; !slices.Contains(everywhere, name) && !slices.Contains(attacks, name) {
			attacks = append(attacks, name)
		}
	}
	if len(attacks) == 0 {
		attacks = []string{"mute"}
	}
	return attacks
}

// folds lets scopes of half of the worlds that have some come home, and some be founded again.
func (d drawing) folds(s *Scenario) {
	var founded []Motion
	for _, m := range s.Govern {
		if m.Kind == "delegate" {
			founded = append(founded, m)
		}
	}
	if len(founded) == 0 || !d.one(2) {
		return
	}
	s.Network.Notice = d.between(time.Second, 1500*time.Millisecond)
	if s.Load.Bursts == 0 { // or few would be home in time
		s.Stop += d.between(2*time.Second, 5*time.Second)
	}
	s.Govern = slices.Clone(s.Govern)
	for _, m := range founded {
		for at := m.At; d.IntN(3) > 0; {
			at += d.between(100*time.Millisecond, max(1500*time.Millisecond, s.Stop/6))
			back := at + d.between(100*time.Millisecond, time.Second)
			if back >= s.Stop || len(s.Govern) > maxMotions-4 {
				break
			}
			s.Govern = append(s.Govern, Motion{Kind: "fold", Prefix: m.Prefix, At: at})
			if d.one(2) {
				break
			}
			s.Govern = append(s.Govern, Motion{Kind: "delegate", Prefix: m.Prefix, At: back, Anchors: d.Perm(s.Network.Anchors)[:1+d.IntN(min(s.Network.Anchors, 7))]})
			at = back
		}
	}
	if d.one(3) {
		in := founded[d.IntN(len(founded))].Prefix
		s.Roles = append(slices.Clone(s.Roles), Role{Attacks: []string{"stubborn"}, In: in, Anchors: []int{d.IntN(s.Network.Anchors)}, From: d.between(0, s.Stop/2)})
	}
}
