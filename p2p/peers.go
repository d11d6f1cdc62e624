package p2p

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	"golang.org/x/time/rate"
)

// foreignBlock is for how long a peer of another network is refused. It is
// short, since a node may be restarted with the right one.
const foreignBlock = 30 * time.Second

// secondLook is how long a peer may take to correct its first list of
// protocols: libp2p sends a list that is a moment old, which at a host's start
// lacks the last ones added, and pushes the rest later.
const secondLook = time.Second

// remote is a connected peer that has proved to be of this network.
type remote struct {
	id    peer.ID
	since time.Time
	heard atomic.Int64 // when its last frame came, in ns after since
	link  *link        // frames to the peer

	rates   rates         // of a member
	modest  rates         // of a non-member
	gossip  *rate.Limiter // messages that are looked at
	packets *rate.Limiter // parts of pubsub's packets that are read
	streams *rate.Limiter // that it opens

	asks  chan struct{} // a token per request to the peer in progress
	pulls chan struct{} // a token per request of the peer in progress

	admitted atomic.Bool // by Config.Admit

	ctx    context.Context // ends when the peer goes
	cancel context.CancelFunc

	inMu    sync.Mutex
	in      network.Stream // the frame stream being read
	reading sync.Mutex     // held by its reader, so that frames stay in order
}

// table holds the connected peers of this network. One goroutine, run by watch,
// decides which peers come and go, so that the handler is called in order.
type table struct {
	h        *Host
	arrivals chan arrival
	expired  chan expiry

	mu      sync.RWMutex
	remotes map[peer.ID]*remote
	claims  map[peer.ID]*claim // of peers that have not proved
}

// arrival is a peer that has proven to be of this network. reply takes the
// remote that stands for it, nil if the peer is gone again.
type arrival struct {
	id    peer.ID
	reply chan *remote
}

func newTable(h *Host) *table {
	return &table{
		h: h, arrivals: make(chan arrival), expired: make(chan expiry),
		remotes: make(map[peer.ID]*remote), claims: make(map[peer.ID]*claim),
	}
}

// find is the remote of id, or nil.
func (t *table) find(id peer.ID) *remote {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.remotes[id]
}

func (t *table) len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.remotes)
}

// all lists the remotes in no order.
func (t *table) all() []*remote {
	t.mu.RLock()
	defer t.mu.RUnlock()
	all := make([]*remote, 0, len(t.remotes))
	for _, r := range t.remotes {
		all = append(all, r)
	}
	return all
}

// proved is find for a peer that has just proved that it knows the network.
func (t *table) proved(id peer.ID) *remote {
	if r := t.find(id); r != nil {
		return r
	}
	a := arrival{id: id, reply: make(chan *remote, 1)}
	select {
	case t.arrivals <- a:
		return <-a.reply
	case <-t.h.ctx.Done():
		return nil
	}
}

// watch begins to follow libp2p's events.
func (t *table) watch() error {
	events, err := t.h.host.EventBus().Subscribe([]any{
		new(event.EvtPeerConnectednessChanged),
		new(event.EvtPeerIdentificationCompleted),
		new(event.EvtPeerProtocolsUpdated),
	}, eventbus.BufSize(1024))
	if err != nil {
		return err
	}
	t.h.spawn(func() {
		defer events.Close()
		for {
			select {
			case e := <-events.Out():
				t.follow(e)
			case a := <-t.arrivals:
				a.reply <- t.up(a.id)
			case e := <-t.expired:
				t.judge(e)
			case <-t.h.ctx.Done():
				return
			}
		}
	})
	return nil
}

// follow acts on one event of libp2p.
func (t *table) follow(e any) {
	switch e := e.(type) {
	case event.EvtPeerConnectednessChanged:
		switch e.Connectedness {
		case network.Connected:
			t.came(e.Peer)
		case network.NotConnected:
			t.down(e.Peer)
		}
		t.h.dialer.connectedness(e.Peer, e.Connectedness == network.Connected)
	case event.EvtPeerIdentificationCompleted:
		if t.find(e.Peer) == nil && !slices.Contains(e.Protocols, t.h.proofID) {
			t.judgeAfter(e.Peer, min(secondLook, t.h.cfg.Grace))
			return
		}
		t.h.spawn(func() { t.h.askProof(e.Peer) })
		t.h.spawn(func() {
			if t.await(e.Peer, nil) != nil {
				t.h.book.record(e.Peer, e.SignedPeerRecord)
			}
		})
	case event.EvtPeerProtocolsUpdated:
		if slices.Contains(e.Added, t.h.proofID) {
			t.h.spawn(func() { t.h.askProof(e.Peer) })
		}
	}
}

// came begins the time that a peer has to prove. A second connection beside the first does not begin it again.
func (t *table) came(id peer.ID) {
	if !t.connected(id) {
		return // the event for that is on its way
	}
	t.mu.Lock()
	if t.remotes[id] == nil {
		if c := t.claimOf(id); c.since.IsZero() {
			c.since = time.Now()
		}
	}
	t.mu.Unlock()
	t.judgeAfter(id, t.h.cfg.Grace)
}

// expiry is the end of the time that a peer had to prove that it belongs here.
type expiry struct {
	id  peer.ID
	had time.Duration
}

// judgeAfter has a peer judged some time from now.
func (t *table) judgeAfter(id peer.ID, d time.Duration) { t.judgeIn(d, expiry{id, d}) }

func (t *table) judgeIn(d time.Duration, e expiry) {
	time.AfterFunc(d, func() {
		select {
		case t.expired <- e:
		case <-t.h.ctx.Done():
		}
	})
}

// up makes a connected peer a remote, if it is not one.
func (t *table) up(id peer.ID) *remote {
	if r := t.find(id); r != nil {
		return r
	}
	if !t.connected(id) {
		return nil // the event for that is on its way
	}
	h := t.h
	r := &remote{
		id: id, since: time.Now(),
		rates:   newRates(h.cfg.PeerMessages, h.cfg.PeerBytes, h.cfg.MaxFrame),
		modest:  newRates(h.cfg.NonMemberMessages, h.cfg.NonMemberBytes, h.cfg.MaxFrame),
		gossip:  rate.NewLimiter(rate.Limit(h.cfg.GossipMessages)/2, h.cfg.GossipMessages),
		packets: newPackets(h.cfg),
		streams: newStreams(),
		asks:    make(chan struct{}, h.cfg.MaxRequests),
		pulls:   make(chan struct{}, 2*h.cfg.MaxRequests), // a token returns after the answer has left
	}
	r.ctx, r.cancel = context.WithCancel(h.ctx)
	r.link = newLink(h, id, r.ctx)
	t.mu.Lock()
	t.remotes[id] = r
	t.settle(id)
	t.mu.Unlock()
	h.cfg.Log.Debug("peer up", "peer", id)
	if h.cfg.Handler.Peer != nil {
		h.cfg.Handler.Peer(id, true)
	}
	h.spawn(r.link.run)
	h.book.wake()
	return r
}

// down forgets a peer that is no longer connected.
func (t *table) down(id peer.ID) {
	t.mu.Lock()
	if c := t.claims[id]; c != nil {
		c.since = time.Time{}
	}
	if t.connected(id) { // it came again meanwhile
		t.mu.Unlock()
		t.came(id)
		return
	}
	r := t.remotes[id]
	delete(t.remotes, id)
	t.settle(id)
	t.mu.Unlock()
	if r == nil {
		return
	}
	r.close()
	t.h.cfg.Log.Debug("peer down", "peer", id)
	if t.h.cfg.Handler.Peer != nil {
		t.h.cfg.Handler.Peer(id, false)
	}
}

// judge closes the connections of a peer that has not proven to be of this
// network. A peer with other protocols is refused for a while; a silent one may
// be slow, and may come again.
func (t *table) judge(e expiry) {
	id := e.id
	since, ok := t.unproven(id)
	if !ok {
		return
	}
	if left := e.had - time.Since(since); left > 0 { // it went away meanwhile, and came again
		t.judgeIn(left, e)
		return
	}
	spoken, _ := t.h.host.Peerstore().GetProtocols(id)
	named := slices.Contains(spoken, t.h.proofID)
	if named && e.had < t.h.cfg.Grace { // it corrected its list, and has the whole time
		return
	}
	t.h.count.Foreign.Add(1)
	if len(spoken) > 0 && !(named && t.h.dialer.isMember(id)) {
		t.h.gate.block(id, foreignBlock)
		t.h.cfg.Log.Warn("disconnected a peer that does not belong to this network: wrong network id, or not an aweigh node",
			"peer", id, "network", t.h.cfg.Network, "protocol", t.h.framesID)
	} else {
		t.h.cfg.Log.Warn("disconnected a peer that did not identify itself in time", "peer", id, "time", t.h.cfg.Grace)
	}
	t.h.spawn(func() { _ = t.h.host.Network().ClosePeer(id) })
}

// unproven is since when a peer has been connected that has not proved.
func (t *table) unproven(id peer.ID) (since time.Time, ok bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if c := t.claims[id]; c != nil {
		since = c.since
	}
	return since, !since.IsZero()
}

// close releases every remote, when watch has ended.
func (t *table) close() {
	for _, r := range t.all() {
		r.close()
	}
}

// close ends the remote's streams.
func (r *remote) close() {
	r.cancel()
	r.link.close()
	r.inMu.Lock()
	defer r.inMu.Unlock()
	if r.in != nil {
		_ = r.in.Reset()
	}
}
