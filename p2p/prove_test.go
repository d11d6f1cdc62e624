package p2p

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"google.golang.org/protobuf/proto"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
)

// copycat is a libp2p host with all protocols that a host of the network names publicly, and without the identity.
type copycat struct {
	host.Host
	t      *testing.T
	prefix string // of the names, as copied

	mu   sync.Mutex
	told map[protocol.ID][]byte // by the host, by the protocol that the host opened a stream of
}

// newCopycat connects to a host, copies its protocols, and announces them to it.
func newCopycat(t *testing.T, h *Host) *copycat {
	t.Helper()
	lp, err := libp2p.New(libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lp.Close() })
	c := &copycat{Host: lp, t: t, told: make(map[protocol.ID][]byte)}
	if err := c.Connect(t.Context(), h.info()); err != nil {
		t.Fatal(err)
	}
	var names []protocol.ID
	testwait.Until(t, "the host tells its protocols", func() bool {
		names, _ = c.Peerstore().GetProtocols(h.ID())
		return slices.Contains(names, h.framesID)
	})
	for _, name := range names {
		if before, ok := strings.CutSuffix(string(name), "/frames/1"); ok {
			c.prefix = before
		}
		if !strings.HasPrefix(string(name), "/ipfs/") {
			c.SetStreamHandler(name, c.listen)
		}
	}
	return c
}

// listen keeps the bytes that the host sends.
func (c *copycat) listen(s network.Stream) {
	defer s.Reset()
	buf := make([]byte, 4096)
	for {
		n, err := s.Read(buf)
		c.mu.Lock()
		c.told[s.Protocol()] = append(c.told[s.Protocol()], buf[:n]...)
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// hears reports whether the host has sent a text over any stream of a protocol.
func (c *copycat) hears(text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, told := range c.told {
		if bytes.Contains(told, []byte(text)) {
			return true
		}
	}
	return false
}

// spoken are the protocols of which the host opened a stream.
func (c *copycat) spoken() (names []protocol.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.told {
		names = append(names, name)
	}
	return names
}

// open opens a stream and writes to it.
func (c *copycat) open(to peer.ID, name protocol.ID, data []byte) network.Stream {
	c.t.Helper()
	s, err := c.NewStream(network.WithNoDial(c.t.Context(), "connected"), to, name)
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := s.Write(data); err != nil {
		c.t.Fatal(err)
	}
	return s
}

// packet is a packet of gossip: a subscription to a topic, and a message for it.
func (c *copycat) packet(topic Topic, text string) []byte {
	name := fmt.Sprintf("%s/gossip/1/%d", c.prefix, bucket(topic))
	data, err := packGossip(topic, []byte(text))
	if err != nil {
		c.t.Fatal(err)
	}
	raw, err := proto.Marshal(&pb.RPC{
		Subscriptions: []*pb.RPC_SubOpts{{Subscribe: proto.Bool(true), Topicid: &name}},
		Publish:       []*pb.Message{{Data: data, Topic: &name}},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return lengthened(raw)
}

// lengthened is data behind its length, as frames, requests and packets are.
func lengthened(data []byte) []byte {
	return append(binary.AppendUvarint(nil, uint64(len(data))), data...)
}

const meshsub = "/meshsub/1.1.0"

// TestCopyingNamesIsNoProof: a peer with the names of all protocols, which one connection reveals, gets no frame,
// request, gossip or address and can send none. It is counted, and disconnected in time.
func TestCopyingNamesIsNoProof(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	var in inbox
	var ears listener
	var asked atomic.Int64
	h := start(t, func(c *Config) {
		c.Grace = 2 * time.Second
		c.Handler = Handler{Frame: in.receive, Gossip: ears.gossip}
		c.Handler.Peer = func(peer.ID, bool) { asked.Add(1) }
	})
	friend := start(t, func(c *Config) { c.Handler.Gossip = ears.gossip })
	join(t, h, friend)
	if err := h.Join("t"); err != nil {
		t.Fatal(err)
	}
	c := newCopycat(t, h)
	frames := c.open(h.ID(), h.framesID, lengthened([]byte("a frame")))
	pull := c.open(h.ID(), h.pullID, lengthened([]byte("genesis")))
	peers := c.open(h.ID(), h.peersID, lengthened(canon.Encode(peersRequest{})))
	gossip := c.open(h.ID(), meshsub, c.packet("t", "bad"))

	sent, again := false, time.Now()
	for n, wait := 0, time.Now().Add(patience); c.Network().Connectedness(h.ID()) == network.Connected; n++ {
		if time.Now().After(wait) {
			t.Error("the peer stays connected")
			break
		}
		sent = h.Send(c.ID(), []byte("news of a frame")) || sent
		if time.Now().After(again) { // the honest host gets what is published here
			again = time.Now().Add(200 * time.Millisecond)
			if err := h.Publish("t", fmt.Appendf(nil, "news %d", n)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Millisecond) // the pace of its frames
	}
	if sent || c.hears("news") {
		t.Error("the peer is sent gossip or frames")
	}
	for _, name := range c.spoken() {
		if name != h.proofID {
			t.Errorf("the host opened a stream of %s", name)
		}
	}
	for name, s := range map[string]network.Stream{"frames": frames, "pull": pull, "peers": peers, "gossip": gossip} {
		_ = s.SetReadDeadline(time.Now().Add(time.Second))
		if got, err := io.ReadAll(s); len(got) > 0 || err == nil {
			t.Errorf("the stream of %s gave %q, %v", name, got, err)
		}
	}
	if len(h.book.addrs(c.ID())) > 0 {
		t.Error("the peer is in the address book")
	}
	wanted := canon.Encode(peersRequest{Wanted: [][]byte{[]byte(c.ID())}})
	answer, err := friend.ask(t.Context(), h.peersID, h.ID(), wanted, maxPeersAnswer)
	if err != nil || bytes.Contains(answer, []byte(c.ID())) {
		t.Errorf("others are told of the peer: %q, %v", answer, err)
	}
	if slices.Contains(h.Hears("t"), c.ID()) {
		t.Error("the peer is in the mesh")
	}
	if in.len() > 0 || ears.bad.Load() > 0 {
		t.Error("what the peer sent was received")
	}
	if asked.Load() != 1 {
		t.Errorf("%d peers were announced", asked.Load())
	}
	testwait.Until(t, "all is counted", func() bool { s := h.Stats(); return s.Foreign == 1 && s.Unproven == 4 })
	if !connected(h, friend) {
		t.Error("an honest host was disconnected")
	}
}

// TestFewStreamsWaitForAProof: what one peer makes a host keep before it proves is bounded, and goes with the peer.
func TestFewStreamsWaitForAProof(t *testing.T) {
	t.Parallel()
	h := start(t, func(c *Config) { c.Grace = time.Minute })
	c := newCopycat(t, h)
	for _, many := range []struct {
		names []protocol.ID
		n     int
	}{
		{[]protocol.ID{h.framesID, h.pullID, h.peersID, meshsub}, 2 * waitingMax},
		{[]protocol.ID{h.proofID}, 2 * answersMax},
	} {
		for i := range many.n {
			s, err := c.NewStream(t.Context(), h.ID(), many.names[i%len(many.names)])
			if err != nil {
				t.Fatal(err)
			}
			_, _ = s.Write([]byte{1})
		}
	}
	testwait.Until(t, "half of them are refused", func() bool { return h.Stats().Unproven == waitingMax+answersMax })
	if c := h.claimed(c.ID()); len(c.waiting) != waitingMax || len(c.answers) != answersMax {
		t.Errorf("%d streams wait, and %d proofs", len(c.waiting), len(c.answers))
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "nothing is kept", h.claimsNothing)
}

// TestPeersThatProveLaterGetEverything: messages that a peer sent meanwhile are taken then, and gossip goes
// both ways.
func TestPeersThatProveLaterGetEverything(t *testing.T) {
	t.Parallel()
	var in inbox
	var ears listener
	h := start(t, func(c *Config) {
		c.Grace = time.Minute
		c.Handler = Handler{Frame: in.receive, Gossip: ears.gossip, Request: echo}
	})
	friend := start(t, nil)
	join(t, h, friend)
	if err := h.Join("t"); err != nil {
		t.Fatal(err)
	}
	c := newCopycat(t, h)
	c.open(h.ID(), h.framesID, lengthened([]byte("a frame")))
	c.open(h.ID(), meshsub, c.packet("t", "good"))
	request := c.open(h.ID(), h.pullID, lengthened([]byte("hello")))
	testwait.Until(t, "the host asks for a proof", func() bool { return slices.Contains(c.spoken(), h.proofID) })
	friend.Send(h.ID(), []byte("of a friend"))
	testwait.Until(t, "a friend's frame arrives", func() bool { return in.len() > 0 })
	if in.len() > 1 || ears.heard.Load() > 0 || c.hears("/gossip/") {
		t.Error("the peer has not proved yet")
	}

	mine := Proof(testNetwork, c.ID(), h.ID())
	s := c.open(h.ID(), h.proofID, mine[:])
	theirs := Proof(testNetwork, h.ID(), c.ID())
	if got, err := io.ReadAll(s); err != nil || !bytes.Equal(got, theirs[:]) {
		t.Errorf("the host proves by %x, %v", got, err)
	}
	testwait.Until(t, "what the peer sent arrives", func() bool { return in.len() == 2 && ears.heard.Load() == 1 })
	if got, err := io.ReadAll(request); err != nil || !bytes.HasSuffix(got, []byte("hello")) {
		t.Errorf("the request is answered by %q, %v", got, err)
	}
	h.Send(c.ID(), []byte("news of a frame"))
	testwait.Until(t, "the peer gets frames", func() bool { return c.hears("news of a frame") })
	publish(t, h, "t", "news of gossip", "the peer gets gossip", func() bool { return c.hears("news of gossip") })
	testwait.Until(t, "its address is known", func() bool { return len(h.book.addrs(c.ID())) > 0 })
	if !slices.Contains(h.Hears("t"), c.ID()) || h.Stats().Unproven > 0 {
		t.Errorf("the mesh is %s; %+v", h.Hears("t"), h.Stats())
	}
}
