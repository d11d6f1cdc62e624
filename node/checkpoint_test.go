package node

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// TestCheckpointsAreCosigned: in the root scope and in a child, each anchor signs the head
// of the history, with all that was acknowledged; an older head is shown to be its
// beginning; what is not final, nobody signs.
func TestCheckpointsAreCosigned(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	c := startCluster(t, 4, quorum.BFT)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	put := func(key string) {
		t.Helper()
		if r, err := c.nodes[0].Txn(ctx, putTxn(key, "v"), Once{}); err != nil || r.Code != scope.Applied {
			t.Fatal(r, err)
		}
	}
	put("/b/1")
	c.delegate(ctx, "", "/b/", quorum.Crash, 0, 1, 2)
	network := c.nodes[0].root.Genesis().Hash()
	for prefix, anchors := range map[string]int{"": 4, "/b/": 3} {
		p, err := c.nodes[3].In(prefix)
		if err != nil {
			t.Fatal(err)
		}
		var older lineage.Head
		for round := range 3 {
			put(prefix + "/k")
			got, head, err := p.Checkpoint(ctx, older.Size, true)
			if err != nil {
				t.Fatal(err)
			}
			text := got.Ancestry.Head.Header.Checkpoint()
			if e, err := got.Ancestry.Verify(network); err != nil || len(e.Roster.Anchors) != anchors || len(got.Cosigned) != anchors {
				t.Errorf("%q, %d: %d of %d anchors signed, %v", prefix, round, len(got.Cosigned), anchors, err)
			}
			for i := range got.Cosigned {
				if err := got.Cosigned[i].Check(text.Text()); err != nil {
					t.Error(err)
				}
			}
			if text.Origin != scope.LogOrigin(p.id) || text.Head.Size <= older.Size || text.Head.Size < head.LineageSize {
				t.Errorf("%q, %d: %+v after %+v, of a history of %d", prefix, round, text, older, head.LineageSize)
			}
			if older.Size > 0 {
				if err := got.Consistency.Verify(older, text.Head); err != nil {
					t.Error(err)
				}
			}
			older = text.Head
		}
		if got, _, err := p.Checkpoint(ctx, older.Size+1000, false); err != nil || len(got.Cosigned) > 0 || len(got.Consistency.Path) > 0 {
			t.Errorf("with a longer head of another log: %+v, %v", got, err)
		}
	}
	// A head that another came after is signed as of then, whoever else asked for a newer one
	// meanwhile; one of long ago is nobody's to sign.
	n := c.nodes[3].root
	for range 3 {
		put("/more")
	}
	testwait.Until(t, "the blocks at the last node", func() bool { return n.Status().Head.Height >= c.nodes[0].root.Status().Head.Height })
	head := n.Status().Head.Height
	for _, at := range []aweigh.Height{head, head - 2, head - 1} {
		got, err := n.cosign(ctx, at)
		if err != nil {
			t.Fatalf("block %d of %d: %v", at, head, err)
		}
		if at == head {
			continue
		}
		next, err := n.History().Block(at + 1)
		if err != nil {
			t.Fatal(err)
		}
		if got.Time > next.Header.Time.Time().Unix() {
			t.Errorf("block %d is said to have been the head at %d, and block %d was there at %s", at, got.Time, at+1, next.Header.Time.Time())
		}
	}
	now := aweigh.InstantOf(time.Now())
	if _, err := headUntil(now, now.Add(-time.Minute)); !errors.Is(err, errSuperseded) {
		t.Errorf("one of a minute ago: %v", err)
	}
	if at, err := headUntil(now, now.Add(time.Second)); err != nil || at != now {
		t.Errorf("if the next block's time is ahead: %d, %v", at, err)
	}

	late, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	if _, err := c.nodes[3].root.cosign(late, n.Status().Head.Height+1000); err == nil {
		t.Error("a block that is not final was cosigned")
	}
	if p, err := c.nodes[3].In("/b/"); err != nil {
		t.Error(err)
	} else if _, err := p.cosign(ctx, 1); !errors.Is(err, ErrUnseated) {
		t.Errorf("where it is no anchor: %v", err)
	}
}
