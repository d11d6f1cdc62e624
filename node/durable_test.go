package node

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
	"github.com/aweigh/aweigh/store/diskstore"
	"github.com/aweigh/aweigh/votes"
)

// lingering is a store that stays for a while where a commit can be read and is not on disk, as any store is while the
// disk writes. While one lingers, it is not known yet to be durable.
type lingering struct {
	store.Store
	linger func()
	scope  aweigh.ScopeID
	height *atomic.Uint64 // of the state that is on disk
}

func (l lingering) Commit(ops []kv.Op, sync bool) error {
	if err := l.Store.Commit(ops, false); err != nil {
		return err
	}
	l.linger()
	if err := l.Store.Commit(nil, true); err != nil {
		return err
	}
	s := l.Store.Snapshot()
	if state, err := scope.Open(s, l.scope); err == nil { // none while a snapshot is installed
		l.height.Store(uint64(state.Height()))
	}
	return s.Close()
}

// TestReadersGetWhatIsOnDiskAndKnown: while the disk writes a block, a reader gets neither its state nor what made it
// final, which a power failure could take so that the anchor signs another one. Of what it gets, the node knows
// delegations, and users and roles, and it can open the scopes that were founded.
func TestReadersGetWhatIsOnDiskAndKnown(t *testing.T) {
	var onDisk, passes atomic.Uint64
	var n *Node
	c := startClusterWith(t, 1, quorum.BFT, func(_ int, node *Node) {
		n = node
		n.root.runner.store = lingering{n.root.runner.store, func() {
			for before, began := passes.Load(), time.Now(); passes.Load() < before+2 && time.Since(began) < 3*time.Millisecond; {
				time.Sleep(100 * time.Microsecond) // readers that wait for the disk make no pass
			}
		}, n.root.id, &onDisk}
	})
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	look := func() {
		next := aweigh.Height(onDisk.Load()) + 1
		if _, err := n.root.History().Finality(next); err == nil && aweigh.Height(onDisk.Load()) < next {
			t.Errorf("what makes block %d final is given, and it is not on disk", next)
		}
		v, err := n.root.Read(ctx, false)
		if err != nil {
			if ctx.Err() == nil {
				t.Error(err)
			}
			return
		}
		defer v.Close()
		h := v.Head()
		if uint64(h.Height) > onDisk.Load() {
			t.Errorf("a state of height %d is given, and %d is on disk", h.Height, onDisk.Load())
		}
		if known := int64(len(n.root.Delegations())); known < h.Delegated {
			t.Errorf("a state with %d delegations is given, and the node knows %d", h.Delegated, known)
		}
		if last := n.root.LastHead(); last.Height < h.Height || last.Access < h.Access {
			t.Errorf("a state of height %d with users of %d is given, and the node stands at %d with %d", h.Height, h.Access, last.Height, last.Access)
		}
		if err := n.openChildren(n.root); err != nil {
			t.Error(err)
		}
	}
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					look()
					passes.Add(1)
				}
			}
		})
	}
	for range 10 {
		if _, err := n.Txn(ctx, putTxn("/b/x", "1"), Once{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := n.Permit(ctx, scope.Access{Revision: 1, Roles: []scope.Role{{Name: "root"}}}, Once{}); err != nil {
		t.Fatal(err)
	}
	c.delegate(ctx, "", "/b/", quorum.BFT, 0)
	close(stop)
	readers.Wait()
	if passes.Load() < 10 {
		t.Errorf("only %d reads", passes.Load())
	}
}

// TestNoStateIsReadWhileASnapshotTakesItsPlace: between the commit that puts the snapshot in place and the moment in
// which the node knows its delegations, a watch would pass over what other scopes changed.
func TestNoStateIsReadWhileASnapshotTakesItsPlace(t *testing.T) {
	c := startClusterWith(t, 1, quorum.BFT, func(_ int, n *Node) { quickly(&n.cfg) })
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Second)
	defer cancel()
	put := func(times int) {
		for range times {
			if _, err := c.nodes[0].Txn(ctx, putTxn("/a", "v"), Once{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	put(machine.MaxBlocks + 100) // more than one answer of blocks
	c.delegate(ctx, "", "/b/", quorum.BFT, 0)
	put(80)

	id, err := votes.GenerateKey(votes.Ed25519, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	disk, err := diskstore.Open(t.TempDir(), diskstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Name: "o", Genesis: c.nodes[0].root.Genesis(), Identity: id, Store: disk, Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Bootstrap: c.nodes[0].Addrs()}
	quickly(&cfg)
	n, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var windows, onDisk atomic.Uint64
	n.root.runner.store = lingering{disk, func() {
		s := disk.Snapshot()
		defer s.Close()
		if state, err := scope.Open(s, n.root.id); !n.root.views.changes.Load() || err != nil || state.Head().Delegated == 0 || len(n.root.Delegations()) > 0 {
			return
		}
		windows.Add(1)
		if v, err := n.root.views.own(); err == nil {
			if v.Head().Delegated > 0 {
				t.Errorf("a state with %d delegations is given, and the node knows none", v.Head().Delegated)
			}
			if err := n.root.views.release(v); err != nil {
				t.Error(err)
			}
		} else if !errors.Is(err, ErrInstalling) {
			t.Error(err)
		}
	}, n.root.id, &onDisk}
	run, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- errors.Join(n.Run(run), disk.Close()) }()
	testwait.Until(t, "the delegation is known", func() bool { return len(n.root.Delegations()) > 0 || len(ended) > 0 })
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if windows.Load() == 0 {
		t.Error("no snapshot was installed")
	}
}

// TestWhatAFailedCommitWroteIsNotRead: a store shows what a commit wrote also when the disk then fails.
func TestWhatAFailedCommitWroteIsNotRead(t *testing.T) {
	disk := store.NewMem()
	key := []byte("k")
	if err := disk.Commit([]kv.Op{kv.Set(key, []byte("old"))}, true); err != nil {
		t.Fatal(err)
	}
	d := durable{turn: make(chan struct{}, 1)}
	r := between{disk, &d}
	shown, fails := make(chan struct{}), make(chan struct{})
	ended, read := make(chan error, 1), make(chan error, 1)
	go func() {
		ended <- d.commit(func() error {
			err := disk.Commit([]kv.Op{kv.Set(key, []byte("new"))}, false)
			close(shown)
			<-fails
			return errors.Join(err, store.ErrFailed)
		}, func() { t.Error("a commit that failed is made known") })
	}()
	<-shown
	go func() {
		_, _, err := r.Get(key)
		read <- err
	}()
	close(fails)
	if err := <-ended; !errors.Is(err, store.ErrFailed) {
		t.Error(err)
	}
	if err := <-read; err != nil && !errors.Is(err, ErrStopped) {
		t.Error(err)
	}
	if v, _, err := r.Get(key); !errors.Is(err, ErrStopped) {
		t.Errorf("read %q, %v", v, err)
	}
	if err := r.Scan(key, nil, false, func(_, v []byte) bool { t.Errorf("read %q", v); return false }); !errors.Is(err, ErrStopped) {
		t.Error(err)
	}
	v := views{store: disk, durable: durable{turn: d.turn, failed: true}}
	if _, err := v.own(); !errors.Is(err, ErrStopped) {
		t.Error(err)
	}
}
