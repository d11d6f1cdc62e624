package node

import (
	"context"
	"crypto/rand"
	"testing"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/votes"
)

// naming is a transport on which each peer has a snapshot of one height.
type naming struct {
	Transport
	at map[peer.ID]aweigh.Height
}

func (n naming) Request(_ context.Context, to peer.ID, _ []byte, _ int) ([]byte, error) {
	return canon.Encode(heights{All: []aweigh.Height{n.at[to]}}), nil
}

// TestNonMembersDoNotChooseTheSnapshot: a node that catches up chooses the height that most anchors have, however many
// other peers name another one. Identities cost nothing, and a peer that names a height may let the node wait for it.
func TestNonMembersDoNotChooseTheSnapshot(t *testing.T) {
	n, _ := stillNode(t, "n0", "n1", "n2", "n3")
	const honest, lie = 5000, 6000
	at := make(map[peer.ID]aweigh.Height)
	var peers []peer.ID
	name := func(p machine.Peer, height aweigh.Height) {
		id, err := peer.Decode(string(p))
		if err != nil {
			t.Fatal(err)
		}
		peers = append(peers, id)
		at[id] = height
	}
	for _, a := range n.root.measured.roster.Load().all[1:] {
		name(a.peer, honest)
	}
	for range 12 {
		key, err := votes.GenerateKey(votes.Ed25519, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		p, err := machine.PeerOf(key)
		if err != nil {
			t.Fatal(err)
		}
		name(p, lie)
	}
	n.root.host = naming{n.host, at}
	if best, from := n.root.commonHeight(t.Context(), peers, 0); best != honest || len(from) != 3 {
		t.Errorf("height %d of %d peers is chosen, not %d of three anchors", best, len(from), honest)
	}
}
