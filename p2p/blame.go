package p2p

import (
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// Blame is forgiven with time. A peer that collects more is disconnected and
// kept out, each time twice as long. Of a member others may need the next vote,
// so it may do more, and is never kept out for long: its rates are what holds it.
const (
	nonMemberTolerance = 8   // acts, one of which is forgiven each second
	memberTolerance    = 256 // acts, 32 of which are forgiven each second

	blockMin       = 10 * time.Second
	blockMax       = time.Hour
	memberBlockMin = time.Second
	memberBlockMax = 8 * time.Second

	blameMemory = 2 * time.Hour // after which earlier blocks are forgotten
	maxBlames   = 4096          // peers remembered
)

// blames are the records of peers that did what no honest node does.
type blames struct {
	mu    sync.Mutex
	peers map[peer.ID]*offender
}

type offender struct {
	points  float64
	forgets float64 // points a second
	last    time.Time
	blocked int       // times
	until   time.Time // it is blocked: what still comes of it was on its way
}

func newBlames() *blames { return &blames{peers: make(map[peer.ID]*offender)} }

// add counts an act, and returns for how long its peer is to be blocked, if it is.
func (b *blames) add(id peer.ID, member bool, now time.Time) (block time.Duration) {
	tolerance, forgiven, least, most := float64(nonMemberTolerance), 1.0, blockMin, blockMax
	if member {
		tolerance, forgiven, least, most = memberTolerance, 32, memberBlockMin, memberBlockMax
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.peers[id]
	if r == nil || now.Sub(r.last) > blameMemory {
		r = &offender{last: now}
		b.make(id, r, now)
	}
	if now.Before(r.until) {
		return 0
	}
	r.forgets = forgiven
	r.points = r.faded(now) + 1
	r.last = now
	if r.points <= tolerance {
		return 0
	}
	r.points = 0
	r.blocked++
	block = min(least<<min(r.blocked-1, 20), most)
	r.until = now.Add(block)
	return block
}

// make keeps a record, and forgets old ones, or any if all are new: a peer with
// many identities gains little from one.
func (b *blames) make(id peer.ID, r *offender, now time.Time) {
	if len(b.peers) >= maxBlames {
		for other, x := range b.peers {
			if len(b.peers) >= maxBlames || now.Sub(x.last) > blameMemory {
				delete(b.peers, other)
			}
		}
	}
	b.peers[id] = r
}

// of is how much a peer is to blame now.
func (b *blames) of(id peer.ID) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.peers[id]
	if r == nil {
		return 0
	}
	return r.faded(time.Now())
}

// faded is the number of points left.
func (r *offender) faded(now time.Time) float64 {
	return max(0, r.points-r.forgets*now.Sub(r.last).Seconds())
}

// Blame reports that a peer did what no honest node of this network does, such
// as sending a frame with a forged signature. One that goes on is disconnected
// and refused: for 10 s, then for twice as long each time, up to an hour; a
// member that goes on for longer, for 1 s to 8 s.
func (h *Host) Blame(id peer.ID) {
	h.count.Blamed.Add(1)
	member := h.dialer.isMember(id)
	d := h.blames.add(id, member, time.Now())
	if d == 0 {
		return
	}
	h.count.Blocked.Add(1)
	h.cfg.Log.Warn("disconnected a peer that sends messages that no honest node sends", "peer", id, "refused for", d)
	if !member {
		for _, c := range h.host.Network().ConnsToPeer(id) {
			h.gate.shun(c.RemoteMultiaddr())
			break
		}
	}
	h.gate.block(id, d)
	h.spawn(func() { _ = h.host.Network().ClosePeer(id) })
}
