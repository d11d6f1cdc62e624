package authn

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/aweigh/aweigh/internal/plain"
)

// Kind is the way in which a caller was recognized. The zero Kind means that no authenticator looked at the request.
type Kind uint8

// The kinds. Their names are part of the text of an Identity.
const (
	None      Kind = iota
	Anonymous      // no credential, on a port that takes such requests
	Local          // the user at the other end of a Unix socket; the name is its uid
	Cert           // a client certificate; see certName for the name
	OIDC           // a token of OpenID Connect; the name is issuer#subject
	User           // a user of etcd's API

	Kinds // the number of kinds
)

var kindNames = [Kinds]string{"none", "anonymous", "local", "cert", "oidc", "user"}

// String returns the name of the kind.
func (k Kind) String() string {
	if k >= Kinds {
		return "none"
	}
	return kindNames[k]
}

// maxIdentity bounds the text of an Identity, in bytes.
const maxIdentity = 256

// ErrIdentity is wrapped by all errors about the text of an identity.
var ErrIdentity = errors.New("authn: not an identity")

// Identity names a caller. Its text, such as cert:spiffe://corp/ns/ci, oidc:https://issuer.example#alice, user:alice,
// local:1000 or anonymous, has at most maxIdentity bytes of printable UTF-8. Two identities are equal if and only if
// their texts are equal. The zero Identity names no caller.
type Identity struct {
	Kind Kind
	Name string // empty if the kind is Anonymous
}

// NewIdentity returns the identity of a kind and a name. Errors wrap ErrIdentity and do not quote the name.
func NewIdentity(k Kind, name string) (Identity, error) {
	id := Identity{k, name}
	if err := id.check(); err != nil {
		return Identity{}, fmt.Errorf("%w: %w", ErrIdentity, err)
	}
	return id, nil
}

// Parse reads the form of Identity.String. Errors wrap ErrIdentity.
func Parse(text string) (Identity, error) {
	kind, name, named := strings.Cut(text, ":")
	for k := Anonymous; k < Kinds; k++ {
		if kind == kindNames[k] && named == (k != Anonymous) {
			return NewIdentity(k, name)
		}
	}
	return Identity{}, fmt.Errorf("%w: it begins with local:, cert:, oidc: or user:, or is \"anonymous\"", ErrIdentity)
}

// String returns the text of the identity.
func (id Identity) String() string {
	if id.Name == "" {
		return id.Kind.String()
	}
	return id.Kind.String() + ":" + id.Name
}

// CommonName returns the common name of the certificate that named the caller, "" for any other identity.
func (id Identity) CommonName() string {
	name, ok := strings.CutPrefix(id.Name, certCommon)
	if id.Kind != Cert || !ok {
		return ""
	}
	return name
}

// IsZero reports whether the identity names no caller.
func (id Identity) IsZero() bool { return id == Identity{} }

// MarshalText writes the form of String.
func (id Identity) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads the form of String.
func (id *Identity) UnmarshalText(text []byte) error {
	v, err := Parse(string(text))
	if err == nil {
		*id = v
	}
	return err
}

func (id Identity) check() error {
	if id.Kind == None || id.Kind >= Kinds {
		return errors.New("it has no kind")
	}
	if id.Kind == Anonymous {
		if id.Name != "" {
			return errors.New("an anonymous caller has no name")
		}
		return nil
	}
	if n := len(id.Kind.String()) + 1 + len(id.Name); n > maxIdentity {
		return fmt.Errorf("it has %d bytes, at most %d are taken", n, maxIdentity)
	}
	if err := checkText(id.Name); err != nil {
		return err
	}
	switch id.Kind {
	case Local:
		if n, err := strconv.ParseUint(id.Name, 10, 32); err != nil || strconv.FormatUint(n, 10) != id.Name {
			return errors.New("the name of a local user is its uid, a decimal number")
		}
	case Cert:
		return checkCertName(id.Name)
	case OIDC:
		// No issuer has a fragment (OpenID Connect Core 1.0, section 2).
		issuer, subject, ok := strings.Cut(id.Name, "#")
		if !ok || subject == "" || !strings.HasPrefix(issuer, "https://") {
			return errors.New("the name of a token's subject is issuer#subject, and the issuer begins with https://")
		}
	}
	return nil
}

// checkText takes printable text that shows where it begins and ends. So it refuses control characters, characters that
// change the order of others on a screen, and spaces at the ends.
func checkText(s string) error {
	switch {
	case s == "":
		return errors.New("the name is empty")
	case !utf8.ValidString(s):
		return errors.New("the name is not UTF-8")
	case s[0] == ' ' || s[len(s)-1] == ' ':
		return errors.New("the name begins or ends with a space")
	case !plain.Text(s):
		return errors.New("the name has a character that cannot be printed")
	}
	return nil
}
