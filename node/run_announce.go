package node

import (
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/aweigh/aweigh"
)

// announcements paces what a node's scopes make known of final blocks by gossip. Every peer takes a
// limited number of messages from all others together, and thinks ill of those who send more; a
// hundred busy scopes would have more to tell. So scopes take turns, and of what one wants to tell
// meanwhile the newest of each epoch is told: whoever hears of a block asks for those before, but
// none who lacks an epoch's last can verify what is said in the next. Where only anchors of the scope
// would hear it, who have voted for it, little is told: for those who missed how it ended.
type announcements struct {
	mu      sync.Mutex
	limit   *rate.Limiter
	wakes   bool // a timer runs
	sending bool // somebody sends
	closed  bool
	order   []carrier
	frames  map[carrier][]announced // of those in order: one an epoch
}

// announced is a frame about a block.
type announced struct {
	frame  []byte
	epoch  aweigh.Epoch
	height aweigh.Height
}

// covers reports whether nobody needs y who has x.
func (x announced) covers(y announced) bool { return x.epoch == y.epoch && x.height >= y.height }

const (
	// announcesASecond is what all nodes together make known, about half of what each takes (p2p.Config.GossipMessages).
	announcesASecond = 120
	announcesAtOnce  = 40
	announcesAtLeast = 2  // of one node, however many others a scope names
	announcesIdly    = 10 // how many one counts for that only anchors of its scope hear
	announcesWaiting = 4  // of one scope: so many epochs begin while it waits, if they are very short
)

func newAnnouncements() *announcements {
	return &announcements{limit: rate.NewLimiter(announcesASecond, announcesAtOnce), frames: make(map[carrier][]announced)}
}

// among divides the rate among so many nodes.
func (a *announcements) among(nodes int) {
	a.limit.SetLimit(max(announcesASecond/rate.Limit(max(nodes, 1)), announcesAtLeast))
}

// put makes a block known, soon, unless others do so before.
func (a *announcements) put(c carrier, x announced) {
	a.mu.Lock()
	if !a.closed {
		all := slices.DeleteFunc(a.frames[c], x.covers)
		if len(a.frames[c]) == 0 {
			a.order = append(a.order, c)
		}
		if all = append(all, x); len(all) > announcesWaiting {
			all = all[1:]
		}
		a.frames[c] = all
	}
	a.mu.Unlock()
	a.next()
}

// heard takes back what another node made known.
func (a *announcements) heard(c carrier, x announced) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if all := a.frames[c]; len(all) == 0 {
		return
	} else if all = slices.DeleteFunc(all, x.covers); len(all) > 0 {
		a.frames[c] = all
		return
	}
	delete(a.frames, c)
	a.order = slices.DeleteFunc(a.order, func(o carrier) bool { return o == c })
}

// next sends what may be sent now.
func (a *announcements) next() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.order) > 0 && !a.wakes && !a.sending {
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
		x := a.frames[c][0]
		if a.frames[c] = a.frames[c][1:]; len(a.frames[c]) == 0 {
			delete(a.frames, c)
		} else {
			a.order = append(a.order, c)
		}
		a.sending = true
		a.mu.Unlock()
		c.Gossip(x.frame)
		if !c.Followed() {
			a.limit.ReserveN(time.Now(), announcesIdly-1)
		}
		a.mu.Lock()
		a.sending = false
	}
}

// close forgets what waits.
func (a *announcements) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.order, a.closed = nil, true
	clear(a.frames)
}
