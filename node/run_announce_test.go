package node

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
)

// gossiped records what is gossiped.
type gossiped struct {
	mu  sync.Mutex
	all []string
}

func (h *gossiped) Send(Peer, []byte) {}

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
// its share; of each the first is told that waited, and in the end the newest.
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
			a.put(h, []byte(fmt.Sprint(k)), aweigh.Height(k))
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
	for _, h := range all {
		if h.all[0] != "0" {
			t.Errorf("a scope told %s first", h.all[0])
		}
	}
	for range announcesAtOnce { // so that the next ones wait
		a.put(all[1], []byte(newest), each)
	}
	a.put(all[0], []byte("told by another"), each+1)
	a.heard(all[0], each+1)
	for a.waits(all[1]) {
		time.Sleep(time.Millisecond)
	}
	if last, _ := all[0].last(); last != newest {
		t.Errorf("%q was told after another node told it", last)
	}
	a.close()
	a.put(all[0], []byte("late"), each)
	if last, _ := all[0].last(); last != newest {
		t.Errorf("%q was told after the end", last)
	}
}

func (a *announcements) waits(c carrier) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.frames[c]) > 0
}
