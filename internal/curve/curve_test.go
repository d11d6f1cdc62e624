package curve

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"testing"

	"filippo.io/edwards25519"
	"github.com/cloudflare/circl/sign/ed448"
	"pgregory.net/rapid"
)

// torsion are the 8 points of small order: the multiples of one of order 8.
func torsion(t *testing.T) (all []*edwards25519.Point) {
	t.Helper()
	raw, _ := hex.DecodeString("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05")
	p, err := new(edwards25519.Point).SetBytes(raw)
	if err != nil {
		t.Fatal(err)
	}
	sum := edwards25519.NewIdentityPoint()
	for range 8 {
		all = append(all, new(edwards25519.Point).Set(sum))
		sum.Add(sum, p)
	}
	if sum.Equal(edwards25519.NewIdentityPoint()) != 1 {
		t.Fatal("the generator is not of order 8")
	}
	return all
}

func TestPointsOfSmallOrderAreRefused(t *testing.T) {
	seen := make(map[string]bool)
	for i, p := range torsion(t) {
		seen[string(p.Bytes())] = true
		if err := Ed25519(p.Bytes()); !errors.Is(err, ErrSmallOrder) {
			t.Errorf("%d times the generator, %x: %v", i, p.Bytes(), err)
		}
	}
	if len(seen) != 8 {
		t.Fatalf("%d points of small order, want 8", len(seen))
	}
	for name, digits := range map[string]string{ // Ed448 has a cofactor of 4
		"neutral": "01" + zeros(56), "order 2": "fe" + ones(27) + "fe" + ones(27) + "00",
		"order 4": zeros(57), "order 4, other sign": zeros(56) + "80",
	} {
		raw, _ := hex.DecodeString(digits)
		if err := Ed448(raw); !errors.Is(err, ErrSmallOrder) {
			t.Errorf("Ed448, %s: %v", name, err)
		}
	}
}

// TestOtherEncodingsOfPointsAreRefused has the encodings that are not canonical of
// table 1 in "Taming the many EdDSAs", and all other y from p on.
func TestOtherEncodingsOfPointsAreRefused(t *testing.T) {
	for _, digits := range []string{
		"0100000000000000000000000000000000000000000000000000000000000080",
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
		"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
		"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
		"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	} {
		raw, _ := hex.DecodeString(digits)
		if err := Ed25519(raw); err == nil {
			t.Errorf("%s was accepted", digits)
		}
	}
	for low := 0xed; low <= 0xff; low++ { // y = p, ..., 2^255 - 1
		for _, last := range []byte{0x7f, 0xff} {
			raw, _ := hex.DecodeString("ed" + ones(31))
			raw[0], raw[31] = byte(low), last
			if err := Ed25519(raw); !errors.Is(err, ErrNotCanonical) {
				t.Errorf("%x: %v", raw, err)
			}
		}
	}
	for _, digits := range []string{ones(28) + "fe" + ones(27) + "00", ones(56) + "00", ones(57), "05" + zeros(55) + "01"} {
		raw, _ := hex.DecodeString(digits)
		if err := Ed448(raw); !errors.Is(err, ErrNotCanonical) {
			t.Errorf("Ed448 %s: %v", digits, err)
		}
	}
	if Ed25519(make([]byte, 31)) == nil || Ed448(make([]byte, 56)) == nil || Ed25519(nil) == nil {
		t.Error("a key of another length was accepted")
	}
}

// TestKeysAgreeWithTheArithmetic compares with the curve's own arithmetic.
func TestKeysAgreeWithTheArithmetic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "bytes")
		p, err := new(edwards25519.Point).SetBytes(raw)
		if err != nil {
			return // no point at all
		}
		small := new(edwards25519.Point).MultByCofactor(p).Equal(edwards25519.NewIdentityPoint()) == 1
		bad := small || string(p.Bytes()) != string(raw)
		if err := Ed25519(raw); (err != nil) != bad {
			t.Fatalf("%x: %v", raw, err)
		}
	})
	for range 100 {
		key, _, err := ed448.GenerateKey(rand.Reader)
		if err != nil || Ed448(key) != nil {
			t.Fatalf("%x: %v %v", key, err, Ed448(key))
		}
	}
}

func zeros(n int) string { return hex.EncodeToString(make([]byte, n)) }

func ones(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = 0xff
	}
	return hex.EncodeToString(b)
}
