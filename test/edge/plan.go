package edge

import (
	"math/rand/v2"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
)

// Plan is what a seed decides about a world before it begins.
type Plan struct {
	Seed               uint64
	Anchors, Observers int
	Mode               quorum.Mode
	Length             time.Duration // until all faults end
	Weather            Weather
	Faults             int
	Clients, Watchers  int
	Think              time.Duration // of a client between two requests, on average
	Value              int           // bytes, at most
	Under              []string      // prefixes below which clients write
	Behind             aweigh.Height // see node.Config: SnapshotBehind, SnapshotPart, Prune, WatchMemory, FirstCome
	Part               int
	Prune              bool
	WatchMemory        int64
	FirstCome          bool
	Late               bool // the last node joins when the world is old
	Long               bool // it finds a long chain
	Foreign            bool // nodes hold no scope but the root's and those in which they are anchors
	Tenants            int  // clients with leases
	Compact            bool
	Flood              bool
	Rate               int64 // see scope.Limits
	Inspect            bool
	Vote, Admit        bool
	Epoch              uint64 // blocks; 0: as by default
}

// scopes reports whether there are scopes below the root's.
func (p *Plan) scopes() bool { return len(p.Under) > 1 }

// draw draws the plan of a seed.
func draw(seed uint64) Plan {
	c := chance(seed).of("plan")
	r := c.stream()
	p := Plan{
		Seed: seed, Mode: quorum.BFT, Anchors: 4, Observers: r.IntN(2), Length: time.Duration(10+r.IntN(20)) * time.Second,
		Faults: r.IntN(12), Clients: 2 + r.IntN(3), Watchers: 3, Think: time.Duration(150+r.IntN(400)) * time.Millisecond,
		Value: 100, Under: []string{"/a/"},
	}
	if r.IntN(2) == 0 {
		p.Mode, p.Anchors = quorum.Crash, 3
	}
	p.Weather = Weather{Least: time.Millisecond, Most: time.Duration(2+r.IntN(60)) * time.Millisecond, Queue: 1024}
	if r.IntN(2) == 0 {
		p.Weather.Loss = r.IntN(30_000)
	}
	p.kind(chance(seed).of("kind").stream())
	return p
}

// kind draws what a world is about besides.
func (p *Plan) kind(r *rand.Rand) {
	p.Tenants, p.Inspect, p.Compact, p.Prune, p.FirstCome = r.IntN(3), r.IntN(2) == 0, r.IntN(3) == 0, r.IntN(2) == 0, r.IntN(2) == 0
	if r.IntN(2) == 0 { // snapshots, of several parts
		p.Behind, p.Part = aweigh.Height(8+r.IntN(20)), 400+r.IntN(3000)
		if p.Observers > 0 {
			p.Late = r.IntN(3) > 0
		}
	}
	if r.IntN(3) == 0 {
		p.Anchors, p.Mode = 4, quorum.BFT
		p.Under, p.Foreign = append(p.Under, below), r.IntN(2) == 0
		if p.Flood = r.IntN(3) == 0; p.Flood {
			p.Faults, p.Late, p.Rate, p.Weather.Loss = 0, false, 100, 0
		}
	}
	if len(p.Under) == 1 && r.IntN(6) == 0 {
		p.Late, p.Long, p.Observers, p.Behind, p.Part, p.Length = true, true, 1, aweigh.Height(8+r.IntN(8)), 1000+r.IntN(8000), 25*time.Second
		if r.IntN(2) == 0 {
			p.Weather.Spoil = 200_000
		}
		p.Weather.Most, p.Faults, p.Prune = 5*time.Millisecond, r.IntN(4), false
	}
	p.Vote = !p.Flood && r.IntN(3) == 0
	if !p.Flood && r.IntN(2) == 0 {
		p.Epoch = uint64(20 + r.IntN(60))
		p.Admit = p.Observers > 0 && !p.Late && len(p.Under) == 1 && r.IntN(2) == 0
	}
	if r.IntN(4) == 0 {
		p.WatchMemory, p.Value = 64<<10, 4000
	}
}
