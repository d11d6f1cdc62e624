package node

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// announcements paces what a node's scopes make known of final blocks by gossip. Every peer takes a
// limited number of messages from all others together, and thinks ill of those who send more; a
// hundred busy scopes would have more to tell. So scopes take turns, and of what one wants to tell
// meanwhile the first and the newest is told: whoever hears of a block asks for those before,
// and the first may be the last of its epoch.
type announcements struct {
	mu     sync.Mutex
	limit  *rate.Limiter
	wakes  bool // a timer runs
	closed bool
	order  []carrier
	frames map[carrier][][]byte // of those in order
}

const (
	// announcesASecond is what all nodes together make known, about half of what each takes (p2p.Config.GossipMessages).
	announcesASecond = 120
	announcesAtOnce  = 40
)

func newAnnouncements() *announcements {
	return &announcements{limit: rate.NewLimiter(announcesASecond, announcesAtOnce), frames: make(map[carrier][][]byte)}
}

// among divides the rate among so many nodes.
func (a *announcements) among(nodes int) {
	a.limit.SetLimit(announcesASecond / rate.Limit(max(nodes, 1)))
}

// put makes a frame known, soon.
func (a *announcements) put(c carrier, frame []byte) {
	a.mu.Lock()
	switch all := a.frames[c]; {
	case a.closed:
	case len(all) == 0:
		a.order = append(a.order, c)
		fallthrough
	case len(all) == 1:
		a.frames[c] = append(all, frame)
	default:
		all[1] = frame
	}
	a.mu.Unlock()
	a.next()
}

// next sends what may be sent now.
func (a *announcements) next() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.order) > 0 && !a.wakes {
		r := a.limit.Reserve()
		if wait := r.Delay(); wait > 0 {
			r.Cancel()
			a.wakes = true
			time.AfterFunc(wait, func() {
				a.mu.Lock()
				a.wakes = false
				a.mu.Unlock()
				a.next()
			})
			return
		}
		c := a.order[0]
		a.order = a.order[1:]
		frame := a.frames[c][0]
		if a.frames[c] = a.frames[c][1:]; len(a.frames[c]) == 0 {
			delete(a.frames, c)
		} else {
			a.order = append(a.order, c)
		}
		c.Gossip(frame)
	}
}

// close forgets what waits.
func (a *announcements) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.order, a.closed = nil, true
	clear(a.frames)
}
