package node

import (
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/aweigh/aweigh"
)

// announcements paces what a node's scopes make known of final blocks by gossip: to those who follow,
// and, rarely and without holding those up, what only anchors of its scope would hear. They know most
// of it by what anchors send each other; it is for those who missed how it ended.
type announcements struct{ followed, others *turns }

// turns lets scopes announce in turn. Every peer takes a
// limited number of messages from all others together, and thinks ill of those who send more; a
// hundred busy scopes would have more to tell. So scopes take turns, and of what one wants to tell
// meanwhile the newest of each epoch is told: whoever hears of a block asks for those before, but
// none who lacks an epoch's last can verify what is said in the next.
type turns struct {
	share rate.Limit // announcements a second of all nodes together
	least rate.Limit // of one node, however many others a scope names

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
	announcesAtLeast = 2.0
	announcesRarely  = 10 // how many times less often what only anchors hear
	announcesWaiting = 4  // of one scope: so many epochs begin while it waits, if they are very short
)

func newAnnouncements() *announcements {
	return &announcements{
		followed: newTurns(announcesASecond, announcesAtOnce, announcesAtLeast),
		others:   newTurns(announcesASecond/announcesRarely, announcesAtOnce/announcesRarely, announcesAtLeast/announcesRarely),
	}
}

func newTurns(share rate.Limit, atOnce int, least rate.Limit) *turns {
	return &turns{share: share, least: least, limit: rate.NewLimiter(share, atOnce), frames: make(map[carrier][]announced)}
}

// among divides the rates among so many nodes.
func (a *announcements) among(nodes int) {
	for _, t := range []*turns{a.followed, a.others} {
		t.limit.SetLimit(max(t.share/rate.Limit(max(nodes, 1)), t.least))
	}
}

// put makes a block known, soon, unless others do so before.
func (a *announcements) put(c carrier, x announced) {
	to, from := a.followed, a.others
	if !c.Followed() {
		to, from = from, to
	}
	from.heard(c, x)
	to.put(c, x)
}

// heard takes back what another node made known.
func (a *announcements) heard(c carrier, x announced) {
	a.followed.heard(c, x)
	a.others.heard(c, x)
}

// close forgets what waits.
func (a *announcements) close() {
	a.followed.close()
	a.others.close()
}

func (t *turns) put(c carrier, x announced) {
	t.mu.Lock()
	if !t.closed {
		all := slices.DeleteFunc(t.frames[c], x.covers)
		if len(t.frames[c]) == 0 {
			t.order = append(t.order, c)
		}
		if all = append(all, x); len(all) > announcesWaiting {
			all = all[1:]
		}
		t.frames[c] = all
	}
	t.mu.Unlock()
	t.next()
}

func (t *turns) heard(c carrier, x announced) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if all := t.frames[c]; len(all) == 0 {
		return
	} else if all = slices.DeleteFunc(all, x.covers); len(all) > 0 {
		t.frames[c] = all
		return
	}
	delete(t.frames, c)
	t.order = slices.DeleteFunc(t.order, func(o carrier) bool { return o == c })
}

// next sends what may be sent now.
func (t *turns) next() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.order) > 0 && !t.wakes && !t.sending {
		r := t.limit.Reserve()
		if wait := r.Delay(); wait > 0 {
			r.Cancel()
			t.wakes = true
			time.AfterFunc(wait, func() {
				t.mu.Lock()
				t.wakes = false
				t.mu.Unlock()
				t.next()
			})
			return
		}
		c := t.order[0]
		t.order = t.order[1:]
		x := t.frames[c][0]
		if t.frames[c] = t.frames[c][1:]; len(t.frames[c]) == 0 {
			delete(t.frames, c)
		} else {
			t.order = append(t.order, c)
		}
		t.sending = true
		t.mu.Unlock()
		c.Gossip(x.frame)
		t.mu.Lock()
		t.sending = false
	}
}

func (t *turns) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.order, t.closed = nil, true
	clear(t.frames)
}
