package scope

import (
	"bytes"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/votes"
)

func anyKeyValue(t *rapid.T) KeyValue {
	n := rapid.Int64Range(0, math.MaxInt64)
	v := KeyValue{
		Key:         rapid.SliceOfN(rapid.Byte(), 1, 8).Draw(t, "key"),
		ModRevision: n.Draw(t, "mod"), Sub: rapid.Uint32().Draw(t, "sub"),
		Version: n.Draw(t, "version"), Entry: n.Draw(t, "entry"),
		UID: aweigh.UID(aweigh.Sum(rapid.SliceOf(rapid.Byte()).Draw(t, "uid"))),
	}
	if v.Version != 0 {
		v.CreateRevision, v.Lease = n.Draw(t, "create"), n.Draw(t, "lease")
		v.Value = rapid.SliceOf(rapid.Byte()).Draw(t, "value")
	}
	return v
}

func TestVersionRecordRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := anyKeyValue(t)
		var s space
		k, record := s.version(v.Key, v.at()), v.record()
		if isTombstone(record) != (v.Version == 0) {
			t.Fatalf("tombstone: %v", v)
		}
		view := view{space: s}
		got, err := view.decode(k, record)
		if err != nil {
			t.Fatal(err)
		}
		escaped, _, ok := s.splitVersion(k)
		got.Key = keyOf(escaped)
		if len(got.Value) == 0 && len(v.Value) == 0 {
			got.Value, v.Value = nil, nil
		}
		if !ok || !reflect.DeepEqual(got, v) {
			t.Fatalf("%+v became %+v", v, got)
		}
	})
}

// TestStoreOrderIsKeyOrder: keys ascending, versions of a key newest first, and
// ranges in the sense of Op.
func TestStoreOrderIsKeyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytesOf := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 2, 0xfe, 0xff, 'a'}), 1, 4)
		a, b, end := bytesOf.Draw(t, "a"), bytesOf.Draw(t, "b"), bytesOf.Draw(t, "end")
		if rapid.Bool().Draw(t, "one key") {
			end = nil
		}
		ra := revision{rapid.Int64Range(0, 3).Draw(t, "ra"), rapid.Uint32Range(0, 2).Draw(t, "sa")}
		rb := revision{rapid.Int64Range(0, 3).Draw(t, "rb"), rapid.Uint32Range(0, 2).Draw(t, "sb")}
		var s space
		want := bytes.Compare(a, b)
		if want == 0 && ra != rb {
			if want = 1; rb.before(ra) {
				want = -1
			}
		}
		ka := s.version(a, ra)
		if got := bytes.Compare(ka, s.version(b, rb)); got != want {
			t.Fatalf("%q@%v against %q@%v: %d, want %d", a, ra, b, rb, got, want)
		}
		from, to := s.versions(b, end)
		if in := bytes.Compare(ka, from) >= 0 && bytes.Compare(ka, to) < 0; in != Within(a, b, end) {
			t.Fatalf("%q in [%q, %q): %v", a, b, end, in)
		}
	})
}

func TestRevisionsAreConsecutive(t *testing.T) {
	if r := (revision{4, math.MaxUint32}).next(); r != first(5) {
		t.Error(r)
	}
	if r := first(4).next(); r != (revision{4, 1}) || !first(4).before(r) || !r.before(last(4)) {
		t.Error(r)
	}
}

func FuzzVersionRecord(f *testing.F) {
	f.Add((&KeyValue{Version: 1, CreateRevision: 2, Entry: 300, Value: []byte("v")}).record())
	f.Add((&KeyValue{Entry: 1}).record())
	f.Fuzz(func(t *testing.T, data []byte) {
		var v KeyValue
		if v.readRecord(data) == nil && !bytes.Equal(v.record(), data) {
			t.Fatalf("%x reads as %+v", data, v)
		}
	})
}

func FuzzReceipt(f *testing.F) {
	f.Add((&Receipt{Code: Failed, Height: 7, Index: 1, Revision: 9, Reason: "no"}).record())
	f.Fuzz(func(t *testing.T, data []byte) {
		if c, err := readReceipt(data); err == nil && !bytes.Equal(c.record(), data) {
			t.Fatalf("%x reads as %+v", data, c)
		}
		if o, err := readObject(data); err == nil && !bytes.Equal(o.record(), data) {
			t.Fatalf("%x reads as %+v", data, o)
		}
	})
}

func FuzzCheckBundle(f *testing.F) {
	w := newWorld(f)
	f.Add(w.sign(w.put("a", "1"), w.compaction(2))[0].Raw())
	unchecked := func(votes.PublicKey, votes.Context, []byte, []byte) error { return nil }
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := CheckBundle(data, DefaultLimits(), unchecked)
		if err != nil {
			return
		}
		for _, m := range c.Mutations() {
			if m.ID != ID(m.Mutation.Encode()) {
				t.Fatal("a mutation with two encodings")
			}
		}
	})
}

func FuzzDecodeBlock(f *testing.F) {
	w := newWorld(f)
	f.Add(w.blockAt(w.sign(w.put("a", "1"))).Encode())
	f.Add(w.blockAt(nil).Encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		if b, err := DecodeBlock(data, DefaultLimits(), nil); err == nil && !bytes.Equal(b.Encode(), data) {
			t.Fatal("a block with two encodings")
		}
	})
}

func FuzzDecodeKeyProof(f *testing.F) {
	w := newWorld(f)
	f.Add((&KeyProof{Ancestry: Ancestry{Genesis: w.g}, Kv: &KeyValue{Key: []byte("a")}}).Encode())
	f.Add((&KeyProof{Ancestry: Ancestry{Genesis: w.g}, Assent: new(Assent)}).Encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := DecodeKeyProof(data)
		if err != nil {
			return
		}
		if !bytes.Equal(p.Encode(), data) {
			t.Fatal("a proof with two encodings")
		}
		if _, err := p.Verify(w.g.Hash()); err == nil {
			t.Fatal("a proof out of nothing")
		}
	})
}
