package node

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// TestScopeBeginsWhenItsAnchorsComeLate: most anchors of a child were away when it was
// founded, and have the state of its parent from a snapshot since. What they were to
// take over, the one that was there gives them, and the scope begins.
func TestScopeBeginsWhenItsAnchorsComeLate(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	a := newFar(t, nil)
	away := vfs.NewMem()
	for i := range 3 {
		a.start(i, vfs.NewMem())
	}
	a.start(3, away)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	a.write(1)
	a.running[3].halt(t)
	a.running[3] = nil

	c := &cluster{t: t}
	for i := range 3 {
		c.nodes = append(c.nodes, a.running[i].Node)
	}
	identity, anchor := newIdentity(t), newIdentity(t)
	peer, err := machine.PeerOf(identity)
	if err != nil {
		t.Fatal(err)
	}
	put := func(key, value string) {
		t.Helper()
		if r, err := c.nodes[0].Txn(ctx, putTxn(key, value), Once{}); err != nil || r.Code != scope.Applied {
			t.Fatal(r, err)
		}
	}
	put("/b/1", "handed over")
	a.write(farBlocks) // what comes after is in no first answer of blocks
	child := scope.Child{Prefix: []byte("/b/"), Policy: scope.OpenPolicy(quorum.Crash)}
	outside := scope.Anchor{Name: "outside", Key: anchor.Public(), Peer: string(peer), Score: machine.FoundingScore}
	for _, x := range append(a.genesis.Anchors, outside) {
		if x.Name == "n1" || x.Name == "n3" || x.Name == "outside" {
			child.Anchors = append(child.Anchors, x)
		}
	}
	slices.SortFunc(child.Anchors, func(x, y scope.Anchor) int {
		p, q := x.Key.ID(), y.Key.ID()
		return bytes.Compare(p[:], q[:])
	})
	c.found(ctx, "", child)
	a.write(farBlocks)

	a.start(3, away)
	o := a.observeWith(identity, vfs.NewMem(), func(cfg *Config) { cfg.Anchor = &anchor })
	put("/b/2", "written there") // waits for a quorum
	c.nodes = append(c.nodes, a.running[3].Node, o.Node)
	for i, n := range c.nodes {
		if got := c.value(ctx, i, "/b/1") + ", " + c.value(ctx, i, "/b/2"); got != "handed over, written there" {
			t.Errorf("at %s: %s", n.Name(), got)
		}
	}
	for _, n := range c.nodes[3:] {
		if p, err := n.In("/b/"); err != nil || p.snapshotParts.Load() == 0 {
			t.Errorf("at %s, the first state came without a snapshot (%v)", n.Name(), err)
		}
	}
	// Who has a later state is given back no first one, whatever height is claimed for it.
	p, err := c.nodes[0].In("/b/")
	if err != nil {
		t.Fatal(err)
	}
	again := snapshotOffer{Sums: make([]byte, 32)}
	for _, at := range []aweigh.Height{0, 1, 1 << 20} {
		again.Own.Header.Height = at
		if err := p.checkOffer(ctx, "", &again); !errors.Is(err, machine.ErrSnapshot) || again.height() != 0 {
			t.Errorf("the first state, offered as that of block %d: %v", at, err)
		}
	}
	o.halt(t)
}
