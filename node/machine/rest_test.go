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

// busied returns a drill of anchors that have each written a few times. If rests is set, they rest after every step.
func busied(t *testing.T, name string, k int, mode quorum.Mode, rests bool) *drill {
	t.Helper()
	n := newDrill(t, name, k, scope.OpenPolicy(mode))
	n.rests = rests
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

// TestRestChangesNothing: anchors that rest after every step send, write and answer the same.
func TestRestChangesNothing(t *testing.T) {
	for _, mode := range []quorum.Mode{quorum.BFT, quorum.Crash} {
		awake, rested := busied(t, "rest", 4, mode, false), busied(t, "rest", 4, mode, true)
		for i := range awake.m {
			if !reflect.DeepEqual(awake.did[i], rested.did[i]) {
				t.Errorf("%v: anchor %d does something else if it rests", mode, i)
			}
			a, b := awake.m[i].Status(), rested.m[i].Status()
			if !reflect.DeepEqual(a, b) {
				t.Errorf("%v: anchor %d stands at %+v if it rests, and else at %+v", mode, i, b, a)
			}
			if a.Head.Height < 3 || !rested.m[i].chain.state.IsLean() {
				t.Fatalf("%v: anchor %d is at height %d; does it rest? %v", mode, i, a.Head.Height, rested.m[i].chain.state.IsLean())
			}
		}
	}
}

// TestRestingMachinesAreSmall bounds what a machine holds that has nothing to do, with all
// that follows from its genesis. TestManyIdleScopes measures what is around it, too.
func TestRestingMachinesAreSmall(t *testing.T) {
	const most = 11 << 10
	each := int64(0)
	for range 3 { // other goroutines may take memory meanwhile: one time without is enough
		if each = atRest(t); each <= most {
			t.Logf("a machine at rest holds %d bytes", each)
			return
		}
	}
	t.Errorf("a machine at rest holds %d bytes, more than %d", each, most)
}

// atRest is the memory of one machine at rest, in bytes.
func atRest(t *testing.T) int64 {
	const drills, anchors = 30, 3
	var all []*drill
	for i := range drills {
		n := busied(t, fmt.Sprint("small", i), anchors, quorum.Crash, false)
		for j, m := range n.m {
			m.Rest()
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
