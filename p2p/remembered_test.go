package p2p

import (
	"fmt"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

// TestFewPeersAreRemembered: reported peers, refused peers and the addresses of those stay within their bounds,
// however many keys a non-member makes.
func TestFewPeersAreRemembered(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	for i := range maxCandidates + 100 {
		h.dialer.mu.Lock()
		h.dialer.add(peer.ID(fmt.Sprint(i)))
		h.dialer.mu.Unlock()
	}
	for i := range maxBlocked + 100 {
		h.gate.block(peer.ID(fmt.Sprint(i)), time.Hour)
		from, err := ma.NewMultiaddr(fmt.Sprintf("/ip4/10.0.%d.%d/tcp/1", i>>8, i&255))
		if err != nil {
			t.Fatal(err)
		}
		h.gate.shun(from)
	}
	h.dialer.mu.Lock() // dials that fail forget peers meanwhile
	defer h.dialer.mu.Unlock()
	for what, n := range map[string][2]int{
		"heard of": {len(h.dialer.candidates), maxCandidates}, "kept out": {len(h.gate.until), maxBlocked},
		"places": {len(h.gate.shunned), maxBlocked},
	} {
		if n[0] == 0 || n[0] > n[1] {
			t.Errorf("%s: %d, the bound is %d", what, n[0], n[1])
		}
	}
}
