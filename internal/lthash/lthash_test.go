package lthash

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestHashForgetsOrder: the hash is that of the multiset, whatever was added and
// removed on the way, and lane by lane that of the definition.
func TestHashForgetsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set := rapid.SliceOfN(rapid.IntRange(0, 5), 0, 6).Draw(t, "set")
		extra := rapid.SliceOfN(rapid.IntRange(0, 5), 0, 4).Draw(t, "extra")
		var a, b Hash
		var slow [Size / 2]uint16
		room := new(Lanes)
		for _, i := range set {
			a.Add(element(i), room)
			e := element(i)
			room.expand(&e)
			for j := range slow {
				slow[j] += uint16(room[2*j]) | uint16(room[2*j+1])<<8
			}
		}
		mixed := slices.Concat(set, extra)
		for _, i := range rapid.Permutation(mixed).Draw(t, "order") {
			b.Add(element(i), room)
		}
		for _, i := range extra {
			b.Remove(element(i), room)
		}
		if a != b {
			t.Fatal("order, or what is gone again, matters")
		}
		for j, got := 0, a.Bytes(); j < len(slow); j++ {
			if got[2*j] != byte(slow[j]) || got[2*j+1] != byte(slow[j]>>8) {
				t.Fatalf("lane %d", j)
			}
		}
		var back Hash
		if !back.SetBytes(a.Bytes()) || back != a {
			t.Fatal("round trip")
		}
		a.Add(element(9), room)
		if a == b {
			t.Fatal("an element more, the same hash")
		}
	})
}

func element(i int) [32]byte { return sha256.Sum256([]byte{byte(i)}) }

// TestVector: all nodes of a network compute one hash, so that the format never
// changes by accident.
func TestVector(t *testing.T) {
	var h Hash
	room := new(Lanes)
	for i := range 3 {
		h.Add(element(i), room)
	}
	sum := sha256.Sum256(h.Bytes())
	const want = "8e9931fa0e5ec960f6c4db728c8161641422bf1ec682d16e2911b08bb829cccb"
	if got := hex.EncodeToString(sum[:]); got != want {
		t.Errorf("the SHA-256 of the hash of three elements is %s, want %s", got, want)
	}
}

func TestOtherLengthsAreRefused(t *testing.T) {
	for _, n := range []int{0, Size - 1, Size + 1} {
		h := Hash{1}
		if h.SetBytes(make([]byte, n)) || h != (Hash{1}) {
			t.Errorf("%d bytes are taken for a hash", n)
		}
	}
}

func BenchmarkAdd(b *testing.B) {
	var h Hash
	var room Lanes
	e := element(0)
	b.ReportAllocs()
	for b.Loop() {
		h.Add(e, &room)
	}
}
