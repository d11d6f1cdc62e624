package machine

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/votes"
)

// HostKey returns an Ed25519 key in libp2p's form. It returns an error for a key of another scheme.
func HostKey(k votes.PrivateKey) (crypto.PrivKey, error) {
	name, digits, _ := strings.Cut(k.Encode(), ":")
	seed, err := hex.DecodeString(digits)
	if err != nil || name != "ed25519" || len(seed) != 32 {
		return nil, fmt.Errorf("node: a node's identity is an ed25519 key, not %s", name)
	}
	return crypto.UnmarshalEd25519PrivateKey(append(seed, k.Public().Bytes...))
}

// PeerOfKey returns the libp2p peer ID of an Ed25519 key. It returns an error for a key of another scheme.
func PeerOfKey(k votes.PublicKey) (Peer, error) {
	if err := k.Check(); err != nil || k.Scheme != votes.Ed25519 {
		return "", fmt.Errorf("node: a node's identity is an ed25519 key, not %s: %w", k.Scheme, err)
	}
	key, err := crypto.UnmarshalEd25519PublicKey(k.Bytes)
	if err != nil {
		return "", err
	}
	id, err := peer.IDFromPublicKey(key)
	return Peer(id.String()), err
}

// PeerOf returns the libp2p peer ID that belongs to an identity.
func PeerOf(k votes.PrivateKey) (Peer, error) {
	key, err := HostKey(k)
	if err != nil {
		return "", err
	}
	id, err := peer.IDFromPrivateKey(key)
	return Peer(id.String()), err
}

// AuthorOf returns the author of mutations that the node with this peer ID admits: the identity of its Ed25519 key,
// which the peer ID holds. It returns zero for other peer IDs, and for keys that votes.PublicKey.Check refuses.
func AuthorOf(p Peer) aweigh.Hash {
	id, err := peer.Decode(string(p))
	if err != nil {
		return aweigh.Hash{}
	}
	key, err := id.ExtractPublicKey()
	if err != nil || key.Type() != crypto.Ed25519 {
		return aweigh.Hash{}
	}
	raw, err := key.Raw()
	if err != nil {
		return aweigh.Hash{}
	}
	author := votes.PublicKey{Scheme: votes.Ed25519, Bytes: raw}
	if author.Check() != nil {
		return aweigh.Hash{}
	}
	return author.ID()
}
