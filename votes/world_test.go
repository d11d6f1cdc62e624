package votes

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
)

var schemes = []string{Ed25519, Ed448, MLDSA65}

// fill is a hash that is easy to recognize.
func fill(b byte) (h aweigh.Hash) {
	copy(h[:], bytes.Repeat([]byte{b}, len(h)))
	return h
}

var home = Domain{Network: fill(1), Scope: fill(2), Epoch: 3, Roster: fill(4), Policy: fill(5)}

var (
	notarizeA = quorum.Subject{Kind: quorum.Notarize, View: 7, Block: fill(0xaa)}
	notarizeB = quorum.Subject{Kind: quorum.Notarize, View: 7, Block: fill(0xbb)}
	finalizeA = quorum.Subject{Kind: quorum.Finalize, View: 7, Block: fill(0xaa)}
	nullify7  = quorum.Subject{Kind: quorum.Nullify, View: 7}
)

// keyOf is the key of a seed that repeats one byte.
func keyOf(t testing.TB, name string, seed byte) PrivateKey {
	t.Helper()
	s, err := scheme(name)
	if err != nil {
		t.Fatal(err)
	}
	k, err := KeyFromSeed(name, bytes.Repeat([]byte{seed}, s.SeedSize()))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// world is a keyring with the private keys behind it, in the order of anchors.
type world struct {
	*Keyring
	keys []PrivateKey
}

// newWorld has n anchors of weight 1 under the default BFT rules, and one on
// probation, whose key is the last.
func newWorld(t testing.TB, name string, n int) world {
	t.Helper()
	var keys []PrivateKey
	var shares []quorum.Share
	var public []PublicKey
	for i := range n + 1 {
		k := keyOf(t, name, byte(i+1))
		keys, public = append(keys, k), append(public, k.Public())
		if i < n {
			shares = append(shares, quorum.Share{Anchor: k.Public().ID(), Weight: 1})
		}
	}
	w, err := quorum.NewWeights(shares...)
	if err != nil {
		t.Fatal(err)
	}
	ring, err := NewKeyring(home, quorum.DefaultRules(quorum.BFT), w, public...)
	if err != nil {
		t.Fatal(err)
	}
	sorted := make([]PrivateKey, n, n+1)
	for _, k := range keys[:n] {
		seat, _ := w.Seat(k.Public().ID())
		sorted[seat] = k
	}
	return world{ring, append(sorted, keys[n])}
}

// ballot is signed by one anchor of the world.
func (w world) ballot(seat int, s quorum.Subject) Ballot { return ballotOf(w.keys[seat], w.domain, s) }

func ballotOf(k PrivateKey, d Domain, s quorum.Subject) Ballot {
	b := Ballot{Format: Format, Domain: d, Subject: s, Anchor: k.Public().ID()}
	b.Signature = k.Sign(ContextBallot, b.SigningBytes())
	return b
}

// certificate is signed by the anchors at the seats, in the order given.
func (w world) certificate(s quorum.Subject, seats ...int) quorum.Certificate {
	c := quorum.Certificate{Subject: s}
	for _, i := range seats {
		c.Signatures = append(c.Signatures, w.ballot(i, s).Vote().Signature)
	}
	return c
}

func drawHash(t *rapid.T, label string) (h aweigh.Hash) {
	copy(h[:], rapid.SliceOfN(rapid.Byte(), len(h), len(h)).Draw(t, label))
	return h
}

// drawBallot is any ballot, valid or not, signed or not.
func drawBallot(t *rapid.T) Ballot {
	return Ballot{
		Format: rapid.Uint16().Draw(t, "format"),
		Domain: Domain{
			Network: drawHash(t, "network"), Scope: drawHash(t, "scope"),
			Epoch:  aweigh.Epoch(rapid.Uint64().Draw(t, "epoch")),
			Roster: drawHash(t, "roster"), Policy: drawHash(t, "policy"),
		},
		Subject: quorum.Subject{
			Kind:  quorum.Kind(rapid.Uint8().Draw(t, "kind")),
			View:  aweigh.View(rapid.Uint64().Draw(t, "view")),
			Block: drawHash(t, "block"),
		},
		Anchor:    drawHash(t, "anchor"),
		Signature: rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "signature"),
	}
}
