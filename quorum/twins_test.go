package quorum_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/quorum"
)

var (
	twinViews = flag.Int("twin-views", 0, "views that TestTwinsInAllSchedules schedules; 0: 2, in mode crash 3")
	twinSides = flag.Int("twin-sides", 2, "sides into which it splits the machines at most")
	twinEach  = flag.Int("twin-share", 1, "of how many schedules it plays one")
)

// twins are all schedules of one anchor that runs twice on its key, as in Twins (Bano et al., 2021): for each of a
// few views, its leader and the split of the machines. Messages that a machine sends in such a view reach its own
// side alone; later messages reach all.
//
// Schedules that differ by the names of anchors of equal weight, or of the two twins, are one: of each class the least
// is played.
type twins struct {
	cfg      quorum.Config
	liar     int // the last anchor; its twin is one more machine
	rounds   []round
	names    [][]int // by renaming: the round that each becomes
	depth    int
	leaders  map[string]aweigh.Hash // seeds, by the leaders of the views
	played   int
	counted  uint64 // schedules, with those of which a played one is the least
	finals   int
	broken   int
	breaks   string // the first schedule that broke something, and what
	schedule []int
}

// round is one view of a schedule: the anchor that leads, from 1, and the side of each machine.
type round struct {
	leader int
	side   string
}

func newTwins(t *testing.T, mode quorum.Mode, depth, sides int, weights ...uint64) *twins {
	x := &twins{
		cfg: quorum.Config{
			Weights: weigh(t, weights...), Rules: quorum.DefaultRules(mode), Root: aweigh.Sum([]byte("root")),
			Timing: quorum.Timing{Offer: 700 * time.Millisecond, MaxView: 2 * time.Second},
		},
		liar: len(weights), depth: depth, leaders: make(map[string]aweigh.Hash),
	}
	for leader := 1; leader <= x.liar; leader++ {
		for _, s := range splits(x.liar+1, sides) {
			x.rounds = append(x.rounds, round{leader, s})
		}
	}
	machines := make([]int, x.liar+1)
	for i := range machines {
		machines[i] = i
	}
	permute(machines, func(to []int) {
		for i, j := range to { // honest anchors stay so, and keep their weight
			if lies := i >= x.liar-1; lies != (j >= x.liar-1) || !lies && weights[i] != weights[j] {
				return
			}
		}
		names := make([]int, len(x.rounds))
		for i, r := range x.rounds {
			names[i] = slices.Index(x.rounds, r.rename(to, x.liar))
		}
		x.names = append(x.names, names)
	})
	return x
}

// rename is the round after machine i became machine to[i].
func (r round) rename(to []int, liar int) round {
	side := make([]byte, len(r.side))
	for i, j := range to {
		side[j] = r.side[i]
	}
	if r.leader != liar {
		r.leader = to[r.leader-1] + 1
	}
	r.side = ordered(side)
	return r
}

// ordered names sides in the order in which they appear.
func ordered(side []byte) string {
	var seen []byte
	for i, s := range side {
		at := slices.Index(seen, s)
		if at < 0 {
			at = len(seen)
			seen = append(seen, s)
		}
		side[i] = 'a' + byte(at)
	}
	return string(side)
}

// splits are all ways to split so many machines into sides.
func splits(machines, sides int) (all []string) {
	var add func(s []byte, used int)
	add = func(s []byte, used int) {
		if len(s) == machines {
			all = append(all, string(s))
			return
		}
		for i := range min(used+1, sides) {
			add(append(s[:len(s):len(s)], 'a'+byte(i)), max(used, i+1))
		}
	}
	add(nil, 0)
	return all
}

// permute calls use with every order of s.
func permute(s []int, use func([]int)) {
	var swap func(int)
	swap = func(at int) {
		if at == len(s) {
			use(s)
			return
		}
		for i := at; i < len(s); i++ {
			s[at], s[i] = s[i], s[at]
			swap(at + 1)
			s[at], s[i] = s[i], s[at]
		}
	}
	swap(0)
}

// enumerate plays the least schedule of each class. names are the renamings that leave the schedule so far unchanged;
// those left in the end give the number of schedules in the class.
func (x *twins) enumerate(names [][]int) {
	if len(x.schedule) == x.depth {
		x.counted += uint64(len(x.names) / len(names))
		if x.played++; x.played%*twinEach == 0 {
			x.play()
		}
		return
	}
	for r := range x.rounds {
		var stay [][]int
		least := true
		for _, to := range names {
			if to[r] == r {
				stay = append(stay, to)
			}
			least = least && to[r] >= r
		}
		if least {
			x.schedule = append(x.schedule, r)
			x.enumerate(stay)
			x.schedule = x.schedule[:len(x.schedule)-1]
		}
	}
}

func (x *twins) String() (text string) {
	for v, r := range x.schedule {
		text += fmt.Sprintf(" view %d: %d leads %s;", v+1, x.rounds[r].leader, x.rounds[r].side)
	}
	return text
}

// seed is one by which the views have the leaders of the schedule.
func (x *twins) seed() aweigh.Hash {
	var leaders []byte
	for _, r := range x.schedule {
		leaders = append(leaders, byte(x.rounds[r].leader))
	}
	if s, ok := x.leaders[string(leaders)]; ok {
		return s
	}
	for i := 0; ; i++ {
		s := aweigh.Sum(fmt.Append(nil, i))
		fits := func(v int) bool { return quorum.Leader(x.cfg.Weights, s, aweigh.View(v+1)) == anchor(int(leaders[v])) }
		v := 0
		for v < len(leaders) && fits(v) {
			v++
		}
		if v == len(leaders) {
			x.leaders[string(leaders)] = s
			return s
		}
	}
}

// play plays the schedule, and notes what broke.
func (x *twins) play() {
	defer func() {
		if p := recover(); p != nil {
			if why := fmt.Sprint(p); !strings.HasPrefix(why, "fork: ") && !strings.Contains(why, "more than the fault budget lies") {
				panic(p) // it is a bug of another kind
			}
			if x.broken++; x.breaks == "" {
				x.breaks = fmt.Sprintf("schedule %d:%v %v", x.played, x, p)
			}
		}
	}()
	cfg := x.cfg
	cfg.Seed = x.seed()
	n := newNetwork(cfg, x.liar)
	n.twin(x.liar)
	n.gossip = true
	mutations := 0
	for n.now < start.Add(5*time.Second) && mutations < 60 {
		n.work(mutations)
		mutations++
		for len(n.queue) > 0 {
			m := n.queue[0]
			n.queue = n.queue[1:]
			if x.connects(m) {
				n.receive(m)
			}
		}
		last, next := aweigh.View(x.depth)+1, start.Add(5*time.Second)
		for _, p := range n.peers {
			last = min(last, p.engine.View())
			next = min(next, cmpWake(p.wake, next))
		}
		if last > aweigh.View(x.depth) {
			break
		}
		n.tick(max(next.Sub(n.now), time.Nanosecond))
	}
	n.meet()
	all := uint64(1)<<mutations - 1
	done := func() bool {
		for _, p := range n.peers[:x.liar-1] {
			if n.blocks[n.best(p)].content != all || n.best(p) != n.highest {
				return false
			}
		}
		return true
	}
	for i := 0; !done(); i++ {
		if i == 100 {
			n.broken("no progress in 100 s in which all hear each other")
		}
		n.run(time.Second)
	}
	x.finals += len(n.finalAt)
}

// connects reports whether a message arrives, by the view in which its sender was.
func (x *twins) connects(m message) bool {
	if m.view == 0 || m.view > aweigh.View(x.depth) {
		return true
	}
	side := x.rounds[x.schedule[m.view-1]].side
	return side[m.from-1] == side[m.to-1]
}

// TestTwinsInAllSchedules plays all of them for engines: nothing forks, all is final in the end, and no vote of an
// honest anchor is one that the model forbids. As a positive control the same is done where no anchor may lie, mode
// crash: some schedules must fork.
func TestTwinsInAllSchedules(t *testing.T) {
	depth := func(d int) int {
		if *twinViews > 0 {
			return *twinViews
		}
		return d
	}
	for _, c := range []struct {
		name string
		x    *twins
		fork bool
	}{
		{"bft, four alike", newTwins(t, quorum.BFT, depth(2), *twinSides, 1, 1, 1, 1), false},
		{"bft, 3 2 1 1, a 1 lies", newTwins(t, quorum.BFT, depth(2), *twinSides, 3, 2, 1, 1), false},
		{"crash, three alike", newTwins(t, quorum.Crash, depth(3), *twinSides, 1, 1, 1), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if strings.HasPrefix(c.name, "bft, 3") { // which has the most schedules
				testshort.Skip(t)
			}
			x := c.x
			x.enumerate(x.names)
			want := uint64(1)
			for range x.depth {
				want *= uint64(len(x.rounds))
			}
			t.Logf("%d schedules of %d views stand for %d; %d blocks became final; %d broke", x.played, x.depth, x.counted, x.finals, x.broken)
			switch {
			case x.counted != want:
				t.Errorf("the schedules stand for %d, and there are %d", x.counted, want)
			case c.fork != (x.broken > 0):
				t.Errorf("%d of %d schedules broke: %s", x.broken, x.played, x.breaks)
			case x.finals == 0:
				t.Error("nothing became final")
			}
		})
	}
}
