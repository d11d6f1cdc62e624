package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// lowest is the height from which on a node holds all blocks.
func (n *Part) lowest(t *testing.T) aweigh.Height {
	t.Helper()
	at := n.Status().Head.Height
	for ; at > 0; at-- {
		if _, err := n.History().Block(at); errors.Is(err, ErrNoBlock) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	return at + 1
}

// first is where a key was written first, as a node tells it.
func first(t *testing.T, n *running, key string) Deed {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	deeds, more, _, err := n.Lineage(ctx, []byte(key), 100)
	if err != nil || more || len(deeds) == 0 {
		t.Fatalf("%s: %d deeds, more: %v, %v", key, len(deeds), more, err)
	}
	return deeds[len(deeds)-1]
}

// TestCompactedBlocksAreDropped: those all of whose changes were compacted go, but for
// the newest. What is told of those changes stays, archives keep all, and who lacks the
// blocks gets a snapshot.
func TestCompactedBlocksAreDropped(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	const newest = 80 // 2 × SnapshotBehind
	const archive = 3
	a := newFar(t, func(i int, cfg *Config) { cfg.Prune = i != archive })
	fs := [4]vfs.FS{vfs.NewMem(), vfs.NewMem(), vfs.NewMem(), vfs.NewMem()}
	for i := range fs {
		a.start(i, fs[i])
	}
	compact := func(at int64) {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if _, err := a.running[0].Compact(ctx, at, Once{}); err != nil {
			t.Fatal(err)
		}
	}
	holds := func(what string, n *running, from aweigh.Height) {
		t.Helper()
		until(t, what, func() bool { return n.lowest(t) == from })
	}
	a.write(200)
	told, mark := first(t, a.running[1], "/k0"), first(t, a.running[1], "/k150")
	holds("all blocks, before anything was compacted", a.running[1], 1)

	compact(mark.Revision)
	a.write(200)
	for i := range 4 {
		a.level(a.running[i])
		from := mark.Height // what was compacted to can be read
		if i == archive {
			from = 1
		}
		holds("the blocks that were not compacted", a.running[i], from)
		if d := first(t, a.running[i], "/k0"); d.Block != told.Block || d.Time != told.Time || d.Height != told.Height || d.Block.IsZero() {
			t.Errorf("anchor %d tells %+v of what it told before: %+v", i, d, told)
		}
	}
	if _, err := a.running[1].History().Block(told.Height); !strings.Contains(err.Error(), "--prune") {
		t.Error(err)
	}

	compact(a.running[0].Status().Head.Revision)
	a.write(newest)
	for i := range archive {
		a.level(a.running[i])
		until(t, "the newest blocks only", func() bool { // each second, of those that became older since
			head, from := a.running[i].Status().Head.Height, a.running[i].lowest(t)
			if from > head-newest {
				t.Fatalf("anchor %d, at height %d, holds blocks from %d on", i, head, from)
			}
			return from > told.Height+200
		})
	}
	n, all := a.running[1], record(a.running[1].id, 'b')
	until(t, "no more blocks on the disk than are kept", func() bool { // some may go while they are counted
		blocks := 0
		if err := n.store.Scan(all, kv.PrefixEnd(all), false, func(_, _ []byte) bool { blocks++; return true }); err != nil {
			t.Fatal(err)
		}
		return blocks <= int(n.Status().Head.Height-n.lowest(t))+1+maxOpenBlocks
	})

	if err := a.end(1); err != nil {
		t.Fatal(err)
	}
	a.start(1, fs[1])
	a.write(3)
	a.level(a.running[1])
	if d := first(t, a.running[1], "/k0"); d.Block != told.Block {
		t.Errorf("after a restart: %+v", d)
	}
	o := a.observe(newIdentity(t), vfs.NewMem())
	defer o.halt(t)
	a.level(o)
	if o.snapshotParts.Load() == 0 {
		t.Error("an observer came to the head without a snapshot")
	}
}

// TestPruningRests: a machine that has dropped as many blocks as one step does, and has no more to drop, is not to be
// stepped again for that.
func TestPruningRests(t *testing.T) {
	n := newLone(t, scope.DefaultPolicy(quorum.Crash), true)
	decide := func(nonce int, class scope.Class, content any) {
		t.Helper()
		m := n.write("/k", "v")
		m.Class, m.Content, m.Nonce = class, canon.Encode(content), fmt.Appendf(nil, "%08d", nonce)
		before := n.chain.state.Height()
		n.step(Submit{Bundle: n.sign(m)})
		for range 1000 {
			if n.chain.state.Height() > before {
				return
			}
			n.step()
		}
		t.Fatal("it is not decided")
	}
	for i := range dropsAtOnce + 20 {
		decide(i, scope.Write, putTxn("/k", "v"))
	}
	decide(-1, scope.Compact, scope.Compaction{Revision: n.chain.state.Head().Revision})
	n.retain.keep = n.chain.state.Height() - dropsAtOnce - 1 // the first height is 1
	atOnce := 0
	for range 1000 {
		if fx := n.step(); fx.Wake != 0 && fx.Wake <= n.now {
			atOnce++
		}
	}
	if at := n.retain.below; at != dropsAtOnce+1 || atOnce > 10 {
		t.Errorf("blocks below %d were dropped, and %d of 1000 steps want to be stepped at once", at, atOnce)
	}
}
