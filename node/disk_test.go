package node

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
	"github.com/aweigh/aweigh/store/diskstore"
	"github.com/aweigh/aweigh/votes"
)

// anchorage is four anchors on loopback, whose disks are given.
type anchorage struct {
	t        testing.TB
	genesis  scope.Genesis
	identity [4]votes.PrivateKey
	anchor   [4]votes.PrivateKey
	running  [4]*running
	addrs    [4][]string
	change   func(int, *Config) // before a node starts; nil: nothing
}

type running struct {
	*Node
	store store.Store
	stop  context.CancelFunc
	ended chan error
}

func newAnchorage(t testing.TB) *anchorage {
	t.Helper()
	a := &anchorage{t: t}
	var founders []machine.Founder
	for i := range 4 {
		var err1, err2, err3 error
		a.identity[i], err1 = votes.GenerateKey(votes.Ed25519, rand.Reader)
		a.anchor[i], err2 = votes.GenerateKey(votes.Ed25519, rand.Reader)
		peer, err3 := machine.PeerOf(a.identity[i])
		if err := errors.Join(err1, err2, err3); err != nil {
			t.Fatal(err)
		}
		founders = append(founders, machine.Founder{Name: fmt.Sprintf("n%d", i), Key: a.anchor[i].Public(), Peer: peer})
	}
	var err error
	if a.genesis, err = machine.NewGenesis("disks", aweigh.InstantOf(time.Now()), scope.OpenPolicy(quorum.BFT), founders...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for i := range 4 {
			_ = a.end(i)
		}
	})
	return a
}

// start starts an anchor on a file system.
func (a *anchorage) start(i int, fs vfs.FS) {
	a.t.Helper()
	s, err := diskstore.Open("data", diskstore.Options{FS: fs, MemTableBytes: 1 << 18})
	if err != nil {
		a.t.Fatal(err)
	}
	var bootstrap []string
	for j, r := range a.running {
		if j != i && r != nil {
			bootstrap = append(bootstrap, a.addrs[j]...)
		}
	}
	cfg := Config{
		Genesis: a.genesis, Identity: a.identity[i], Anchor: &a.anchor[i], Store: s,
		Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Bootstrap: bootstrap, Timeout: 20 * time.Second,
	}
	if a.change != nil {
		a.change(i, &cfg)
	}
	n, err := New(cfg)
	if err == nil {
		err = n.Start()
	}
	if err != nil {
		a.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Node: n, store: s, stop: cancel, ended: make(chan error, 1)}
	a.running[i], a.addrs[i] = r, n.Addrs()
	go func() { r.ended <- n.Run(ctx) }()
}

// end stops an anchor, and returns what it ended with.
func (a *anchorage) end(i int) error {
	r := a.running[i]
	if r == nil {
		return nil
	}
	a.running[i] = nil
	r.stop()
	err := <-r.ended
	_ = r.store.Close() // a failed store repeats its fault
	return err
}

// put writes through an anchor.
func (a *anchorage) put(i int, key string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, err := a.running[i].Txn(ctx, putTxn(key, strings.Repeat("v", 4096)), Once{})
	return err
}

// has waits until an anchor's own state holds keys.
func (a *anchorage) has(i int, keys []string) {
	a.t.Helper()
	testwait.For(a.t, func() error {
		v, err := a.running[i].root.Read(context.Background(), false)
		if err != nil {
			return err
		}
		defer v.Close()
		for _, k := range keys {
			if r, err := v.Range([]byte(k), nil, scope.Range{}); err != nil || r.Count == 0 {
				return fmt.Errorf("anchor %d lacks %s, which was acknowledged", i, k)
			}
		}
		return nil
	})
}

// broken is a disk on which operations fail once it is told to.
type broken struct {
	mem  *vfs.MemFS
	fs   vfs.FS
	fail atomic.Pointer[func(errorfs.Op) error]
}

func newBroken() *broken {
	b := &broken{mem: vfs.NewCrashableMem()}
	b.fs = fresh{errorfs.Wrap(b.mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if f := b.fail.Load(); f != nil {
			return (*f)(op)
		}
		return nil
	}))}
	return b
}

// fresh makes new files where old ones would be used again: errorfs has no hand
// in those.
type fresh struct{ vfs.FS }

func (f fresh) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := f.Remove(old); err != nil {
		return nil, err
	}
	return f.Create(name, c)
}

func (b *broken) begin(f func(errorfs.Op) error) { b.fail.Store(&f) }

// TestFailingDiskStopsOneAnchorAndLosesNothing: of four anchors one has a disk
// that fails in some way. That one stops, says why, and signs nothing more; the
// others go on; and after a crash it comes back on what its disk kept, holds
// everything that was acknowledged, and votes.
func TestFailingDiskStopsOneAnchorAndLosesNothing(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	full := &os.PathError{Op: "write", Path: "data", Err: syscall.ENOSPC}
	eio := &os.PathError{Op: "sync", Path: "data", Err: syscall.EIO}
	for name, fault := range map[string]struct {
		hits func(errorfs.Op) error
		says string
	}{
		"full": {func(op errorfs.Op) error {
			switch op.Kind {
			case errorfs.OpFileWrite, errorfs.OpCreate, errorfs.OpFilePreallocate:
				return full
			}
			return nil
		}, "no space left on device"},
		"failing sync": {func(op errorfs.Op) error {
			if !strings.HasSuffix(op.Path, ".log") {
				return nil
			}
			switch op.Kind {
			case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
				return eio
			}
			return nil
		}, "input/output error"},
		"failing read of tables": {func(op errorfs.Op) error {
			if strings.HasSuffix(op.Path, ".sst") && (op.Kind == errorfs.OpFileReadAt || op.Kind == errorfs.OpOpen) {
				return eio
			}
			return nil
		}, "input/output error"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAnchorage(t)
			bad := newBroken()
			for i := range 3 {
				a.start(i, vfs.NewMem())
			}
			a.start(3, bad.fs)
			var acked []string
			put := func(i int, key string) {
				if err := a.put(i, key); err == nil {
					acked = append(acked, key)
				} else if i != 3 {
					t.Fatalf("put through anchor %d: %v", i, err)
				}
			}
			for k := range 40 {
				put(k%4, fmt.Sprintf("/before/%d", k))
			}
			bad.begin(fault.hits)
			for k := 0; k < 400; k++ {
				select {
				case err := <-a.running[3].ended:
					a.running[3].ended <- err
				default:
					put(k%4, fmt.Sprintf("/while/%d", k))
					continue
				}
				break
			}
			ended := false
			select {
			case err := <-a.running[3].ended:
				ended = true
				if err == nil || !strings.Contains(err.Error(), "nothing more is signed") && !strings.Contains(err.Error(), "stopped to stay safe") ||
					!strings.Contains(err.Error(), fault.says) {
					t.Errorf("it ended with %v", err)
				}
				a.running[3].ended <- err
			case <-time.After(20 * time.Second):
				t.Error("it did not stop")
			}
			kept := bad.mem.CrashClone(vfs.CrashCloneCfg{})
			if !ended {
				return
			}
			if err := a.put(3, "/dead"); !errors.Is(err, ErrStopped) {
				t.Errorf("a write through the stopped anchor: %v", err)
			}
			bad.fail.Store(nil)
			_ = a.end(3)
			for k := range 10 {
				put(k%3, fmt.Sprintf("/after/%d", k))
			}
			a.start(3, kept)
			put(3, "/back")
			if s := a.running[3].root.Status(); s.Lost {
				t.Error("it lost the record of what it signed")
			}
			for i := range 4 {
				a.has(i, acked)
				if f := a.running[i].root.Status().Faults; len(f) > 0 {
					t.Errorf("anchor %d holds proof of %v", i, f)
				}
			}
		})
	}
}

// TestSlowDiskDelaysAndStopsNobody: one anchor of four takes a second for each
// sync. The others do not wait for it, and it follows.
func TestSlowDiskDelaysAndStopsNobody(t *testing.T) {
	t.Parallel()
	testshort.Skip(t)
	a := newAnchorage(t)
	slow := newBroken()
	for i := range 3 {
		a.start(i, vfs.NewMem())
	}
	a.start(3, slow.fs)
	if err := a.put(3, "/first"); err != nil {
		t.Fatal(err)
	}
	slow.begin(func(op errorfs.Op) error {
		if strings.HasSuffix(op.Path, ".log") && (op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData) {
			time.Sleep(time.Second) // this is the slow disk
		}
		return nil
	})
	var acked []string
	began := time.Now()
	for k := range 12 {
		key := fmt.Sprintf("/k%d", k)
		if err := a.put(k%3, key); err != nil {
			t.Fatal(err)
		}
		acked = append(acked, key)
	}
	t.Logf("12 writes took %s", time.Since(began).Round(time.Millisecond))
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("12 writes through the others took %s", took)
	}
	if err := a.put(3, "/through"); err != nil {
		t.Errorf("a write through the slow anchor: %v", err)
	}
	slow.fail.Store(nil)
	a.has(3, acked)
}
