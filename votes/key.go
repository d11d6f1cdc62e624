package votes

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/cloudflare/circl/sign"
	"github.com/cloudflare/circl/sign/ed25519"
	"github.com/cloudflare/circl/sign/ed448"
	"github.com/cloudflare/circl/sign/mldsa/mldsa65"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/curve"
)

// The signature schemes that a key may have.
const (
	Ed25519 = "ed25519"   // RFC 8032; the default: small and fast
	Ed448   = "ed448"     // RFC 8032; a wider margin
	MLDSA65 = "ml-dsa-65" // FIPS 204; withstands quantum computers, with signatures of 3309 bytes
)

// scheme returns the implementation of a signature scheme. All nodes of a network use the same implementations,
// because implementations differ on unusual keys and signatures, and all nodes must accept exactly the same ballots.
// Signing is deterministic in all of them. The error does not contain the name: if a key was passed in its place, or a
// key file is damaged, the error must not show a secret.
func scheme(name string) (sign.Scheme, error) {
	switch name {
	case Ed25519:
		return ed25519.Scheme(), nil
	case Ed448:
		return ed448.Scheme(), nil
	case MLDSA65:
		return mldsa65.Scheme(), nil
	}
	return nil, fmt.Errorf("%w: unknown signature scheme; one of %s, %s, %s is taken", ErrKey, Ed25519, Ed448, MLDSA65)
}

// PublicKey verifies the signatures of one anchor or author. Its Bytes must
// not be changed.
type PublicKey struct {
	_      struct{} `cbor:",toarray"`
	Scheme string
	Bytes  []byte
}

// ID returns the key's identity: an aweigh.AnchorID, or the author of mutations.
func (k PublicKey) ID() aweigh.Hash { return canon.Hash("aweigh/key/1", k) }

// keyText is RFC 4648, section 5, without padding and with zero trailing bits. It is not hexadecimal, so that the text
// of a private key, which is hexadecimal, is never accepted as a public key.
var keyText = base64.RawURLEncoding.Strict()

// String returns the scheme, a colon and the bytes in base64url, without padding.
func (k PublicKey) String() string { return k.Scheme + ":" + keyText.EncodeToString(k.Bytes) }

// ParsePublicKey reads the form of PublicKey.String.
func ParsePublicKey(s string) (PublicKey, error) {
	name, text, parted := strings.Cut(s, ":")
	switch {
	case s == "":
		return PublicKey{}, fmt.Errorf("%w: there is none; a public key is scheme:base64url, such as ed25519: and 43 letters", ErrKey)
	case strings.ContainsAny(s, " \t\r\n"): // of which package base64 would skip some
		return PublicKey{}, fmt.Errorf("%w: space or line break within a public key", ErrKey)
	case !parted:
		return PublicKey{}, fmt.Errorf("%w: no scheme before it; a public key is scheme:base64url, such as ed25519: and 43 letters", ErrKey)
	}
	sch, err := scheme(name)
	if err != nil {
		return PublicKey{}, err
	}
	if seed, err := hex.DecodeString(text); err == nil && len(seed) == sch.SeedSize() {
		return PublicKey{}, fmt.Errorf("%w: this is a private key: give its public key, and keep the private one secret", ErrKey)
	}
	b, err := keyText.DecodeString(text)
	if err != nil {
		return PublicKey{}, fmt.Errorf("%w: a public key is scheme:base64url without padding, and this is not base64url: %v", ErrKey, err)
	}
	if len(b) != sch.PublicKeySize() {
		return PublicKey{}, fmt.Errorf("%w: a public key of %s has %d bytes, in %d letters after the colon; this has %d, in %d",
			ErrKey, name, sch.PublicKeySize(), keyText.EncodedLen(sch.PublicKeySize()), len(b), len(text))
	}
	k := PublicKey{Scheme: name, Bytes: b}
	if _, err := k.parse(); err != nil {
		return PublicKey{}, err
	}
	return k, nil
}

// MarshalText writes the form of String.
func (k PublicKey) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads the form of String.
func (k *PublicKey) UnmarshalText(text []byte) error {
	v, err := ParsePublicKey(string(text))
	if err == nil {
		*k = v
	}
	return err
}

// Check returns an error that wraps ErrKey unless the key has a known scheme, the right length and, on an Edwards
// curve, a point that is canonically encoded and not of small order. For a point of small order, valid signatures
// need no private key.
func (k PublicKey) Check() error {
	_, err := k.parse()
	return err
}

// parse returns the key in the form for verification, which takes long for some schemes. Every key that verifies
// anything comes from here.
func (k PublicKey) parse() (sign.PublicKey, error) {
	s, err := scheme(k.Scheme)
	if err != nil {
		return nil, err
	}
	switch {
	case len(k.Bytes) != s.PublicKeySize(): // see below
	case k.Scheme == Ed25519:
		err = curve.Ed25519(k.Bytes)
	case k.Scheme == Ed448:
		err = curve.Ed448(k.Bytes)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrKey, k.Scheme, err)
	}
	p, err := s.UnmarshalBinaryPublicKey(k.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %v: %d bytes", ErrKey, k.Scheme, err, len(k.Bytes))
	}
	return p, nil
}
