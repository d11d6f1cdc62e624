package p2p

import (
	"context"
	"crypto/subtle"
	"encoding/hex"
	"errors"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh"
)

// A network's identity is what gives access to it. Anybody who connects reads the names
// of a host's protocols, and of the topics of its peers, so these do not tell it: they
// are derived from it by a hash.

// Protocols is what the names of a network's protocols and topics begin with.
func Protocols(network aweigh.NetworkID) string {
	sum := aweigh.Sum([]byte("aweigh/protocols/1"), network[:])
	return "/aweigh/" + hex.EncodeToString(sum[:8])
}

// errUnknowing refuses requests of those who do not know the network's identity.
var errUnknowing = errors.New("p2p: a request that does not show that its peer knows the network")

// knows is what a request begins with: it shows that the asker knows the network's
// identity, to one peer alone, who learns nothing from it and cannot hand it on.
func knows(network aweigh.NetworkID, asker, asked peer.ID) aweigh.Hash {
	return aweigh.Sum([]byte("aweigh/knows/1"), network[:], []byte{byte(len(asker))}, []byte(asker), []byte(asked))
}

// knowing is a handler of requests that begin with what knows gives.
func (h *Host) knowing(f func(context.Context, peer.ID, []byte) ([]byte, error)) func(context.Context, peer.ID, []byte) ([]byte, error) {
	if f == nil {
		return nil
	}
	return func(ctx context.Context, from peer.ID, req []byte) ([]byte, error) {
		want := knows(h.cfg.Network, from, h.host.ID())
		if len(req) < len(want) || subtle.ConstantTimeCompare(req[:len(want)], want[:]) != 1 {
			return nil, errUnknowing
		}
		return f(ctx, from, req[len(want):])
	}
}
