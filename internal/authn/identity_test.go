package authn

import (
	"errors"
	"strings"
	"testing"
	"unicode"
)

// TestIdentitiesPrintAndParse: each text that Parse takes is printed as it was, and two identities do not share a text.
func TestIdentitiesPrintAndParse(t *testing.T) {
	for text, want := range map[string]Identity{
		"anonymous":                         {Anonymous, ""},
		"local:0":                           {Local, "0"},
		"local:4294967295":                  {Local, "4294967295"},
		"cert:spiffe://corp/ns/ci":          {Cert, "spiffe://corp/ns/ci"},
		"cert:uri:urn:x":                    {Cert, "uri:urn:x"},
		"cert:dns:ci.corp.example":          {Cert, "dns:ci.corp.example"},
		"cert:cn:Alice and Bob":             {Cert, "cn:Alice and Bob"},
		"oidc:https://issuer.example#alice": {OIDC, "https://issuer.example#alice"},
		"oidc:https://issuer.example#a#b:c": {OIDC, "https://issuer.example#a#b:c"},
		"user:alice":                        {User, "alice"},
		"user:anonymous":                    {User, "anonymous"},
		"user:Zoë":                          {User, "Zoë"},
	} {
		id, err := Parse(text)
		if err != nil || id != want || id.String() != text {
			t.Errorf("%s: got %#v, printed %s, %v", text, id, id, err)
		}
	}
}

func TestTextsThatAreNoIdentity(t *testing.T) {
	for _, text := range []string{
		"", "none", "none:x", "anonymous:", "anonymous:x", "user", "user:", "user: alice", "user:alice ", "user:a\nb", "user:a\x00",
		"user:a\u202eb", "user:a\u200bb", "user:\xff", "User:alice", "nobody:x", "local:", "local:-1", "local:01", "local:root",
		"local:4294967296", "cert:alice", "cert:cn:", "cert:dns:*.corp.example", "cert:dns:Corp", "cert:dns:a..b", "cert:spiffe://corp",
		"cert:spiffe://corp/", "cert:spiffe://Corp/x", "cert:spiffe://corp/a/../b", "cert:spiffe://corp/a%2Fb",
		"oidc:https://issuer.example", "oidc:https://issuer.example#", "oidc:http://issuer.example#a", "oidc:alice",
		"user:" + strings.Repeat("a", maxIdentity),
	} {
		if id, err := Parse(text); !errors.Is(err, ErrIdentity) || !id.IsZero() {
			t.Errorf("%q: got %#v, %v", text, id, err)
		}
	}
	if _, err := Parse("user:" + strings.Repeat("a", maxIdentity-len("user:"))); err != nil {
		t.Errorf("of the greatest length: %v", err)
	}
	if (Identity{}).String() != "none" {
		t.Error("the zero Identity prints as a caller")
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"anonymous", "local:1000", "cert:spiffe://corp/ns/ci", "cert:dns:a.b", "cert:cn:x", "oidc:https://i#s", "user:a", "none",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, err := Parse(text)
		if err != nil {
			if !errors.Is(err, ErrIdentity) || !id.IsZero() {
				t.Fatalf("%q: %#v, %v", text, id, err)
			}
			return
		}
		if id.String() != text {
			t.Fatalf("%q is printed as %q", text, id)
		}
		if len(text) > maxIdentity || strings.ContainsFunc(text, unicode.IsControl) {
			t.Fatalf("%q is an identity", text)
		}
		var again Identity
		if out, err := id.MarshalText(); err != nil || again.UnmarshalText(out) != nil || again != id {
			t.Fatalf("%q became %q", text, again)
		}
	})
}

func FuzzNewIdentity(f *testing.F) {
	f.Add(byte(User), "alice")
	f.Add(byte(Anonymous), "")
	f.Add(byte(None), "x")
	f.Fuzz(func(t *testing.T, kind byte, name string) {
		id, err := NewIdentity(Kind(kind), name)
		if err != nil {
			return
		}
		if back, err := Parse(id.String()); err != nil || back != id {
			t.Fatalf("%#v became %#v, %v", id, back, err)
		}
	})
}
