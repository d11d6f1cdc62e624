package p2p

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"

	"github.com/aweigh/aweigh"
)

const (
	dialMin       = 100 * time.Millisecond // first pause after a failed dial
	dialMaxMember = 5 * time.Second        // longest pause for a member
	dialMax       = time.Minute            // longest pause for others
	dialTime      = 5 * time.Second        // longest time for one dial
	dialsAtOnce   = 16
	dialTries     = 6    // failures after which a peer that is only known by hearsay is forgotten
	maxCandidates = 1024 // peers known by hearsay
)

// dialer decides which peers to dial and when: members always, others while
// fewer than Target peers are connected.
type dialer struct {
	h      *Host
	wake   chan struct{}
	tokens chan struct{} // one per dial in progress

	mu         sync.Mutex
	candidates map[peer.ID]*candidate
}

// candidate is a peer that may be dialled.
type candidate struct {
	member  bool
	lasting bool // from Config.Bootstrap: never forgotten
	dialing bool
	record  aweigh.Hash   // of the last signed record received
	tries   int           // failures in a row
	pause   time.Duration // after the last failure
	next    time.Time     // not to be dialled before
}

func newDialer(h *Host) *dialer {
	return &dialer{
		h: h, wake: make(chan struct{}, 1), tokens: make(chan struct{}, dialsAtOnce),
		candidates: make(map[peer.ID]*candidate),
	}
}

// nudge makes run look again.
func (d *dialer) nudge() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// add is the candidate for id, made if there is room for it. d.mu is held.
func (d *dialer) add(id peer.ID) *candidate {
	c := d.candidates[id]
	if c == nil && id != d.h.ID() && len(d.candidates) < maxCandidates {
		c = &candidate{}
		d.candidates[id] = c
	}
	return c
}

// seek makes candidates of peers whose addresses have been learned, and
// forgives their failures: the address may be new.
func (d *dialer) seek(infos []peer.AddrInfo) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, info := range infos {
		if c := d.add(info.ID); c != nil {
			d.h.host.Peerstore().AddAddrs(info.ID, info.Addrs, peerstore.RecentlyConnectedAddrTTL)
			c.tries, c.pause, c.next = 0, 0, time.Time{}
		}
	}
	d.nudge()
}

// keep is seek for the peers of Config.Bootstrap, which are never forgotten.
func (d *dialer) keep(infos []peer.AddrInfo) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, info := range infos {
		if c := d.add(info.ID); c != nil {
			d.h.host.Peerstore().AddAddrs(info.ID, info.Addrs, peerstore.PermanentAddrTTL)
			c.lasting = true
		}
	}
	d.nudge()
}

// setMembers replaces the members, and returns the difference.
func (d *dialer) setMembers(ids []peer.ID) (added, removed []peer.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, c := range d.candidates {
		if c.member && !slices.Contains(ids, id) {
			c.member = false
			removed = append(removed, id)
		}
	}
	for _, id := range ids {
		if id == d.h.ID() {
			continue
		}
		c := d.candidates[id]
		if c == nil { // members have room always: policy bounds them
			c = &candidate{}
			d.candidates[id] = c
		}
		if !c.member {
			c.member, c.pause, c.next = true, 0, time.Time{}
			added = append(added, id)
		}
	}
	d.nudge()
	return added, removed
}

// isMember reports whether id is a member.
func (d *dialer) isMember(id peer.ID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.candidates[id]
	return c != nil && c.member
}

// lonely lists the members that are not connected, at most max.
func (d *dialer) lonely(limit int) []peer.ID {
	d.mu.Lock()
	defer d.mu.Unlock()
	var ids []peer.ID
	for id, c := range d.candidates {
		if c.member && len(ids) < limit && !d.connected(id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// connectedness is called when a peer was connected or is not any more. A peer that
// went is dialled again soon, but not by all its peers in the same instant.
func (d *dialer) connectedness(id peer.ID, up bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.candidates[id]
	if c == nil {
		return
	}
	c.tries, c.pause, c.next = 0, 0, time.Time{}
	if !up {
		c.next = time.Now().Add(rand.N(dialMin))
	}
	d.nudge()
}

func (d *dialer) connected(id peer.ID) bool {
	return d.h.host.Network().Connectedness(id) == network.Connected
}

// run dials until the host closes.
func (d *dialer) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-d.wake:
		case <-timer.C:
		case <-d.h.ctx.Done():
			return
		}
		timer.Reset(d.round(time.Now()))
	}
}

// round begins the dials that are due and returns how long to wait for more.
func (d *dialer) round(now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	wait := dialMax
	wanted := d.h.cfg.Target - d.h.peers.len()
	for _, c := range d.candidates {
		if c.dialing {
			wanted--
		}
	}
	for id, c := range d.candidates {
		switch {
		case c.dialing || d.connected(id):
		case !c.member && wanted <= 0:
		case c.next.After(now):
			wait = min(wait, c.next.Sub(now))
		default:
			select {
			case d.tokens <- struct{}{}:
				wanted--
				c.dialing = true
				d.h.spawn(func() { d.dial(id) })
			default: // a dial that ends wakes run
			}
		}
	}
	return wait
}

// dial tries one peer and notes the outcome.
func (d *dialer) dial(id peer.ID) {
	defer d.nudge()
	defer func() { <-d.tokens }()
	d.h.count.Dials.Add(1)
	ctx, cancel := context.WithTimeout(d.h.ctx, dialTime)
	defer cancel()
	if s, ok := d.h.host.Network().(*swarm.Swarm); ok {
		s.Backoff().Clear(id) // libp2p's own backoff begins at 5 s; this one decides
	}
	err := d.h.host.Connect(ctx, peer.AddrInfo{ID: id, Addrs: d.h.book.addrs(id)})

	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.candidates[id]
	if c == nil {
		return
	}
	c.dialing = false
	if err == nil {
		c.tries, c.pause, c.next = 0, 0, time.Time{}
		return
	}
	d.h.count.DialsFailed.Add(1)
	d.h.cfg.Log.Debug("dial failed", "peer", id, "error", err)
	longest := dialMax
	if c.member {
		longest = dialMaxMember
	}
	c.tries++
	if c.tries >= dialTries && !c.member && !c.lasting {
		delete(d.candidates, id)
		return
	}
	c.pause = min(max(2*c.pause, dialMin), longest)
	c.next = time.Now().Add(c.pause/2 + rand.N(c.pause/2+1))
}

// hasHeard reports whether heard was called with this very record.
func (d *dialer) hasHeard(r peerRecord) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.candidates[peer.ID(r.ID)]
	return c != nil && c.record == aweigh.Sum(r.Sealed)
}

// heard makes a candidate of a peer that another peer reported, and returns whether there
// was room. It is not dialled at once: it has likely learned of this host as well.
func (d *dialer) heard(id peer.ID, e entry) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.add(id)
	if c == nil {
		return false
	}
	d.h.host.Peerstore().AddAddrs(id, e.addrs, peerstore.RecentlyConnectedAddrTTL)
	c.record = aweigh.Sum(e.sealed)
	c.tries, c.pause, c.next = 0, 0, time.Now().Add(rand.N(2*dialMin))
	d.nudge()
	return true
}
