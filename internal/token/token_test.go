package token

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

func key(t *testing.T, seed byte) votes.PrivateKey {
	t.Helper()
	k, err := votes.KeyFromSeed(votes.Ed25519, bytes.Repeat([]byte{seed}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func made(t *testing.T) *Token {
	t.Helper()
	g := scope.Grant{Scope: aweigh.ScopeID{1}, Name: "ci", Prefixes: [][]byte{[]byte("/a/")}, NotAfter: 100}
	x, err := New(key(t, 1).Signer(), nil, g)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestTokensComeBack: what is encoded is read again, of a chain of two too, and for a key kept elsewhere.
func TestTokensComeBack(t *testing.T) {
	x := made(t)
	narrow := *x.Last()
	narrow.To, narrow.NotAfter = votes.PublicKey{}, 50
	y, err := New(x.Key.Signer(), x.Grants, narrow)
	if err != nil {
		t.Fatal(err)
	}
	narrow.To = key(t, 9).Public()
	z, err := New(x.Key.Signer(), x.Grants, narrow)
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []*Token{x, y, z} {
		got, err := Parse(" " + of.Encode() + "\n")
		if err != nil {
			t.Fatal(err)
		}
		if got.Encode() != of.Encode() || got.NotAfter() != of.NotAfter() || got.Key.IsZero() != of.Key.IsZero() {
			t.Errorf("%d grants came back otherwise", len(of.Grants))
		}
	}
	if y.NotAfter() != 50 || !z.Key.IsZero() || z.Last().To.ID() != key(t, 9).Public().ID() {
		t.Error("a narrowed token is not what was asked for")
	}
}

// TestBadTokensAreRefused: cut, changed, of another key, without grants; and no error quotes the text.
func TestBadTokensAreRefused(t *testing.T) {
	x := made(t)
	text := x.Encode()
	stolen := *x
	stolen.Key = key(t, 7)
	forged := *x
	forged.Grants = []scope.Grant{*x.Last()}
	forged.Grants[0].NotAfter++
	for name, bad := range map[string]string{
		"empty":            "",
		"another prefix":   "awt2." + text[5:],
		"cut":              text[:len(text)-10],
		"a letter changed": text[:40] + string('A'+(text[40]-'A'+1)%26) + text[41:],
		"trailing":         text + "AAAA",
		"another key":      stolen.Encode(),
		"forged":           forged.Encode(),
		"no grants":        (&Token{Key: x.Key}).Encode(),
		"long":             prefix + strings.Repeat("A", maxText+1),
	} {
		_, err := Parse(bad)
		if !errors.Is(err, ErrToken) {
			t.Errorf("%s: %v", name, err)
		} else if len(bad) > 60 && strings.Contains(err.Error(), bad[20:60]) {
			t.Errorf("%s: the error quotes the token", name)
		}
	}
}

// TestChainsAreBounded: the holder of the longest chain cannot grant further.
func TestChainsAreBounded(t *testing.T) {
	x := made(t)
	for len(x.Grants) < scope.MaxGrants {
		g := *x.Last()
		g.To = votes.PublicKey{}
		next, err := New(x.Key.Signer(), x.Grants, g)
		if err != nil {
			t.Fatal(err)
		}
		x = next
	}
	g := *x.Last()
	g.To = votes.PublicKey{}
	if _, err := New(x.Key.Signer(), x.Grants, g); !errors.Is(err, scope.ErrInvalid) {
		t.Errorf("a chain that is too long: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	k, err := votes.KeyFromSeed(votes.Ed25519, make([]byte, 32))
	if err != nil {
		f.Fatal(err)
	}
	x, err := New(k.Signer(), nil, scope.Grant{Scope: aweigh.ScopeID{1}, Name: "ci", NotAfter: 100})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(x.Encode())
	f.Fuzz(func(t *testing.T, text string) {
		x, err := Parse(text)
		if err == nil && x.Encode() != strings.TrimSpace(text) {
			t.Errorf("two texts of one token")
		}
	})
}
