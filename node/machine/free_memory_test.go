package machine

import (
	"fmt"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// busied returns a drill of anchors that have each written a few times. If frees is set, they free memory after
// every step.
func busied(t *testing.T, name string, k int, mode quorum.Mode, frees bool) *drill {
	t.Helper()
	n := newDrill(t, name, k, scope.OpenPolicy(mode))
	n.frees = frees
	var who []int
	for i := range k {
		who = append(who, i)
	}
	n.meet(who)
	n.all(who, 4)
	for round := range 3 {
		for _, i := range who {
			n.step(i, Submit{Bundle: n.bundle(i, fmt.Sprint("/k", round, i))})
			n.all(who, 8)
		}
	}
	n.now = n.now.Add(time.Minute)
	n.all(who, 8)
	return n
}

// TestFreeingMemoryChangesNothing: anchors that free memory after every step send, write and answer the same.
func TestFreeingMemoryChangesNothing(t *testing.T) {
	for _, mode := range []quorum.Mode{quorum.BFT, quorum.Crash} {
		kept, freed := busied(t, "rest", 4, mode, false), busied(t, "rest", 4, mode, true)
		for i := range kept.m {
			if !reflect.DeepEqual(kept.did[i], freed.did[i]) {
				t.Errorf("%v: anchor %d does something else if it frees memory", mode, i)
			}
			a, b := kept.m[i].Status(), freed.m[i].Status()
			if !reflect.DeepEqual(a, b) {
				t.Errorf("%v: anchor %d stands at %+v if it frees memory, and else at %+v", mode, i, b, a)
			}
			if a.Head.Height < 3 || !freed.m[i].chain.state.IsLean() {
				t.Fatalf("%v: anchor %d is at height %d; is its state lean? %v", mode, i, a.Head.Height, freed.m[i].chain.state.IsLean())
			}
		}
	}
}

// TestIdleMachinesAreSmall bounds what a machine holds that has nothing to do, with all
// that follows from its genesis. TestManyIdleScopes measures what is around it, too.
func TestIdleMachinesAreSmall(t *testing.T) {
	const most = 23 << 9
	each := int64(0)
	for range 3 { // other goroutines may take memory meanwhile: one time without is enough
		if each = idleMemory(t); each <= most {
			t.Logf("an idle machine holds %d bytes", each)
			return
		}
	}
	t.Errorf("an idle machine holds %d bytes, more than %d", each, most)
}

// idleMemory is the memory of one idle machine, in bytes.
func idleMemory(t *testing.T) int64 {
	const drills, anchors = 30, 3
	var all []*drill
	for i := range drills {
		n := busied(t, fmt.Sprint("small", i), anchors, quorum.Crash, false)
		for j, m := range n.m {
			m.FreeMemory()
			n.out[j], n.reply[j], n.did[j] = nil, nil, nil
		}
		all = append(all, n)
	}
	// Goroutines that earlier tests left behind may let go of memory at any time: the heap counts once it stands still.
	heap := func() uint64 {
		var m runtime.MemStats
		for last, still := uint64(0), 0; still < 3; last = m.HeapAlloc {
			runtime.GC()
			runtime.ReadMemStats(&m)
			if d := int64(m.HeapAlloc - last); -4096 < d && d < 4096 {
				still++
			} else {
				still = 0
			}
		}
		return m.HeapAlloc
	}
	with := heap()
	for _, n := range all {
		n.m, n.net = nil, nil
	}
	without := heap()
	runtime.KeepAlive(all)
	return int64(with-without) / (drills * anchors)
}
