package e2e

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testshort"
)

// What a node may use while nobody asks anything of it.
const (
	idleFor    = 10 * time.Second
	idleCPU    = idleFor * 2 / 100
	idleMemory = 200 << 20 // bytes
	idleTalk   = 4 << 10   // bytes per second on all links: signs of life between hosts, no blocks
)

// TestIdleCostsNothing: without work there are no blocks, no views, and next to
// nothing on the wire and on the processor (P18).
func TestIdleCostsNothing(t *testing.T) {
	testshort.SkipUnlessLong(t)
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("what processes use is read from /proc, which is not here")
	}
	n := newNetwork(t, 4, true)
	n.start()
	if _, err := n.dial(0).Put(within(t, 10*time.Second), putOf("/k", "v")); err != nil {
		t.Fatal(err)
	}
	n.agreed(10 * time.Second)
	restful := n.positions()
	since := time.Now()
	until(t, 15*time.Second, "two seconds without a new view", func(context.Context) error {
		if now := n.positions(); now != restful {
			restful, since = now, time.Now()
		}
		if still := time.Since(since); still < 2*time.Second {
			return fmt.Errorf("%s: %s", restful, still)
		}
		return nil
	})

	cpu := make([]time.Duration, len(n.nodes))
	for i, p := range n.nodes {
		cpu[i] = p.cpu()
	}
	carried := n.carried()
	<-time.After(idleFor) // the thing measured, not a wait for something
	carried = n.carried() - carried
	for i, p := range n.nodes {
		used, memory := p.cpu()-cpu[i], p.memory()
		t.Logf("%s: processor %s in %s, memory %.1f MiB", p.name, used, idleFor, float64(memory)/(1<<20))
		if used > idleCPU {
			t.Errorf("%s used the processor for %s, more than %s", p.name, used, idleCPU)
		}
		if memory > idleMemory {
			t.Errorf("%s holds %d bytes of memory", p.name, memory)
		}
	}
	t.Logf("%d bytes on all links", carried)
	if carried > int64(idleTalk*idleFor.Seconds()) {
		t.Errorf("%d bytes went over the links in %s", carried, idleFor)
	}
	if now := n.positions(); now != restful {
		t.Errorf("from %s to %s without any work", restful, now)
	}
}

// positions is where all nodes stand.
func (n *network) positions() string {
	n.t.Helper()
	var b strings.Builder
	for _, p := range n.nodes {
		s, err := p.status(context.Background())
		if err != nil {
			n.t.Fatal(err)
		}
		fmt.Fprintf(&b, "[%s: height %d, view %d] ", p.name, s.Header.Height, s.View)
	}
	return b.String()
}

// tick is the unit of processor time in /proc on all Linux machines.
const tick = 10 * time.Millisecond

// cpu is the processor time that the node has used, in and out of the system.
func (p *process) cpu() (used time.Duration) {
	text := p.proc("stat")
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:]) // from field 3 on, see proc(5)
	for _, f := range fields[11:13] {
		ticks, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			p.net.t.Fatal(err)
		}
		used += time.Duration(ticks) * tick
	}
	return used
}

// memory is what of the node is in memory, in bytes.
func (p *process) memory() int64 {
	for line := range strings.Lines(p.proc("status")) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			if err != nil {
				p.net.t.Fatal(err)
			}
			return kib << 10
		}
	}
	p.net.t.Fatalf("%s has no VmRSS", p.name)
	return 0
}

func (p *process) proc(file string) string {
	p.net.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.pid(), file))
	if err != nil {
		p.net.t.Fatal(err)
	}
	return string(text)
}
