package votes

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/quorum"
)

// statement is all of a Ballot but the signature, for the oracle.
type statement struct {
	_       struct{} `cbor:",toarray"`
	Format  uint16
	Domain  Domain
	Subject quorum.Subject
	Anchor  aweigh.AnchorID
}

func TestBallotsEncodeAsCanon(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawBallot(t)
		if !bytes.Equal(b.Encode(), canon.Encode(b)) {
			t.Fatalf("%+v: %x, canon has %x", b, b.Encode(), canon.Encode(b))
		}
		s := statement{Format: b.Format, Domain: b.Domain, Subject: b.Subject, Anchor: b.Anchor}
		if !bytes.Equal(b.SigningBytes(), canon.Encode(s)) {
			t.Fatalf("%+v: signing bytes %x, canon has %x", b, b.SigningBytes(), canon.Encode(s))
		}
		again, err := DecodeBallot(b.Encode())
		if err != nil || !bytes.Equal(again.Encode(), b.Encode()) || again.Domain != b.Domain || again.Subject != b.Subject {
			t.Fatalf("%+v came back as %+v (%v)", b, again, err)
		}
	})
}

func TestBallotsDecodeAsCanon(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := drawBallot(t).Encode()
		for range rapid.IntRange(0, 2).Draw(t, "changes") {
			at := rapid.IntRange(0, len(raw)-1).Draw(t, "at")
			switch rapid.SampledFrom([]string{"set", "cut", "insert", "drop"}).Draw(t, "change") {
			case "set":
				raw[at] = rapid.Byte().Draw(t, "byte")
			case "cut":
				raw = raw[:at+1]
			case "insert":
				raw = append(raw[:at:at], append([]byte{rapid.Byte().Draw(t, "byte")}, raw[at:]...)...)
			case "drop":
				raw = append(raw[:at:at], raw[min(at+1, len(raw)-1):]...)
			}
		}
		compareDecoders(t, raw)
	})
}

type failer interface{ Fatalf(string, ...any) }

// compareDecoders holds DecodeBallot against package canon.
func compareDecoders(t failer, raw []byte) {
	got, err := DecodeBallot(raw)
	var want Ballot
	oracle := canon.Decode(raw, &want)
	if len(raw) > MaxBallot {
		oracle = ErrMalformed
	}
	switch {
	case err != nil && !errors.Is(err, ErrMalformed):
		t.Fatalf("%x: unexpected error %v", raw, err)
	case (err == nil) != (oracle == nil):
		t.Fatalf("%x: %v, canon says %v", raw, err, oracle)
	case err == nil && !reflect.DeepEqual(got, want):
		t.Fatalf("%x: %+v, canon reads %+v", raw, got, want)
	case err == nil && !bytes.Equal(got.Encode(), raw):
		t.Fatalf("%x encodes again as %x", raw, got.Encode())
	}
}

func TestHeadsHaveOneLength(t *testing.T) {
	valid := Ballot{Format: 1}.Encode()
	for what, head := range map[string][]byte{
		"1 in two bytes":  {0x18, 1},
		"1 in three":      {0x19, 0, 1},
		"1 in five":       {0x1a, 0, 0, 0, 1},
		"1 in nine":       {0x1b, 0, 0, 0, 0, 0, 0, 0, 1},
		"23 in two bytes": {0x18, 23},
		"24 in three":     {0x19, 0, 24},
		"65535 in five":   {0x1a, 0, 0, 0xff, 0xff},
		"2^16 of 16 bits": {0x1a, 0, 1, 0, 0},
		"indefinite":      {0x1f},
		"reserved":        {0x1c},
		"negative":        {0x20},
		"null":            {0xf6},
		"truncated":       {0x1b, 0},
	} {
		raw := append(append([]byte{valid[0]}, head...), valid[2:]...)
		if what == "truncated" {
			raw = raw[:3]
		}
		if _, err := DecodeBallot(raw); !errors.Is(err, ErrMalformed) {
			t.Errorf("format as %s: %v", what, err)
		}
		compareDecoders(t, raw)
	}
}

func TestBallotsFillTheirInputWithWholeHashes(t *testing.T) {
	valid := Ballot{Format: Format, Signature: []byte("s")}.Encode()
	network := 3 // after the heads of ballot, format and domain; then 2 bytes of head
	for what, raw := range map[string][]byte{
		"a byte more":      append(bytes.Clone(valid), 0),
		"a hash too short": slices.Concat(valid[:network], []byte{0x58, 31}, valid[network+3:]),
		"a hash too long":  slices.Concat(valid[:network], []byte{0x58, 33, 0}, valid[network+2:]),
		"no hash":          slices.Concat(valid[:network], []byte{0x40}, valid[network+34:]),
		"text for a hash":  slices.Concat(valid[:network], []byte{0x78}, valid[network+1:]),
	} {
		if _, err := DecodeBallot(raw); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", what, err)
		}
		compareDecoders(t, raw)
	}
}

func TestDecodedBallotsKeepNothingOfTheirInput(t *testing.T) {
	raw := ballotOf(keyOf(t, Ed25519, 1), home, notarizeA).Encode()
	b, err := DecodeBallot(raw)
	if err != nil {
		t.Fatal(err)
	}
	before := b.Encode()
	clear(raw)
	if !bytes.Equal(b.Encode(), before) {
		t.Error("the ballot changed with its input")
	}
}

func TestOversizedBallotsAreRefused(t *testing.T) {
	b := Ballot{Format: Format, Signature: make([]byte, MaxBallot)}
	if _, err := DecodeBallot(b.Encode()); !errors.Is(err, ErrMalformed) {
		t.Errorf("a ballot of %d bytes: %v", len(b.Encode()), err)
	}
	if n := len(ballotOf(keyOf(t, MLDSA65, 1), home, notarizeA).Encode()); n > MaxBallot {
		t.Errorf("an honest ballot has %d bytes", n)
	}
}

func FuzzDecodeBallot(f *testing.F) {
	for _, name := range schemes {
		f.Add(ballotOf(keyOf(f, name, 1), home, notarizeA).Encode())
	}
	f.Add(Ballot{}.Encode())
	f.Fuzz(func(t *testing.T, raw []byte) { compareDecoders(t, raw) })
}
