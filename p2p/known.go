package p2p

import (
	"encoding/hex"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh"
)

// A network's identity gives access to the network. Every peer that connects reads the
// names of a host's protocols, and of the topics of its peers, so these do not reveal
// it: they are derived from it by a hash.

// Protocols is the prefix of the names of a network's protocols and topics.
func Protocols(network aweigh.NetworkID) string {
	sum := aweigh.Sum([]byte("aweigh/protocols/1"), network[:])
	return "/aweigh/" + hex.EncodeToString(sum[:8])
}

// Proof shows a peer that its giver knows a network's identity. It holds between these two alone: the taker learns
// nothing from it, and cannot hand it on or give it back.
func Proof(network aweigh.NetworkID, giver, taker peer.ID) aweigh.Hash {
	return aweigh.Sum([]byte("aweigh/knows/1"), network[:], []byte{byte(len(giver))}, []byte(giver), []byte(taker))
}
