package reconcile

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
)

func TestSetsComeBack(t *testing.T) {
	for _, n := range []int{0, 1, 100} {
		var ids []aweigh.Hash
		for i := range n {
			ids = append(ids, id(i))
		}
		s := setOf(ids...)
		back, err := DecodeSet(s.Encode(id(-1)), id(-1), n)
		if err != nil || back.Fingerprint() != s.Fingerprint() {
			t.Fatalf("%d names: %v", n, err)
		}
		if _, err := DecodeSet(s.Encode(id(-1)), id(-2), n); !errors.Is(err, ErrTopic) {
			t.Errorf("another topic: %v", err)
		}
		if n == 0 {
			continue
		}
		if _, err := DecodeSet(s.Encode(id(-1)), id(-1), n-1); !errors.Is(err, ErrLimit) {
			t.Errorf("too many: %v", err)
		}
	}
	a, b := slices.Repeat([]byte{1}, 32), slices.Repeat([]byte{2}, 32)
	for name, names := range map[string][]byte{"unsorted": append(slices.Clone(b), a...), "twice": append(slices.Clone(a), a...), "half": a[:31]} {
		raw := canon.Encode(inventory{Format: format, Topic: id(-1), Names: names})
		if _, err := DecodeSet(raw, id(-1), 9); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzDecodeSet(f *testing.F) {
	f.Add(setOf(id(1), id(2)).Encode(id(-1)))
	f.Fuzz(func(t *testing.T, data []byte) {
		if s, err := DecodeSet(data, id(-1), 100); err == nil && !bytes.Equal(s.Encode(id(-1)), data) {
			t.Fatalf("%x is another encoding of %x", data, s.Encode(id(-1)))
		}
	})
}
