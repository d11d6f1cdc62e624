package admission

import (
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/aweigh/aweigh"
)

// Gossiper gossips the announcements of one scope. It is comparable, and no method blocks.
type Gossiper interface {
	Gossip(frame []byte)

	// Followed reports whether any peer hears the gossip that is not an anchor of the scope, as of the last second.
	Followed() bool
}

// Announcements limits the rate at which a node's scopes announce final blocks by gossip. It separates the scopes that
// other nodes follow from those whose gossip only their own anchors hear. The latter announce rarely, and do not delay
// the former: anchors learn most of it from each other, and need the announcement only if they missed the end.
type Announcements struct{ followed, others *turns }

// turns makes scopes announce in turn. Every peer accepts a limited number of messages from all others together, and
// lowers its opinion of peers that send more; a hundred busy scopes would exceed that. So scopes take turns, and of
// the announcements that wait for a scope's turn, only the newest of each epoch is sent. A node that learns of a block
// asks for those before it, but a node that lacks the last block of an epoch cannot verify messages of the next.
type turns struct {
	share rate.Limit // announcements a second of all nodes together
	least rate.Limit // of one node, however many other anchors a scope has

	mu      sync.Mutex
	limit   *rate.Limiter
	wakes   bool // a timer runs
	sending bool // a goroutine sends
	closed  bool
	order   []Gossiper
	frames  map[Gossiper][]Announced // of the scopes in order: one an epoch
}

// Announced is a frame about a block.
type Announced struct {
	Frame  []byte
	Epoch  aweigh.Epoch
	Height aweigh.Height
}

// covers reports whether a node that has x does not need y.
func (x Announced) covers(y Announced) bool { return x.Epoch == y.Epoch && x.Height >= y.Height }

const (
	// announcesASecond is what all nodes together make known, about half of what each takes
	// (p2p.Config.GossipMessages).
	announcesASecond = 120
	announcesAtOnce  = 40
	announcesAtLeast = 2.0
	announcesRarely  = 10 // how many times less often, if only anchors hear it
	announcesWaiting = 4  // of one scope: so many epochs may begin while it waits, if they are very short
)

// NewAnnouncements returns the limits of a node.
func NewAnnouncements() *Announcements {
	return &Announcements{
		followed: newTurns(announcesASecond, announcesAtOnce, announcesAtLeast),
		others:   newTurns(announcesASecond/announcesRarely, announcesAtOnce/announcesRarely, announcesAtLeast/announcesRarely),
	}
}

func newTurns(share rate.Limit, atOnce int, least rate.Limit) *turns {
	return &turns{share: share, least: least, limit: rate.NewLimiter(share, atOnce), frames: make(map[Gossiper][]Announced)}
}

// Among divides the rates by the number of nodes.
func (a *Announcements) Among(nodes int) {
	for _, t := range []*turns{a.followed, a.others} {
		t.limit.SetLimit(max(t.share/rate.Limit(max(nodes, 1)), t.least))
	}
}

// Put announces a block soon, unless another node does so before.
func (a *Announcements) Put(c Gossiper, x Announced) {
	to, from := a.followed, a.others
	if !c.Followed() {
		to, from = from, to
	}
	from.heard(c, x)
	to.put(c, x)
}

// Heard drops what another node has announced.
func (a *Announcements) Heard(c Gossiper, x Announced) {
	a.followed.heard(c, x)
	a.others.heard(c, x)
}

// Close drops everything that waits.
func (a *Announcements) Close() {
	a.followed.close()
	a.others.close()
}

func (t *turns) put(c Gossiper, x Announced) {
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

func (t *turns) heard(c Gossiper, x Announced) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if all := t.frames[c]; len(all) == 0 {
		return
	} else if all = slices.DeleteFunc(all, x.covers); len(all) > 0 {
		t.frames[c] = all
		return
	}
	delete(t.frames, c)
	t.order = slices.DeleteFunc(t.order, func(o Gossiper) bool { return o == c })
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
		c.Gossip(x.Frame)
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
