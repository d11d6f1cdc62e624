package oidc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bounds of settings.
const (
	maxIssuers  = 64
	maxIssuer   = 200 // bytes of an issuer's URL: the text of an identity has room for a subject of some length
	maxSettings = 1 << 20
)

// ErrIssuer is wrapped by all errors about settings.
var ErrIssuer = errors.New("oidc: invalid settings of an issuer")

// Issuer is a party whose tokens are accepted. Only its URL is required.
type Issuer struct {
	// URL is the issuer's identifier, exactly as in its tokens. It begins with https:// and has neither query nor
	// fragment.
	URL string `yaml:"issuer"`
	// Audience is what a token's claim "aud" contains. Default: the network's identity, in hexadecimal.
	Audience string `yaml:"audience"`
	// NameClaim is the claim that names the caller. Default: "sub". With "email", a token must say that it is verified.
	NameClaim string `yaml:"name-claim"`
	// RequiredClaims are claims that a token must have, each with its accepted values. A claim that is a list must
	// contain one of them. Numbers and booleans are compared as text.
	RequiredClaims map[string][]string `yaml:"required-claims"`
	// Algorithms may sign tokens. Default: RS256 and ES256. There are no symmetric ones, and no "none".
	Algorithms []string `yaml:"algorithms"`
	// CA is a file with the certificates, as PEM, that vouch for the issuer's server. Default: the system's. The file
	// is read again at each fetch.
	CA string `yaml:"ca"`
}

// algorithms are those that settings may permit (RFC 7518, section 3.1; RFC 8037, section 3.1).
var algorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// DecodeIssuers reads settings in YAML: a list of issuers. Unknown settings are refused. Errors wrap ErrIssuer.
func DecodeIssuers(text []byte) (all []Issuer, err error) {
	if len(text) > maxSettings {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are read", ErrIssuer, len(text), maxSettings)
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&all); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: %w", ErrIssuer, err)
	}
	return all, CheckIssuers(all)
}

// CheckIssuers reports the first mistake in settings. Errors wrap ErrIssuer.
func CheckIssuers(all []Issuer) error {
	if len(all) > maxIssuers {
		return fmt.Errorf("%w: there are %d, at most %d are taken", ErrIssuer, len(all), maxIssuers)
	}
	for i := range all {
		if err := all[i].check(); err != nil {
			return fmt.Errorf("%w: %q: %w", ErrIssuer, all[i].URL, err)
		}
		for _, other := range all[:i] {
			if other.URL == all[i].URL {
				return fmt.Errorf("%w: %q is there twice", ErrIssuer, other.URL)
			}
		}
	}
	return nil
}

func (i *Issuer) check() error {
	u, err := url.Parse(i.URL)
	switch {
	case err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || strings.ContainsAny(i.URL, "?# "):
		return errors.New("an issuer is a URL that begins with https://, without user, query and fragment")
	case len(i.URL) > maxIssuer:
		return fmt.Errorf("it has %d bytes, at most %d are taken", len(i.URL), maxIssuer)
	}
	for _, a := range i.Algorithms {
		if !slices.Contains(algorithms, a) {
			return fmt.Errorf("%q may sign no token; %s may", a, strings.Join(algorithms, ", "))
		}
	}
	for claim, values := range i.RequiredClaims {
		if claim == "" || len(values) == 0 {
			return errors.New("a required claim has a name, and at least one accepted value")
		}
	}
	return nil
}

// withDefaults returns the settings with defaults for a network.
func (i Issuer) withDefaults(network string) Issuer {
	if i.Audience == "" {
		i.Audience = network
	}
	if i.NameClaim == "" {
		i.NameClaim = "sub"
	}
	if len(i.Algorithms) == 0 {
		i.Algorithms = []string{"RS256", "ES256"}
	}
	return i
}
