package node

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/store"
)

// bent is a store whose snapshots are read through bend, once it is set.
type bent struct {
	store.Store
	bend *atomic.Pointer[func(k, v []byte) []byte]
}

type bentSnapshot struct {
	store.Snapshot
	bent
}

func (b bent) Snapshot() store.Snapshot { return bentSnapshot{b.Store.Snapshot(), b} }

func (b bentSnapshot) Scan(from, to []byte, reverse bool, visit func(k, v []byte) bool) error {
	return b.Snapshot.Scan(from, to, reverse, func(k, v []byte) bool {
		if bend := b.bend.Load(); bend != nil {
			v = (*bend)(k, v)
		}
		return visit(k, v)
	})
}

// newGivers is four anchors that have made the same offer; what the second gives
// from now on is read through the function that is returned.
func newGivers(t *testing.T) (a *anchorage, parts uint64, bend *atomic.Pointer[func(k, v []byte) []byte]) {
	t.Helper()
	bend = new(atomic.Pointer[func(k, v []byte) []byte])
	a = newFar(t, func(i int, cfg *Config) {
		cfg.SnapshotPart = 300
		if i == 1 {
			cfg.Store = bent{cfg.Store, bend}
		}
	})
	startAll(a)
	a.write(farBlocks)
	at := a.commonSnapshot()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for i := range 4 {
		raw, err := a.running[i].root.serveOffer(ctx, snapshotAsk{Height: at})
		var o snapshotOffer
		if err == nil {
			err = canon.Decode(raw, &o)
		}
		if err != nil || parts != 0 && o.parts() != parts {
			t.Fatalf("anchor %d offers %d parts of height %d, others %d: %v", i, o.parts(), at, parts, err)
		}
		parts = o.parts()
	}
	return a, parts, bend
}

// commonSnapshot is a height of which all have a snapshot. An anchor that hears
// of several blocks at once takes none of those between, so it may be that more
// must be written first.
func (a *anchorage) commonSnapshot() (at aweigh.Height) {
	a.t.Helper()
	testwait.Until(a.t, "a height of which all have a snapshot", func() bool {
		times := make(map[aweigh.Height]int)
		for i := range 4 {
			a.level(a.running[i])
			for _, h := range a.running[i].root.snapshots.from(1) {
				if times[h]++; times[h] == 4 {
					at = h
				}
			}
		}
		if at == 0 {
			a.write(1)
		}
		return at != 0
	})
	return at
}

func (a *anchorage) given() (all [4]uint64, sum uint64) {
	for i := range 4 {
		all[i] = a.running[i].root.snapshotGiven.Load()
		sum += all[i]
	}
	return all, sum
}

// TestSnapshotComesFromSeveralPeers: each gives a share, and no part is given twice.
func TestSnapshotComesFromSeveralPeers(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	a, parts, _ := newGivers(t)
	o := a.observe(newIdentity(t), vfs.NewMem())
	defer o.halt(t)
	var most int
	testwait.Until(t, "the state of the others", func() bool {
		if p := o.root.fetching.Load(); p != nil {
			most = max(most, len(p.Peers))
			if p.Of != parts || p.Parts > p.Of {
				t.Errorf("%d parts of %d, of %d", p.Parts, p.Of, parts)
			}
		}
		return o.root.Status().Head.Digest == a.running[0].root.Status().Head.Digest
	})
	all, sum := a.given()
	several := 0
	for _, n := range all {
		if n >= parts/20 {
			several++
		}
	}
	if several < 3 || sum != parts || most < 2 {
		t.Errorf("of %d parts the anchors gave %v; at most %d at a time", parts, all, most)
	}
}

// TestPartThatWasNotOfferedIsFoundOut: the peer that gives it is found out at
// once, and nothing of what others gave is lost.
func TestPartThatWasNotOfferedIsFoundOut(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	a, parts, bend := newGivers(t)
	lie := func(_, v []byte) []byte { return append(bytes.Clone(v), 'x') }
	bend.Store(&lie)
	o := a.observe(newIdentity(t), vfs.NewMem())
	defer o.halt(t)
	a.level(o)
	if o.root.snapshotLies.Load() != 1 || o.root.snapshotParts.Load() != parts {
		t.Errorf("%d lies; %d parts for a snapshot of %d", o.root.snapshotLies.Load(), o.root.snapshotParts.Load(), parts)
	}
}

// TestGiverThatHangsIsReplaced: others give the part that it was asked for.
func TestGiverThatHangsIsReplaced(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	a, parts, bend := newGivers(t)
	free := make(chan struct{})
	var hangs atomic.Int64
	hang := func(_, v []byte) []byte {
		hangs.Add(1)
		<-free
		return v
	}
	bend.Store(&hang)
	defer close(free)
	o := a.observeWith(newIdentity(t), vfs.NewMem(), func(cfg *Config) { cfg.partTimeout = time.Second }) // others are in time, on a busy machine too
	defer o.halt(t)
	began := time.Now()
	a.level(o)
	if took := time.Since(began); o.root.snapshotParts.Load() != parts || hangs.Load() == 0 || took >= 30*time.Second { // as long as a request of any kind may take
		t.Errorf("%d parts for a snapshot of %d; %d were hung up; it took %v", o.root.snapshotParts.Load(), parts, hangs.Load(), took)
	}
}

// TestGiverThatDiesIsReplaced: an anchor stops in the middle.
func TestGiverThatDiesIsReplaced(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	a, parts, bend := newGivers(t)
	free := make(chan struct{})
	var read atomic.Int64
	stop := func(_, v []byte) []byte {
		if read.Add(1) > 20 { // some parts, and then it is in the middle of one
			<-free
		}
		return v
	}
	bend.Store(&stop)
	o := a.observe(newIdentity(t), vfs.NewMem())
	defer o.halt(t)
	testwait.Until(t, "some parts", func() bool { return read.Load() > 20 })
	close(free)
	if err := a.end(1); err != nil {
		t.Fatal(err)
	}
	a.level(o)
	if o.root.snapshotParts.Load() != parts {
		t.Errorf("%d parts for a snapshot of %d", o.root.snapshotParts.Load(), parts)
	}
}

// TestLoneSlowGiverIsLeft: but only if it is alone, slow, and others are there.
func TestLoneSlowGiverIsLeft(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	a, _, _ := newGivers(t)
	o := a.observe(newIdentity(t), vfs.NewMem())
	defer o.halt(t)
	testwait.Until(t, "all are connected", func() bool { return len(o.root.candidates()) == 4 })
	a.level(o)
	peers := o.root.candidates()
	for _, c := range []struct {
		what   string
		givers int
		came   uint64
		since  time.Duration
		slow   bool
	}{
		{"two givers", 2, 0, time.Hour, false},
		{"a fast one", 1, 100, time.Hour, false},
		{"a young one", 1, 0, 0, false},
		{"a slow one", 1, 0, time.Hour, true},
	} {
		f := fetch{n: o.root, givers: make(map[peer.ID]context.CancelFunc), parts: make([]partState, 200), count: c.came, paced: time.Now().Add(-c.since)}
		for _, p := range peers[:c.givers] {
			f.givers[p] = func() {}
		}
		if p, slow := f.drips(); slow != c.slow || slow && p != peers[0] {
			t.Errorf("%s: left: %v, %s", c.what, slow, p)
		}
	}
}
