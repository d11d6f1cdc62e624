package hostile

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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

// TestFloodsStopNobody: while 10,000 messages a second come, all that is honest
// commits, what is refused is counted, and memory stays bounded.
func TestFloodsStopNobody(t *testing.T) {
	if testing.Short() {
		t.Skip("floods take a while")
	}
	for _, flood := range names() {
		t.Run(flood, func(t *testing.T) {
			x := flooded(t, flood)
			before := inUse()
			received := x.arrived()
			stop := x.newPlan(t, flood, 10_000).start(t)
			eventually(t, "the flood arrives", func() bool { return x.arrived() > received+5 }) // long offers wait for seconds
			for range 10 {
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
			if r := x.node(0).Reach(); len(r.Anchors) < len(x.daemons) {
				t.Errorf("%d anchors are reached after the flood", len(r.Anchors))
			}
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
// flood, in turns, on one network. The attacker is a process with one processor,
// at the expense of the machine, and so of the nodes if it has few. One that is an
// anchor leads every fourth view, and says nothing then: it is compared with an
// anchor that is connected and does no more than that.
func TestFloodsLeaveThroughput(t *testing.T) {
	if os.Getenv(floodsEnv) == "" {
		t.Skipf("takes minutes and a quiet machine; set %s=1", floodsEnv)
	}
	const rounds, warm, window = 3, time.Second, 2 * time.Second
	for _, flood := range names() {
		t.Run(flood, func(t *testing.T) {
			x := flooded(t, flood)
			loud := x.newPlan(t, flood, 10_000)
			silent := loud
			silent.Rate = 0
			before := resident(t)
			measure := func(p plan) float64 {
				if p.Rate > 0 || floods[flood].anchor {
					defer p.start(t)()
				}
				x.load(warm)
				return x.load(window)
			}
			var without, with []float64
			for range rounds {
				without = append(without, measure(silent))
				with = append(with, measure(loud))
			}
			without = append(without, measure(silent))
			kept := mean(with) / mean(without)
			t.Logf("%.0f writes/s without, %.0f with: %.0f %% (%.0f, %.0f); resident %d MiB, %d MiB before",
				mean(without), mean(with), 100*kept, without, with, resident(t)>>20, before>>20)
			least := cmp.Or(floods[flood].least, 0.8)
			if kept < least {
				t.Errorf("%.0f %% of the throughput is left", 100*kept)
			}
		})
	}
}

// load has 64 clients write for a while, and returns the writes per second.
func (x *net4) load(d time.Duration) float64 {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var done atomic.Int64
	var clients sync.WaitGroup
	began := time.Now()
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
	return float64(done.Load()) / time.Since(began).Seconds()
}

func mean(x []float64) (m float64) {
	for _, v := range x {
		m += v / float64(len(x))
	}
	return m
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
