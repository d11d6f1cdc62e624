package node

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/p2p"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// coverHost is a Transport that counts the requests for a later block, and answers some of them itself.
type coverHost struct {
	Transport
	asked atomic.Int64
	lies  atomic.Int64 // that are left
}

func (h *coverHost) Request(ctx context.Context, to peer.ID, req []byte, most int) ([]byte, error) {
	if bytes.Contains(req, []byte(askCover)) {
		h.asked.Add(1)
		if h.lies.Add(-1) >= 0 {
			return canon.Encode(coverSaid{Height: 1 << 40}), nil
		}
	}
	return h.Transport.Request(ctx, to, req, most)
}

// TestObserversProveByTheBlocksOfAnchors: a node that may not write proves what no later block covered, also if the
// newest change has no key, and if one anchor claims a block that never comes.
func TestObserversProveByTheBlocksOfAnchors(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	c := startClusterUnder(t, 4, scope.DefaultPolicy(quorum.BFT), func(int, *Node) {})
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	host := new(coverHost)
	o := c.invited(ctx, 1, func(cfg p2p.Config) (t Transport, err error) {
		host.Transport, err = libp2pHost(cfg)
		return host, err
	})
	proves := func(key, value string) {
		t.Helper()
		r, err := c.nodes[0].Txn(ctx, putTxn(key, value), Once{})
		if err != nil {
			t.Fatal(err)
		}
		before := host.asked.Load()
		p, _, err := o.Prove(ctx, []byte(key))
		if err != nil {
			t.Fatal(err)
		}
		if report, err := p.Verify(o.root.network()); err != nil || report.Entry.Revision != r.Revision {
			t.Errorf("%s: %+v, %v", key, report.Entry, err)
		}
		if asked := host.asked.Load() - before; asked < 1 || asked > 4 {
			t.Errorf("%s: anchors were asked %d times", key, asked)
		}
	}
	proves("/a", "1")
	if _, err := c.nodes[0].Compact(ctx, 1, Once{}); err != nil { // whose entry has no key
		t.Fatal(err)
	}
	if _, _, err := o.root.Checkpoint(ctx, 0, false); err != nil {
		t.Error(err)
	}
	if _, _, err := o.Prove(ctx, []byte("/a")); err != nil { // what a block covers needs no other
		t.Error(err)
	}
	top := c.nodes[0].root.LastHead().Height
	for range 5 {
		raw, err := c.nodes[0].root.serveCover(ctx, o.Peer(), coverAsk{Above: 1 << 40})
		if err != nil || !bytes.Equal(raw, canon.Encode(coverSaid{Height: top})) {
			t.Errorf("nothing is to be covered, and the answer is %x, %v", raw, err)
		}
	}
	host.lies.Store(1)
	proves("/a", "2")
	if !testshort.Long() {
		return
	}
	host.lies.Store(1000) // each costs the observer two seconds
	if _, err := c.nodes[0].Txn(ctx, putTxn("/a", "3"), Once{}); err != nil {
		t.Fatal(err)
	}
	before := host.asked.Load()
	if _, _, err := o.Prove(ctx, []byte("/a")); !errors.Is(err, ErrUnread) {
		t.Errorf("where all anchors claim a block that does not come: %v", err)
	}
	if asked := host.asked.Load() - before; asked < 1 || asked > 4 {
		t.Errorf("anchors that lie were asked %d times", asked)
	}
}

// TestAnchorsWithoutRightsAskNoOther: an anchor that may not write fails to make a later block at once.
func TestAnchorsWithoutRightsAskNoOther(t *testing.T) {
	t.Parallel()
	alice := newIdentity(t)
	policy := scope.OpenPolicy(quorum.BFT)
	policy.Authors = []scope.Author{{Name: "alice", Who: scope.OneKey, Key: alice.Public()}}
	c := startClusterUnder(t, 4, policy, func(int, *Node) {})
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	n := c.nodes[0]
	ask := canon.Encode(coverAsk{})
	asked := c.nodes[1].root
	raw, err := asked.request(ctx, n.host.ID(), append([]byte(askCover), ask...))
	if err != nil || !bytes.Equal(raw, canon.Encode(coverSaid{})) {
		t.Errorf("no block is final, and the answer is %x, %v", raw, err)
	}
	write := func(nonce string) {
		b, err := scope.Sign(alice, policy.Limits, scope.Mutation{
			Scope: n.root.id, Class: scope.Write, Content: canon.Encode(putTxn("/a", "1")), Nonce: []byte(nonce),
			ValidUntil: aweigh.InstantOf(time.Now().Add(time.Minute)),
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.Submit(ctx, b.Raw()); err != nil {
			t.Fatal(err)
		}
	}
	writes := 0
	again := func() { // an empty block may follow a write, and then nothing has to be made
		writes++
		write(fmt.Sprintf("%08d", writes))
	}
	eventually(t, ctx, "an anchor fails to prove the newest write, which no block covers", func() error {
		again()
		if _, _, err := n.Prove(ctx, []byte("/a")); !errors.Is(err, scope.ErrDenied) {
			return fmt.Errorf("its own proof: %w", cmp.Or(err, errors.New("no error")))
		}
		return nil
	})
	eventually(t, ctx, "an anchor whose last block is the write's says why it makes none", func() error {
		again()
		above, began := asked.LastHead().Height, time.Now()
		_, err := asked.request(ctx, n.host.ID(), append([]byte(askCover), canon.Encode(coverAsk{Above: above})...))
		if errors.Is(err, scope.ErrDenied) {
			return nil
		}
		return fmt.Errorf("above %d: %w, after %s", above, cmp.Or(err, errors.New("no error")), time.Since(began))
	})
}
