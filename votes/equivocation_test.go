package votes

import (
	"bytes"
	"errors"
	"testing"

	"github.com/aweigh/aweigh/quorum"
)

func TestContradictionsProveTheFault(t *testing.T) {
	w := newWorld(t, Ed25519, 4)
	finalizeB := finalizeA
	finalizeB.Block = fill(0xbb)
	for name, p := range map[string][2]quorum.Subject{
		"two notarize":         {notarizeA, notarizeB},
		"two finalize":         {finalizeA, finalizeB},
		"nullify and finalize": {nullify7, finalizeA},
	} {
		a, b := w.ballot(1, p[0]), w.ballot(1, p[1])
		e, err := NewEquivocation(a, b)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := e.Check(w.Keyring); err != nil || e.Anchor() != a.Anchor {
			t.Errorf("%s: blames %s: %v", name, e.Anchor().Short(), err)
		}
		if r, err := NewEquivocation(b, a); err != nil || !bytes.Equal(r.Encode(), e.Encode()) {
			t.Errorf("%s: the order of discovery shows in the proof (%v)", name, err)
		}
		if again, err := DecodeEquivocation(e.Encode()); err != nil || !bytes.Equal(again.Encode(), e.Encode()) {
			t.Errorf("%s: does not survive its encoding (%v)", name, err)
		}
		back := Equivocation{First: e.Second, Second: e.First}
		if _, err := DecodeEquivocation(back.Encode()); !errors.Is(err, ErrMalformed) || !errors.Is(back.Check(w.Keyring), ErrMalformed) {
			t.Errorf("%s: accepted in the other order too", name)
		}
	}
}

// TestFaultsOfAnEpochOfAnotherModeAreProven: ballots to nullify name a block in mode fast alone, and an epoch can have
// another mode than the one before.
func TestFaultsOfAnEpochOfAnotherModeAreProven(t *testing.T) {
	w := newWorld(t, Ed25519, 4)
	named := quorum.Subject{Kind: quorum.Nullify, View: notarizeA.View, Block: quorum.NoBlock}
	e, err := NewEquivocation(w.ballot(1, named), w.ballot(1, notarizeA))
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Check(w.Keyring.Under(w.domain)); err != nil {
		t.Errorf("in the next epoch: %v", err)
	}
	if err := e.Check(w.Keyring); !errors.Is(err, ErrMalformed) {
		t.Errorf("in an epoch of mode bft: %v", err)
	}
}

func TestHonestBallotsProveNoFault(t *testing.T) {
	w := newWorld(t, Ed25519, 4)
	next := notarizeB
	next.View++
	other := home
	other.Epoch++
	a := w.ballot(1, notarizeA)
	again := a
	again.Signature = []byte("signed twice")
	for name, b := range map[string]Ballot{
		"the same":              a,
		"the same, signed anew": again,
		"another view":          w.ballot(1, next),
		"another anchor":        w.ballot(2, notarizeB),
		"another epoch":         ballotOf(w.keys[1], other, notarizeB),
		"nullify":               w.ballot(1, nullify7),
		"finalize":              w.ballot(1, finalizeA),
		"no subject":            w.ballot(1, quorum.Subject{Kind: quorum.Notarize, View: 7}),
		"another format":        {Format: 2, Domain: a.Domain, Anchor: a.Anchor, Subject: notarizeB},
	} {
		if e, err := NewEquivocation(a, b); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		} else if err := e.Check(w.Keyring); err == nil {
			t.Errorf("%s: checked", name)
		}
	}
}

func TestForgedContradictionsProveNothing(t *testing.T) {
	w := newWorld(t, Ed25519, 4)
	for i := range 2 {
		b := [2]Ballot{w.ballot(1, notarizeA), w.ballot(1, notarizeB)}
		b[i].Signature = w.keys[2].Sign(ContextBallot, b[i].SigningBytes())
		e, err := NewEquivocation(b[0], b[1])
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Check(w.Keyring); !errors.Is(err, ErrForged) {
			t.Errorf("ballot %d forged: %v", i, err)
		}
	}
}

func FuzzDecodeEquivocation(f *testing.F) {
	w := newWorld(f, Ed25519, 1)
	for _, s := range []quorum.Subject{notarizeB, nullify7} {
		e := Equivocation{First: w.ballot(0, notarizeA), Second: w.ballot(0, s)}
		f.Add(e.Encode())
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, err := DecodeEquivocation(raw)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Errorf("unexpected error %v", err)
			}
			return
		}
		again, err := NewEquivocation(e.Second, e.First)
		if err != nil || !bytes.Equal(again.Encode(), raw) {
			t.Errorf("%x: another encoding of one proof (%v)", raw, err)
		}
	})
}
