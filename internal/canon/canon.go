// Package canon is the one encoding of everything that is signed, hashed or
// sent: CBOR (RFC 8949) under Core Deterministic Encoding Requirements
// (section 4.2.1), without tags, floats or indefinite lengths.
//
// Decoders of CBOR accept much that an encoder would not write, even in their
// strictest mode. So Decode encodes its result again and refuses input that
// differs: for every accepted value there is exactly one byte string.
package canon

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"reflect"

	"github.com/aweigh/aweigh/internal/refusal"

	"github.com/fxamacker/cbor/v2"
)

// ErrNotCanonical is returned for input that is malformed or not in its one form.
var ErrNotCanonical = refusal.New(refusal.Malformed, "canon: not in canonical form")

// maxElements bounds every array that Decode accepts, so that a few bytes of
// input cannot demand much memory.
const maxElements = 1 << 17

var dec = func() cbor.DecMode {
	m, err := cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		IndefLength:       cbor.IndefLengthForbidden,
		TagsMd:            cbor.TagsForbidden,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
		FieldNameMatching: cbor.FieldNameMatchingCaseSensitive,
		MaxNestedLevels:   MaxLevels,
		MaxArrayElements:  maxElements,
		MaxMapPairs:       1024,
	}.DecMode()
	if err != nil {
		panic(err)
	}
	return m
}()

// Encode returns the one encoding of v. It panics if v's type has none, which
// is a fault of the program.
func Encode(v any) []byte {
	room := rooms.Get().(*[]byte)
	defer rooms.Put(room)
	*room = appendValue((*room)[:0], reflect.ValueOf(v))
	return bytes.Clone(*room)
}

// Hash is SHA-256 over a domain, which separates kinds of values, and the one encoding
// of v.
func Hash(domain string, v any) [sha256.Size]byte {
	room := rooms.Get().(*[]byte)
	defer rooms.Put(room)
	*room = appendValue(append((*room)[:0], domain...), reflect.ValueOf(v))
	return sha256.Sum256(*room)
}

// Decode reads data into v, a pointer, and returns ErrNotCanonical, wrapped
// with the reason, unless data is exactly what Encode writes for the result.
func Decode(data []byte, v any) error {
	if err := dec.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%w: %v", ErrNotCanonical, err)
	}
	room := rooms.Get().(*[]byte)
	defer rooms.Put(room)
	if *room = appendValue((*room)[:0], reflect.ValueOf(v)); !bytes.Equal(*room, data) {
		return fmt.Errorf("%w: another encoding of the same %T", ErrNotCanonical, v)
	}
	return nil
}

// Bytes is a byte string that can be compared, whatever its bytes are.
type Bytes = cbor.ByteString
