package canon_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/trust"
	"github.com/aweigh/aweigh/votes"
)

// oracle is cbor's own encoder, in the same mode.
var oracle = func() cbor.EncMode {
	o := cbor.CoreDetEncOptions()
	o.TagsMd = cbor.TagsForbidden
	o.NilContainers = cbor.NilContainerAsEmpty
	m, err := o.EncMode()
	if err != nil {
		panic(err)
	}
	return m
}()

// TestEncodeIsCoreDeterministic compares random values with the oracle, and
// reads them back.
func TestEncodeIsCoreDeterministic(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, of := range []any{
		false, int8(0), int64(0), uint8(0), uint16(0), uint64(0), "", []byte(nil), [3]byte{}, [][]byte(nil), [2]int32{}, []bool(nil),
		quorum.Certificate{}, quorum.Rules{}, votes.Ballot{}, votes.Equivocation{}, votes.PublicKey{}, trust.Evidence{},
		scope.Genesis{}, scope.Header{}, scope.Finality{}, scope.Txn{}, scope.Mutation{}, scope.KeyProof{}, scope.MotionProof{}, lineage.Entry{},
	} {
		for range 300 {
			p := reflect.New(reflect.TypeOf(of))
			fill(r, p.Elem(), 4)
			want, err := oracle.Marshal(p.Interface())
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range []any{p.Interface(), p.Elem().Interface()} {
				if got := canon.Encode(v); !bytes.Equal(got, want) {
					t.Fatalf("%T %+v is\n%x, the oracle says\n%x", v, v, got, want)
				}
			}
			back := reflect.New(reflect.TypeOf(of))
			if err := canon.Decode(want, back.Interface()); err != nil || !bytes.Equal(canon.Encode(back.Interface()), want) {
				t.Fatalf("%T does not come back: %v", of, err)
			}
		}
	}
}

// fill draws a value: numbers of every length, often at its edges; nil and
// empty slices; pointers down to some depth.
func fill(r *rand.Rand, v reflect.Value, depth int) {
	number := func() uint64 {
		return []uint64{0, 23, 24, 255, 256, 65535, 65536, math.MaxUint32, math.MaxUint32 + 1, r.Uint64()}[r.IntN(10)] >> r.IntN(64)
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n := int64(number()) << (64 - v.Type().Bits()) >> (64 - v.Type().Bits())
		v.SetInt(n * int64(1-2*r.IntN(2)))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(number() << (64 - v.Type().Bits()) >> (64 - v.Type().Bits()))
	case reflect.String:
		v.SetString(fmt.Sprintf("%.*s", r.IntN(30), "ein Anker, und noch ein Änker..."))
	case reflect.Array:
		for i := range v.Len() {
			fill(r, v.Index(i), depth)
		}
	case reflect.Slice:
		if n := r.IntN(5) - 1; n >= 0 && depth > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				fill(r, v.Index(i), depth-1)
			}
		}
	case reflect.Pointer:
		if depth > 0 && r.IntN(2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem(), depth-1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(r, v.Field(i), depth)
			}
		}
	}
}

// TestMixedArraysAreEncoded: tests and tools put frames together of parts.
func TestMixedArraysAreEncoded(t *testing.T) {
	mixed := []any{1, -1, "a", []byte{2}, []any{}, [2]byte{3, 4}, canon.Bytes("\xff"), &quorum.Rule{Num: 1}, quorum.BFT, true}
	if want, err := oracle.Marshal(mixed); err != nil || !bytes.Equal(canon.Encode(mixed), want) {
		t.Fatalf("%x, the oracle says %x, %v", canon.Encode(mixed), want, err)
	}
}

// TestWhatHasNoEncodingPanics: a type that the encoder does not know is a fault
// of the program, not bytes that differ from those of another node.
func TestWhatHasNoEncodingPanics(t *testing.T) {
	type loose struct{ A int }
	type named struct {
		_ struct{} `cbor:",toarray"`
		A int      `cbor:"a"`
	}
	for _, v := range []any{1.5, map[string]int{}, loose{}, named{}, []any{1.5}, []any{nil}, make(chan int)} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%T was encoded", v)
				}
			}()
			canon.Encode(v)
		}()
	}
}

func BenchmarkEncode(b *testing.B) {
	c := quorum.Certificate{Subject: quorum.Subject{Kind: quorum.Notarize, View: 3}}
	for range 667 {
		c.Signatures = append(c.Signatures, quorum.Signature{Bytes: make([]byte, 64)})
	}
	for _, v := range []any{c, scope.Header{}} {
		b.Run(fmt.Sprintf("%T", v), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				canon.Encode(v)
			}
		})
		b.Run(fmt.Sprintf("%T/oracle", v), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := oracle.Marshal(v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestHashIsThatOfTheEncoding(t *testing.T) {
	v := struct {
		_ struct{} `cbor:",toarray"`
		A uint64
		B []byte
	}{A: 7, B: []byte("seven")}
	if got, want := canon.Hash("test/1", v), aweigh.Sum([]byte("test/1"), canon.Encode(v)); got != want {
		t.Errorf("%s, and %s by its parts", got, want)
	}
}
