package node

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
	"github.com/aweigh/aweigh/votes"
)

// TestAScopeThatBreaksStopsAlone: where more of a scope's weight lies than may, the
// machines of those who follow it stop to stay safe. That is that scope's affair: the
// node goes on in all others.
func TestAScopeThatBreaksStopsAlone(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var keys [2]votes.PrivateKey
	for i := range keys {
		var err error
		if keys[i], err = votes.GenerateKey(votes.Ed25519, rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	peer, err := PeerOf(keys[0])
	if err != nil {
		t.Fatal(err)
	}
	g, err := NewGenesis("test", aweigh.InstantOf(time.Now()), scope.DefaultPolicy(quorum.Crash), Founder{Name: "n0", Key: keys[1].Public(), Peer: peer})
	if err != nil {
		t.Fatal(err)
	}
	disk, err := store.OpenPebble(t.TempDir(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	life := func(during func(*Node)) {
		n, err := New(Config{Name: "n0", Genesis: g, Identity: keys[0], Anchor: &keys[1], Store: disk, Listen: []string{"/ip4/127.0.0.1/tcp/0"}})
		if err != nil {
			t.Fatal(err)
		}
		if p, err := n.In("/x/"); err == nil { // what a fork in the scope comes to
			p.runner.notes = func(Note) { must.Hold(false, "finalized and nullified") }
		}
		run, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- n.Run(run) }()
		during(n)
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the node stopped: %v", err)
		}
	}
	life(func(n *Node) { (&cluster{t: t, nodes: []*Node{n}}).delegate(ctx, "", "/x/", quorum.Crash, 0) })
	life(func(n *Node) {
		for range 2 { // the first may be answered just before
			_, err = n.Txn(ctx, putTxn("/x/1", "here"), Once{})
		}
		if !errors.Is(err, ErrStopped) {
			t.Errorf("a write in the scope that broke: %v", err)
		}
		if r, err := n.Txn(ctx, putTxn("/a", "there"), Once{}); err != nil || r.Code != scope.Applied {
			t.Errorf("a write in the scope above: %+v, %v", r, err)
		}
	})
}
