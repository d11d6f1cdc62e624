package admission

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
)

// shop is a node that can do so many changes a second before goroutines wait for its processors. Its clients want
// so many a second in each scope, and hand in what they are let. It has no lines: those are of the real limiter.
type shop struct {
	*Sharing
	clock time.Time
	short float64
	can   float64
	wants map[aweigh.ScopeID]float64
	done  map[aweigh.ScopeID]float64 // in the last step, a second
	owed  map[aweigh.ScopeID]float64 // changes, parts of which were done in the steps before
}

func newShop(can float64) *shop {
	s := &shop{clock: time.Unix(1e9, 0), can: can, wants: make(map[aweigh.ScopeID]float64), done: make(map[aweigh.ScopeID]float64), owed: make(map[aweigh.ScopeID]float64)}
	s.Sharing = NewSharing(func() float64 { return s.short })
	s.now = func() time.Time { return s.clock }
	return s
}

// run lets time pass, in steps at the beginning of each of which the rate is found anew.
func (s *shop) run(d time.Duration) {
	for end := s.clock.Add(d); s.clock.Before(end); {
		s.clock = s.clock.Add(shareLooks)
		let := make(map[aweigh.ScopeID]float64)
		var busy, all float64
		for id, wants := range s.wants {
			let[id] = wants
			if s.hand(id, 0) {
				busy += wants
			}
			all += wants
		}
		if held := s.held(); held > 0 && busy > held {
			all -= busy - held
			for id := range let {
				if s.hand(id, 0) {
					let[id] *= held / busy
				}
			}
		}
		slow := math.Min(1, s.can/all)
		s.short = 0.05
		if slow < 1 {
			s.short = 5
		}
		for id, let := range let {
			s.done[id] = let * slow
			s.owed[id] += let * slow * shareLooks.Seconds()
			if n := int(s.owed[id]); n > 0 {
				s.owed[id] -= float64(n)
				s.hand(id, n)
				s.Final(id, n)
			}
		}
	}
}

// held is the rate that busy scopes are held to, 0 for none.
func (s *shop) held() float64 {
	perSecond, _ := s.Sharing.Held()
	return perSecond
}

// between runs for a time, and tells between what rates busy scopes were held.
func (s *shop) between(d time.Duration) (least, most float64) {
	least = math.Inf(1)
	for range d / shareLooks {
		s.run(shareLooks)
		least, most = min(least, s.held()), max(most, s.held())
	}
	return least, most
}

// crowded is the run queue of processors that are short.
func crowded() float64 { return 5 }

var flooded, quiet, other = aweigh.ScopeID{1}, aweigh.ScopeID{2}, aweigh.ScopeID{3}

// TestBusyScopesGiveWay: a flood is held to what processors do without a queue while others write, and to nothing else.
func TestBusyScopesGiveWay(t *testing.T) {
	s := newShop(8000)
	s.wants[flooded] = 20_000
	if _, most := s.between(10 * time.Second); most != 0 || s.done[flooded] != 8000 {
		t.Fatalf("alone it is held to %.0f and does %.0f", most, s.done[flooded])
	}

	s.wants[quiet] = 100
	s.run(5 * time.Second)
	if least, most := s.between(10 * time.Second); least < 6000 || most > 8500 {
		t.Errorf("beside a quiet scope it is held to %.0f to %.0f", least, most)
	}

	s.can = 1500 // something else takes the processors
	s.run(10 * time.Second)
	if least, most := s.between(10 * time.Second); least < 1500 || most > 2500 {
		t.Errorf("while something else takes the processors it is held to %.0f to %.0f, a quarter of some 8,000 is its own", least, most)
	}

	s.can = 8000
	delete(s.wants, quiet)
	s.run(3 * time.Second)
	if s.held() != 0 {
		t.Errorf("alone again it is held to %.0f", s.held())
	}

	s.wants[other] = 15_000
	s.run(3 * time.Second)
	if _, most := s.between(10 * time.Second); most != 0 {
		t.Errorf("beside one that floods as well it is held to %.0f", most)
	}
}

// TestAFloodThatEndsIsNotWaitedFor: whoever floods after it has all there is.
func TestAFloodThatEndsIsNotWaitedFor(t *testing.T) {
	s := newShop(8000)
	s.wants[flooded] = 2000
	s.run(10 * time.Second)
	clear(s.wants)
	s.wants[other] = 20_000
	if _, most := s.between(10 * time.Second); most != 0 {
		t.Errorf("the next one is held to %.0f", most)
	}
}

// TestNewFloodsAreJudgedByWhatTheyTake: one that begins while others write is not held to a quarter of its first
// moments.
func TestNewFloodsAreJudgedByWhatTheyTake(t *testing.T) {
	s := newShop(8000)
	s.wants[quiet] = 10
	s.run(10 * time.Second)
	s.wants[flooded] = 20_000
	s.run(3 * time.Second)
	if s.held() == 0 || s.before < 4000 {
		t.Errorf("it is held to %.0f, and counts as one of %.0f", s.held(), s.before)
	}
}

// TestAHeldFloodStaysOne: a scope with more than a quarter of what a flood is held to still goes first.
func TestAHeldFloodStaysOne(t *testing.T) {
	s := newShop(4000)
	s.wants[flooded], s.wants[quiet] = 20_000, 5
	s.run(5 * time.Second)
	s.wants[other] = 900 // of some 4,000 that the flood took, and of 3,000 that are left for it
	s.run(5 * time.Second)
	for range 20 * time.Second / shareLooks {
		s.run(shareLooks)
		if s.held() == 0 || s.done[other] < 800 {
			t.Fatalf("the flood is held to %.0f, the other has %.0f", s.held(), s.done[other])
		}
	}
}

// TestAPauseOfTheQuietLowersNothing: a flood that is held again soon after is held by what it took before the first
// time.
func TestAPauseOfTheQuietLowersNothing(t *testing.T) {
	s := newShop(8000)
	s.wants[flooded], s.wants[quiet] = 8000, 20
	s.queue = crowded
	s.run(20 * time.Second)
	floor := s.held()
	for range 10 {
		s.wants[quiet] = 0
		s.run(300 * time.Millisecond)
		s.wants[quiet] = 20
		s.run(10 * time.Second)
	}
	if least, _ := s.between(10 * time.Second); floor < 1000 || least < 0.9*floor {
		t.Errorf("it is held to %.0f, and was to %.0f before the pauses", least, floor)
	}
}

// TestAllThatAreHeldStayIt: of two floods neither ceases to be one because little of it is let in.
func TestAllThatAreHeldStayIt(t *testing.T) {
	s := newShop(20_000)
	s.wants[flooded], s.wants[other], s.wants[quiet] = 10_000, 3500, 5
	s.run(5 * time.Second)
	s.can = 1500
	s.queue = crowded
	for s.limiter.Limit() > 700 {
		s.limiter.SetLimit(700) // one of two that wait in one line as long as the other
		s.before = 700 / shareLeast
		s.run(shareLooks)
	}
	for range 20 * time.Second / shareLooks {
		s.run(shareLooks)
		if s.held() == 0 || !s.hand(flooded, 0) || !s.hand(other, 0) {
			t.Fatalf("held to %.0f, and both were held before", s.held())
		}
	}
}

// TestScopesThatTakeLittleAreNotHeld: neither those with few changes, nor any while processors are free.
func TestScopesThatTakeLittleAreNotHeld(t *testing.T) {
	s := newShop(8000)
	s.wants[flooded], s.wants[quiet] = 5000, 10
	if _, most := s.between(20 * time.Second); most != 0 {
		t.Errorf("with processors free it is held to %.0f", most)
	}
	s = newShop(50)
	s.wants[flooded], s.wants[quiet] = 150, 10
	if _, most := s.between(20 * time.Second); most != 0 {
		t.Errorf("a scope of 50 changes a second is held to %.0f", most)
	}
}

// TestWhatIsIdleIsForgotten: of scopes that are not written to any more nothing stays, even where nobody hands in.
func TestWhatIsIdleIsForgotten(t *testing.T) {
	s := newShop(1e6)
	for k := range 200 {
		s.Final(aweigh.ScopeID{byte(k)}, 1)
	}
	s.clock = s.clock.Add(time.Minute)
	s.Final(aweigh.ScopeID{250}, 1)
	if len(s.scopes) != 1 {
		t.Errorf("%d scopes are remembered, one is written to", len(s.scopes))
	}
}

// TestTurnsAreBounded: whoever would wait for long is refused at once and takes nothing, a large bundle is let in, and
// who gives up is forgotten.
func TestTurnsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSharing(crowded)
		ctx := context.Background()
		begin := time.Now()
		s.now = func() time.Time { return begin }
		s.scopes[flooded] = &written{handed: flow{1000, begin}, much: begin.Add(-time.Minute)}
		s.scopes[quiet] = &written{final: flow{10, begin}}
		s.hand(flooded, 1) // looks
		if held, _ := s.Held(); held < 200 || held > 1000 {
			t.Fatalf("held to %.0f", held)
		}
		if err := s.Wait(ctx, quiet, 1e6, nil); err != nil {
			t.Errorf("a million changes of the quiet scope: %v", err)
		}
		soon, stop := context.WithTimeout(ctx, 400*time.Millisecond)
		defer stop()
		if err := s.Wait(soon, flooded, 500, nil); !errors.Is(err, machine.ErrBusy) || soon.Err() != nil {
			t.Errorf("500 changes that have 400 ms: %v", err)
		}
		if err := s.Wait(ctx, flooded, 1e6, nil); err != nil {
			t.Errorf("a million changes at once: %v", err)
		}
		left, leave := context.WithCancel(ctx)
		time.AfterFunc(50*time.Millisecond, leave)
		if err := s.Wait(left, flooded, 500, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("500 changes of a client that leaves: %v", err)
		}
	})
}

// TestThoseRefusedLeaveNoDebt: however many are refused at the same time, the line is as long as before.
func TestThoseRefusedLeaveNoDebt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSharing(crowded)
		begin := time.Now()
		s.now = func() time.Time { return begin }
		s.scopes[flooded] = &written{handed: flow{1000, begin}, much: begin.Add(-time.Minute)}
		s.limiter.SetLimit(400)
		s.looked = begin
		soon, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		s.limiter.ReserveN(begin, shareAtOnce) // what may come at once
		for s.limiter.TokensAt(begin) > -3*400 {
			s.limiter.ReserveN(begin, shareAtOnce) // more than anybody waits for
		}
		before := s.limiter.TokensAt(begin)
		var asking sync.WaitGroup
		for range 16 {
			asking.Go(func() {
				for range 2000 {
					if err := s.Wait(soon, flooded, 1, nil); !errors.Is(err, machine.ErrBusy) {
						t.Errorf("it was let in: %v", err)
						return
					}
				}
			})
		}
		asking.Wait()
		if after := s.limiter.TokensAt(begin); after < before-1 {
			t.Errorf("the line has %.0f changes, and had %.0f", -after, -before)
		}
	})
}

// TestBundlesHaveTurnsLikeOthers: what has a beginning in the line is let in, as long as it may be.
func TestBundlesHaveTurnsLikeOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSharing(crowded)
		s.limiter.SetLimit(400)
		for now := time.Now(); s.limiter.TokensAt(now) > -600; {
			s.limiter.ReserveN(now, shareAtOnce)
		}
		if _, _, ok := s.reserve(1, shareLongest+time.Second); !ok {
			t.Error("one change is refused in a line of a second and a half")
		}
		if _, _, ok := s.reserve(400, shareLongest+time.Second); !ok {
			t.Error("400 changes are refused where one is let in")
		}
		if _, _, ok := s.reserve(1, shareLongest+time.Second); ok {
			t.Error("one change is let in behind a line of two seconds and a half")
		}
	})
}

// TestWhoGivesUpReturnsNoMore than the place in the line, though the rate was set meanwhile.
func TestWhoGivesUpReturnsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSharing(crowded)
		s.limiter.SetLimit(500)
		begin := time.Now()
		for s.limiter.TokensAt(begin) > -500 {
			s.limiter.ReserveN(begin, shareAtOnce)
		}
		_, giveUp, ok := s.reserve(10, shareLongest)
		if !ok {
			t.Fatal("refused")
		}
		time.Sleep(300 * time.Millisecond) // virtual: budgets refill meanwhile
		s.limiter.SetLimit(500)
		now := time.Now()
		before := s.limiter.TokensAt(now)
		giveUp(now)
		if back := s.limiter.TokensAt(now) - before; back > 10.5 {
			t.Errorf("%.0f changes came back of 10", back)
		}
	})
}

// TestTheRunQueueIsMeasured: of many goroutines that are always ready to run, all but those that run wait.
func TestTheRunQueueIsMeasured(t *testing.T) {
	queue := RunQueue(time.Now)
	queue()
	const each = 8
	ctx, stop := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer stop()
	var spinning sync.WaitGroup
	for range each * runtime.GOMAXPROCS(0) {
		spinning.Go(func() {
			for ctx.Err() == nil {
				runtime.Gosched()
			}
		})
	}
	spinning.Wait()
	if q := queue(); q < each/4 || q > each*4 {
		t.Errorf("%.1f wait for each processor, of %d one runs", q, each)
	}
}
