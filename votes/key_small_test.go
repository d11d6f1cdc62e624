package votes

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/cloudflare/circl/sign/ed25519"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/curve"
	"github.com/aweigh/aweigh/quorum"
)

// everybodys are keys with signatures that need no private key, in their encodings of
// table 1 of "Taming the many EdDSAs": the 8 points of small order, canonical and not.
var everybodys = []string{
	"0100000000000000000000000000000000000000000000000000000000000000",
	"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"0000000000000000000000000000000000000000000000000000000000000080",
	"0000000000000000000000000000000000000000000000000000000000000000",
	"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
	"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
	"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
	"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
	"0100000000000000000000000000000000000000000000000000000000000080",
	"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
	"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
	"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
	"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
}

// TestKeysOfEverybodyAreRefused: wherever a key enters, as text, as a voter or an
// anchor, or with what it signed.
func TestKeysOfEverybodyAreRefused(t *testing.T) {
	// For the neutral point this signature is good on every message: the scheme alone
	// does not notice.
	forged := append([]byte{1}, make([]byte, 63)...)
	neutral, _ := hex.DecodeString(everybodys[0])
	if !ed25519.Verify(neutral, []byte("anything"), forged) {
		t.Fatal("the signature that everybody can make does not verify: the test shows nothing")
	}
	for _, digits := range everybodys {
		raw, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatal(err)
		}
		k := PublicKey{Scheme: Ed25519, Bytes: raw}
		w, err := quorum.NewWeights(quorum.Share{Anchor: k.ID(), Weight: 1})
		if err != nil {
			t.Fatal(err)
		}
		_, text := ParsePublicKey(k.String())
		_, set := NewKeySet(k)
		_, ring := NewKeyring(Domain{}, quorum.DefaultRules(quorum.BFT), w, k)
		for how, err := range map[string]error{
			"check": k.Check(), "text": text, "set": set, "keyring": ring, "json": new(PublicKey).UnmarshalText([]byte(k.String())),
			"signature":   Verify(k, ContextBundle, []byte("anything"), forged),
			"COSE":        Verify(k, ContextCOSE, []byte("anything"), forged),
			"cosignature": Verify(k, ContextCosignature, []byte("anything"), forged),
		} {
			if !errors.Is(err, ErrKey) || !errors.Is(err, curve.ErrSmallOrder) && !errors.Is(err, curve.ErrNotCanonical) {
				t.Errorf("%s of %s: %v", how, digits, err)
			}
		}
	}
	var zero aweigh.Hash
	if k := (PublicKey{Scheme: Ed448, Bytes: bytes.Clone(append(zero[:], make([]byte, 25)...))}); !errors.Is(k.Check(), curve.ErrSmallOrder) {
		t.Errorf("Ed448: %v", k.Check())
	}
}
