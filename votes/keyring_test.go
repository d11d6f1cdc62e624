package votes

import (
	"errors"
	"testing"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
)

func TestBallotsOfTheRosterAreAccepted(t *testing.T) {
	for _, name := range schemes {
		w := newWorld(t, name, 4)
		for seat := range w.keys { // the one on probation as well
			for _, s := range []quorum.Subject{notarizeA, finalizeA, nullify7, {Kind: quorum.Notarize, View: 1 << 40, Block: fill(9)}} {
				b := w.ballot(seat, s)
				c, err := w.Check(b)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if string(c.Ballot().Encode()) != string(b.Encode()) || c.Vote().Subject != s || c.Vote().Anchor != b.Anchor {
					t.Errorf("%s: %v was checked, %v came out", name, b, c)
				}
				if back := w.Ballot(c.Vote()); string(back.Encode()) != string(b.Encode()) {
					t.Errorf("%s: a vote does not give its ballot back", name)
				}
			}
		}
	}
}

func TestBallotsAreRefusedByConsequence(t *testing.T) {
	w := newWorld(t, Ed25519, 4)
	outsider := keyOf(t, Ed25519, 99)
	in := func(change func(*Domain)) Ballot {
		d := home
		change(&d)
		return ballotOf(w.keys[0], d, notarizeA)
	}
	change := func(f func(*Ballot)) Ballot {
		b := w.ballot(0, notarizeA)
		f(&b)
		return b
	}
	for name, c := range map[string]struct {
		b    Ballot
		want error
	}{
		"another network":                 {in(func(d *Domain) { d.Network, d.Scope, d.Epoch = fill(9), fill(9), 9 }), ErrForeign},
		"another scope":                   {in(func(d *Domain) { d.Scope, d.Epoch = fill(9), 9 }), ErrOtherScope},
		"an older epoch":                  {in(func(d *Domain) { d.Epoch-- }), ErrStale},
		"another roster":                  {in(func(d *Domain) { d.Roster = fill(9) }), ErrStale},
		"another policy":                  {in(func(d *Domain) { d.Policy = fill(9) }), ErrStale},
		"a newer epoch":                   {in(func(d *Domain) { d.Epoch++; d.Roster = fill(9) }), ErrAhead},
		"a key that is not in the roster": {ballotOf(outsider, home, notarizeA), ErrNotInRoster},
		"another format":                  {change(func(b *Ballot) { b.Format++ }), ErrMalformed},
		"no kind":                         {w.ballot(0, quorum.Subject{View: 1, Block: fill(1)}), ErrMalformed},
		"view 0":                          {w.ballot(0, quorum.Subject{Kind: quorum.Nullify}), ErrMalformed},
		"notarize without block":          {w.ballot(0, quorum.Subject{Kind: quorum.Notarize, View: 1}), ErrMalformed},
		"nullify with block":              {w.ballot(0, quorum.Subject{Kind: quorum.Nullify, View: 1, Block: fill(1)}), ErrMalformed},
		"another's signature":             {change(func(b *Ballot) { b.Signature = w.ballot(1, notarizeA).Signature }), ErrForged},
		"another's name":                  {change(func(b *Ballot) { b.Anchor = w.keys[1].Public().ID() }), ErrForged},
		"another block":                   {change(func(b *Ballot) { b.Subject.Block = fill(9) }), ErrForged},
		"another view":                    {change(func(b *Ballot) { b.Subject.View++ }), ErrForged},
		"another kind":                    {change(func(b *Ballot) { b.Subject.Kind = quorum.Finalize }), ErrForged},
		"moved from another epoch":        {change(func(b *Ballot) { b.Signature = in(func(d *Domain) { d.Epoch++ }).Signature }), ErrForged},
		"moved from another roster":       {change(func(b *Ballot) { b.Signature = in(func(d *Domain) { d.Roster = fill(9) }).Signature }), ErrForged},
		"no signature":                    {change(func(b *Ballot) { b.Signature = nil }), ErrForged},
		"signed as a bundle":              {change(func(b *Ballot) { b.Signature = w.keys[0].Sign(ContextBundle, b.SigningBytes()) }), ErrForged},
	} {
		got, err := w.Check(c.b)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
		if got.Ballot().Signature != nil {
			t.Errorf("%s: a refused ballot came out checked", name)
		}
	}
}

func TestCertificatesNeedDistinctMembersOfEnoughWeight(t *testing.T) {
	for _, name := range schemes {
		w := newWorld(t, name, 4) // threshold 3
		other := newWorld(t, name, 5)
		outsider := quorum.Signature{Anchor: fill(0xff), Bytes: other.ballot(0, notarizeA).Signature}
		forged := w.certificate(notarizeA, 0, 1, 2)
		forged.Signatures[1].Bytes = w.ballot(1, notarizeB).Signature
		swapped := w.certificate(notarizeA, 0, 1, 2)
		swapped.Signatures[0].Bytes, swapped.Signatures[1].Bytes = swapped.Signatures[1].Bytes, swapped.Signatures[0].Bytes
		probation := w.certificate(notarizeA, 0, 1, 2, 4)
		alien := w.certificate(notarizeA, 0, 1, 2)
		alien.Signatures = append(alien.Signatures, outsider)
		renamed := w.certificate(notarizeA, 0, 1, 2)
		renamed.Subject = notarizeB
		for what, c := range map[string]struct {
			c    quorum.Certificate
			want error
		}{
			"three":              {w.certificate(notarizeA, 0, 2, 3), nil},
			"all":                {w.certificate(finalizeA, 0, 1, 2, 3), nil},
			"a nullification":    {w.certificate(nullify7, 1, 2, 3), nil},
			"two":                {w.certificate(notarizeA, 0, 1), ErrTooLight},
			"none":               {w.certificate(notarizeA), ErrTooLight},
			"one thrice":         {w.certificate(notarizeA, 0, 0, 0), ErrMalformed},
			"out of order":       {w.certificate(notarizeA, 1, 0, 2), ErrMalformed},
			"of nothing":         {w.certificate(quorum.Subject{}, 0, 1, 2), ErrMalformed},
			"one forged":         {forged, ErrForged},
			"signatures swapped": {swapped, ErrForged},
			"subject replaced":   {renamed, ErrForged},
		} {
			if err := w.CheckCertificate(c.c); !errors.Is(err, c.want) {
				t.Errorf("%s, %s: got %v, want %v", name, what, err, c.want)
			}
			if err := w.With(NewMemory(Verify, 8).Verify).CheckCertificate(c.c); !errors.Is(err, c.want) {
				t.Errorf("%s, %s, by memo: got %v, want %v", name, what, err, c.want)
			}
		}
		for what, c := range map[string]quorum.Certificate{"probation": sorted(probation), "a key that is not in the roster": sorted(alien)} {
			if err := w.CheckCertificate(c); !errors.Is(err, ErrNotInRoster) {
				t.Errorf("%s, with %s: %v", name, what, err)
			}
		}
	}
}

func sorted(c quorum.Certificate) quorum.Certificate {
	for i := range c.Signatures {
		for j := i; j > 0 && before(&c.Signatures[j].Anchor, &c.Signatures[j-1].Anchor); j-- {
			c.Signatures[j], c.Signatures[j-1] = c.Signatures[j-1], c.Signatures[j]
		}
	}
	return c
}

func TestLightCertificatesCostNoVerification(t *testing.T) {
	w := newWorld(t, Ed25519, 4)
	var calls int
	if err := w.With(fake(&calls)).CheckCertificate(w.certificate(notarizeA, 0, 1)); !errors.Is(err, ErrTooLight) || calls > 0 {
		t.Errorf("%v after %d verifications", err, calls)
	}
}

func TestKeyringsNeedEveryWeightedKeyOnce(t *testing.T) {
	w := newWorld(t, Ed25519, 3)
	var all []PublicKey
	for _, k := range w.keys {
		all = append(all, k.Public())
	}
	broken := append([]PublicKey{{Scheme: Ed25519, Bytes: []byte{1}}}, all...)
	rules, weak := w.Rules(), w.Rules()
	weak.Notarize = quorum.Rule{Num: 0, Den: 1}
	for what, c := range map[string]struct {
		rules quorum.Rules
		w     quorum.Weights
		keys  []PublicKey
		want  error
	}{
		"all":          {rules, w.Weights(), all, nil},
		"one missing":  {rules, w.Weights(), all[1:], ErrKey},
		"one twice":    {rules, w.Weights(), append(all[:1:1], all...), ErrKey},
		"one broken":   {rules, w.Weights(), broken, ErrKey},
		"nobody":       {rules, quorum.Weights{}, nil, quorum.ErrUnsafe},
		"unsafe rules": {weak, w.Weights(), all, quorum.ErrUnsafe},
		"no rules":     {quorum.Rules{}, w.Weights(), all, quorum.ErrUnsafe},
	} {
		if _, err := NewKeyring(home, c.rules, c.w, c.keys...); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", what, err, c.want)
		}
	}
	if _, ok := w.Key(aweigh.AnchorID{}); ok {
		t.Error("the zero anchor has a key")
	}
	if k, ok := w.Key(w.keys[3].Public().ID()); !ok || k.ID() != w.keys[3].Public().ID() {
		t.Error("the anchor on probation has no key")
	}
}

func TestOtherVerifiersSeeWhatVerifyWouldSee(t *testing.T) {
	w := newWorld(t, Ed25519, 1)
	b := w.ballot(0, notarizeA)
	var seen int
	ring := w.With(func(k PublicKey, ctx Context, message, signature []byte) error {
		seen++
		if k.ID() != b.Anchor || ctx != ContextBallot || string(message) != string(b.SigningBytes()) {
			t.Errorf("asked about %v, %q, %x", k, ctx, message)
		}
		return Verify(k, ctx, message, signature)
	})
	if _, err := ring.Check(b); err != nil || seen != 1 {
		t.Errorf("%v after %d questions", err, seen)
	}
	if _, err := ring.With(nil).Check(b); err != nil || seen != 1 {
		t.Errorf("%v after %d questions", err, seen)
	}
}
