package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// tailOf returns the items of a tail that ends, and the head of a reader that gets them.
func tailOf(t *testing.T, n *Replica, want Tail) (items []TailItem, head lineage.Head, pages int, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testwait.Patience)
	defer cancel()
	var tree lineage.Tree
	err = n.Tail(ctx, want, func(p TailPage) error {
		pages++
		if len(p.Items) > tailEntries+1 {
			t.Errorf("a page of %d items", len(p.Items))
		}
		for i := range p.Items {
			x := &p.Items[i]
			if x.Index != tree.Size() {
				t.Fatalf("item %d after %d entries", x.Index, tree.Size())
			}
			var err error
			if x.To > 0 {
				err = tree.Skip(x.To, x.Hashes)
			} else {
				err = tree.Add(x.Hash())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if p.Next != tree.Size() {
			t.Errorf("the next entry after %d is %d", tree.Size(), p.Next)
		}
		items = append(items, p.Items...)
		return nil
	})
	return items, tree.Head(), pages, err
}

// TestTailsComeInPages: a tail comes in bounded pages, which lead to the root of the lineage, whatever is hidden; and
// it goes on with what becomes final.
func TestTailsComeInPages(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1, quorum.BFT)
	n := c.nodes[0]
	ctx, cancel := context.WithTimeout(t.Context(), testwait.Patience)
	defer cancel()
	for i := range 12 {
		ops := make([]scope.Op, 60)
		for j := range ops {
			ops[j] = scope.Op{Kind: scope.OpPut, Key: fmt.Appendf(nil, "/%d/%d", i%3, j), Value: []byte("v")}
		}
		if _, err := n.Txn(ctx, scope.Txn{Success: ops}, Once{}); err != nil {
			t.Fatal(err)
		}
	}
	v, err := n.root.Read(ctx, true)
	if err != nil {
		t.Fatal(err)
	}
	want, err := v.State.Lineage().Head()
	if err := errors.Join(err, v.Close()); err != nil {
		t.Fatal(err)
	}
	all, head, pages, err := tailOf(t, n.root, Tail{})
	if err != nil || head != want || pages < 2 || int64(len(all)) != want.Size {
		t.Errorf("all: %d items in %d pages, head %v, want %v: %v", len(all), pages, head, want, err)
	}
	part, head, _, err := tailOf(t, n.root, Tail{Index: 130, Prefix: []byte("/1/")})
	if err != nil || head != want {
		t.Errorf("a part: head %v, want %v: %v", head, want, err)
	}
	shown := 0
	for i := range part {
		if x := &part[i]; x.To == 0 {
			shown++
			if !bytes.HasPrefix(x.Key, []byte("/1/")) || x.Index < 130 || x.Name == "" {
				t.Errorf("%+v", x)
			}
		}
	}
	if shown != 180 { // of the four transactions with such keys the first is before
		t.Errorf("%d entries of the prefix", shown)
	}
	if _, _, _, err := tailOf(t, n.root, Tail{Index: want.Size + 1}); !errors.Is(err, scope.ErrFutureRevision) {
		t.Errorf("beyond the lineage: %v", err)
	}

	done := errors.New("seen")
	first := true
	err = n.root.Tail(ctx, Tail{Index: want.Size, Follow: true}, func(p TailPage) error {
		if first {
			first = false
			go func() { _, _ = n.Txn(ctx, putTxn("/later", "v"), Once{}) }()
			return nil
		}
		if x := &p.Items[0]; x.Index != want.Size || string(x.Key) != "/later" {
			t.Errorf("%+v", x)
		}
		return done
	})
	if !errors.Is(err, done) {
		t.Error(err)
	}
}

// TestTailsNameWhatIsMissing: a node that caught up by a snapshot refuses entries from before, and names the first that
// it can show; a node that dropped blocks shows their entries without what makes the blocks final.
func TestTailsNameWhatIsMissing(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	a := newFar(t, func(i int, cfg *Config) { cfg.Prune = i == 1 })
	startAll(a)
	a.write(farBlocks)
	o := a.observe(newIdentity(t), vfs.NewMem())
	defer o.halt(t)
	a.level(o)
	if o.root.snapshotParts.Load() == 0 {
		t.Fatal("an observer came to the head without a snapshot")
	}
	whole, want, _, err := tailOf(t, a.running[0].root, Tail{})
	if err != nil {
		t.Fatal(err)
	}
	_, _, _, err = tailOf(t, o.root, Tail{Prefix: []byte("/k")})
	if !errors.Is(err, ErrNotHeld) || !errors.Is(err, machine.ErrNoBlock) ||
		!strings.Contains(err.Error(), "--since @") {
		t.Fatalf("from before the snapshot: %v", err)
	}
	var from int64
	text := err.Error()
	if _, scanErr := fmt.Sscanf(text[strings.LastIndex(text, "@"):], "@%d)", &from); scanErr != nil || from == 0 {
		t.Fatalf("%v: %v", err, scanErr)
	}
	if _, _, _, err := tailOf(t, o.root, Tail{Index: from - 1}); !errors.Is(err, ErrNotHeld) {
		t.Errorf("from the entry before the one that it names: %v", err)
	}
	later, head, _, err := tailOf(t, o.root, Tail{Index: from})
	if err != nil || head != want || int64(len(later))-1 != want.Size-from {
		t.Errorf("from the entry that it names: %d items, head %v, want %v: %v", len(later), head, want, err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), testwait.Patience)
	defer cancel()
	if _, err := a.running[0].Compact(ctx, a.running[0].root.Status().Head.Revision, Once{}); err != nil {
		t.Fatal(err)
	}
	a.write(farBlocks)
	testwait.Until(t, "blocks that were dropped", func() bool { return a.running[1].root.lowest(t) > whole[0].Height })
	bare, head, _, err := tailOf(t, a.running[1].root, Tail{})
	if err != nil || int64(len(bare)) != head.Size {
		t.Fatalf("%d items, head %v: %v", len(bare), head, err)
	}
	x, y := &bare[0], &whole[0]
	if x.Final != nil || y.Final == nil || x.Block != y.Block || x.Time != y.Time || x.Block.IsZero() {
		t.Errorf("of a dropped block: %+v, want as %+v", x, y)
	}
}
