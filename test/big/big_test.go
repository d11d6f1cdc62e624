package big

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store/diskstore"
	"github.com/aweigh/aweigh/votes"
)

// keysEnv is how many keys the scope has.
const (
	keysEnv  = "AWEIGH_BIG"
	fewKeys  = 30_000
	behind   = 50  // blocks, for one who lacks more to take a snapshot
	enough   = 700 // blocks: the first 256 come at once
	together = 100
)

// TestObserverReachesTheHead: a fresh observer gets the state of a scope of many
// keys from several nodes. It is killed in the middle and started again, then one of
// them stops. Until it is level it says that what it has is old.
func TestObserverReachesTheHead(t *testing.T) {
	if testing.Short() {
		t.Skip("makes some files of many megabytes")
	}
	keys := fewKeys
	if text := os.Getenv(keysEnv); text != "" {
		var err error
		if keys, err = strconv.Atoi(text); err != nil {
			t.Fatalf("%s: %v", keysEnv, err)
		}
	}
	began := time.Now()
	g := newGroup(t, keys)
	t.Logf("%d keys written in %v, %d MiB on the disk", keys, time.Since(began).Round(time.Second), size(t, g.dirs[0])>>20)

	key := newKey(t)
	e := errand{
		Dir: filepath.Join(t.TempDir(), "observer"), Genesis: g.genesis.Encode(), Identity: key.Encode(), Bootstrap: g.addrs, Behind: behind,
	}
	began = time.Now()
	o := e.start(t)
	first := o.until(func(l line) bool {
		s := l.Snapshot
		return s != nil && s.Of > 0 && 3*s.Parts >= s.Of || l.Digest == g.head().Digest
	})
	o.kill()
	o = e.start(t)
	resumed := o.until(func(l line) bool { return l.Snapshot != nil || l.Digest == g.head().Digest })
	if s := first.Snapshot; s != nil && resumed.Snapshot != nil {
		t.Logf("killed after %v with %d of %d parts from %d peers; started again with %d", time.Since(began).Round(time.Second), s.Parts, s.Of, len(s.Peers), resumed.Snapshot.Parts)
		if resumed.Snapshot.Height != s.Height || resumed.Snapshot.Parts+8 < s.Parts { // what was not written out yet may be lost
			t.Errorf("after %d parts of height %d it goes on with %d of height %d", s.Parts, s.Height, resumed.Snapshot.Parts, resumed.Snapshot.Height)
		}
	}
	g.stop(3)
	most, fetched := 0, uint64(0)
	last := o.until(func(l line) bool {
		level := l.Digest == g.head().Digest
		if s := l.Snapshot; s != nil {
			most, fetched = max(most, len(s.Peers)), max(fetched, s.Bytes)
			if !l.CatchingUp && !level {
				t.Error("it does not say that its state is old")
			}
		}
		return level
	})
	took := time.Since(began)
	o.until(func(l line) bool { return !l.CatchingUp })
	t.Logf("level at height %d after %v: %d MiB fetched from up to %d peers at a time, %d MiB of memory at most, %d MiB on its disk",
		last.Height, took.Round(100*time.Millisecond), fetched>>20, most, last.Peak>>10, size(t, e.Dir)>>20)
	o.kill()
}

// group is an anchor, and three observers that have all it has, each with a store
// on disk: whoever has a state can give it.
type group struct {
	t       *testing.T
	genesis scope.Genesis
	keys    [4]votes.PrivateKey // identities
	voting  votes.PrivateKey    // the anchor's, which is the first
	dirs    [4]string
	nodes   [4]*node.Node
	addrs   []string
	cancel  [4]context.CancelFunc
	ended   [4]chan struct{}
}

// newGroup starts the anchor alone, has it write keys, and then starts the others
// with copies of its store: it is keys that shall be many, not writes.
func newGroup(t *testing.T, keys int) *group {
	t.Helper()
	g := &group{t: t, voting: newKey(t)}
	base := t.TempDir()
	for i := range 4 {
		g.keys[i], g.dirs[i] = newKey(t), filepath.Join(base, fmt.Sprint(i))
	}
	peer, err := machine.PeerOf(g.keys[0])
	if err != nil {
		t.Fatal(err)
	}
	g.genesis, err = machine.NewGenesis("big", aweigh.InstantOf(time.Now()), scope.OpenPolicy(quorum.BFT), machine.Founder{Name: "n0", Key: g.voting.Public(), Peer: peer})
	if err != nil {
		t.Fatal(err)
	}
	g.start(0)
	g.fill(keys)
	g.stop(0)
	for i := range 4 {
		if i > 0 {
			duplicate(t, g.dirs[0], g.dirs[i])
		}
	}
	g.addrs = nil
	for i := range 4 {
		g.start(i)
	}
	return g
}

func (g *group) start(i int) {
	g.t.Helper()
	s, err := diskstore.Open(g.dirs[i], diskstore.Options{})
	if err != nil {
		g.t.Fatal(err)
	}
	cfg := node.Config{
		Genesis: g.genesis, Identity: g.keys[i], Store: s, SnapshotBehind: behind, Timeout: time.Minute,
		Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Bootstrap: g.addrs,
	}
	if i == 0 {
		cfg.Anchor = &g.voting
	}
	n, err := node.New(cfg)
	if err == nil {
		err = n.Start()
	}
	if err != nil {
		g.t.Fatal(errors.Join(err, s.Close()))
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	g.nodes[i], g.cancel[i], g.ended[i] = n, cancel, ended
	g.addrs = append(g.addrs, n.Addrs()...)
	go func() {
		defer close(ended)
		if err := n.Run(ctx); err != nil {
			g.t.Errorf("node %d: %v", i, err)
		}
		if err := s.Close(); err != nil {
			g.t.Errorf("node %d: %v", i, err)
		}
	}()
	g.t.Cleanup(func() { cancel(); <-ended })
}

// duplicate copies the store of a node that does not run. Tables never change, so
// they are linked.
func duplicate(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Mkdir(to, 0o700); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		source, target := filepath.Join(from, f.Name()), filepath.Join(to, f.Name())
		if filepath.Ext(f.Name()) == ".sst" {
			err = os.Link(source, target)
		} else {
			var raw []byte
			if raw, err = os.ReadFile(source); err == nil {
				err = os.WriteFile(target, raw, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func newKey(t *testing.T) votes.PrivateKey {
	t.Helper()
	k, err := votes.GenerateKey(votes.Ed25519, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func (g *group) stop(i int) {
	g.cancel[i]()
	<-g.ended[i]
}

// head is what the anchor has.
func (g *group) head() scope.Head { return g.nodes[0].Root().Status().Head }

// fill writes keys, some in a transaction, until there are so many and so many
// blocks that one who has none takes a snapshot.
func (g *group) fill(keys int) {
	g.t.Helper()
	var next atomic.Int64
	var clients sync.WaitGroup
	for range 32 {
		clients.Go(func() {
			for g.t.Context().Err() == nil {
				from := next.Add(together) - together
				if from >= int64(keys) {
					return
				}
				var txn scope.Txn
				for k := from; k < from+together; k++ {
					txn.Success = append(txn.Success, scope.Op{Kind: scope.OpPut, Key: fmt.Appendf(nil, "/big/%010d", k), Value: fmt.Appendf(nil, "value %d", k)})
				}
				if _, err := g.nodes[0].Txn(g.t.Context(), txn, node.Once{}); err != nil {
					g.t.Error(err)
					return
				}
			}
		})
	}
	clients.Wait()
	for k := 0; g.head().Height < enough; k++ {
		txn := scope.Txn{Success: []scope.Op{{Kind: scope.OpPut, Key: []byte("/more"), Value: fmt.Append(nil, k)}}}
		if _, err := g.nodes[0].Txn(g.t.Context(), txn, node.Once{}); err != nil {
			g.t.Fatal(err)
		}
	}
}

// observer is the process of one.
type observer struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines chan line
}

func (e errand) start(t *testing.T) *observer {
	t.Helper()
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	o := &observer{t: t, cmd: exec.Command(os.Args[0]), lines: make(chan line, 1)}
	o.cmd.Env = append(os.Environ(), observerEnv+"="+string(text))
	o.cmd.Stderr = os.Stderr
	out, err := o.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := o.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(o.lines)
		for in := bufio.NewScanner(out); in.Scan(); {
			var l line
			if json.Unmarshal(in.Bytes(), &l) == nil {
				o.lines <- l
			}
		}
	}()
	t.Cleanup(o.kill)
	return o
}

// kill ends it at once.
func (o *observer) kill() {
	_ = o.cmd.Process.Kill()
	for range o.lines {
	}
	_ = o.cmd.Wait()
}

// patience is how long nothing may change: the check of what came and its
// installation do not show, and take minutes when keys are many.
const patience = 30 * time.Minute

// until waits for a line of which ok holds, for as long as anything changes.
func (o *observer) until(ok func(line) bool) (l line) {
	o.t.Helper()
	var before string
	for stuck := time.Now(); time.Since(stuck) < patience; {
		var open bool
		if l, open = <-o.lines; !open {
			o.t.Fatal("the observer ended")
		}
		if ok(l) {
			return l
		}
		if now := fmt.Sprint(l.Height, l.CatchingUp, l.Snapshot); now != before {
			before, stuck = now, time.Now()
		}
	}
	o.t.Fatalf("nothing changes any more: %+v", l)
	return l
}

// size is the bytes of the files in a directory.
func size(t *testing.T, dir string) (sum int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // a file that went away meanwhile counts nothing
		}
		if info, err := d.Info(); err == nil {
			sum += info.Size()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}
