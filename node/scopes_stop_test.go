package node

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store/diskstore"
	"github.com/aweigh/aweigh/votes"
)

// lives is a network of one node, which starts again and again.
type lives struct {
	t    *testing.T
	ctx  context.Context
	cfg  Config
	disk *diskstore.Store
}

func newLives(t *testing.T, ctx context.Context) *lives {
	t.Helper()
	var keys [2]votes.PrivateKey
	for i := range keys {
		var err error
		if keys[i], err = votes.GenerateKey(votes.Ed25519, rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	peer, err := machine.PeerOf(keys[0])
	if err != nil {
		t.Fatal(err)
	}
	g, err := machine.NewGenesis("test", aweigh.InstantOf(time.Now()), scope.OpenPolicy(quorum.Crash), machine.Founder{Name: "n0", Key: keys[1].Public(), Peer: peer})
	if err != nil {
		t.Fatal(err)
	}
	disk, err := diskstore.Open(t.TempDir(), diskstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { disk.Close() })
	return &lives{t: t, ctx: ctx, disk: disk, cfg: Config{
		Name: "n0", Genesis: g, Identity: keys[0], Anchor: &keys[1], Store: disk, Listen: []string{"/ip4/127.0.0.1/tcp/0"},
	}}
}

// life runs the node for as long as something takes, having changed it before.
func (l *lives) life(during func(*Node), change ...func(*Node)) {
	l.t.Helper()
	n, err := New(l.cfg)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, f := range change {
		f(n)
	}
	run, stop := context.WithCancel(l.ctx)
	ended := make(chan error, 1)
	go func() { ended <- n.Run(run) }()
	during(n)
	stop()
	if err := <-ended; err != nil {
		l.t.Errorf("the node stopped: %v", err)
	}
}

// TestAScopeThatBreaksStopsAlone: where more of a scope's weight lies than may, the
// machines of those who follow it stop to stay safe. That is that scope's affair: the
// node goes on in all others.
func TestAScopeThatBreaksStopsAlone(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	l := newLives(t, ctx)
	l.life(func(n *Node) { (&cluster{t: t, nodes: []*Node{n}}).delegate(ctx, "", "/x/", quorum.Crash, 0) })
	l.life(func(n *Node) {
		var err error
		for range 2 { // the first may be answered just before
			_, err = n.Txn(ctx, putTxn("/x/1", "here"), Once{})
		}
		if !errors.Is(err, ErrStopped) {
			t.Errorf("a write in the scope that broke: %v", err)
		}
		if r, err := n.Txn(ctx, putTxn("/a", "there"), Once{}); err != nil || r.Code != scope.Applied {
			t.Errorf("a write in the scope above: %+v, %v", r, err)
		}
	}, func(n *Node) {
		p, err := n.In("/x/")
		if err != nil {
			t.Fatal(err)
		}
		p.runner.notes = func(machine.Note) { must.Hold(false, "finalized and nullified") } // what a fork in the scope comes to
	})
}

// TestAScopeThatCannotBeOpenedStopsAlone: what a node keeps of a scope may contradict
// itself for good, where more lie there than may. It starts without that scope.
func TestAScopeThatCannotBeOpenedStopsAlone(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	l := newLives(t, ctx)
	var child aweigh.ScopeID
	l.life(func(n *Node) {
		(&cluster{t: t, nodes: []*Node{n}}).delegate(ctx, "", "/x/", quorum.BFT, 0)
		p, err := n.In("/x/")
		if err != nil {
			t.Fatal(err)
		}
		child = p.Scope()
	})
	var ops []kv.Op
	for i, k := range []quorum.Kind{quorum.Notarize, quorum.Finalize} {
		s := quorum.Subject{Kind: k, View: 9, Block: aweigh.Hash{byte(i + 1)}}
		ops = append(ops, kv.Set(machine.KeyCertificate(child, s), canon.Encode(quorum.Certificate{Subject: s})))
	}
	if err := l.disk.Commit(ops, true); err != nil {
		t.Fatal(err)
	}
	l.life(func(n *Node) {
		if _, err := n.Txn(ctx, putTxn("/x/1", "here"), Once{}); !errors.Is(err, ErrStopped) {
			t.Errorf("a write in the scope that broke: %v", err)
		}
		if r, err := n.Txn(ctx, putTxn("/a", "there"), Once{}); err != nil || r.Code != scope.Applied {
			t.Errorf("a write in the scope above: %+v, %v", r, err)
		}
	})
}
