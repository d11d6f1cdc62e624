package scope

import (
	"bytes"
	"math"
	"reflect"
	"runtime"
	"testing"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/testshort"
)

// decodings are the decoders of this package beside their oracle.
var decodings = []struct {
	name         string
	decode, same func(raw []byte) (any, error)
}{
	{"bundle", func(raw []byte) (any, error) { b, err := decodeBundle(raw); return &b, err }, oracle[Bundle]},
	{"mutation", func(raw []byte) (any, error) { m := new(Mutation); return m, m.decode(raw) }, oracle[Mutation]},
	{"txn", func(raw []byte) (any, error) { t := new(Txn); return t, t.decode(raw) }, oracle[Txn]},
}

func oracle[T any](raw []byte) (any, error) {
	v := new(T)
	return v, canon.Decode(raw, v)
}

// checkDecodings checks that a decoder and its oracle accept the same inputs, and
// decode them to the same values.
func checkDecodings(t *testing.T, raw []byte) {
	t.Helper()
	for _, d := range decodings {
		got, err := d.decode(raw)
		want, bad := d.same(raw)
		if (err == nil) != (bad == nil) {
			t.Fatalf("%s %x: %v, canon says %v", d.name, raw, err, bad)
		}
		if err == nil && !reflect.DeepEqual(got, want) {
			t.Fatalf("%s %x is %+v, canon says %+v", d.name, raw, got, want)
		}
	}
}

// encodings are encodings to start from: every kind of content, numbers of every
// length, transactions as deep as canon takes, and one level deeper.
func encodings(t testing.TB) (all [][]byte) {
	w := newWorld(t)
	all = append(all, w.sign(w.put("a", "1"), w.compaction(1))[0].Raw(), canon.Encode(Bundle{}), Mutation{}.Encode(), canon.Encode(Txn{}))
	all = append(all, w.put("a", "1").Encode(), w.put("a", "1").Content)
	for _, n := range []int64{-1, 23, 24, 255, 256, -257, 65536, 1 << 32, math.MaxInt64, math.MinInt64} {
		all = append(all, Mutation{
			Class: Govern, Content: make([]byte, uint16(n)%300), Justification: "ein Änker", Caller: "user:ö", Nonce: []byte("12345678"),
			ValidUntil: aweigh.Instant(n),
		}.Encode())
		all = append(all, canon.Encode(Txn{
			Compare: []Compare{{Target: OnValue, Relation: NotEqual, Key: []byte("a"), End: []byte{0}, Number: n}},
			Success: []Op{{Kind: OpRange, Key: []byte("k"), Range: &Range{Limit: n, Sort: ByValue, Order: Descending, KeysOnly: true}}},
			Failure: []Op{{Kind: OpPut, Key: []byte("k"), Value: []byte("v"), Lease: n, Prev: true, IgnoreLease: true}, {Kind: OpDelete}},
		}))
	}
	all = append(all, canon.Encode(Txn{Reach: []Reach{{Key: []byte("a"), End: []byte("b")}, {Key: []byte("c"), End: []byte{0}}}}))
	deep := &Txn{}
	reaching := &Txn{Reach: []Reach{{Key: []byte("a"), End: []byte("b")}}}
	for range canon.MaxLevels/3 + 1 {
		all = append(all, canon.Encode(*deep))
		deep = &Txn{Success: []Op{{Kind: OpTxn, Txn: deep}}}
		all = append(all, canon.Encode(*reaching))
		reaching = &Txn{Success: []Op{{Kind: OpTxn, Txn: reaching}}}
	}
	return append(all, canon.Encode(*deep))
}

// TestDecodersTakeWhatCanonTakes bends every byte of encodings in every bit, cuts
// them short and makes them longer. Strings of text and bytes change places.
func TestDecodersTakeWhatCanonTakes(t *testing.T) {
	for _, raw := range encodings(t) {
		checkDecodings(t, raw)
		for i := range raw {
			if i > testshort.Cases(60, 300, 300) {
				break
			}
			checkDecodings(t, raw[:i])
			for _, b := range []byte{1, 2, 4, 8, 16, 32, 64, 128, 0xff} {
				bent := bytes.Clone(raw)
				bent[i] ^= b
				checkDecodings(t, bent)
			}
			for _, b := range []byte{0, 0x18, 0x40, 0x58, 0xf6, 0xf7, 0xff} {
				checkDecodings(t, append(append(bytes.Clone(raw[:i]), b), raw[i:]...))
			}
		}
		checkDecodings(t, append(bytes.Clone(raw), 0))
	}
}

// TestElementsNeedInput: what claims to be a long array gets no memory for it.
func TestElementsNeedInput(t *testing.T) {
	raw := append([]byte{0x83, 0x80, 0x9a, 0, 1, 0, 0}, make([]byte, 1000)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if new(Txn).decode(raw) == nil {
		t.Fatal("taken")
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
		t.Fatalf("%d bytes", took)
	}
}

func FuzzDecodersTakeWhatCanonTakes(f *testing.F) {
	for _, raw := range encodings(f) {
		f.Add(raw)
	}
	f.Fuzz(checkDecodings)
}
