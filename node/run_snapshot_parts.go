package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/p2p"
)

const (
	mostGivers   = 8                // peers that give parts at a time
	partsAhead   = 64               // stored ahead of the first that is not checked; a false offer costs no more room
	partTries    = 3                // in a row, before a peer is given up
	mostStrikes  = 3                // how often that may happen
	partTimeout  = 20 * time.Second // for one part; a slower peer is of no use
	recruitEvery = 5                // looks of catchUpBySnapshot, while any peer gives parts
)

// fetch gets the parts of one snapshot from several peers at a time. A part is stored if its sum is the offered one,
// so a peer that gives another part is found out at once. The parts are checked in their order while others come.
type fetch struct {
	n     *Replica
	offer *snapshotOffer
	at    aweigh.Height

	// Of the goroutine in run.
	givers  map[peer.ID]context.CancelFunc // peers that are asked for parts
	paced   time.Time                      // when the pace was last checked
	pace    uint64                         // how many parts were here then
	offered map[peer.ID]bool               // peers that have offered it at any time
	strikes map[peer.ID]int                // how often a peer was given up
	denied  map[peer.ID]bool               // peers that do not have it

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when something below changed
	parts   []partState
	count   uint64         // parts that are here
	bytes   uint64         // their bytes
	checked uint64         // so many from the first on, or those that an earlier life had
	names   []machine.Peer // of the givers
}

type partState uint8

const (
	missing partState = iota
	asked
	here
)

// newFetch returns a fetch that continues with the parts that are stored.
func newFetch(n *Replica, o *snapshotOffer) (*fetch, error) {
	f := &fetch{
		n: n, offer: o, at: o.height(),
		givers: make(map[peer.ID]context.CancelFunc), offered: make(map[peer.ID]bool),
		strikes: make(map[peer.ID]int), denied: make(map[peer.ID]bool),
		changed: make(chan struct{}), parts: make([]partState, o.parts()), paced: time.Now(),
	}
	stored := machine.Record(n.id, 'S')
	err := n.cfg.Store.Scan(stored, kv.PrefixEnd(stored), false, func(k, v []byte) bool {
		if no, ok := partNumber(k); ok && no < o.parts() {
			f.parts[no] = here
			f.count, f.bytes = f.count+1, f.bytes+uint64(len(v))
		}
		return true
	})
	for f.checked < o.parts() && f.parts[f.checked] == here { // they are checked again while others come
		f.checked++
	}
	return f, err
}

// left says what ended the work of a giver.
type left struct {
	from peer.ID
	err  error
}

// run fetches what is missing and checks everything. The error wraps ErrSnapshot if the whole is not what the offer
// claims.
func (f *fetch) run(ctx context.Context, first []peer.ID) error {
	ctx, cancel := context.WithCancel(ctx)
	var working sync.WaitGroup
	defer working.Wait()
	defer cancel()
	result := make(chan error, 1)
	working.Go(func() { result <- f.check(ctx) })
	ended, joins := make(chan left, mostGivers), make(chan []offered, 1)
	join := func(p peer.ID) {
		if f.givers[p] != nil || len(f.givers) >= mostGivers {
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		f.givers[p], f.offered[p] = cancel, true
		working.Go(func() { ended <- left{p, f.work(ctx, p)} })
	}
	for _, p := range first {
		join(p)
	}
	look := time.NewTicker(f.n.cfg.snapshotEvery)
	defer look.Stop()
	looking, looked := false, time.Time{}
	for {
		f.name()
		select {
		case err := <-result:
			return err
		case l := <-ended:
			f.givers[l.from]()
			delete(f.givers, l.from)
			f.leaves(l)
		case <-look.C:
			if len(f.givers) > 0 && time.Since(looked) < recruitEvery*f.n.cfg.snapshotEvery {
				continue
			}
			looked = time.Now()
			some := f.recruits()
			if len(some) > 0 && !looking && len(f.givers) < mostGivers {
				looking = true
				working.Go(func() { joins <- f.ask(ctx, some) })
			}
			if len(some) == 0 && !looking && len(f.givers) == 0 && !f.whole() && len(f.n.host.Peers()) > 0 {
				return fmt.Errorf("node: no peer gives the snapshot of height %d any more", f.at)
			}
			if p, slow := f.drips(); slow {
				f.n.exclude(p)
				return fmt.Errorf("node: peer %s alone gives the snapshot of height %d, and too slowly", p, f.at)
			}
		case all := <-joins:
			looking = false
			for _, o := range all {
				switch {
				case o.err == nil && o.offer.same(f.offer):
					join(o.from)
				case errors.Is(o.err, machine.ErrSnapshot):
					f.n.exclude(o.from)
				case o.err == nil, errors.Is(o.err, p2p.ErrRefused):
					f.denied[o.from] = true
				}
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// leaves notes that a peer gives no more parts.
func (f *fetch) leaves(l left) {
	switch {
	case l.err == nil:
	case errors.Is(l.err, machine.ErrSnapshot):
		f.n.snapshotLies.Add(1)
		f.n.exclude(l.from)
		delete(f.offered, l.from) // it is no longer counted among the peers that offer it
	case errors.Is(l.err, p2p.ErrRefused):
		f.denied[l.from] = true
	default:
		f.strikes[l.from]++
	}
	if l.err != nil {
		f.n.log.Info("a peer gives no more of a snapshot", "peer", l.from, "height", f.at, "reason", l.err)
	}
}

// recruits returns peers that may have the snapshot and are not asked for it yet.
func (f *fetch) recruits() (some []peer.ID) {
	for _, p := range f.n.candidates() {
		if f.givers[p] == nil && !f.denied[p] && f.strikes[p] < mostStrikes && len(some) < askedAtOnce {
			some = append(some, p)
		}
	}
	return some
}

func (f *fetch) ask(ctx context.Context, peers []peer.ID) []offered {
	all := make([]offered, len(peers))
	var asking sync.WaitGroup
	for i, p := range peers {
		asking.Go(func() { all[i] = f.n.askOffer(ctx, p, f.at, false) })
	}
	asking.Wait()
	return all
}

// drips reports whether the only giver is so slow that other peers, which have another snapshot, are the better
// choice. A slow giver among several delays nothing.
func (f *fetch) drips() (p peer.ID, slow bool) {
	const parts, timeouts = 6, 3 // so many in so much time
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.paced) < timeouts*f.n.cfg.partTimeout {
		return "", false
	}
	came := f.count - f.pace
	f.paced, f.pace = time.Now(), f.count
	if len(f.givers) != 1 || came >= parts || f.count == uint64(len(f.parts)) {
		return "", false
	}
	for p = range f.givers { // the only one
	}
	return p, slices.ContainsFunc(f.n.candidates(), func(other peer.ID) bool { return other != p })
}

func (f *fetch) whole() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count == uint64(len(f.parts))
}

// name updates the names of the givers for the report.
func (f *fetch) name() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.names = nil
	for id := range f.givers {
		f.names = append(f.names, machine.Peer(id.String()))
	}
	slices.Sort(f.names)
	f.report()
}

// report publishes the progress.
func (f *fetch) report() {
	f.n.fetching.Store(&SnapshotProgress{Height: f.at, Peers: f.names, Parts: f.count, Of: f.offer.parts(), Bytes: f.bytes})
}

// work asks one peer for one part after the other, until none is left.
func (f *fetch) work(ctx context.Context, p peer.ID) error {
	for failed := 0; ; {
		no, ok := f.next(ctx)
		if !ok {
			return ctx.Err()
		}
		raw, err := f.get(ctx, p, no)
		if err == nil {
			err = f.n.cfg.Store.Commit([]kv.Op{kv.Set(keyPart(f.n.id, no), raw)}, false)
		}
		if err == nil {
			failed = 0
			f.set(no, here, len(raw))
			f.n.snapshotParts.Add(1)
			continue
		}
		f.set(no, missing, 0)
		failed++
		if failed == partTries || errors.Is(err, machine.ErrSnapshot) || errors.Is(err, p2p.ErrRefused) || !f.n.pauseFor(ctx, time.Second) {
			return err
		}
	}
}

// get asks a peer for a part.
func (f *fetch) get(ctx context.Context, p peer.ID, no uint64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, f.n.cfg.partTimeout)
	defer cancel()
	ask := partAsk{Height: f.at, Number: no}
	raw, err := f.n.ask(ctx, p, askPart, ask, maxPart)
	if err == nil && sumOf(raw) != f.offer.sum(no) {
		err = fmt.Errorf("%w: part %d of peer %s differs from its offer", machine.ErrSnapshot, no, p)
	}
	return raw, err
}

// next returns a part to ask for. It waits while those that are missing are asked for, or are far ahead of what was
// checked; ok is false when all are here or ctx ends.
func (f *fetch) next(ctx context.Context) (no uint64, ok bool) {
	for {
		f.mu.Lock()
		changed, done := f.changed, f.count == uint64(len(f.parts))
		for no = f.checked; no < min(f.checked+partsAhead, uint64(len(f.parts))); no++ {
			if f.parts[no] == missing {
				f.parts[no] = asked
				f.mu.Unlock()
				return no, true
			}
		}
		f.mu.Unlock()
		if done {
			return 0, false
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, false
		}
	}
}

// set notes what became of a part.
func (f *fetch) set(no uint64, to partState, bytes int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.parts[no] = to
	if to == here {
		f.count, f.bytes = f.count+1, f.bytes+uint64(bytes)
		f.report()
	}
	f.wake()
}

func (f *fetch) wake() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// await waits until a part is here.
func (f *fetch) await(ctx context.Context, no uint64) error {
	for {
		f.mu.Lock()
		changed, come := f.changed, f.parts[no] == here
		f.mu.Unlock()
		if come {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// check passes the parts to an import in their order, as they come.
func (f *fetch) check(ctx context.Context) error {
	in, err := f.offer.begin(*f.n.genesis)
	if err != nil {
		return err
	}
	nothing := func([]kv.Op) error { return nil }
	for no := range f.offer.parts() {
		if err := f.await(ctx, no); err != nil {
			return err
		}
		if err := f.offer.read(f.n.cfg.Store, f.n.id, no, in, nothing); err != nil {
			return err
		}
		f.mu.Lock()
		f.checked = max(f.checked, no+1)
		f.wake()
		f.mu.Unlock()
	}
	if _, err := in.Finish(); err != nil {
		return fmt.Errorf("%w: %w", machine.ErrSnapshot, err)
	}
	return nil
}
