package edge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh/p2p"
)

// host is one life of a node in a network: a node.Transport that keeps the promises of a p2p.host.
type host struct {
	net     *network
	id      peer.ID
	handler p2p.Handler
	ctx     context.Context
	cancel  context.CancelFunc
	stats   struct{ sent, received, dropped, asked, failed, served, published, heard, blamed atomic.Uint64 }

	news chan func() // of peers that come and go: one goroutine tells the handler

	mu      sync.Mutex
	started bool
	closing bool
	running sync.WaitGroup
	links   map[peer.ID]*link
	members map[peer.ID]bool
	topics  map[p2p.Topic]bool
	seen    map[chance]bool // gossip
	times   map[chance]uint64
}

const (
	hostRequests = 16               // in progress with one peer
	hostPatience = 30 * time.Second // with a request
	longAnswer   = 500              // bytes, from which on a peer may cut an answer short
)

// link carries frames to one peer.
type link struct {
	to     *host
	since  time.Time
	ctx    context.Context
	cancel context.CancelFunc
	frames chan packet
	asks   chan struct{}
}

type packet struct {
	frame []byte
	due   time.Time
}

// join makes a host of the network.
func (n *network) join(id peer.ID, cfg p2p.Config) *host {
	h := &host{
		net: n, id: id, handler: cfg.Handler, news: make(chan func(), 1024), links: make(map[peer.ID]*link),
		members: make(map[peer.ID]bool), topics: make(map[p2p.Topic]bool), seen: make(map[chance]bool), times: make(map[chance]uint64),
	}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// Start implements node.Transport.
func (h *host) Start() error {
	h.mu.Lock()
	h.started = true
	h.mu.Unlock()
	h.net.mu.Lock()
	h.net.hosts[h.id] = h
	h.net.mu.Unlock()
	h.spawn(func() {
		for {
			select {
			case tell := <-h.news:
				tell()
			case <-h.ctx.Done():
				return
			}
		}
	})
	return nil
}

// kill is the end of the process: nothing leaves it and nothing arrives any more.
func (h *host) kill() {
	h.net.leave(h)
	h.cancel()
}

// Close implements node.Transport.
func (h *host) Close() error {
	h.mu.Lock()
	if h.closing {
		h.mu.Unlock()
		return nil
	}
	h.closing = true
	h.mu.Unlock()
	h.kill()
	h.running.Wait()
	return nil
}

func (h *host) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return false
	}
	h.running.Add(1)
	return true
}

func (h *host) spawn(f func()) {
	if h.enter() {
		go func() {
			defer h.running.Done()
			f()
		}()
	}
}

func (h *host) listening() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.started && !h.closing && h.ctx.Err() == nil
}

func (h *host) linked(id peer.ID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.links[id] != nil
}

func (h *host) link(id peer.ID) *link {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.links[id]
}

// linkUp connects a peer.
func (h *host) linkUp(to *host) {
	l := &link{to: to, since: time.Now(), frames: make(chan packet, h.net.sky().Queue), asks: make(chan struct{}, hostRequests)}
	l.ctx, l.cancel = context.WithCancel(h.ctx)
	h.mu.Lock()
	if h.links[to.id] != nil || h.closing {
		h.mu.Unlock()
		l.cancel()
		return
	}
	h.links[to.id] = l
	h.mu.Unlock()
	h.tell(to.id, true)
	h.spawn(func() { h.carry(l) })
}

// linkDown disconnects a peer. What waits for it is lost.
func (h *host) linkDown(id peer.ID) {
	h.mu.Lock()
	l := h.links[id]
	delete(h.links, id)
	h.mu.Unlock()
	if l != nil {
		l.cancel()
		h.tell(id, false)
	}
}

func (h *host) tell(id peer.ID, up bool) {
	select {
	case h.news <- func() { h.handler.Peer(id, up) }:
	case <-h.ctx.Done():
	}
}

// carry hands over the frames of a link, in order and each when it is due.
func (h *host) carry(l *link) {
	for {
		select {
		case p := <-l.frames:
			if !rest(l.ctx, time.Until(p.due)) {
				return
			}
			if !h.net.reaches(h.id, l.to.id) || !l.to.enter() {
				continue
			}
			l.to.stats.received.Add(1)
			l.to.handler.Frame(h.id, p.frame)
			l.to.running.Done()
		case <-l.ctx.Done():
			return
		}
	}
}

// rest waits, and reports false if ctx ends before.
func rest(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// fate decides about a message: how long it takes, and whether it is lost. What is sent again is decided about again.
func (h *host) fate(kind string, to peer.ID, message []byte) (took time.Duration, lost bool) {
	w := h.net.sky()
	c := h.net.chance.of(kind, string(h.id), string(to), message)
	h.mu.Lock()
	h.times[c]++
	c = c.of(h.times[c])
	h.mu.Unlock()
	return c.of("latency").within(w.Least, w.Most), c.of("loss").happens(w.Loss)
}

// Send implements node.Transport.
func (h *host) Send(to peer.ID, frame []byte) bool {
	l := h.link(to)
	if l == nil {
		h.stats.dropped.Add(1)
		return false
	}
	took, lost := h.fate("frame", to, frame)
	if lost {
		return true
	}
	select {
	case l.frames <- packet{frame, time.Now().Add(took)}:
		h.stats.sent.Add(1)
		return true
	default:
		h.stats.dropped.Add(1)
		return false
	}
}

var errCut = errors.New("edge: the stream broke")

// Request implements node.Transport.
func (h *host) Request(ctx context.Context, to peer.ID, req []byte, most int) (answer []byte, err error) {
	if !h.enter() {
		return nil, p2p.ErrClosed
	}
	defer h.running.Done()
	h.stats.asked.Add(1)
	defer func() {
		if err != nil {
			h.stats.failed.Add(1)
		}
	}()
	l := h.link(to)
	if l == nil {
		return nil, fmt.Errorf("%w: %s", p2p.ErrNotConnected, to)
	}
	ctx, cancel := context.WithTimeout(ctx, hostPatience)
	defer cancel()
	stop := context.AfterFunc(l.ctx, cancel)
	defer stop()
	select {
	case l.asks <- struct{}{}:
		defer func() { <-l.asks }()
	case <-ctx.Done():
		return nil, fmt.Errorf("edge: wait for a turn: %w", ctx.Err())
	}
	there, lost := h.fate("request", to, req)
	if !rest(ctx, there) {
		return nil, ctx.Err()
	}
	if lost {
		return nil, errCut
	}
	if !h.net.reaches(h.id, to) { // until somebody notices
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if !l.to.enter() {
		return nil, errCut
	}
	type result struct {
		answer []byte
		err    error
	}
	done := make(chan result, 1)
	go func() {
		defer l.to.running.Done()
		serving, end := context.WithCancel(l.to.ctx)
		defer end()
		stop := context.AfterFunc(ctx, end)
		defer stop()
		a, err := l.to.handler.Request(serving, h.id, slices.Clone(req))
		done <- result{a, err}
	}()
	var r result
	select {
	case r = <-done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	back, lost := l.to.fate("answer", h.id, r.answer)
	if !rest(ctx, back) {
		return nil, ctx.Err()
	}
	switch {
	case lost:
		return nil, errCut
	case !h.net.reaches(to, h.id):
		<-ctx.Done()
		return nil, ctx.Err()
	case r.err != nil:
		return nil, fmt.Errorf("%w: %q", p2p.ErrRefused, r.err.Error())
	case len(r.answer) > most:
		return nil, fmt.Errorf("%w: an answer of %d bytes", p2p.ErrFrame, len(r.answer))
	}
	l.to.stats.served.Add(1)
	if n := len(r.answer); n >= longAnswer && h.net.chance.of("spoil", string(h.id), string(to), r.answer).happens(h.net.sky().Spoil) {
		return r.answer[:n/2], nil
	}
	return r.answer, nil
}

// SetMembers implements node.Transport.
func (h *host) SetMembers(ids []peer.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.members)
	for _, id := range ids {
		h.members[id] = true
	}
}

// Blame implements node.Transport.
func (h *host) Blame(id peer.ID) {
	h.stats.blamed.Add(1)
	h.net.blamed(h.id, id)
}

// Disconnect implements node.Transport. Links of this network come again at once.
func (h *host) Disconnect(peer.ID) {}

// ID implements node.Transport.
func (h *host) ID() peer.ID { return h.id }

// Addrs implements node.Transport.
func (h *host) Addrs() []string { return []string{addrOf(h.id) + "/p2p/" + h.id.String()} }

// Peers implements node.Transport.
func (h *host) Peers() (all []p2p.PeerInfo) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, l := range h.links {
		all = append(all, infoOf(id, l.since, h.members[id], len(l.frames)))
	}
	slices.SortFunc(all, func(a, b p2p.PeerInfo) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return all
}

// Stats implements node.Transport.
func (h *host) Stats() p2p.Stats {
	s := &h.stats
	return p2p.Stats{
		Peers: uint64(len(h.Peers())), FramesSent: s.sent.Load(), FramesReceived: s.received.Load(), DroppedFull: s.dropped.Load(),
		RequestsSent: s.asked.Load(), RequestsFailed: s.failed.Load(), RequestsServed: s.served.Load(),
		GossipPublished: s.published.Load(), GossipReceived: s.heard.Load(), Blamed: s.blamed.Load(),
	}
}
