package edge

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh/p2p"
)

// Weather is how a network carries messages.
type Weather struct {
	Least, Most time.Duration // latency
	Loss        int           // of a million frames and requests
	Queue       int           // frames that wait for one peer
	Spoil       int           // of a million long answers, those that are cut short by who gives them
}

// cut means that some nodes reach only each other for a time.
type cut struct {
	from, until time.Time
	side        map[peer.ID]bool
}

// network carries what nodes send each other, in place of libp2p. Messages of one node to another keep their order.
type network struct {
	chance  chance
	weather Weather
	detect  time.Duration // after which nodes notice at most that they are cut off
	blamed  func(by, whom peer.ID)

	mu    sync.Mutex
	hosts map[peer.ID]*host
	cuts  []cut
	pairs map[[2]peer.ID]*pair
}

// pair is a connection of two lives of nodes.
type pair struct {
	up    bool
	since time.Time // the wish is another than the state; zero if it is not
	times uint64    // that it changed
}

func newNetwork(c chance, w Weather, blamed func(by, whom peer.ID)) *network {
	return &network{
		chance: c, weather: w, detect: 3 * time.Second, blamed: blamed,
		hosts: make(map[peer.ID]*host), pairs: make(map[[2]peer.ID]*pair),
	}
}

// cutOff lets some nodes reach only each other for a time.
func (n *network) cutOff(d time.Duration, side ...peer.ID) {
	c := cut{from: time.Now(), until: time.Now().Add(d), side: make(map[peer.ID]bool)}
	for _, p := range side {
		c.side[p] = true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cuts = append(n.cuts, c)
}

// heal ends all that keeps nodes apart, and loses and spoils nothing from here on.
func (n *network) heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cuts, n.weather.Loss, n.weather.Spoil = nil, 0, 0
}

// reaches reports whether what one node sends reaches another now.
func (n *network) reaches(a, b peer.ID) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.reachesLocked(a, b)
}

func (n *network) reachesLocked(a, b peer.ID) bool {
	if n.hosts[a] == nil || n.hosts[b] == nil {
		return false
	}
	now := time.Now()
	for _, c := range n.cuts {
		if c.side[a] != c.side[b] && !now.Before(c.from) && now.Before(c.until) {
			return false
		}
	}
	return true
}

// sky is the weather now.
func (n *network) sky() Weather {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.weather
}

// connectEvery is how often connections are looked at.
const connectEvery = 100 * time.Millisecond

// run connects and disconnects nodes until stop is closed.
func (n *network) run(stop <-chan struct{}) {
	tick := time.NewTicker(connectEvery)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			n.connect()
		}
	}
}

// connect brings connections to what they should be: a cut, and its end, are noticed some time later.
func (n *network) connect() {
	n.mu.Lock()
	all := make([]*host, 0, len(n.hosts))
	for _, h := range n.hosts {
		all = append(all, h)
	}
	n.mu.Unlock()
	slices.SortFunc(all, func(a, b *host) int { return strings.Compare(string(a.id), string(b.id)) })
	now := time.Now()
	for i, a := range all {
		for _, b := range all[i+1:] {
			key := [2]peer.ID{a.id, b.id}
			n.mu.Lock()
			p := n.pairs[key]
			if p == nil {
				p = &pair{}
				n.pairs[key] = p
			}
			p.up = a.linked(b.id) && b.linked(a.id)
			wish := n.reachesLocked(a.id, b.id) && a.listening() && b.listening()
			n.mu.Unlock()
			if p.up == wish {
				p.since = time.Time{}
				continue
			}
			if p.since.IsZero() {
				p.since, p.times = now, p.times+1
			}
			wait := n.detect
			if wish {
				wait /= 4
			}
			if now.Sub(p.since) < n.chance.of("connect", string(a.id), string(b.id), p.times).within(0, wait) {
				continue
			}
			p.since = time.Time{}
			if wish {
				a.linkUp(b)
				b.linkUp(a)
			} else {
				a.linkDown(b.id)
				b.linkDown(a.id)
			}
		}
	}
}

// leave takes a host out. Nothing of it arrives any more.
func (n *network) leave(h *host) {
	n.mu.Lock()
	if n.hosts[h.id] == h {
		delete(n.hosts, h.id)
	}
	var others []*host
	for _, o := range n.hosts {
		others = append(others, o)
	}
	n.mu.Unlock()
	for _, o := range others { // a process that ends closes its sockets
		o.linkDown(h.id)
	}
}

func infoOf(id peer.ID, since time.Time, member bool, waits int) p2p.PeerInfo {
	return p2p.PeerInfo{ID: id, Addr: addrOf(id), Since: since, Member: member, Agent: "aweigh/edge", QueueFrames: waits}
}

func addrOf(peer.ID) string { return "/ip4/127.0.0.1/tcp/4200" }
