package scope

import (
	"errors"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
)

// TestRangeReadersDoNotGoBack: an answer is measured by what was seen when it was asked for, and two blocks at one
// height are refused whenever they come.
func TestRangeReadersDoNotGoBack(t *testing.T) {
	r := NewRangeReader(aweigh.NetworkID{1}, time.Second)
	is := func(height aweigh.Height, block byte) *RangeReport {
		return &RangeReport{Parts: []RangeVisit{{Head: Attestation{Height: height, Block: aweigh.Hash{block}}}}}
	}
	first := r.Ask([]byte("a"), nil)
	if err := r.Take(first, is(5, 5)); err != nil {
		t.Fatal(err)
	}
	then := r.Ask([]byte("a"), nil)
	for _, c := range []struct {
		q      *RangeQuestion
		height aweigh.Height
		block  byte
		ok     bool
	}{
		{first, 4, 4, true}, // asked before block 5 was seen
		{then, 4, 4, false},
		{then, 5, 6, false}, // anchors signed both
		{first, 5, 6, false},
		{then, 5, 5, true},
		{then, 6, 6, true},
		{then, 5, 5, true}, // asked before block 6 was seen
	} {
		if err := r.Take(c.q, is(c.height, c.block)); (err == nil) != c.ok || err != nil && (!errors.Is(err, ErrProof) || errors.Is(err, ErrAged)) {
			t.Errorf("block %d of height %d: %v, want %v", c.block, c.height, err, c.ok)
		}
	}
	if err := r.Take(r.Ask([]byte("a"), nil), is(5, 5)); !errors.Is(err, ErrProof) {
		t.Errorf("block 5 after block 6: %v", err)
	}
	older := r.Ask([]byte("a"), nil)
	older.At = 3
	if err := r.Take(older, is(4, 4)); err != nil {
		t.Errorf("an earlier block, as asked for: %v", err)
	}
}

// TestAgedProofsAreNoFault: a proof that is only too old is refused with an error of its own.
func TestAgedProofsAreNoFault(t *testing.T) {
	r := RangeReport{Parts: []RangeVisit{{Head: Attestation{Time: 1}}}}
	now := aweigh.Instant(1).Add(2 * time.Second)
	if err := r.Fresh(now, time.Second); !errors.Is(err, ErrProof) || !errors.Is(err, ErrAged) {
		t.Error(err)
	}
	for _, atMost := range []time.Duration{0, 2 * time.Second} {
		if err := r.Fresh(now, atMost); err != nil {
			t.Error(err)
		}
	}
}
