package p2p

import (
	"encoding/hex"
	"sync/atomic"
	"testing"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
)

// TestPeersWithSmallOrderKeysAreRefused: a handshake proves nothing about a peer whose
// key is a point of small order.
func TestPeersWithSmallOrderKeysAreRefused(t *testing.T) {
	t.Parallel()
	var refused atomic.Uint64
	g := newGate(&refused, func(peer.ID) bool { return true })
	for _, digits := range []string{
		"0100000000000000000000000000000000000000000000000000000000000000",
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
		"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	} {
		raw, _ := hex.DecodeString(digits)
		key, err := crypto.UnmarshalEd25519PublicKey(raw)
		if err != nil {
			t.Fatal(err)
		}
		id, err := peer.IDFromPublicKey(key)
		if err != nil {
			t.Fatal(err)
		}
		if g.InterceptSecured(network.DirOutbound, id, nil) || g.InterceptSecured(network.DirInbound, id, nil) {
			t.Errorf("%s was let in", digits)
		}
	}
	if refused.Load() != 6 {
		t.Errorf("%d refusals were counted", refused.Load())
	}
}
