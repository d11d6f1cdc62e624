package hostile

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// unlisted makes bundles under an unknown key.
type unlisted struct {
	genesis scope.Genesis
	key     votes.PrivateKey
	serial  *atomic.Uint64
}

func (x *net4) unlisted(t testing.TB) *unlisted {
	return &unlisted{genesis: x.Genesis, key: newKey(t), serial: new(atomic.Uint64)}
}

// mutation is one that no other is like.
func (s *unlisted) mutation(of scope.Txn) scope.Mutation {
	return scope.Mutation{
		Scope: s.genesis.Hash(), Class: scope.Write, Nonce: fmt.Appendf(nil, "%016d", s.serial.Add(1)),
		Content: canon.Encode(of), ValidUntil: aweigh.InstantOf(time.Now().Add(30 * time.Second)),
	}
}

// sign is a frame of mutations in one bundle.
func (s *unlisted) sign(t testing.TB, all ...scope.Mutation) []byte {
	b, err := scope.Sign(s.key, s.genesis.Policy.Limits, all...)
	if err != nil {
		t.Error(err)
		return nil
	}
	return Frame(machine.Frame(machine.RawBundle(b.Raw())))
}

// pour sends what next makes to each node in turn, so many frames a second, from
// one peer for each node, until stop is called. It tells how many were sent.
func (x *net4) pour(t testing.TB, perSecond int, next func() []byte) (stop func() uint64) {
	t.Helper()
	var streams []network.Stream
	for i := range x.daemons {
		p, to := x.attacker(t, i)
		s, err := p.Open(t.Context(), to, "frames")
		if err != nil {
			t.Fatal(err)
		}
		streams = append(streams, s)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var sent atomic.Uint64
	var pouring sync.WaitGroup
	pouring.Go(func() {
		tick := time.NewTicker(time.Second / time.Duration(perSecond))
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			if Write(streams[i%len(streams)], next(), 5*time.Second) == nil {
				sent.Add(1)
			}
		}
	})
	stop = func() uint64 {
		cancel()
		pouring.Wait()
		return sent.Load()
	}
	t.Cleanup(func() { stop() })
	return stop
}

// govern has anchors approve a change of the policy, and waits until it is in effect.
func (x *net4) govern(t testing.TB, change func(*scope.Policy)) {
	t.Helper()
	p := x.policy
	change(&p)
	before := x.node(0).Root().Status().Epoch
	for i := range x.daemons {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		_, err := x.node(i).Root().Govern(ctx, scope.Decision{Kind: scope.SetPolicy, Policy: &p}, node.Once{})
		cancel()
		if err != nil && x.node(0).Root().Status().Epoch == before && i < 3 {
			t.Fatalf("anchor %d approves no policy: %v", i, err)
		}
	}
	testwait.Until(t, "the policy is in effect", func() bool {
		for _, d := range x.daemons {
			if d.Node.Root().Status().Epoch == before {
				return false
			}
		}
		return true
	})
	x.policy = p
}

// TestUnlistedAuthorsLeaveRoomForMotions: throwaway keys open motions without end. Each anchor
// still has room for motions of its own, and what anchors govern is carried.
func TestUnlistedAuthorsLeaveRoomForMotions(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	x := newNetwork(t, 4)
	x.govern(t, func(p *scope.Policy) {
		p.Approvals = append(p.Approvals, scope.Approval{Matter: scope.Changes, Prefix: []byte("/m/"), Num: 1, Den: 2, Window: time.Hour})
	})
	var serial atomic.Uint64
	opening := func() []byte { // a bundle of a key that was never seen
		n := serial.Add(1)
		s := x.unlisted(t)
		var all []scope.Mutation
		for i := range 8 {
			all = append(all, s.mutation(put(fmt.Sprintf("/m/strange/%d/%d", n, i), "v")))
		}
		return s.sign(t, all...)
	}
	open := func() int {
		all, _, err := x.node(0).Motions(false)
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	stop := x.pour(t, 25, opening)
	had, since := 0, time.Now()
	testwait.Until(t, "unlisted authors have opened what they may", func() bool {
		if now := open(); now > had {
			had, since = now, time.Now()
		}
		return had > 0 && time.Since(since) > 3*time.Second
	})
	stop()
	stop = x.pour(t, 2, opening) // as many as keep the room full
	for i := range x.daemons {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		r, err := x.node(i).Txn(ctx, put(fmt.Sprintf("/m/honest/%d", i), "v"), node.Once{})
		cancel()
		if err != nil || r.Code != scope.Pending {
			t.Errorf("anchor %d opens no motion beside %d of unlisted authors: %v, code %v, %s", i, had, err, r.Code, r.Reason)
		}
	}
	x.govern(t, func(p *scope.Policy) { p.EpochBlocks++ })
	t.Logf("%d frames, %d motions open", stop(), open())
	x.commits(t)
}
