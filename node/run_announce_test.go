package node

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
)

// gossiped records what is gossiped.
type gossiped struct {
	mu     sync.Mutex
	all    []string
	closed bool // only anchors of the scope hear it
}

func (h *gossiped) Send(Peer, []byte) {}

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
	a := newAnnouncements()
	a.among(4)
	const scopes, each = 20, 50
	all := make([]*gossiped, scopes)
	for i := range all {
		all[i] = new(gossiped)
	}
	begin := time.Now()
	for k := range each {
		for _, h := range all {
			a.put(h, announced{[]byte(fmt.Sprint(k)), aweigh.Epoch(k / (each / 2)), aweigh.Height(k)})
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
		time.Sleep(time.Millisecond)
	}
	for i, h := range all {
		if !slices.Contains(h.all, fmt.Sprint(each/2-1)) {
			t.Errorf("scope %d did not tell the last of its first epoch: %v", i, h.all)
		}
		if !slices.IsSortedFunc(h.all, func(x, y string) int { return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)) }) {
			t.Errorf("scope %d told %v", i, h.all)
		}
	}
	a.put(all[1], announced{[]byte(newest), 2, each}) // so that the next ones wait
	a.put(all[0], announced{[]byte("the last of its epoch"), 2, each + 1})
	a.put(all[0], announced{[]byte("told by another"), 3, each + 2})
	a.heard(all[0], announced{epoch: 3, height: each + 2})
	for a.waits(all[0]) {
		time.Sleep(time.Millisecond)
	}
	if last, _ := all[0].last(); last != "the last of its epoch" {
		t.Errorf("another node told the next epoch's first, and %q was told last", last)
	}
	few := &gossiped{closed: true}
	begin = time.Now()
	for k := range aweigh.Height(1000) {
		a.put(few, announced{[]byte("to anchors"), 5, k})
		time.Sleep(time.Millisecond)
	}
	most := announcesAtOnce/announcesIdly + 1 + int(time.Since(begin).Seconds()*announcesASecond/4/announcesIdly)
	if _, n := few.last(); n == 0 || n > most {
		t.Errorf("%d were told that only anchors hear, at most %d need be", n, most)
	}
	a.close()
	a.put(all[0], announced{[]byte("late"), 4, each})
	if last, _ := all[0].last(); last == "late" {
		t.Errorf("%q was told after the end", last)
	}
}

func (a *announcements) waits(c carrier) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.frames[c]) > 0
}
