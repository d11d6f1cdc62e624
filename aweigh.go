// Package aweigh holds the vocabulary that every other package shares: the
// identifiers of anchors, scopes, objects and blocks, and the counters and
// instants that order them. It imports the standard library alone.
//
// All types are plain values, comparable with ==, and their zero values mean
// "none" or "the first". Nothing here reads a clock or random numbers.
package aweigh

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Hash is a SHA-256 digest. The zero Hash means "none".
type Hash [sha256.Size]byte

// Sum is the SHA-256 of the parts, one after another.
func Sum(parts ...[]byte) Hash {
	d := sha256.New()
	for _, p := range parts {
		d.Write(p)
	}
	var h Hash
	d.Sum(h[:0])
	return h
}

// IsZero reports whether h is the zero Hash, "none".
func (h Hash) IsZero() bool { return h == Hash{} }

// String is the full lower-case hexadecimal form, 64 characters.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Short is the first 8 hexadecimal characters, for people and logs.
func (h Hash) Short() string { return hex.EncodeToString(h[:4]) }

// MarshalText writes the form of String.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads the form of String.
func (h *Hash) UnmarshalText(text []byte) error {
	v, err := ParseHash(string(text))
	if err == nil {
		*h = v
	}
	return err
}

// UnmarshalCBOR reads the one canonical encoding: a byte string of 32 bytes. It
// saves decoders from setting every byte by reflection.
func (h *Hash) UnmarshalCBOR(data []byte) error { return unmarshal32((*[32]byte)(h), data) }

func unmarshal32(to *[32]byte, data []byte) error {
	const byteString, length = 0x58, 32 // major type 2 with the length in the next byte (RFC 8949, section 3)
	if len(data) != 2+length || data[0] != byteString || data[1] != length {
		return errors.New("aweigh: a hash is a byte string of 32 bytes")
	}
	*to = [32]byte(data[2:])
	return nil
}

// ErrHash is returned for text that is not 64 hexadecimal digits.
var ErrHash = errors.New("aweigh: a hash is 64 hexadecimal digits")

// ParseHash reads the form of Hash.String.
func ParseHash(s string) (Hash, error) {
	var h Hash
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(h) {
		return h, fmt.Errorf("%w: got %q", ErrHash, s)
	}
	copy(h[:], b)
	return h, nil
}

// AnchorID names an anchor's signing key: the SHA-256 of the key's signature
// scheme and public bytes (votes.PublicKey.ID).
type AnchorID = Hash

// ScopeID names a scope for its whole life: the hash of its genesis.
type ScopeID = Hash

// NetworkID names a network: the hash of the genesis of its root scope.
type NetworkID = Hash

// UID is the permanent identity of an object: the hash of the mutation that
// created it and of the index of the creating operation within it. It names
// no scope, so nothing that happens to scopes or names can change it.
type UID [sha256.Size]byte

// NewUID is the identity of the object that operation index of mutation creates.
func NewUID(mutation Hash, index uint32) UID {
	return UID(Sum([]byte("aweigh/uid/1"), mutation[:],
		[]byte{byte(index >> 24), byte(index >> 16), byte(index >> 8), byte(index)}))
}

var base32UID = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// String is the lower-case base32 form (RFC 4648, section 6, no padding), 52 characters.
func (u UID) String() string { return base32UID.EncodeToString(u[:]) }

// IsZero reports whether u is the zero UID, "none".
func (u UID) IsZero() bool { return u == UID{} }

// MarshalText writes the form of String.
func (u UID) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalCBOR reads the one canonical encoding: a byte string of 32 bytes.
func (u *UID) UnmarshalCBOR(data []byte) error { return unmarshal32((*[32]byte)(u), data) }

// ParseUID reads the form of UID.String, in either case.
func ParseUID(s string) (UID, error) {
	var u UID
	b, err := base32UID.DecodeString(strings.ToLower(s))
	if err != nil || len(b) != len(u) {
		return u, fmt.Errorf("aweigh: a UID is 52 base32 characters: got %q", s)
	}
	copy(u[:], b)
	return u, nil
}

// FirstUID is the least UID whose text begins with prefix, in lower case.
func FirstUID(prefix string) (UID, error) {
	const length = 52
	u, err := ParseUID(prefix + strings.Repeat("a", max(0, length-len(prefix))))
	if err != nil {
		err = fmt.Errorf("aweigh: a UID begins with up to %d base32 characters, a to z and 2 to 7: got %q", length, prefix)
	}
	return u, err
}

// Epoch counts the periods of one scope in which roster and policy are fixed, from 0.
type Epoch uint64

// View counts the attempts to add a block within one epoch, from 1.
type View uint64

// Height counts the blocks of one scope; the genesis stands at 0.
type Height uint64

// Instant is a point in time, in nanoseconds since the Unix epoch. The machines
// receive it as an argument; they never read a clock. The zero Instant means
// "never" where a deadline is meant.
type Instant int64

// Add is the instant d later.
func (t Instant) Add(d time.Duration) Instant { return t + Instant(d) }

// Sub is the time from u to t.
func (t Instant) Sub(u Instant) time.Duration { return time.Duration(t - u) }

// Time is t as a time.Time in UTC.
func (t Instant) Time() time.Time { return time.Unix(0, int64(t)).UTC() }

// InstantOf is the Instant of a time.Time.
func InstantOf(t time.Time) Instant { return Instant(t.UnixNano()) }

// Earliest is the earlier of two deadlines, where 0 means "never".
func Earliest(a, b Instant) Instant {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}
