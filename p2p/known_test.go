package p2p

import (
	"io"
	"strings"
	"testing"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testwait"
)

// TestNonMembersLearnNoNetwork: a libp2p host that does not know the network's identity
// connects, reads all that the host reveals of itself, and sends invalid proofs.
func TestNonMembersLearnNoNetwork(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	nonMember, err := libp2p.New(libp2p.NoListenAddrs)
	if err != nil {
		t.Fatal(err)
	}
	defer nonMember.Close()
	// It names the protocol, so that the host leaves it the whole time.
	nonMember.SetStreamHandler(h.proofID, func(s network.Stream) { _ = s.Reset() })
	if err := nonMember.Connect(t.Context(), peer.AddrInfo{ID: h.ID(), Addrs: h.host.Addrs()}); err != nil {
		t.Fatal(err)
	}
	identity := h.cfg.Network.String()
	testwait.Until(t, "the host identifies itself", func() bool {
		protocols, err := nonMember.Peerstore().GetProtocols(h.ID())
		agent, _ := nonMember.Peerstore().Get(h.ID(), "AgentVersion")
		if err != nil || len(protocols) == 0 || agent == nil {
			return false
		}
		for _, told := range append([]string{agent.(string)}, asText(protocols)...) {
			if strings.Contains(told, identity[:8]) {
				t.Errorf("%q tells of network %s", told, identity)
			}
		}
		return true
	})
	// Invalid proofs: the host's own, sent back, proofs of other peers, and invented ones.
	for what, shown := range map[string]aweigh.Hash{
		"zeros":                      {},
		"what the host shows":        Proof(testNetwork, h.ID(), nonMember.ID()),
		"what shows another host":    Proof(testNetwork, nonMember.ID(), nonMember.ID()),
		"what another host shows":    Proof(testNetwork, h.ID(), h.ID()),
		"what shows another network": Proof(aweigh.Sum([]byte("another")), nonMember.ID(), h.ID()),
	} {
		if got, err := prove(t, nonMember, h, shown); len(got) > 0 || err == nil {
			t.Errorf("%s is answered by %x, %v", what, got, err)
		}
	}
	if h.knows(nonMember.ID()) || h.Stats().Unproven != 5 || h.Stats().Blamed != 5 {
		t.Errorf("a non-member is believed, or not counted: %+v", h.Stats())
	}
	got, err := prove(t, nonMember, h, Proof(testNetwork, nonMember.ID(), h.ID()))
	if err != nil || len(got) == 0 || !h.knows(nonMember.ID()) {
		t.Errorf("a peer that knows the network is answered by %x, %v", got, err)
	}
}

// prove gives a host a proof, and returns the host's.
func prove(t *testing.T, giver host.Host, taker *Host, proof aweigh.Hash) ([]byte, error) {
	t.Helper()
	s, err := giver.NewStream(t.Context(), taker.ID(), taker.proofID)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Reset()
	if _, err := s.Write(proof[:]); err != nil {
		t.Fatal(err)
	}
	return io.ReadAll(s)
}

func asText[T ~string](all []T) (text []string) {
	for _, s := range all {
		text = append(text, string(s))
	}
	return text
}
