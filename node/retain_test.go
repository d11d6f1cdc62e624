package node

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/machine"
)

// lowest is the height from which on a node holds all blocks.
func (n *Replica) lowest(t *testing.T) aweigh.Height {
	t.Helper()
	at := n.Status().Head.Height
	for ; at > 0; at-- {
		if _, err := n.History().Block(at); errors.Is(err, machine.ErrNoBlock) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	return at + 1
}

// first is where a key was written first, as a node tells it.
func first(t *testing.T, n *running, key string) LineageEntry {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testwait.Patience)
	defer cancel()
	l, _, err := n.Lineage(ctx, []byte(key), 100)
	if err != nil || l.More || len(l.Entries) == 0 {
		t.Fatalf("%s: %d deeds, more: %v, %v", key, len(l.Entries), l.More, err)
	}
	return l.Entries[len(l.Entries)-1]
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
		testwait.Until(t, what, func() bool { return n.root.lowest(t) == from })
	}
	a.write(100)
	told, mark := first(t, a.running[1], "/k0"), first(t, a.running[1], "/k75")
	holds("all blocks, before anything was compacted", a.running[1], 1)

	compact(mark.Revision)
	a.write(100)
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
	if _, err := a.running[1].root.History().Block(told.Height); !strings.Contains(err.Error(), "--prune") {
		t.Error(err)
	}

	compact(a.running[0].root.Status().Head.Revision)
	a.write(newest)
	for i := range archive {
		a.level(a.running[i])
		testwait.Until(t, "the newest blocks only", func() bool { // each second, of those that became older since
			head, from := a.running[i].root.Status().Head.Height, a.running[i].root.lowest(t)
			if from > head-newest {
				t.Fatalf("anchor %d, at height %d, holds blocks from %d on", i, head, from)
			}
			return from > told.Height+100
		})
	}
	n, all := a.running[1], machine.Record(a.running[1].root.id, 'b')
	testwait.Until(t, "no more blocks on the disk than are kept", func() bool { // some may go while they are counted
		blocks := 0
		if err := n.store.Scan(all, kv.PrefixEnd(all), false, func(_, _ []byte) bool { blocks++; return true }); err != nil {
			t.Fatal(err)
		}
		return blocks <= int(n.root.Status().Head.Height-n.root.lowest(t))+1+machine.MaxOpenBlocks
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
	if o.root.snapshotParts.Load() == 0 {
		t.Error("an observer came to the head without a snapshot")
	}
}
