package node

import (
	"fmt"
	"testing"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
)

// TestNamesAreThoseOfPeers asks for more peers than are remembered, in both
// directions and again.
func TestNamesAreThoseOfPeers(t *testing.T) {
	var n names
	for range 2 {
		for i := range maxNamed + 10 {
			hash := aweigh.Sum(fmt.Append(nil, i))
			id := peer.ID(append([]byte{0x12, 0x20}, hash[:]...)) // a multihash of SHA-256
			for range 2 {
				if p := n.of(id); p != machine.Peer(id.String()) {
					t.Fatalf("%s is called %s", id, p)
				}
				if back, err := n.id(machine.Peer(id.String())); err != nil || back != id {
					t.Fatalf("%s names %s: %v", id, back, err)
				}
			}
			if len(n.ofs) > maxNamed || len(n.ids) > maxNamed {
				t.Fatalf("%d peers are remembered", len(n.ofs))
			}
		}
	}
	if _, err := n.id("nobody"); err == nil {
		t.Fatal("a name of nobody is taken")
	}
}
