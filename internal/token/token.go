// Package token keeps what the holder of a delegation needs: a chain of grants (scope.Grant), and the private key that
// the last of them names. The text of a token is one line, so that it fits into a file, an environment variable or a
// secret of a build system. It is a bearer secret: the token may be used by every program that reads it, unless it was
// made for a key that is kept elsewhere.
package token

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// prefix begins the text of a token, so that programs which look for leaked secrets find it.
const prefix = "awt1."

// maxText bounds the text of a token, in bytes.
const maxText = 64 << 10

// ErrToken is wrapped by all errors about the text of a token. None quotes it.
var ErrToken = errors.New("token: not a token")

// Token is a chain of grants, and the key that may use it.
type Token struct {
	Grants []scope.Grant
	Key    votes.PrivateKey // of the last grant's To; zero: it is kept elsewhere
}

// wire is the content of a token's text.
type wire struct {
	_      struct{} `cbor:",toarray"`
	Grants [][]byte
	Key    string // PrivateKey.Encode, or empty
}

// Is reports whether a text is meant to be a token.
func Is(text []byte) bool { return strings.HasPrefix(strings.TrimSpace(string(text)), prefix) }

// Parse reads the form of Encode. White space around it is ignored. The signatures of its grants are verified.
func Parse(text string) (*Token, error) {
	text, ok := strings.CutPrefix(strings.TrimSpace(text), prefix)
	if !ok || len(text) > maxText {
		return nil, fmt.Errorf("%w: it begins with %s", ErrToken, prefix)
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("%w: it was cut or changed", ErrToken)
	}
	var w wire
	if err := canon.Decode(raw, &w); err != nil || len(w.Grants) == 0 {
		return nil, fmt.Errorf("%w: it was cut or changed", ErrToken)
	}
	var last scope.Grant
	if err := canon.Decode(w.Grants[len(w.Grants)-1], &last); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrToken, err)
	}
	t := new(Token)
	if t.Grants, err = scope.OpenGrants(w.Grants, last.Scope, last.To.ID(), votes.Verify); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrToken, err)
	}
	if w.Key != "" {
		if t.Key, err = votes.ParsePrivateKey(w.Key); err != nil {
			return nil, fmt.Errorf("%w: its key cannot be read", ErrToken)
		}
		if t.Key.Public().ID() != last.To.ID() {
			return nil, fmt.Errorf("%w: its key is not the one that the last grant names", ErrToken)
		}
	}
	return t, nil
}

// Encode is the token's text, without a line end.
func (t *Token) Encode() string {
	w := wire{Grants: t.Chain()}
	if !t.Key.IsZero() {
		w.Key = t.Key.Encode()
	}
	return prefix + base64.RawURLEncoding.EncodeToString(canon.Encode(w))
}

// Chain is the encodings of the grants, as a mutation has them.
func (t *Token) Chain() (raw [][]byte) {
	for i := range t.Grants {
		raw = append(raw, t.Grants[i].Encode())
	}
	return raw
}

// Last is the grant that the token's key holds.
func (t *Token) Last() *scope.Grant { return &t.Grants[len(t.Grants)-1] }

// NotAfter is when the first of the grants ends.
func (t *Token) NotAfter() aweigh.Instant {
	end := t.Grants[0].NotAfter
	for i := range t.Grants {
		end = min(end, t.Grants[i].NotAfter)
	}
	return end
}

// New signs a grant for its To, or if that is zero, for a new key, which the token then holds. before are the grants by
// which the signer acts; none: it has rights of its own.
func New(signer votes.Signer, before []scope.Grant, g scope.Grant) (*Token, error) {
	t := new(Token)
	if g.To.Scheme == "" {
		key, err := votes.GenerateKey(votes.Ed25519, rand.Reader)
		if err != nil {
			return nil, err
		}
		t.Key, g.To = key, key.Public()
	}
	if err := Check(signer.Public(), before, g); err != nil {
		return nil, err
	}
	signed, err := scope.SignGrant(signer, g)
	if err != nil {
		return nil, err
	}
	t.Grants = append(append(t.Grants, before...), signed)
	return t, nil
}

// Check returns why New makes no token, whatever its signer does; nil if it makes one. The error wraps
// scope.ErrInvalid.
func Check(signer votes.PublicKey, before []scope.Grant, g scope.Grant) error {
	if n := len(before) + 1; n > scope.MaxGrants {
		return fmt.Errorf("%w: a chain of %d grants, at most %d are taken: ask a holder before for a token",
			scope.ErrInvalid, n, scope.MaxGrants)
	}
	if g.By = signer; g.To.Scheme == "" {
		g.To = signer // any key
	}
	return g.Check()
}
