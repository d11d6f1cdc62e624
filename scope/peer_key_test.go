package scope

import (
	"encoding/hex"
	"errors"
	"testing"

	"github.com/mr-tron/base58"

	"github.com/aweigh/aweigh/internal/curve"
)

// TestPeersOfAnchorsAreKeysOfTheirOwn: a node whose key is a point of small order is
// refused, in a genesis and in an admission.
func TestPeersOfAnchorsAreKeysOfTheirOwn(t *testing.T) {
	raw, err := hex.DecodeString("0024080112" + "20" + "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05")
	if err != nil {
		t.Fatal(err)
	}
	peer := base58.Encode(raw)
	if k, ok := PeerKey(peer); ok || len(k.Bytes) != 32 {
		t.Fatalf("the peer ID is not one of an Ed25519 key, or is taken: %v %v", k, ok)
	}
	a := Anchor{Name: "a", Peer: peer}
	if err := a.checkPeer(); !errors.Is(err, curve.ErrSmallOrder) {
		t.Errorf("%v", err)
	}
	g, keys := testGenesis(t, 4)
	g.Anchors = append([]Anchor(nil), g.Anchors...)
	g.Anchors[0].Peer = peer
	if _, err := g.Check(); !errors.Is(err, curve.ErrSmallOrder) {
		t.Errorf("a genesis with such an anchor: %v", err)
	}
	d := Admission(g.Hash(), keys[0], "a", peer, g.Anchors[1].Key.ID())
	if err := d.Check(); !errors.Is(err, curve.ErrSmallOrder) {
		t.Errorf("an admission of such an anchor: %v", err)
	}
}
