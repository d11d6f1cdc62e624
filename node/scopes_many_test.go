package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aweigh/aweigh/quorum"
)

// TestManyIdleScopes measures what scopes cost in which nothing happens: memory,
// goroutines, messages and processor time of four nodes in this process. It runs with
// AWEIGH_SCOPES=1000, or another number.
func TestManyIdleScopes(t *testing.T) {
	many, _ := strconv.Atoi(os.Getenv("AWEIGH_SCOPES"))
	if many == 0 {
		t.Skip("AWEIGH_SCOPES is not set")
	}
	c := startCluster(t, 4, quorum.BFT)
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	heap := func() (bytes uint64, goroutines int) {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc, runtime.NumGoroutine()
	}
	sent := func() (frames uint64) {
		for _, n := range c.nodes {
			frames += n.NetworkStats().FramesSent
		}
		return frames
	}
	idle := func(what string) (cpu time.Duration, frames uint64) {
		time.Sleep(3 * time.Second) // what was under way comes to rest
		before, beforeFrames := spent(t), sent()
		time.Sleep(10 * time.Second) // the time that is measured
		cpu, frames = spent(t)-before, sent()-beforeFrames
		t.Logf("%s: in 10 s of rest %v of processor time, %d frames", what, cpu, frames)
		return cpu, frames
	}
	idle("one scope")
	bytes0, routines0 := heap()
	began := time.Now()
	for i := range many {
		c.delegate(ctx, "", fmt.Sprintf("/s%d/", i), quorum.Crash, i%4, (i+1)%4, (i+2)%4)
		if i%100 == 99 {
			t.Logf("%d scopes after %v", i+1, time.Since(began).Round(time.Second))
		}
	}
	idle(fmt.Sprintf("%d scopes", many+1))
	bytes1, routines1 := heap()
	if file := os.Getenv("AWEIGH_HEAP"); file != "" {
		f, err := os.Create(file)
		if err == nil {
			err = errors.Join(pprof.WriteHeapProfile(f), f.Close())
		}
		if err != nil {
			t.Error(err)
		}
	}
	per := uint64(4 * many)
	t.Logf("each scope on each node: %d bytes of heap, %.1f goroutines", (bytes1-bytes0)/per, float64(routines1-routines0)/float64(per))
	began = time.Now()
	if _, err := c.nodes[0].Txn(ctx, putTxn("/s7/x", "v"), Once{}); err != nil {
		t.Fatal(err)
	}
	t.Logf("a first write to one of them took %v", time.Since(began))

	// And when 256 of them have something to do at once, what each repeats must not keep
	// all from getting on.
	awake := min(many, 256)
	for round := range 5 {
		var writing sync.WaitGroup
		took := make([]time.Duration, awake)
		began, cpu := time.Now(), spent(t)
		for i := range awake {
			writing.Go(func() {
				if _, err := c.nodes[i%4].Txn(ctx, putTxn(fmt.Sprintf("/s%d/x", i), fmt.Sprint(round)), Once{}); err != nil {
					t.Errorf("scope %d: %v", i, err)
				}
				took[i] = time.Since(began)
			})
		}
		writing.Wait()
		slices.Sort(took)
		t.Logf("a write to each of %d at once: half took %v, the last %v; %v of processor time", awake, took[awake/2].Round(time.Millisecond), took[awake-1].Round(time.Millisecond), (spent(t) - cpu).Round(time.Millisecond))
	}
}
