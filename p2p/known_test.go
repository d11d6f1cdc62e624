package p2p

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/aweigh/aweigh/internal/canon"
)

// TestStrangersLearnNoNetwork: a libp2p host that knows no network's identity connects,
// reads all that the host tells of itself, and asks by the names that it finds there.
func TestStrangersLearnNoNetwork(t *testing.T) {
	h := start(t, func(c *Config) { c.Handler.Request = echo })
	stranger, err := libp2p.New(libp2p.NoListenAddrs)
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	if err := stranger.Connect(t.Context(), peer.AddrInfo{ID: h.ID(), Addrs: h.host.Addrs()}); err != nil {
		t.Fatal(err)
	}
	identity := h.cfg.Network.String()
	for wait := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		protocols, err := stranger.Peerstore().GetProtocols(h.ID())
		agent, _ := stranger.Peerstore().Get(h.ID(), "AgentVersion")
		if err == nil && len(protocols) > 0 && agent != nil {
			for _, told := range append([]string{agent.(string)}, asText(protocols)...) {
				if strings.Contains(told, identity[:8]) {
					t.Errorf("%q tells of network %s", told, identity)
				}
			}
			break
		}
		if time.Now().After(wait) {
			t.Fatalf("nothing was told: %v", err)
		}
	}
	friend := start(t, nil)
	join(t, h, friend)
	eventually(t, "the host has the record of its friend", func() bool { return len(h.book.addrs(friend.ID())) > 0 })
	for _, c := range []struct {
		proto       protocol.ID
		ask, answer string
	}{
		{h.pullID, "genesis", "genesis"},
		{h.peersID, string(canon.Encode(peersRequest{Wanted: [][]byte{[]byte(friend.ID())}})), string(friend.ID())},
	} {
		ask := func(req string) (string, error) {
			s, err := stranger.NewStream(t.Context(), h.ID(), c.proto)
			if err != nil {
				t.Fatal(err)
			}
			got, err := exchangeOn(s, []byte(req), maxPeersAnswer)
			return string(got), err
		}
		other := knows(h.cfg.Network, h.ID(), h.ID()) // what another peer may show
		for what, shown := range map[string]string{"nothing": "", "what another shows": string(other[:]), "zeros": string(make([]byte, len(other)))} {
			if got, err := ask(shown + c.ask); !errors.Is(err, ErrRefused) || strings.Contains(got, c.answer) {
				t.Errorf("%s: %s is answered with %q, %v", c.proto, what, got, err)
			}
		}
		mine := knows(h.cfg.Network, stranger.ID(), h.ID())
		if got, err := ask(string(mine[:]) + c.ask); err != nil || !strings.Contains(got, c.answer) {
			t.Errorf("%s: who knows the network is answered with %q, %v", c.proto, got, err)
		}
	}
}

func asText[T ~string](all []T) (text []string) {
	for _, s := range all {
		text = append(text, string(s))
	}
	return text
}
