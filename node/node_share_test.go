package node

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
)

// shop is a node that can do so many changes a second before goroutines wait for its processors. Its clients have
// as many ready as they are let, in scopes that have so many a second at most.
type shop struct {
	*sharing
	clock time.Time
	queue float64
	can   float64
	wants map[aweigh.ScopeID]float64
	done  map[aweigh.ScopeID]float64 // in the last step
}

func newShop(can float64) *shop {
	s := &shop{clock: time.Unix(1e9, 0), can: can, wants: make(map[aweigh.ScopeID]float64), done: make(map[aweigh.ScopeID]float64)}
	s.sharing = newSharing()
	s.now = func() time.Time { return s.clock }
	s.sharing.queue = func() float64 { return s.queue }
	return s
}

// run lets time pass, in steps at the end of each of which the rate is found anew.
func (s *shop) run(d time.Duration) {
	for end := s.clock.Add(d); s.clock.Before(end); {
		s.clock = s.clock.Add(shareLooks)
		var busy, all float64
		for id, wants := range s.wants {
			if s.busy(id) {
				busy += wants
			} else {
				all += wants
			}
		}
		let := math.Min(1, float64(s.limiter.Limit())/busy)
		all += busy * let
		slow := math.Min(1, s.can/all)
		s.queue = 0.01
		if slow < 1 {
			s.queue = 1
		}
		for id, wants := range s.wants {
			if s.busy(id) {
				wants *= let
				s.taken.Add(int64(wants * slow * shareLooks.Seconds()))
			}
			s.done[id] = wants * slow
			if n := int(math.Round(wants * slow * shareLooks.Seconds())); n > 0 {
				s.final(id, n)
			}
		}
	}
}

// held is the rate that busy scopes are held to, 0 for none.
func (s *shop) held() float64 {
	perSecond, _ := s.sharing.held()
	return perSecond
}

// TestBusyScopesGiveWay: a flood is held to what processors do without a queue while others write, and to nothing else.
func TestBusyScopesGiveWay(t *testing.T) {
	flood, quiet, other := aweigh.ScopeID{1}, aweigh.ScopeID{2}, aweigh.ScopeID{3}
	s := newShop(8000)
	s.wants[flood] = 20_000
	s.run(10 * time.Second)
	if s.held() != 0 || s.done[flood] != 8000 {
		t.Fatalf("alone it is held to %.0f and does %.0f", s.held(), s.done[flood])
	}

	s.wants[quiet] = 100
	s.run(5 * time.Second)
	var least, most float64 = math.Inf(1), 0
	for range 50 {
		s.run(shareLooks)
		least, most = min(least, s.held()), max(most, s.held())
	}
	if least < 6000 || most > 8500 {
		t.Errorf("beside a quiet scope it is held to %.0f to %.0f", least, most)
	}

	s.can = 1500 // something else takes the processors
	s.run(10 * time.Second)
	if h := s.held(); h < 1500 || h > 2001 {
		t.Errorf("while something else takes the processors it is held to %.0f, a quarter of the 8,000 is its own", h)
	}

	s.can = 8000
	delete(s.wants, quiet)
	s.run(2 * time.Second)
	if s.held() != 0 {
		t.Errorf("alone again it is held to %.0f", s.held())
	}

	s.wants[other] = 15_000
	s.run(20 * time.Second)
	if s.held() != 0 {
		t.Errorf("beside one that floods as well it is held to %.0f", s.held())
	}
}

// TestScopesThatTakeLittleAreNotHeld: neither those with few changes, nor any while processors are free.
func TestScopesThatTakeLittleAreNotHeld(t *testing.T) {
	s := newShop(8000)
	s.wants[aweigh.ScopeID{1}], s.wants[aweigh.ScopeID{2}] = 5000, 10
	s.run(20 * time.Second)
	if s.held() != 0 {
		t.Errorf("with processors free it is held to %.0f", s.held())
	}
	s = newShop(50)
	s.wants[aweigh.ScopeID{1}], s.wants[aweigh.ScopeID{2}] = 150, 10
	s.run(20 * time.Second)
	if s.held() != 0 {
		t.Errorf("a scope of 50 changes a second is held to %.0f", s.held())
	}
}

// TestWhatIsIdleIsForgotten: nothing stays of scopes that are not written to any more.
func TestWhatIsIdleIsForgotten(t *testing.T) {
	s := newShop(1e6)
	for k := range 200 {
		s.wants[aweigh.ScopeID{byte(k)}] = 100
	}
	s.run(time.Second)
	clear(s.wants)
	s.wants[aweigh.ScopeID{255}] = 100
	s.run(time.Minute)
	if len(s.flows) != 1 {
		t.Errorf("%d scopes are remembered, one is written to", len(s.flows))
	}
}

// TestOnlyTheFloodedScopeWaits: on a real node whose processors are short, clients of the flooded scope wait for
// their turn, and are told so if that takes too long; those of another never wait.
func TestOnlyTheFloodedScopeWaits(t *testing.T) {
	c := startCluster(t, 1, quorum.Crash)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c.delegate(ctx, "", "/flood/", quorum.Crash, 0)
	c.delegate(ctx, "", "/quiet/", quorum.Crash, 0)
	n := c.nodes[0]
	n.sharing.mu.Lock()
	n.sharing.queue = func() float64 { return 1 }
	n.sharing.mu.Unlock()

	writes, stop := context.WithCancel(ctx)
	var writing sync.WaitGroup
	defer writing.Wait()
	defer stop()
	for k := range 50 {
		writing.Go(func() {
			for writes.Err() == nil {
				n.Txn(writes, putTxn(fmt.Sprint("/flood/", k), "v"), Once{})
			}
		})
	}
	for quiet := 0; n.Counts().GaveWay < 1000; quiet++ {
		if _, err := n.Txn(ctx, putTxn(fmt.Sprint("/quiet/", quiet%100), "v"), Once{}); err != nil {
			t.Fatalf("write %d to the quiet scope: %v", quiet, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	if held := n.Counts().GivingWay; held < shareBusy {
		t.Errorf("the flooded scope is held to %.0f a second", held)
	}
	of := make(map[string]aweigh.ScopeID)
	for _, p := range n.Parts() {
		of[string(p.prefix)] = p.id
	}
	short, end := context.WithTimeout(ctx, 10*time.Millisecond)
	defer end()
	if err := n.sharing.wait(short, of["/quiet/"], 1e6, nil); err != nil {
		t.Errorf("a million changes of the quiet scope: %v", err)
	}
	if err := n.sharing.wait(short, of["/flood/"], 1e6, nil); !errors.Is(err, ErrBusy) {
		t.Errorf("a million changes of the flooded scope: %v", err)
	}
}
