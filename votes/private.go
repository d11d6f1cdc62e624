package votes

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"github.com/cloudflare/circl/sign"
)

// PrivateKey signs. Make one with GenerateKey, KeyFromSeed or ParsePrivateKey;
// the zero value only means that there is none. No verb of package fmt shows
// the secret, however deep the key is nested: only Encode gives it away.
type PrivateKey struct{ s func() *secret } // fmt follows pointers, but calls no functions

type secret struct {
	public PublicKey
	key    sign.PrivateKey
	seed   []byte
	tell   func(key PublicKey, ctx Context, message, signature []byte) // may be nil
}

// GenerateKey makes a new key of random bytes, which should come from
// crypto/rand. Errors wrap ErrKey or that of the reader.
func GenerateKey(schemeName string, random io.Reader) (PrivateKey, error) {
	impl, err := scheme(schemeName)
	if err != nil {
		return PrivateKey{}, err
	}
	seed := make([]byte, impl.SeedSize())
	if _, err := io.ReadFull(random, seed); err != nil {
		return PrivateKey{}, fmt.Errorf("votes: generate key: %w", err)
	}
	return KeyFromSeed(schemeName, seed)
}

// KeyFromSeed makes the key of a seed, which must have the length that the
// scheme asks (Ed25519 and ML-DSA-65: 32 bytes, Ed448: 57). Errors wrap ErrKey.
func KeyFromSeed(schemeName string, seed []byte) (PrivateKey, error) {
	impl, err := scheme(schemeName)
	if err != nil {
		return PrivateKey{}, err
	}
	if len(seed) != impl.SeedSize() {
		return PrivateKey{}, fmt.Errorf("%w: a private key of %s has %d bytes, two hexadecimal digits each; this has %d", ErrKey, schemeName, impl.SeedSize(), len(seed))
	}
	pub, key := impl.DeriveKey(seed)
	raw, err := pub.MarshalBinary()
	if err != nil {
		return PrivateKey{}, fmt.Errorf("%w: %v", ErrKey, err)
	}
	s := &secret{
		public: PublicKey{Scheme: schemeName, Bytes: raw},
		key:    key,
		seed:   bytes.Clone(seed),
	}
	return PrivateKey{func() *secret { return s }}, nil
}

// IsZero reports whether k is the zero PrivateKey, "none".
func (k PrivateKey) IsZero() bool { return k.s == nil }

// Public is the public half.
func (k PrivateKey) Public() PublicKey { return k.s().public }

// Sign signs a message in a context. The same key, context and message always
// give the same signature.
func (k PrivateKey) Sign(ctx Context, message []byte) []byte {
	s := k.s()
	signature := s.key.Scheme().Sign(s.key, ctx.wrap(message), nil)
	if s.tell != nil {
		s.tell(s.public, ctx, message, signature)
	}
	return signature
}

// Telling is the same key, which reports every signature that it makes, as to
// Memory.Signed. The reported slices must not be changed.
func (k PrivateKey) Telling(tell func(key PublicKey, ctx Context, message, signature []byte)) PrivateKey {
	s := *k.s()
	s.tell = tell
	return PrivateKey{func() *secret { return &s }}
}

// Encode is the secret's text, for key files: the scheme, a colon and the seed
// in lower-case hexadecimal.
func (k PrivateKey) Encode() string {
	return k.s().public.Scheme + ":" + hex.EncodeToString(k.s().seed)
}

// ParsePrivateKey reads the form of PrivateKey.Encode. White space around it
// is ignored; errors do not show the text.
func ParsePrivateKey(text string) (PrivateKey, error) {
	name, digits, parted := strings.Cut(strings.TrimSpace(text), ":")
	switch {
	case strings.TrimSpace(text) == "":
		return PrivateKey{}, fmt.Errorf("%w: there is none; a private key is scheme:hexadecimal", ErrKey)
	case !parted:
		return PrivateKey{}, fmt.Errorf("%w: no scheme before it; a private key is scheme:hexadecimal", ErrKey)
	}
	seed, err := hex.DecodeString(digits)
	if err == nil {
		return KeyFromSeed(name, seed)
	}
	if _, public := ParsePublicKey(strings.TrimSpace(text)); public == nil {
		return PrivateKey{}, fmt.Errorf("%w: this is a public key, and a private one is needed to sign", ErrKey)
	}
	return PrivateKey{}, fmt.Errorf("%w: a private key is scheme:hexadecimal, and this is not hexadecimal", ErrKey)
}

// Format writes the public half, whatever the verb.
func (k PrivateKey) Format(f fmt.State, _ rune) {
	if k.IsZero() {
		io.WriteString(f, "no private key")
		return
	}
	io.WriteString(f, "private key of "+k.s().public.String())
}
