package node

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/p2p"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// cutHost is a Transport that reaches no node of the other side while it is cut.
type cutHost struct {
	Transport
	other func(peer.ID) bool
	cut   *atomic.Bool
}

var errCut = errors.New("cut")

func (h *cutHost) away(id peer.ID) bool { return h.cut.Load() && h.other(id) }

func (h *cutHost) Send(to peer.ID, frame []byte) bool {
	return !h.away(to) && h.Transport.Send(to, frame)
}

func (h *cutHost) Request(ctx context.Context, to peer.ID, req []byte, most int) ([]byte, error) {
	if h.away(to) {
		return nil, errCut
	}
	return h.Transport.Request(ctx, to, req, most)
}

func (h *cutHost) Publish(t p2p.Topic, data []byte) error {
	if h.cut.Load() {
		return nil
	}
	return h.Transport.Publish(t, data)
}

func (h *cutHost) Peers() []p2p.PeerInfo {
	return slices.DeleteFunc(h.Transport.Peers(), func(p p2p.PeerInfo) bool { return h.away(p.ID) })
}

// halves is a cluster of which the nodes from first on can be cut off from the others.
func halves(t *testing.T, n, first int, policy scope.Policy) (c *cluster, cut func(bool)) {
	return halvesOf(t, n, first, policy, func(*Node) {})
}

func halvesOf(t *testing.T, n, first int, policy scope.Policy, change func(*Node)) (c *cluster, cut func(bool)) {
	var is atomic.Bool
	sides := make(map[peer.ID]bool)
	c = startClusterUnder(t, n, policy, func(i int, n *Node) {
		sides[n.host.ID()] = i >= first
		side := i >= first
		change(n)
		n.host = &cutHost{Transport: n.host, other: func(id peer.ID) bool { return sides[id] != side }, cut: &is}
		n.root.host = n.host
	})
	return c, func(to bool) {
		is.Store(to)
		for i, a := range c.nodes {
			for j, b := range c.nodes {
				if i >= first != (j >= first) {
					a.peer(b.host.ID(), !to)
				}
			}
		}
	}
}

func shipPolicy() scope.Policy {
	p := scope.OpenPolicy(quorum.BFT)
	p.Partitions = []scope.Partition{{Prefix: []byte("/ship/"), Num: 2, Den: 5, After: time.Second, Gather: 2 * time.Second, Window: time.Hour}}
	return p
}

// eventually waits until check returns nil.
func eventually(t testing.TB, ctx context.Context, what string, check func() error) {
	t.Helper()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// before writes a key of the partition, and waits until all nodes have it.
func (c *cluster) before(ctx context.Context) {
	c.t.Helper()
	if _, err := c.nodes[0].Txn(ctx, putTxn("/ship/log", "before"), Once{}); err != nil {
		c.t.Fatal(err)
	}
	c.level(ctx)
}

// level waits until all nodes have the newest block of the first.
func (c *cluster) level(ctx context.Context) {
	c.t.Helper()
	eventually(c.t, ctx, "all have it", func() error {
		for i := range c.nodes {
			if c.nodes[i].root.LastHead().Block != c.nodes[0].root.LastHead().Block {
				return errors.New("not yet")
			}
		}
		return nil
	})
}

// TestIslandsDecideAndRejoin: two halves of a network decide provisionally, each on its own. Once they meet, all that
// does not conflict stands, once, and motions are open about the rest.
func TestIslandsDecideAndRejoin(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	c, cut := halves(t, 4, 2, shipPolicy())
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	c.before(ctx)
	if _, _, err := c.nodes[0].TxnProvisional(ctx, putTxn("/ship/log", "early"), Once{}); !errors.Is(err, ErrNoIsland) {
		t.Fatalf("with a quorum: %v", err)
	}
	cut(true)
	for side := range 2 {
		for i, key := range []string{"/ship/log", "/ship/side" + string(rune('0'+side))} {
			n := c.nodes[2*side+i]
			eventually(t, ctx, "a provisional decision", func() error {
				r, is, err := n.TxnProvisional(ctx, putTxn(key, "side"+string(rune('0'+side))), Once{Caller: "local:" + key})
				if err == nil && (r.Code != scope.Applied || len(is.Members) != 2 || 2*is.Weight != is.Total || !is.Open) {
					t.Fatalf("%+v, %+v", r, is)
				}
				return err
			})
		}
		for i := range 2 { // both see both
			res, _, is, err := c.nodes[2*side+i].RangeProvisional(ctx, []byte("/ship/"), scope.PrefixEnd([]byte("/ship/")), scope.Range{})
			if err != nil || len(res.Kvs) != 2 || !bytes.Equal(res.Kvs[0].Value, []byte("side"+string(rune('0'+side)))) {
				t.Fatalf("side %d reads %+v of %+v, %v", side, res.Kvs, is, err)
			}
		}
		v, err := c.nodes[2*side].root.Read(ctx, false)
		if err != nil {
			t.Fatal(err)
		}
		if kv, err := v.Range([]byte("/ship/log"), nil, scope.Range{}); err != nil || string(kv.Kvs[0].Value) != "before" {
			t.Errorf("the scope shows %+v, %v", kv.Kvs, err)
		}
		v.Close()
	}
	if _, _, err := c.nodes[0].TxnProvisional(ctx, putTxn("/land/x", "1"), Once{}); !errors.Is(err, ErrNoIsland) {
		t.Errorf("outside: %v", err)
	}
	cut(false)
	eventually(t, ctx, "the scope has all of both islands", func() error {
		for i, n := range c.nodes {
			for _, is := range n.Islands() {
				if !is.Done {
					return errors.New(c.nodes[i].cfg.Name + " has one that has not rejoined")
				}
			}
		}
		return nil
	})
	v, err := c.nodes[1].root.Read(ctx, true)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	all, err := v.Islands()
	if err != nil || len(all) != 2 || all[0].Stands+all[1].Stands != 3 || all[0].Aside+all[1].Aside != 1 {
		t.Errorf("on record: %+v, %v", all, err)
	}
	res, err := v.Range([]byte("/ship/"), scope.PrefixEnd([]byte("/ship/")), scope.Range{})
	if err != nil || len(res.Kvs) != 3 || !bytes.HasPrefix(res.Kvs[0].Value, []byte("side")) {
		t.Errorf("the scope has %+v, %v", res.Kvs, err)
	}
	if n := v.Head().Docket.Open; n != 1 {
		t.Errorf("%d motions are open about what was set aside, want 1", n)
	}
	for i := range all {
		motions, err := AsideMotions(v.State, &all[i])
		if err != nil || int64(len(motions)) != all[i].Aside {
			t.Errorf("motions about what was set aside: %v, %v; want %d", motions, err, all[i].Aside)
		}
		for _, id := range motions { // order-free
			if mo, end, err := v.Motion(id); err != nil || end != nil || mo.Deadline == 0 {
				t.Errorf("motion %v: %+v, %+v, %v", id, mo, end, err)
			}
		}
	}
}

// TestFoundersAskAgain: an anchor that founded an island and stopped before it had asked the others to open it asks
// them in its next life.
func TestFoundersAskAgain(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	c, cut := halves(t, 4, 2, shipPolicy())
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c.before(ctx)
	ids := []aweigh.AnchorID{c.nodes[0].root.Status().Self, c.nodes[1].root.Status().Self}
	founder, other := c.nodes[0], c.nodes[1]
	if least(ids) != ids[0] {
		founder, other = other, founder
	}
	slices.SortFunc(ids, func(a, b aweigh.AnchorID) int { return bytes.Compare(a[:], b[:]) })
	cut(true)
	// As its store has the island then.
	if _, err := founder.foundIsland(founder.root, []byte("/ship/"), ids, founder.root.LastHead().Block); err != nil {
		t.Fatal(err)
	}
	eventually(t, ctx, "the other anchor opens the island", func() error {
		if len(other.Islands()) != 1 {
			return errors.New("it has none")
		}
		return nil
	})
}
