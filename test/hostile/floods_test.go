package hostile

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/p2p"
)

// start starts an attacker in a process of its own, on one processor, and waits
// until it begins. stop ends it.
func (p plan) start(t testing.TB) (stop func()) {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), attackerEnv+"="+string(text), "GOMAXPROCS=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	t.Cleanup(stop)
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || strings.TrimSpace(line) != "begin" {
		t.Fatalf("the attacker did not begin: %q, %v", line, err)
	}
	return stop
}

// flooded starts the network that a flood needs: an attacker that is an anchor
// takes the place of the fourth.
func flooded(t testing.TB, flood string) *net4 {
	if floods[flood].anchor {
		return newNetwork(t, 3)
	}
	return newNetwork(t, 4)
}

// TestFloodsStopNoWrite: while 10,000 messages a second come, all honest writes
// commit, refused messages are counted, and memory stays bounded. By default, every second flood comes.
func TestFloodsStopNoWrite(t *testing.T) {
	testshort.SkipUnlessLong(t)
	for i, flood := range names() {
		t.Run(flood, func(t *testing.T) {
			if i%2 == 1 {
				testshort.SkipUnlessLong(t)
			}
			x := flooded(t, flood)
			before := inUse()
			received := x.arrived()
			stop := x.newPlan(t, flood, 10_000).start(t)
			testwait.Until(t, "the flood arrives", func() bool { return x.arrived() > received+5 }) // long offers wait for seconds
			for range 5 {
				x.commits(t)
			}
			held := inUse()
			s := x.node(0).NetworkStats()
			t.Logf("%d MiB more in use; frames %d, slowed %d, blamed %d, blocked %d, refused %d; gossip %d, rejected %d, dropped %d, excess %d; input dropped %d",
				(int64(held)-int64(before))>>20, s.FramesReceived, s.Slowed, s.Blamed, s.Blocked, s.GateRefusals,
				s.GossipReceived, s.GossipRejected, s.GossipDropped, s.GossipExcess, x.node(0).Dropped())
			if held > before+heapBound {
				t.Errorf("%d MiB of heap in use, and %d before", held>>20, before>>20)
			}
			stop()
			x.commits(t)
			// One may have said last that it listens.
			testwait.Until(t, "all anchors are reached after the flood", func() bool {
				return len(x.node(0).Root().Reach().Anchors) >= len(x.daemons)
			})
		})
	}
}

// arrived is what came in of frames and gossip, at all nodes, read or not.
func (x *net4) arrived() uint64 {
	return x.stats(func(s p2p.Stats) uint64 {
		return s.FramesReceived + s.GossipReceived + s.GossipDropped + s.GossipRejected + s.GossipExcess + s.GateRefusals + s.GossipDuplicates
	})
}

// floodsEnv makes TestFloodsLeaveThroughput run.
const floodsEnv = "AWEIGH_FLOODS"

// TestFloodsLeaveThroughput measures honest throughput with and without each
// flood, in turns, on one network. An attacker is a process with one processor,
// which it takes from the nodes if the machine has few, and other programs take
// more. So a flood is judged first by what it costs its victims: the processor time
// of this process, which is the nodes and their clients, per write. One that is an
// anchor leads every fourth view, and says nothing then: it is compared with an
// anchor that is connected and does no more than that.
func TestFloodsLeaveThroughput(t *testing.T) {
	testshort.SkipUnlessLong(t)
	if os.Getenv(floodsEnv) == "" {
		t.Skipf("takes minutes and a quiet machine; set %s=1", floodsEnv)
	}
	const rounds, warm, window = 4, time.Second, 2 * time.Second
	for _, flood := range names() {
		t.Run(flood, func(t *testing.T) {
			x := flooded(t, flood)
			loud := x.newPlan(t, flood, 10_000)
			silent := loud
			silent.Rate = 0
			before := resident(t)
			measure := func(p plan) load {
				if p.Rate > 0 || floods[flood].anchor {
					defer p.start(t)()
				}
				x.load(t, warm)
				return x.load(t, window)
			}
			var without, with []load
			for range rounds {
				without = append(without, measure(silent))
				with = append(with, measure(loud))
			}
			without = append(without, measure(silent))
			calm, busy := middle(without), middle(with)
			kept, worth := busy.rate/calm.rate, 1.0
			if busy.cost > 0 {
				worth = float64(calm.cost) / float64(busy.cost)
			}
			t.Logf("%.0f %% by cost: %v without, %v with; %.0f %% by rate: %.0f/s without, %.0f with; resident %d MiB, %d MiB before; %v, %v",
				100*worth, calm.cost, busy.cost, 100*kept, calm.rate, busy.rate, resident(t)>>20, before>>20, without, with)
			if worth < 0.8 || kept < 0.6 { // the attacker's processor, and others' noise, are in the latter
				t.Errorf("%.0f %% of the writes are left for the same processor time, %.0f %% in the same time", 100*worth, 100*kept)
			}
		})
	}
}

// load is what 64 clients did in a while.
type load struct {
	rate float64       // writes per second
	cost time.Duration // of processor time per write, 0 if the system does not say
}

func (l load) String() string { return fmt.Sprintf("%.0f/s at %v", l.rate, l.cost) }

// middle is the median of each.
func middle(all []load) load {
	var rates []float64
	var costs []time.Duration
	for _, l := range all {
		rates, costs = append(rates, l.rate), append(costs, l.cost)
	}
	slices.Sort(rates)
	slices.Sort(costs)
	n := len(all)
	return load{(rates[(n-1)/2] + rates[n/2]) / 2, (costs[(n-1)/2] + costs[n/2]) / 2}
}

// load has 64 clients write for a while.
func (x *net4) load(t testing.TB, d time.Duration) load {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var done atomic.Int64
	var clients sync.WaitGroup
	began, before := time.Now(), spent(t)
	for i := range 64 {
		clients.Add(1)
		go func() {
			defer clients.Done()
			for k := 0; ctx.Err() == nil; k++ {
				if _, err := x.node(i%len(x.daemons)).Txn(ctx, put(fmt.Sprintf("/load/%d/%d", i, k%100), "value"), node.Once{}); err == nil {
					done.Add(1)
				}
			}
		}()
	}
	clients.Wait()
	writes := done.Load()
	return load{float64(writes) / time.Since(began).Seconds(), ((spent(t) - before) / time.Duration(max(writes, 1))).Round(time.Microsecond)}
}

// spent is this process's processor time, 0 where the system does not say.
func spent(t testing.TB) time.Duration {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(raw), ") ") // after the name
	fields := strings.Fields(rest)
	var user, system int64 // in hundredths of a second
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		t.Fatal(err)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}

// resident is this process's memory in bytes, 0 where the system does not say.
func resident(t testing.TB) uint64 {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, pages uint64
	if _, err := fmt.Sscan(string(raw), &size, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * uint64(os.Getpagesize())
}
