package admission

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testwait"
)

// gossiped records what is gossiped.
type gossiped struct {
	mu     sync.Mutex
	all    []string
	closed bool // only anchors of the scope hear it
}

func (h *gossiped) Followed() bool { return !h.closed }

func (h *gossiped) Gossip(frame []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, string(frame))
}

func (h *gossiped) last() (frame string, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n = len(h.all); n > 0 {
		frame = h.all[n-1]
	}
	return frame, n
}

// TestAnnouncementsTakeTurns: however much scopes want to make known, a node gossips no more than
// its share; of each scope it tells in the end the newest of every epoch, and no block after a newer one.
func TestAnnouncementsTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, announcementsTakeTurns)
}

func announcementsTakeTurns(t *testing.T) {
	a := NewAnnouncements()
	a.Among(4)
	const scopes, each = 20, 50
	all := make([]*gossiped, scopes)
	for i := range all {
		all[i] = new(gossiped)
	}
	begin := time.Now()
	for k := range each {
		for _, h := range all {
			a.Put(h, Announced{[]byte(fmt.Sprint(k)), aweigh.Epoch(k / (each / 2)), aweigh.Height(k)})
		}
	}
	newest := fmt.Sprint(each - 1)
	for {
		told, done := 0, 0
		for _, h := range all {
			last, n := h.last()
			if told += n; last == newest {
				done++
			}
		}
		if most := announcesAtOnce + 1 + int(time.Since(begin).Seconds()*announcesASecond/4); told > most {
			t.Fatalf("%d were told after %v, at most %d may be", told, time.Since(begin), most)
		}
		if done == scopes {
			break
		}
		if time.Since(begin) > 20*time.Second {
			t.Fatalf("%d of %d scopes told their newest", done, scopes)
		}
		time.Sleep(time.Millisecond) // virtual: the bound is looked at all the time
	}
	for i, h := range all {
		if !slices.Contains(h.all, fmt.Sprint(each/2-1)) {
			t.Errorf("scope %d did not tell the last of its first Epoch: %v", i, h.all)
		}
		if !slices.IsSortedFunc(h.all, func(x, y string) int { return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)) }) {
			t.Errorf("scope %d told %v", i, h.all)
		}
	}
	a.Put(all[1], Announced{[]byte(newest), 2, each}) // so that the next ones wait
	a.Put(all[0], Announced{[]byte("the last of its epoch"), 2, each + 1})
	a.Put(all[0], Announced{[]byte("told by another"), 3, each + 2})
	a.Heard(all[0], Announced{Epoch: 3, Height: each + 2})
	testwait.Until(t, "the waiting announcement goes out", func() bool { return !a.waits(all[0]) })
	if last, _ := all[0].last(); last != "the last of its epoch" {
		t.Errorf("another node told the next epoch's first, and %q was told last", last)
	}
	a.Close()
	a.Put(all[0], Announced{[]byte("late"), 4, each})
	if last, _ := all[0].last(); last == "late" {
		t.Errorf("%q was told after the end", last)
	}
}

func (a *Announcements) waits(c Gossiper) bool {
	a.followed.mu.Lock()
	defer a.followed.mu.Unlock()
	return len(a.followed.frames[c]) > 0
}

// TestFollowersWaitForNobodyElse: what only anchors hear is told a tenth as often, and holds up nobody who follows
// another scope; who begins to follow hears at once.
func TestFollowersWaitForNobodyElse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, followersWaitForNobodyElse)
}

func followersWaitForNobodyElse(t *testing.T) {
	a := NewAnnouncements()
	a.Among(4)
	defer a.Close()
	busy, one := make([]*gossiped, 50), new(gossiped)
	for i := range busy {
		busy[i] = &gossiped{closed: true}
	}
	begin, height, longest := time.Now(), aweigh.Height(0), time.Duration(0)
	for last, seen := begin, 0; time.Since(begin) < 2*time.Second; height++ {
		for _, h := range busy {
			a.Put(h, Announced{[]byte("to anchors"), 0, height})
		}
		a.Put(one, Announced{[]byte("to who follows"), 0, height})
		if _, n := one.last(); n > seen {
			longest, last, seen = max(longest, time.Since(last)), time.Now(), n
		}
		time.Sleep(time.Millisecond) // virtual: a block each millisecond
	}
	if longest > 200*time.Millisecond {
		t.Errorf("who follows heard nothing for %v", longest)
	}
	told := 0
	for _, h := range busy {
		_, n := h.last()
		told += n
	}
	if most := announcesAtOnce/announcesRarely + 1 + int(time.Since(begin).Seconds()*announcesASecond/announcesRarely/4); told == 0 || told > most {
		t.Errorf("%d were told that only anchors hear, at most %d need be", told, most)
	}
	synctest.Wait() // nothing is on its way to one that was told nothing
	at := slices.IndexFunc(busy, func(h *gossiped) bool { _, n := h.last(); return n == 0 })
	busy[at].closed = false
	a.Put(busy[at], Announced{[]byte("at once"), 0, height})
	for wait := time.Now(); ; time.Sleep(time.Millisecond) { // virtual
		if last, n := busy[at].last(); last == "at once" && n == 1 {
			break
		} else if time.Since(wait) > time.Second {
			t.Fatalf("%d were told to one that is followed now, %q the last", n, last)
		}
	}
}
