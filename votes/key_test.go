package votes

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestKeysSurviveTheirText(t *testing.T) {
	for _, name := range schemes {
		k := keyOf(t, name, 9)
		again, err := ParsePrivateKey(" " + k.Encode() + "\n")
		if err != nil {
			t.Fatal(err)
		}
		if again.Public().String() != k.Public().String() {
			t.Errorf("%s: the text of a private key gives another key", name)
		}
		var public PublicKey
		text, err := json.Marshal(k.Public())
		if err == nil {
			err = json.Unmarshal(text, &public)
		}
		if err != nil || public.ID() != k.Public().ID() {
			t.Errorf("%s: the text of a public key gives another key (%v)", name, err)
		}
	}
}

func TestMalformedKeysAreRefused(t *testing.T) {
	good := keyOf(t, Ed25519, 1)
	text := good.Public().String()
	for _, s := range []string{
		"", ":", "ed25519", "ed25519:", strings.ToUpper(text[:7]) + text[7:], "rsa" + text[7:], "ed448" + text[7:],
		text + "A", text[:len(text)-1], text + "=", text + "\n", text[:20] + "\n" + text[20:], " " + text,
		text[:len(text)-1] + "B",                              // non-zero trailing bits
		strings.NewReplacer("-", "+", "_", "/").Replace(text), // the other alphabet
		good.Encode(), // a secret in the wrong place
	} {
		if s == text {
			continue
		}
		if k, err := ParsePublicKey(s); !errors.Is(err, ErrKey) {
			t.Errorf("%q was read as %v (%v)", s, k, err)
		}
	}
	for _, s := range []string{"", "ed25519", "ed25519:", "ed25519:00", "rsa:" + strings.Repeat("00", 32), text} {
		if _, err := ParsePrivateKey(s); !errors.Is(err, ErrKey) {
			t.Errorf("%q was read as a private key (%v)", s, err)
		}
	}
}

// TestErrorsDoNotShowKeys: a key file that was damaged, and may hold all of the
// secret still.
func TestErrorsDoNotShowKeys(t *testing.T) {
	for _, name := range schemes {
		text := keyOf(t, name, 0x5a).Encode()
		digits := strings.SplitN(text, ":", 2)[1]
		for _, s := range []string{
			digits, name + digits, name + ";" + digits, name + " " + digits, "x" + text, text + "\n" + text, text + ":" + text, text[:len(text)-1] + "x", text + "00",
		} {
			for what, parse := range map[string]func(string) error{
				"private": func(s string) error { _, err := ParsePrivateKey(s); return err },
				"public":  func(s string) error { _, err := ParsePublicKey(s); return err },
			} {
				if err := parse(s); !errors.Is(err, ErrKey) || strings.Contains(err.Error(), digits[:8]) {
					t.Errorf("%q as a %s key: %v", s, what, err)
				}
			}
		}
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	for _, name := range schemes {
		k := keyOf(t, name, 0x5a)
		g := &Guard{key: k}
		raw := bytes.Repeat([]byte{0x5a}, 8)
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
			for _, v := range []any{k, &k, g, *g, struct{ Key PrivateKey }{k}, []PrivateKey{k}} {
				out := fmt.Sprintf(verb, v)
				if l := strings.ToLower(out); strings.Contains(l, hex.EncodeToString(raw)) ||
					strings.Contains(out, "90 90 90 90") || strings.Contains(out, string(raw)) ||
					strings.Contains(l, "0x5a, 0x5a") {
					t.Errorf("%s: %s of %T shows the secret", name, verb, v)
				}
			}
		}
	}
	if s := fmt.Sprint(PrivateKey{}); s != "no private key" {
		t.Errorf("the zero key prints as %q", s)
	}
}

func TestGeneratedKeysAreThoseOfTheRandomBytes(t *testing.T) {
	for _, name := range schemes {
		want := keyOf(t, name, 3)
		k, err := GenerateKey(name, bytes.NewReader(bytes.Repeat([]byte{3}, 100)))
		if err != nil || k.Encode() != want.Encode() {
			t.Errorf("%s: %v (%v)", name, k, err)
		}
	}
	if _, err := GenerateKey(Ed25519, bytes.NewReader(make([]byte, 31))); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a key of too few random bytes: %v", err)
	}
	if _, err := GenerateKey("Ed25519", bytes.NewReader(make([]byte, 99))); !errors.Is(err, ErrKey) {
		t.Errorf("a scheme with capital letters: %v", err)
	}
}

func TestSchemesAndBytesBothMakeTheIdentity(t *testing.T) {
	a := PublicKey{Scheme: "a", Bytes: []byte("bc")}
	b := PublicKey{Scheme: "ab", Bytes: []byte("c")}
	if a.ID() == b.ID() {
		t.Error("two keys with one identity")
	}
}

func TestSigningIsDeterministicAndVerifies(t *testing.T) {
	message := []byte("weigh")
	for _, name := range schemes {
		k := keyOf(t, name, 1)
		sig := k.Sign(ContextBallot, message)
		if !bytes.Equal(sig, k.Sign(ContextBallot, message)) {
			t.Errorf("%s: two signatures of one message", name)
		}
		if err := Verify(k.Public(), ContextBallot, message, sig); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for what, err := range map[string]error{
			"another context":   Verify(k.Public(), ContextBundle, message, sig),
			"another message":   Verify(k.Public(), ContextBallot, []byte("waive"), sig),
			"another key":       Verify(keyOf(t, name, 2).Public(), ContextBallot, message, sig),
			"a shorter context": Verify(k.Public(), ContextBallot[:5], append([]byte(ContextBallot[5:]+"\x00"), message...), sig),
			"no signature":      Verify(k.Public(), ContextBallot, message, nil),
			"a longer one":      Verify(k.Public(), ContextBallot, message, append(sig, 0)),
			"a bit flipped":     Verify(k.Public(), ContextBallot, message, append([]byte{sig[0] ^ 1}, sig[1:]...)),
		} {
			if !errors.Is(err, ErrForged) {
				t.Errorf("%s: %s: %v", name, what, err)
			}
		}
	}
	if err := Verify(PublicKey{Scheme: Ed25519}, ContextBallot, message, nil); !errors.Is(err, ErrKey) {
		t.Errorf("a key without bytes: %v", err)
	}
}

func TestEd25519IsThatOfTheStandardLibrary(t *testing.T) {
	k := keyOf(t, Ed25519, 1)
	std := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, 32))
	if want := ed25519.Sign(std, []byte("aweigh/ballot/1\x00weigh")); !bytes.Equal(k.Sign(ContextBallot, []byte("weigh")), want) {
		t.Error("the signature is not RFC 8032 over context, zero and message")
	}
}

// The standard library accepts this key, the identity in a non-canonical
// encoding, together with this signature on every message; RFC 8032 does not.
func TestNonCanonicalKeysVerifyNothing(t *testing.T) {
	key := append(bytes.Repeat([]byte{0xff}, 31), 0x7f)
	key[0] = 0xee
	sig := make([]byte, 64)
	sig[0] = 1
	if !ed25519.Verify(key, []byte("x"), sig) {
		t.Skip("the standard library refuses it too")
	}
	if err := Verify(PublicKey{Scheme: Ed25519, Bytes: key}, ContextBallot, []byte("x"), sig); !errors.Is(err, ErrKey) {
		t.Errorf("accepted: %v", err)
	}
}

func FuzzParsePublicKey(f *testing.F) {
	for _, name := range schemes {
		f.Add(keyOf(f, name, 1).Public().String())
	}
	f.Add("ed25519:")
	f.Fuzz(func(t *testing.T, s string) {
		if k, err := ParsePublicKey(s); err == nil && k.String() != s {
			t.Errorf("%q and %q are one key", s, k)
		} else if err != nil && !errors.Is(err, ErrKey) {
			t.Errorf("%q: unexpected error %v", s, err)
		}
	})
}

// TestErrorsAboutKeysNameTheFault: an error about a key names the fault, and the form that is required.
func TestErrorsAboutKeysNameTheFault(t *testing.T) {
	k := keyOf(t, Ed25519, 1)
	public, private := k.Public().String(), k.Encode()
	for _, c := range []struct{ kind, text, want string }{
		{"public", "", "there is none; a public key is scheme:base64url"},
		{"public", public[8:], "no scheme before it"},
		{"public", "rsa" + public[7:], "unknown signature scheme; one of ed25519"},
		{"public", public[:40], "has 32 bytes, in 43 letters after the colon; this has 24, in 32"},
		{"public", public[:20] + " " + public[20:], "space or line break within"},
		{"public", public + "=", "without padding"},
		{"public", private, "this is a private key: give its public key"},
		{"private", " \n", "there is none; a private key is scheme:hexadecimal"},
		{"private", private[8:], "no scheme before it"},
		{"private", private[:len(private)-2], "has 32 bytes, two hexadecimal digits each; this has 31"},
		{"private", public, "this is a public key, and a private one is needed"},
		{"private", private + "x", "this is not hexadecimal"},
	} {
		var err error
		if c.kind == "public" {
			_, err = ParsePublicKey(c.text)
		} else {
			_, err = ParsePrivateKey(c.text)
		}
		if !errors.Is(err, ErrKey) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q: %v", c.kind, c.text, err)
		}
	}
}
