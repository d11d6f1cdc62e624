package p2p

import (
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/peer"
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
	other := knows(h.cfg.Network, h.ID(), h.ID()) // what another peer may show
	for what, req := range map[string][]byte{"nothing": nil, "a question": []byte("genesis"), "what another shows": append(other[:], "genesis"...)} {
		s, err := stranger.NewStream(t.Context(), h.ID(), h.pullID)
		if err != nil {
			t.Fatal(err)
		}
		got, err := exchangeOn(s, req, 1000)
		if err == nil || strings.Contains(string(got), "genesis") {
			t.Errorf("%s: answered with %q, %v", what, got, err)
		}
	}
	mine := knows(h.cfg.Network, stranger.ID(), h.ID())
	s, err := stranger.NewStream(t.Context(), h.ID(), h.pullID)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := exchangeOn(s, append(mine[:], "genesis"...), 1000); err != nil || string(got) != "genesis" {
		t.Errorf("who knows the network is answered with %q, %v", got, err)
	}
}

func asText[T ~string](all []T) (text []string) {
	for _, s := range all {
		text = append(text, string(s))
	}
	return text
}
