package p2p

import (
	"io"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	pb "github.com/libp2p/go-libp2p/p2p/protocol/identify/pb"
	"google.golang.org/protobuf/proto"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
)

// claimed is the claim of a peer, or nil.
func (h *Host) claimed(id peer.ID) *claim {
	h.peers.mu.Lock()
	defer h.peers.mu.Unlock()
	return h.peers.claims[id]
}

// claimsNothing reports whether there is no claim of any peer.
func (h *Host) claimsNothing() bool {
	h.peers.mu.Lock()
	defer h.peers.mu.Unlock()
	return len(h.peers.claims) == 0
}

// bare is a libp2p host of its own, that does not listen.
func bare(t *testing.T, options ...libp2p.Option) host.Host {
	t.Helper()
	lp, err := libp2p.New(append(options, libp2p.NoListenAddrs)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lp.Close() })
	return lp
}

// identifyOf is what lp says of itself if it speaks some protocols.
func identifyOf(t *testing.T, lp host.Host, names []protocol.ID) []byte {
	t.Helper()
	key, err := crypto.MarshalPublicKey(lp.Peerstore().PubKey(lp.ID()))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := proto.Marshal(&pb.Identify{Protocols: protocol.ConvertToStrings(names), PublicKey: key})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// pushesIdentify makes lp tell another host that it now speaks some protocols.
func pushesIdentify(t *testing.T, lp host.Host, to peer.ID, names ...protocol.ID) {
	t.Helper()
	s, err := lp.NewStream(t.Context(), to, "/ipfs/id/push/1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(lengthened(identifyOf(t, lp, names))); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// answersIdentify makes lp name protocols, and calls before and after it does.
func answersIdentify(t *testing.T, lp host.Host, before func(), after func(network.Stream), names ...protocol.ID) {
	t.Helper()
	raw := identifyOf(t, lp, names)
	lp.SetStreamHandler("/ipfs/id/1.0.0", func(s network.Stream) {
		before()
		_, _ = s.Write(lengthened(raw))
		_ = s.Close()
		after(s)
	})
}

// TestPeersThatWentAreNotAsked: a peer that went before the host asks it for a proof is asked no more.
func TestPeersThatWentAreNotAsked(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	gone := bare(t)
	asked := make(chan struct{})
	h.spawn(func() {
		defer close(asked)
		h.askProof(gone.ID())
	})
	within(t, "asking ends", asked)
	testwait.Until(t, "nothing is kept", h.claimsNothing)
	for range 30 { // over the wire: some go before, some while they are asked
		lp, went := bare(t), make(chan struct{}, 1)
		answersIdentify(t, lp, func() {}, func(s network.Stream) {
			_ = s.Conn().Close()
			select {
			case went <- struct{}{}:
			default:
			}
		}, h.proofID)
		_ = lp.Connect(t.Context(), h.info())
		within(t, "the peer answers and goes", went)
		lp.Close()
	}
	testwait.Until(t, "nothing is kept", h.claimsNothing)
}

// TestMoreConnectionsGiveNoMoreTime: a peer that never proves is disconnected in time, also if it opens a new
// connection and closes the old one before.
func TestMoreConnectionsGiveNoMoreTime(t *testing.T) {
	t.Parallel()
	testshort.Skip(t)
	h := start(t, func(c *Config) { c.Grace = time.Second })
	key := libp2p.Identity(newKey(t))
	last := bare(t, key)
	if err := last.Connect(t.Context(), h.info()); err != nil {
		t.Fatal(err)
	}
	began, again := time.Now(), time.NewTicker(300*time.Millisecond)
	defer again.Stop()
	for h.Stats().Foreign == 0 {
		if time.Since(began) > patience {
			t.Fatal("the peer stays connected")
		}
		<-again.C
		next := bare(t, key)
		if next.Connect(t.Context(), h.info()) == nil {
			last.Close()
			last = next
		}
	}
	if took := time.Since(began); took < time.Second {
		t.Errorf("the peer had %v", took)
	}
	testwait.Until(t, "nothing is kept", h.claimsNothing)
}

// TestStreamsOfUnprovenPeersHaveARate: a peer that has not proved and opens more is blamed, and disconnected.
func TestStreamsOfUnprovenPeersHaveARate(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"proof", "pull"} {
		t.Run(name, func(t *testing.T) {
			h := start(t, func(c *Config) { c.Grace = time.Minute })
			lp := bare(t)
			lp.SetStreamHandler(h.proofID, func(s network.Stream) { _ = s.Reset() })
			if err := lp.Connect(t.Context(), h.info()); err != nil {
				t.Fatal(err)
			}
			names, began := map[string]protocol.ID{"proof": h.proofID, "pull": h.pullID}, time.Now()
			for n := 0; h.Stats().Blocked == 0; n++ {
				if time.Since(began) > 2*patience {
					t.Fatalf("%d streams, %+v", n, h.Stats())
				}
				s, err := lp.NewStream(network.WithNoDial(t.Context(), "connected"), h.ID(), names[name])
				if err != nil {
					break // it is disconnected
				}
				_, _ = s.Write([]byte{1})
				_ = s.Close()
			}
			testwait.Until(t, "the peer is blocked", func() bool { return h.Stats().Blocked == 1 })
			if s := h.Stats(); s.StreamsRefused == 0 {
				t.Errorf("blamed for something else: %+v", s)
			}
		})
	}
}

// TestEarlyRequestsLeaveRoomForTheProof: a peer whose identity comes late, and that began and gave up many requests
// meanwhile, is asked for its proof, and the requests that it gave up take no place.
func TestEarlyRequestsLeaveRoomForTheProof(t *testing.T) {
	t.Parallel()
	h := start(t, func(c *Config) { c.Grace = time.Minute })
	lp, ready := bare(t), make(chan struct{})
	lp.SetStreamHandler(h.proofID, func(s network.Stream) {
		defer s.Close()
		mine, theirs := Proof(testNetwork, lp.ID(), h.ID()), aweigh.Hash{}
		_, _ = s.Write(mine[:])
		_, _ = io.ReadFull(s, theirs[:])
	})
	answersIdentify(t, lp, func() { <-ready }, func(network.Stream) {}, h.proofID, h.framesID, h.pullID)
	if err := lp.Connect(t.Context(), h.info()); err != nil {
		t.Fatal(err)
	}
	waiting := func() int {
		if c := h.claimed(lp.ID()); c != nil {
			return len(c.waiting)
		}
		return 0
	}
	var all []network.Stream
	for range waitingMax {
		s, err := lp.NewStream(t.Context(), h.ID(), h.pullID)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = s.Write(lengthened([]byte("x")))
		all = append(all, s)
	}
	testwait.Until(t, "all wait", func() bool { return waiting() == waitingMax })
	for i, s := range all {
		if i%2 == 0 {
			_ = s.Reset()
		}
	}
	testwait.Until(t, "those given up wait no more", func() bool { return waiting() == waitingMax/2 })
	close(ready)
	testwait.Until(t, "the peer proves", func() bool { return h.knows(lp.ID()) })
}
