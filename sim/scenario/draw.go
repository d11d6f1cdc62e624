package scenario

import (
	"encoding/hex"
	"math/rand/v2"
	"slices"
	"time"
)

// Draw is the whole random world of a seed: every parameter of it. Liars weigh
// no more than the fault budget, so that every invariant must hold, and
// progress must come once the faults are over.
func Draw(seed uint64) Scenario {
	d := drawing{Rand: rand.New(rand.NewPCG(seed, 0xd4a3))}
	s := Scenario{Seed: seed, Heal: &Heal{}, Stop: d.between(2*time.Second, 7*time.Second)}
	bursts := long(&s)
	n := d.anchors()
	if bursts > 0 && n > 9 { // without a quorum they would try again for hours
		n = 4 + n%6
	}
	s.Network = Network{Anchors: n, Mode: "bft", Trust: d.trust()}
	if d.one(5) {
		s.Network.Mode = "crash"
	}
	if d.one(4) {
		s.Network.Observers = 1 + d.IntN(2)
	}
	if d.one(3) {
		s.Network.Timing.View = d.between(300*time.Millisecond, 2*time.Second)
	}
	s.Links = d.links()
	s.Load = Load{
		Clients: 1 + d.IntN(6), Writes: 3 + d.IntN(max(4, 160/n)), Reads: d.IntN(max(4, 100/n)),
		Keys: 1 + d.IntN(6), Swap: Share(d.IntN(int(Whole / 2))), Give: d.between(time.Second, 5*time.Second),
		Bursts: bursts,
	}
	s.Load.Names = s.Load.Writes / 3
	if s.Network.Mode == "bft" && !d.one(4) {
		s.Roles = d.roles(s.Stop)
	}
	s.Faults = d.faults(s)
	d.epochs(&s.Network, bursts)
	if d.one(4) {
		d.govern(&s)
	}
	if d.one(3) {
		s.Load.Leases = 1 + d.IntN(4)
	}
	if d.one(7) {
		d.approval(&s)
	}
	if d.one(7) {
		d.nested(&s)
	}
	if s.Nests() || d.one(6) {
		s.Load.Visits = 10 + d.IntN(100)
	}
	if d.one(5) {
		s.Load.Dear = 1 + d.IntN(20)
	}
	if d.one(8) && !s.Nests() {
		d.ahead(&s)
	}
	if s.Load.Leases > 0 && d.one(4) {
		d.guard(&s)
	}
	if !d.one(5) {
		s.Load.Programs = 2 + d.IntN(max(2, 60/n))
	}
	if d.one(6) && !s.Nests() && !slices.ContainsFunc(s.Faults.Timed, func(f Fault) bool { return f.Kind == "ahead" }) {
		s.Load.Acts = 20 + d.IntN(60)
	}
	d.reads(&s)
	drawing{Rand: rand.New(rand.NewPCG(seed, 0xb07d))}.bounds(&s)
	drawing{rand.New(rand.NewPCG(seed, 0xf026e))}.forgers(&s)
	drawing{rand.New(rand.NewPCG(seed, 0xdec15))}.decisive(&s)
	drawing{rand.New(rand.NewPCG(seed, 0x5c4ed))}.schedule(&s)
	drawing{rand.New(rand.NewPCG(seed, 0x201e5))}.rules(&s)
	drawing{rand.New(rand.NewPCG(seed, 0xe4b5))}.waits(&s)
	drawing{rand.New(rand.NewPCG(seed, 0x9a4d5))}.guardLeases(&s)
	drawing{rand.New(rand.NewPCG(seed, 0xa7480))}.authors(&s)
	drawing{rand.New(rand.NewPCG(seed, 0x905e5))}.poses(&s)
	drawing{rand.New(rand.NewPCG(seed, 0x57e90))}.stepUp(&s)
	drawing{rand.New(rand.NewPCG(seed, 0x9e4d))}.pending(&s)
	drawing{rand.New(rand.NewPCG(seed, 0x960a5))}.quotas(&s)
	drawing{rand.New(rand.NewPCG(seed, 0x7197))}.tight(&s)
	drawing{rand.New(rand.NewPCG(seed, 0x4e70c))}.revocations(&s)
	drawing{rand.New(rand.NewPCG(seed, 0x7e7e5))}.undo(&s)
	drawing{rand.New(rand.NewPCG(seed, 0x151a4d5))}.islands(&s)
	drawing{rand.New(rand.NewPCG(seed, 0x1f4e17))}.inventions(&s)
	drawing{rand.New(rand.NewPCG(seed, 0xfa57))}.fast(&s)
	drawing{rand.New(rand.NewPCG(seed, 0x57b9))}.group(&s)
	drawing{rand.New(rand.NewPCG(seed, 0x5911))}.split(&s)
	drawing{rand.New(rand.NewPCG(seed, 0xf01d5))}.folds(&s)
	s.Load.Verified = 2 + drawing{rand.New(rand.NewPCG(seed, 0x7e4d))}.IntN(3)
	return s
}

// fast makes one world in eight of mode bft one of mode fast, in which half of the roles divide views as well. One in
// ten of the worlds of either mode, if their epochs end, changes to the other, and half of these back.
func (d drawing) fast(s *Scenario) {
	n := &s.Network
	if n.Mode != "bft" {
		return
	}
	other := "fast"
	if d.one(8) {
		n.Mode, other = "fast", "bft"
		d.divided(s)
	}
	if ends := n.EpochTime > 0 || n.EpochBlocks > 0 && n.EpochBlocks <= 20; !ends || !d.one(10) {
		return
	}
	at := d.between(0, s.Stop/2)
	s.Govern = append(slices.Clone(s.Govern), Motion{Kind: "policy", At: at, Mode: other})
	if d.one(2) {
		s.Govern = append(s.Govern, Motion{Kind: "policy", At: d.between(at, s.Stop), Mode: n.Mode})
	}
}

// divided makes half of the roles divide views as well.
func (d drawing) divided(s *Scenario) {
	for i := range s.Roles {
		r := &s.Roles[i]
		lone := slices.ContainsFunc(r.Attacks, func(p string) bool { return slices.Contains(alone, p) })
		if d.one(2) && !lone {
			r.Attacks = append(slices.Clone(r.Attacks), "divide")
		}
	}
}

// long makes one world in twelve last for hours, and returns in how many bursts it is busy. Receipts, leases, motions
// and decisions grow old in between, and nodes are cut off for long.
func long(s *Scenario) (bursts int) {
	d := drawing{rand.New(rand.NewPCG(s.Seed, 0x10e6))}
	if !d.one(12) {
		return 0
	}
	s.Stop = d.between(10*time.Minute, 2*time.Hour)
	return 2 + d.IntN(5)
}

// forgers makes half of the roles forge as well, and some propose out of turn.
func (d drawing) forgers(s *Scenario) {
	for i := range s.Roles {
		r := &s.Roles[i]
		lone := slices.ContainsFunc(r.Attacks, func(p string) bool { return slices.Contains(alone, p) })
		r.Attacks = slices.Clone(r.Attacks)
		if d.one(2) {
			r.Attacks = append(r.Attacks, "forge")
		}
		if d.one(4) && !lone {
			r.Attacks = append(r.Attacks, "interject")
		}
	}
}

// drawing is the stream of chance behind one scenario.
type drawing struct{ *rand.Rand }

func (d drawing) one(in int) bool { return d.IntN(in) == 0 }

func (d drawing) between(a, b time.Duration) time.Duration {
	return (a + time.Duration(d.Int64N(int64(b-a)))).Round(time.Millisecond)
}

// share is up to most parts per million, in tenths of a percent.
func (d drawing) share(most int) Share { return Share(d.IntN(most/1000+1) * 1000) }

// anchors is 4 to 40, small numbers more often: the cost of a world grows with
// the square.
func (d drawing) anchors() int {
	switch d.IntN(20) {
	case 0:
		return 20 + d.IntN(21)
	case 1, 2, 3:
		return 10 + d.IntN(10)
	}
	return 4 + d.IntN(6)
}

func (d drawing) trust() (t []Share) {
	if d.one(2) {
		return nil
	}
	for range 2 + d.IntN(4) {
		t = append(t, Share(100_000+100_000*d.IntN(9)))
	}
	return t
}

// epochs are mostly so short that several end in a world, by their blocks or by
// the clock.
func (d drawing) epochs(n *Network, bursts int) {
	if !d.one(4) {
		n.EpochBlocks = 3 + d.IntN(62)
		if d.one(2) {
			n.EpochBlocks = 3 + d.IntN(10)
		}
	}
	if d.one(2) {
		n.EpochTime = d.between(time.Second, 4*time.Second)
	}
	if bursts > 0 { // as long in proportion
		n.EpochTime *= 60
	}
}

// govern draws the nodes that join and leave. No honest anchor leaves where liars
// have the whole budget: they would then weigh too much.
func (d drawing) govern(s *Scenario) {
	n := &s.Network
	n.Observers = max(1, n.Observers)
	n.EpochBlocks = 3 + d.IntN(10)
	at := func() time.Duration { return d.between(0, s.Stop/2) }
	s.Govern = append(s.Govern, Motion{Kind: "admit", At: at(), Node: n.Anchors, Sponsor: d.IntN(n.Anchors)})
	safe := len(s.Roles) == 0 && !s.LyingDisk()
	switch {
	case safe && n.Anchors > 4 && d.one(2):
		s.Govern = append(s.Govern, Motion{Kind: "retire", At: at(), Node: d.IntN(n.Anchors)})
	case safe && n.Anchors > 4:
		s.Govern = append(s.Govern, Motion{Kind: "evict", At: at(), Node: d.IntN(n.Anchors)})
	}
	if d.one(3) {
		s.Govern = append(s.Govern, Motion{Kind: "policy", At: at(), EpochBlocks: 3 + d.IntN(20)})
	}
	switch {
	case len(s.Roles) > 0 && d.one(3): // liars without a name are the last ones
		s.Govern = append(s.Govern, Motion{Kind: "readmit", At: s.Stop/4 + at(), Node: n.Anchors - 1})
	case safe && d.one(3):
		s.Govern = append(s.Govern, Motion{Kind: "attest", At: at(), Node: d.IntN(n.Anchors), Score: Share(200_000 + 50_000*d.IntN(9))})
	}
}

// approval draws motions, and attacks of liars with them.
func (d drawing) approval(s *Scenario) {
	a := Approval{Motions: 1 + d.IntN(max(1, min(5, 60/s.Network.Anchors))), Keys: 1 + d.IntN(4), Share: Share(400_000 + 50_000*d.IntN(9))}
	if d.one(2) {
		a.Window = d.between(time.Second, 8*time.Second)
	}
	if d.one(3) {
		a.Anchors = 1 + d.IntN(3)
	}
	if d.one(3) {
		a.Approvers, a.Weight = 1+d.IntN(3), d.share(300_000)+10_000
		a.Required, a.Fickle = d.IntN(2), d.IntN(2)
	}
	some := func(in, most int) (x Share) {
		if d.one(in) {
			x = d.share(most)
		}
		return x
	}
	a.Withdraw, a.Against, a.Absent = some(3, 500_000), some(2, 600_000), some(3, 500_000)
	a.Early, a.Offline, a.Lost, a.Twice = some(2, 500_000), some(3, 800_000), some(3, 400_000), some(3, 400_000)
	if a.Offline > 0 {
		a.Delay = d.between(time.Second, 20*time.Second)
	}
	if d.one(3) {
		a.Nodes = 2
	}
	s.Approval = a
	if len(s.Govern) > 0 && d.one(2) {
		s.Govern = append(s.Govern, Motion{Kind: "policy", At: d.between(0, s.Stop/2), Share: Share(400_000 + 50_000*d.IntN(9))})
	}
	for i := range s.Roles {
		r := &s.Roles[i]
		r.Attacks = append(slices.Clone(r.Attacks), ballotAttacks[d.IntN(len(ballotAttacks))])
	}
}

func (d drawing) links() Links {
	switch d.IntN(5) {
	case 0:
		return Links{Model: "constant", Delay: d.between(time.Millisecond, 20*time.Millisecond)}
	case 1:
		return Links{Model: "lognormal", Delay: d.between(time.Millisecond, 40*time.Millisecond), Spread: d.between(time.Millisecond, 60*time.Millisecond)}
	case 2:
		return Links{Model: "regions"}
	}
	return Links{Model: "uniform", Delay: d.between(100*time.Microsecond, 5*time.Millisecond), Spread: d.between(0, 50*time.Millisecond)}
}

// roles draws one or two coalitions that together are within the budget.
func (d drawing) roles(stop time.Duration) (roles []Role) {
	weight := []string{"budget"}
	if d.one(3) {
		weight = []string{"half", "budget"}
	}
	for _, w := range weight {
		r := Role{Weight: w, Rate: d.share(900_000) + 100_000}
		for _, i := range d.Perm(len(usual()))[:1+d.IntN(3)] {
			name := Attacks[i].Name
			if slices.Contains(alone, name) && len(r.Attacks) > 0 {
				continue
			}
			r.Attacks = append(r.Attacks, name)
			if slices.Contains(alone, name) {
				break
			}
		}
		if d.one(4) {
			r.From = d.between(0, stop/2)
		}
		if d.one(4) {
			r.Every = d.between(500*time.Millisecond, 3*time.Second)
		}
		roles = append(roles, r)
	}
	return roles
}

// guard draws when what takes approval of some keys that leases hold, and time for leases to end.
func (d drawing) guard(s *Scenario) {
	s.Network.EpochBlocks = 3 + d.IntN(10)
	change := func(to string, from, until time.Duration) {
		s.Govern = append(s.Govern, Motion{Kind: "policy", At: d.between(from, until), Guard: to})
	}
	what := guards[d.IntN(2)]
	if d.one(2) {
		s.Network.Guard = guards[d.IntN(2)]
		change("nothing", 0, s.Stop/4)
	}
	change(what, s.Stop/3, s.Stop*2/3)
	s.Load.Leases += 2
	s.Stop += 3 * time.Second
}

// guardLeases gives one world in five leases on keys that are guarded later, and changes of names below them. Worlds
// with hours between their bursts do without: their leases end long before.
func (d drawing) guardLeases(s *Scenario) {
	if !d.one(5) || s.Network.Guard != "" || len(s.Govern) > 0 || s.Load.Bursts > 0 {
		return
	}
	s.Load.Leases += 2
	s.Load.Names = max(s.Load.Names, 20+d.IntN(40))
	d.guard(s)
}

// drawnElsewhere is the number of the last FaultKinds, which have draws of their own.
const drawnElsewhere = 4

// ahead draws clocks of a quorum, or of all, that run ahead by seconds to hours, and come back.
func (d drawing) ahead(s *Scenario) {
	n := s.Network.Anchors
	f := Fault{Kind: "ahead", At: d.between(0, s.Stop/2), Nodes: d.Perm(n)[:n-d.IntN((n-1)/3+1)]}
	f.For = d.between(500*time.Millisecond, min(s.Stop-f.At, time.Minute)) // without a quorum, all is sent again and again
	f.By = d.between(time.Second, time.Minute)
	if d.one(2) {
		f.By = d.between(time.Minute, 12*time.Hour)
	}
	s.Faults.Timed = append(s.Faults.Timed, f)
}

// decisive draws the fault "decisive" for one world of eight, with a delay of about the time that nodes wait before
// they give a view up.
func (d drawing) decisive(s *Scenario) {
	if !d.one(8) {
		return
	}
	view := s.WithDefaults().Network.Timing.View
	f := Fault{Kind: "decisive", At: d.between(0, s.Stop/2), By: d.between(view/4, 2*view)}
	f.For = d.between(time.Second/2, min(s.Stop-f.At, time.Minute))
	s.Faults.Timed = append(s.Faults.Timed, f)
}

// schedule draws the bytes that decide the fates of the first frames of consensus, in one world
// of five.
func (d drawing) schedule(s *Scenario) {
	if d.one(5) {
		s.Schedule = hex.EncodeToString(DrawSchedule(d.Rand))
	}
}

func (d drawing) faults(s Scenario) (f Faults) {
	if d.one(2) {
		f.Loss = d.share(200_000)
	}
	if d.one(3) {
		f.Duplicate = d.share(100_000)
	}
	if d.one(3) {
		f.Reorder = d.share(200_000)
	}
	if d.one(5) {
		f.Crash = Share(200 + d.IntN(2000))
	}
	nodes := s.Network.Anchors + s.Network.Observers
	for range d.IntN(5) {
		x := Fault{Kind: FaultKinds[d.IntN(len(FaultKinds)-drawnElsewhere)].Name, At: d.between(0, s.Stop-time.Second)}
		x.For = d.between(100*time.Millisecond, min(s.Stop-x.At, 5*time.Minute))
		x.By = d.between(time.Millisecond, 2*time.Second)
		switch x.Kind {
		case "partition":
			cut := 1 + d.IntN(nodes-1)
			p := d.Perm(nodes)
			x.Groups, x.OneWay = [][]int{p[:cut], p[cut:]}, d.one(3)
		case "pause":
			x.For = min(x.For, 30*time.Second)
		case "drift":
			x.Rate = int64(1 + d.IntN(50_000))
		case "churn":
			x.Rate = int64(1 + d.IntN(6))
		}
		f.Timed = append(f.Timed, x)
	}
	return f
}
