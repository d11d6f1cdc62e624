package p2p

import (
	"fmt"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
)

// blocks is for how long each of n blocks in a row lasts, of a peer that goes on at once.
func blocks(member bool, n int) (all []time.Duration) {
	b, now := newBlames(), time.Now()
	for len(all) < n {
		if d := b.add("peer", member, now); d > 0 {
			all = append(all, d)
			now = now.Add(d)
		}
	}
	return all
}

func TestBlocksGrowAndEnd(t *testing.T) {
	t.Parallel()
	nonMembers, members := blocks(false, 20), blocks(true, 20)
	for i := 1; i < 20; i++ {
		if nonMembers[i] < nonMembers[i-1] || members[i] < members[i-1] {
			t.Fatalf("a later block is shorter: %v, %v", nonMembers, members)
		}
	}
	if nonMembers[0] != blockMin || nonMembers[19] != blockMax || nonMembers[1] != 2*blockMin {
		t.Errorf("non-members: %v", nonMembers)
	}
	if members[0] != memberBlockMin || members[19] != memberBlockMax {
		t.Errorf("members: %v", members)
	}
}

func TestBlameIsForgiven(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	b, now := newBlames(), time.Now()
	for range 1000 {
		if b.add("slow", false, now) > 0 {
			t.Fatal("one act a second is not forgiven")
		}
		now = now.Add(time.Second)
	}
	for i := range 3 * maxBlames {
		b.add(peer.ID(fmt.Sprint(i)), false, now)
	}
	if len(b.peers) > maxBlames {
		t.Errorf("%d peers are remembered, at most %d should be", len(b.peers), maxBlames)
	}
}

func TestBlamedPeerIsKeptOutAndMembersComeBack(t *testing.T) {
	t.Parallel()
	for _, member := range []bool{false, true} {
		a := start(t, nil)
		b := start(t, func(c *Config) { c.Bootstrap = []peer.AddrInfo{a.info()} })
		if member {
			a.SetMembers([]peer.ID{b.ID()})
			b.SetMembers([]peer.ID{a.ID()})
		}
		testwait.Until(t, "hosts connect", func() bool { return connected(a, b) })
		for range memberTolerance {
			a.Blame(b.ID())
			if !member && a.Stats().Blocked > 0 {
				break
			}
		}
		if !member && a.Stats().Blocked == 0 {
			t.Fatalf("a non-member is not blocked after %d acts", memberTolerance)
		}
		if member && a.Stats().Blocked > 0 {
			t.Fatal("a member has no more tolerance than others")
		}
		for a.Stats().Blocked == 0 {
			a.Blame(b.ID())
		}
		testwait.Until(t, "it is disconnected", func() bool { return a.host.Network().Connectedness(b.ID()) != network.Connected })
		testwait.Until(t, "it is refused", func() bool { return a.Stats().GateRefusals > 0 })
		if member {
			testwait.Until(t, "a member is back soon", func() bool { return connected(a, b) })
		} else if connected(a, b) {
			t.Error("a non-member is back at once")
		}
	}
}

func TestAddressIsShunnedAfterManyIdentities(t *testing.T) {
	t.Parallel()
	a := start(t, nil)
	for _, c := range []struct{ bad, same, other string }{
		{"/ip4/192.0.2.1/tcp/1", "/ip4/192.0.2.1/tcp/2", "/ip4/192.0.2.2/tcp/1"},
		{"/ip6/2001:db8::1/tcp/1", "/ip6/2001:db8::2/tcp/1", "/ip6/2001:db8:1::1/tcp/1"},
	} {
		for i := range shunAfter {
			if !a.gate.welcomes(ma.StringCast(c.bad)) {
				t.Fatalf("%s is shunned after %d", c.bad, i)
			}
			a.gate.shun(ma.StringCast(c.bad))
		}
		if a.gate.welcomes(ma.StringCast(c.same)) || !a.gate.welcomes(ma.StringCast(c.other)) {
			t.Errorf("%s: %v, %s: %v", c.same, a.gate.welcomes(ma.StringCast(c.same)), c.other, a.gate.welcomes(ma.StringCast(c.other)))
		}
	}
}

// TestNonMembersShareMemory: what waits for non-members that read nothing is bounded
// for all of them together, and members are not affected.
func TestNonMembersShareMemory(t *testing.T) {
	t.Parallel()
	const limit, size = 4 << 20, 64 << 10
	stuck := make(chan struct{})
	a := start(t, func(c *Config) { c.NonMemberMemory, c.MaxFrame, c.WriteTimeout = limit, 1<<20, time.Minute })
	var slow []*Host
	for range 3 {
		h := start(t, func(c *Config) { c.Handler.Frame = func(peer.ID, []byte) { <-stuck } })
		join(t, a, h)
		slow = append(slow, h)
	}
	defer close(stuck)
	var in inbox
	member := start(t, func(c *Config) { c.Handler.Frame = in.receive })
	join(t, a, member)
	a.SetMembers([]peer.ID{member.ID()})
	testwait.Until(t, "nothing more fits", func() bool {
		full := true
		for _, h := range slow {
			for a.Send(h.ID(), make([]byte, size)) {
				full = false
			}
		}
		return full
	})
	total := 0
	for _, h := range slow {
		_, bytes := a.peers.find(h.ID()).link.waiting()
		total += bytes
	}
	if total > limit {
		t.Errorf("%d bytes wait for non-members, the limit is %d", total, limit)
	}
	if !a.Send(member.ID(), make([]byte, size)) {
		t.Error("a member's frame is refused")
	}
	testwait.Until(t, "a member gets its frames", func() bool { return in.len() == 1 })
	for _, h := range slow {
		_ = a.host.Network().ClosePeer(h.ID())
	}
	testwait.Until(t, "the memory is given back", func() bool { return a.nonMembers.queued.Load() == 0 })
}

// TestFrameThatNeverEndsIsCut: a peer that begins a frame and sends it too slowly
// loses its stream.
func TestFrameThatNeverEndsIsCut(t *testing.T) {
	t.Parallel()
	a := start(t, nil)
	b := start(t, func(c *Config) { c.PullTimeout = 100 * time.Millisecond })
	join(t, a, b)
	s, err := a.host.NewStream(network.WithNoDial(t.Context(), "test"), b.ID(), b.framesID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write([]byte{100, 1}); err != nil {
		t.Fatal(err)
	}
	cut := make(chan error, 1)
	go func() {
		_, err := s.Read(make([]byte, 1))
		cut <- err
	}()
	if err := within(t, "the stream is cut", cut); err == nil {
		t.Error("the host wrote something")
	}
}
