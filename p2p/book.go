package p2p

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	ds "github.com/ipfs/go-datastore"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/record"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/aweigh/aweigh/internal/canon"
)

// ErrRecord means that a peer's record is not signed by that peer.
var ErrRecord = errors.New("p2p: bad peer record")

const (
	maxKnown  = 512     // peers remembered
	maxRecord = 4 << 10 // bytes of one peer's record
)

// book remembers the addresses of peers that have proven to be of this network,
// and of members that other peers report: members belong to it in any case. So
// two members find each other through a third, even if they never ran at the
// same time. It keeps each peer's own signed record (libp2p RFC 0003), so that
// a receiver need not trust the peer that passes it on.
type book struct {
	h    *Host
	news chan struct{} // holds a token when a peer came up

	mu    sync.Mutex
	known map[peer.ID]entry
	dirty bool
}

// entry is one peer's record, sealed and opened.
type entry struct {
	sealed []byte
	addrs  []ma.Multiaddr
	seq    uint64
	seen   time.Time
}

func newBook(h *Host) *book {
	return &book{h: h, news: make(chan struct{}, 1), known: make(map[peer.ID]entry)}
}

// wake tells exchange that a peer came up.
func (b *book) wake() {
	select {
	case b.news <- struct{}{}:
	default:
	}
}

// record remembers a peer's own record; nil has no effect.
func (b *book) record(id peer.ID, sealed *record.Envelope) {
	if sealed == nil {
		return
	}
	data, err := sealed.Marshal()
	if err != nil || len(data) > maxRecord {
		return
	}
	if e, err := (peerRecord{ID: []byte(id), Sealed: data}).open(); err == nil {
		b.put(id, e)
	}
}

// put remembers an entry, unless a newer one of the peer is known. The entry
// seen longest ago makes room, those of members last.
func (b *book) put(id peer.ID, e entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known[id].seq > e.seq {
		return
	}
	if _, ok := b.known[id]; !ok && len(b.known) >= maxKnown {
		delete(b.known, b.oldest())
	}
	e.seen = time.Now()
	b.known[id] = e
	b.dirty = true
}

// oldest is the peer to forget first. b.mu is held.
func (b *book) oldest() (oldest peer.ID) {
	var member bool
	for id, e := range b.known {
		m := b.h.dialer.isMember(id)
		if oldest == "" || member && !m || member == m && e.seen.Before(b.known[oldest].seen) {
			oldest, member = id, m
		}
	}
	return oldest
}

// addrs are the remembered addresses of a peer.
func (b *book) addrs(id peer.ID) []ma.Multiaddr {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.known[id].addrs
}

func (b *book) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.known)
}

// pick returns the records of wanted peers, then of any others, at most limit.
func (b *book) pick(wanted []peer.ID, limit int) []peerRecord {
	b.mu.Lock()
	defer b.mu.Unlock()
	picked := make([]peerRecord, 0, limit)
	first := make(map[peer.ID]bool, len(wanted))
	for _, id := range wanted {
		if e, ok := b.known[id]; ok && !first[id] && len(picked) < limit {
			first[id] = true
			picked = append(picked, peerRecord{ID: []byte(id), Sealed: e.sealed})
		}
	}
	for id, e := range b.known { // map order: each peer gets a different sample
		if len(picked) >= limit {
			break
		}
		if !first[id] {
			picked = append(picked, peerRecord{ID: []byte(id), Sealed: e.sealed})
		}
	}
	return picked
}

// open checks that a record was signed by the peer that it is about.
func (r peerRecord) open() (entry, error) {
	var rec peer.PeerRecord
	env, err := record.ConsumeTypedEnvelope(r.Sealed, &rec)
	if err != nil {
		return entry{}, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	if rec.PeerID != peer.ID(r.ID) || !rec.PeerID.MatchesPublicKey(env.PublicKey) {
		return entry{}, fmt.Errorf("%w: about another peer", ErrRecord)
	}
	return entry{sealed: r.Sealed, addrs: rec.Addrs, seq: rec.Seq}, nil
}

// key is where the book lives in the datastore.
func (b *book) key() ds.Key {
	return ds.NewKey("/p2p/peers").ChildString(b.h.cfg.Network.String()[:16])
}

// save writes the book to the datastore if it has changed. It is a cache:
// losing it costs a start from Config.Bootstrap, so errors are only logged.
func (b *book) save() {
	if b.h.cfg.Datastore == nil {
		return
	}
	b.mu.Lock()
	dirty := b.dirty
	b.dirty = false
	b.mu.Unlock()
	if !dirty {
		return
	}
	data := canon.Encode(peersAnswer{Records: b.pick(nil, maxKnown)})
	if err := b.h.cfg.Datastore.Put(context.Background(), b.key(), data); err != nil {
		b.h.cfg.Log.Warn("cannot remember peers", "error", err)
	}
}

// load makes candidates of the peers remembered by save.
func (b *book) load() {
	if b.h.cfg.Datastore == nil {
		return
	}
	data, err := b.h.cfg.Datastore.Get(b.h.ctx, b.key())
	if errors.Is(err, ds.ErrNotFound) {
		return
	}
	var saved peersAnswer
	if err == nil {
		err = canon.Decode(data, &saved)
	}
	if err != nil {
		b.h.cfg.Log.Warn("cannot recall peers", "error", err)
		return
	}
	for _, r := range saved.Records {
		id := peer.ID(r.ID)
		if e, err := r.open(); err == nil && id != b.h.ID() {
			b.put(id, e)
			b.h.dialer.seek([]peer.AddrInfo{{ID: id, Addrs: e.addrs}})
		}
	}
}
