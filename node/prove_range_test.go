package node

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// TestRangesAreProven: a node proves what the keys of all scopes hold, also of those that it does not hold.
func TestRangesAreProven(t *testing.T) {
	testshort.Skip(t)
	c, _, o := newRegions(t, quorum.BFT)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	network := c.nodes[0].root.id
	want := []string{"/a=1", "/b/1=2", "/b/c/1=3", "/c=4"}
	for _, kv := range [][2]string{{"/a", "1"}, {"/b/1", "2"}, {"/b/c/1", "3"}, {"/c", "4"}} {
		if r, err := c.nodes[0].Txn(ctx, putTxn(kv[0], kv[1]), Once{}); err != nil || r.Code != scope.Applied {
			t.Fatal(r, err)
		}
	}
	for name, n := range map[string]*Node{"a node that holds the scopes": c.nodes[0], "another one": o} { // order-free
		for _, q := range []struct {
			key, end string
			want     []string
		}{
			{"/a", "", want[:1]}, {"/none", "", nil}, {"/b/1", "", want[1:2]}, {"/b/c/1", "", want[2:3]}, {"/b/none", "", nil},
			{"/b/c/none", "", nil}, {"/", "0", want}, {"/b/", "/b0", want[1:3]}, {"/b/2", "/d", want[2:]},
		} {
			p, head, err := n.ProveRange(ctx, []byte(q.key), []byte(q.end), 0)
			if err != nil {
				t.Fatalf("%s: %s to %s: %v", name, q.key, q.end, err)
			}
			r, err := p.Verify(network)
			if err != nil {
				t.Fatalf("%s: %s to %s: %v", name, q.key, q.end, err)
			}
			var got []string
			for _, v := range r.Kvs {
				got = append(got, fmt.Sprintf("%s=%s", v.Key, v.Value))
			}
			if !slices.Equal(got, q.want) || head.Height == 0 {
				t.Errorf("%s: %s to %s: %v, want %v", name, q.key, q.end, got, q.want)
			}
		}
	}
}

// TestProvenReadsAreLinearizable: a proof shows every write that was acknowledged before it was asked for, while others
// write.
func TestProvenReadsAreLinearizable(t *testing.T) {
	testshort.Skip(t)
	c := startCluster(t, 4, quorum.BFT)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	var acknowledged atomic.Int64
	var writing sync.WaitGroup
	done := make(chan struct{})
	writing.Go(func() {
		for i := int64(1); ; i++ {
			select {
			case <-done:
				return
			default:
			}
			if _, err := c.nodes[i%4].Txn(ctx, putTxn("/hot", fmt.Sprint(i)), Once{}); err != nil {
				t.Error(err)
				return
			}
			acknowledged.Store(i)
		}
	})
	var proving sync.WaitGroup
	for n := range 3 {
		proving.Go(func() {
			for range 20 {
				least, seen := acknowledged.Load(), int64(0)
				p, _, err := c.nodes[n].ProveRange(ctx, []byte("/hot"), nil, 0)
				if err != nil {
					t.Error(err)
					return
				}
				r, err := p.Verify(c.nodes[0].root.id)
				if err != nil {
					t.Error(err)
					return
				}
				if len(r.Kvs) == 1 {
					if _, err := fmt.Sscan(string(r.Kvs[0].Value), &seen); err != nil {
						t.Error(err)
					}
				}
				if seen < least {
					t.Errorf("a proof of %d after %d was acknowledged", seen, least)
				}
			}
		})
	}
	proving.Wait()
	close(done)
	writing.Wait()
	if v, _ := c.nodes[0].root.views.own(); v != nil {
		if !v.IsGrown() { // with the tree of the machine
			t.Error("a view makes a tree of its own")
		}
		_ = c.nodes[0].root.views.release(v)
	}
}
