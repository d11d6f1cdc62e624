package oidc

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// maxToken bounds a token, in bytes. Those of issuers that list a user's groups have some thousands.
const maxToken = 16 << 10

// unverified is the content of a token whose signature is not checked yet. It selects the issuer and the keys alone.
type unverified struct {
	alg, key, issuer string
}

// parsed holds the members of a JSON object by their exact names. Go's own decoding into structures ignores case, so
// that a claim "SUB" could pass for "sub".
type parsed map[string]json.RawMessage

var errMalformed = errors.New("oidc: not a JSON Web Token")

// types are the media types of tokens that may name a caller (RFC 7519, section 5.1; RFC 9068, section 2.1). Others,
// such as logout+jwt, are of other uses, and are refused (RFC 8725, section 3.11).
var types = []string{"", "jwt", "at+jwt", "application/at+jwt"}

// parse reads the parts of a token in the compact form (RFC 7515, section 3.1). It returns errMalformed for other text.
func parse(token string) (u unverified, err error) {
	first, rest, _ := strings.Cut(token, ".")
	second, signature, ok := strings.Cut(rest, ".")
	if !ok || signature == "" || strings.Contains(signature, ".") {
		return u, errMalformed
	}
	header, err := object(first)
	if err != nil {
		return u, err
	}
	claims, err := object(second)
	if err != nil {
		return u, err
	}
	typ, err := header.text("typ")
	if _, extended := header["crit"]; extended || err != nil || !slices.Contains(types, strings.ToLower(typ)) {
		return u, errMalformed // no extension is understood here (RFC 7515, section 4.1.11)
	}
	for _, x := range []struct {
		of   parsed
		name string
		to   *string
	}{{header, "alg", &u.alg}, {header, "kid", &u.key}, {claims, "iss", &u.issuer}} {
		if *x.to, err = x.of.text(x.name); err != nil {
			return unverified{}, err
		}
	}
	return u, nil
}

// object decodes a part of a token.
func object(part string) (o parsed, err error) {
	text, err := base64.RawURLEncoding.Strict().DecodeString(part)
	if err != nil || json.Unmarshal(text, &o) != nil || o == nil {
		return nil, errMalformed
	}
	return o, nil
}

// text returns a member that is a text, "" if there is none.
func (c parsed) text(name string) (s string, err error) {
	raw, ok := c[name]
	if !ok {
		return "", nil
	}
	var p *string
	if json.Unmarshal(raw, &p) != nil || p == nil {
		return "", errMalformed
	}
	return *p, nil
}
