package node

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// TestCheckpointsAreCosigned: in the root scope and in a child, each anchor signs the head
// of the history, with all that was acknowledged; an older head is shown to be its
// beginning; what is not final, nobody signs.
func TestCheckpointsAreCosigned(t *testing.T) {
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
	network := c.nodes[0].Genesis().Hash()
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
	// A head that others came after long ago is nobody's to sign, and no shorter one after a
	// longer.
	var s signedHeads
	key := newIdentity(t)
	head := func(size int64) *scope.Header { return &scope.Header{Height: 7, LineageSize: size} }
	now := time.Now()
	first, err := s.cosign(key, head(5), now, 0)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := s.cosign(key, head(5), now, 0); err != nil || !bytes.Equal(again.Signature, first.Signature) {
		t.Errorf("asked again within a second: %v", err)
	}
	if _, err := s.cosign(key, head(4), now, 0); !errors.Is(err, errSuperseded) {
		t.Errorf("a shorter one: %v", err)
	}
	if _, err := s.cosign(key, head(6), now, time.Minute); !errors.Is(err, errSuperseded) {
		t.Errorf("one of a minute ago: %v", err)
	}
	if c, err := s.cosign(key, head(6), now.Add(-time.Hour), 0); err != nil || c.Time < first.Time {
		t.Errorf("by a clock that went back: %d after %d, %v", c.Time, first.Time, err)
	}

	late, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	if _, err := c.nodes[3].cosign(late, c.nodes[3].Status().Head.Height+1); err == nil {
		t.Error("a block that is not final was cosigned")
	}
	if p, err := c.nodes[3].In("/b/"); err != nil {
		t.Error(err)
	} else if _, err := p.cosign(ctx, 1); !errors.Is(err, ErrUnseated) {
		t.Errorf("where it is no anchor: %v", err)
	}
}
