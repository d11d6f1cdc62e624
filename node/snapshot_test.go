package node

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/store"
	"github.com/aweigh/aweigh/store/diskstore"
	"github.com/aweigh/aweigh/votes"
)

// An answer of nodes that are changed by quickly has at most fewBlocks blocks. After it, a node that lacks farBlocks
// still wants a snapshot.
const (
	fewBlocks = 32
	farBlocks = fewBlocks + 60
)

// quickly makes a node offer and want snapshots after few blocks, and its scopes become idle often.
func quickly(cfg *Config) {
	bounds := machine.DefaultBounds()
	bounds.Blocks = fewBlocks
	cfg.bounds = &bounds
	cfg.idleAfter = 5 * time.Millisecond
	cfg.SnapshotBehind, cfg.snapshotEvery, cfg.SnapshotPart = 40, 10*time.Millisecond, 2000
}

// newFar is four anchors that offer and want snapshots early.
func newFar(t testing.TB, change func(int, *Config)) *anchorage {
	t.Helper()
	a := newAnchorage(t)
	a.change = func(i int, cfg *Config) {
		quickly(cfg)
		if change != nil {
			change(i, cfg)
		}
	}
	return a
}

func (a *anchorage) write(blocks int) {
	a.t.Helper()
	for k := range blocks {
		ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
		_, err := a.running[0].Txn(ctx, putTxn(fmt.Sprintf("/k%d", k), strings.Repeat("v", 200)), Once{})
		cancel()
		if err != nil {
			a.t.Fatal(err)
		}
	}
}

// observe starts an observer on a file system.
func (a *anchorage) observe(key votes.PrivateKey, fs vfs.FS) *running {
	a.t.Helper()
	return a.observeWith(key, fs, func(*Config) {})
}

func (a *anchorage) observeWith(key votes.PrivateKey, fs vfs.FS, change func(*Config)) *running {
	a.t.Helper()
	s, err := diskstore.Open("data", diskstore.Options{FS: fs, MemTableBytes: 1 << 18})
	if err != nil {
		a.t.Fatal(err)
	}
	cfg := Config{Genesis: a.genesis, Identity: key, Store: s, Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Timeout: 20 * time.Second}
	quickly(&cfg)
	change(&cfg)
	for i := range 4 {
		cfg.Bootstrap = append(cfg.Bootstrap, a.addrs[i]...)
	}
	n, err := New(cfg)
	if err != nil {
		a.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Node: n, store: s, stop: cancel, ended: make(chan error, 1)}
	go func() { r.ended <- n.Run(ctx) }()
	return r
}

func (r *running) halt(t testing.TB) {
	t.Helper()
	r.stop()
	if err := errors.Join(<-r.ended, r.store.Close()); err != nil {
		t.Error(err)
	}
}

func newIdentity(t testing.TB) votes.PrivateKey {
	t.Helper()
	k, err := votes.GenerateKey(votes.Ed25519, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// level waits until a node has the state of anchor 0.
func (a *anchorage) level(r *running) {
	a.t.Helper()
	testwait.Until(a.t, "the state of the others", func() bool {
		x, y := a.running[0].root.Status().Head, r.root.Status().Head
		return x.Height == y.Height && x.Digest == y.Digest && x.Block == y.Block
	})
}

func startAll(a *anchorage) {
	for i := range 4 {
		a.start(i, vfs.NewMem())
	}
}

// TestObserverCatchesUpBySnapshot: it reaches the others' state, follows them, says
// what it lacks, and starts again.
func TestObserverCatchesUpBySnapshot(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	a := newFar(t, nil)
	startAll(a)
	a.write(farBlocks)
	key, fs := newIdentity(t), vfs.NewMem()
	o := a.observe(key, fs)
	a.level(o)
	if o.root.snapshotParts.Load() < 10 {
		t.Errorf("it fetched %d parts of a snapshot", o.root.snapshotParts.Load())
	}
	_, err := o.root.History().Block(fewBlocks + 1)
	if !errors.Is(err, machine.ErrNoBlock) || !strings.Contains(err.Error(), "ask another node") {
		t.Errorf("a block from before the snapshot: %v", err)
	}
	a.write(3)
	a.level(o)
	o.halt(t)
	a.write(3)
	o = a.observe(key, fs)
	a.level(o)
	if n := o.root.snapshotParts.Load(); n != 0 {
		t.Errorf("it fetched %d parts for a few blocks", n)
	}
	if _, ok, err := storedOffer(o.store, o.root.id); ok || err != nil {
		t.Errorf("what was fetched is still there (%v)", err)
	}
	parts := machine.Record(o.root.id, 'S')
	_ = o.store.Scan(parts, kv.PrefixEnd(parts), false, func(k, _ []byte) bool { t.Errorf("%x is still there", k); return true })
	o.halt(t)
}

// TestSnapshotIsResumed: after a restart no part is fetched twice.
func TestSnapshotIsResumed(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	a := newFar(t, func(_ int, cfg *Config) { cfg.SnapshotPart = 300 })
	startAll(a)
	a.write(farBlocks)
	key, fs := newIdentity(t), vfs.NewMem()
	o := a.observe(key, fs)
	testwait.Until(t, "the first parts", func() bool { return o.root.snapshotParts.Load() > 5 })
	o.halt(t)
	s, err := diskstore.Open("data", diskstore.Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	offer, ok, err := storedOffer(s, a.genesis.Hash())
	if err != nil || !ok {
		t.Fatalf("after %d parts there is no offer: %v", o.root.snapshotParts.Load(), err)
	}
	if err := offer.check(o.root.epochs.epoch(), o.root.epochs.epoch()); err != nil {
		t.Fatal(err)
	}
	f, err := newFetch(&Replica{cfg: &Config{Store: s}, id: o.root.id}, &offer)
	if err != nil || f.count < 5 || f.whole() {
		t.Fatalf("after %d parts there are %d of %d: %v", o.root.snapshotParts.Load(), f.count, offer.parts(), err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	first := o.root.snapshotParts.Load()
	o = a.observe(key, fs)
	a.level(o)
	o.halt(t)
	if second := o.root.snapshotParts.Load(); first != f.count || first+second != offer.parts() {
		t.Errorf("%d parts, then %d, of %d", first, second, offer.parts())
	}
}

// offerOf is the offer of a node's newest snapshot.
func (r *running) offerOf(ctx context.Context, t *testing.T) (o snapshotOffer) {
	t.Helper()
	raw, err := r.root.serveHeights(heightsAsk{})
	var at heights
	if err == nil {
		err = canon.Decode(raw, &at)
	}
	if err != nil || len(at.All) == 0 {
		t.Fatalf("heights %v: %v", at.All, err)
	}
	if raw, err = r.root.serveOffer(ctx, snapshotAsk{Height: at.All[len(at.All)-1]}); err == nil {
		err = canon.Decode(raw, &o)
	}
	if err != nil || len(o.Block) == 0 {
		t.Fatalf("no offer of height %d: %v", at.All[len(at.All)-1], err)
	}
	return o
}

// lying is a store whose snapshots lie while lie is set.
type lying struct {
	store.Store
	lie  *atomic.Bool
	kind int
}

type lyingSnapshot struct {
	store.Snapshot
	lying
}

func (l lying) Snapshot() store.Snapshot { return lyingSnapshot{l.Store.Snapshot(), l} }

func (l lyingSnapshot) Scan(from, to []byte, reverse bool, visit func(k, v []byte) bool) error {
	n := 0
	return l.Snapshot.Scan(from, to, reverse, func(k, v []byte) bool {
		n++
		version := len(k) > 17 && k[0] == 's' && k[17] == 'k'
		switch {
		case !l.lie.Load() || !version || n != 3:
		case l.kind == 0:
			v = append(bytes.Clone(v), 'x')
		case l.kind == 1:
			return true
		case l.kind == 2:
			for at := byte(0); visit(append(bytes.Clone(k), at), v); at++ {
			}
			return false
		}
		return visit(k, v)
	})
}

// TestLyingSnapshotsAreFoundOut: changed, missing and endless records are never
// installed, and whoever is honest, or the blocks, are used instead.
func TestLyingSnapshotsAreFoundOut(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	var lie atomic.Bool
	lie.Store(true)
	a := newFar(t, func(i int, cfg *Config) { cfg.Store = lying{cfg.Store, &lie, i % 3} })
	startAll(a)
	a.write(farBlocks)
	o := a.observe(newIdentity(t), vfs.NewMem())
	defer o.halt(t)
	testwait.Until(t, "a lie found out", func() bool { return o.root.snapshotLies.Load() > 0 })
	if h := o.root.Status().Head.Height; h > fewBlocks && o.root.Status().Far {
		t.Errorf("height %d after nothing but lies", h)
	}
	lie.Store(false)
	for i := range 4 { // what they offered was a lie as well
		a.running[i].root.snapshots.clear()
	}
	a.level(o)
}

// TestAnchorThatWasAwayCatchesUpBySnapshot: and signs again, with its record.
func TestAnchorThatWasAwayCatchesUpBySnapshot(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	a := newFar(t, nil)
	var disks [4]vfs.FS
	for i := range disks {
		disks[i] = vfs.NewMem()
		a.start(i, disks[i])
	}
	a.write(5)
	a.level(a.running[3])
	if err := a.end(3); err != nil {
		t.Fatal(err)
	}
	a.write(farBlocks)
	a.start(3, disks[3])
	r := a.running[3]
	a.level(r)
	if r.root.snapshotParts.Load() == 0 {
		t.Error("it fetched no snapshot")
	}
	if err := a.end(2); err != nil { // now nothing is decided without anchor 3
		t.Fatal(err)
	}
	a.write(2)
	a.level(r)
	if s := r.root.Status(); s.Lost || s.Signed[quorum.Finalize] == 0 {
		t.Errorf("lost %v, signed %v", s.Lost, s.Signed)
	}
}
