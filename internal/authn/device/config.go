package device

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	coreos "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/authn/oidc"
)

// Config names an issuer and a network. Network and Issuer are required.
type Config struct {
	Network aweigh.NetworkID
	Issuer  string
	// Client is the ID by which the issuer knows the program. Default: the network's identity, in hexadecimal.
	Client string
	// Scopes are what the program asks for. Default: openid and offline_access, which asks for a refresh token.
	Scopes []string
	// CA is a file with the certificates, as PEM, that vouch for the issuer's server. Default: the system's.
	CA string
	// Dir is the directory of the tokens' files. Default: aweigh/tokens in the user's directory of settings.
	Dir string
}

// Errors; texts state what to do.
var (
	ErrNone    = errors.New("device: not logged in, or the session ended: log in")
	ErrDenied  = errors.New("device: the login was denied at the issuer")
	ErrExpired = errors.New("device: the code was not entered in time: log in again")
	ErrFile    = errors.New("device: the file of the token cannot be used")
)

func (c Config) withDefaults() (Config, error) {
	if err := oidc.CheckIssuers([]oidc.Issuer{{URL: c.Issuer}}); err != nil {
		return c, err
	}
	if c.Client == "" {
		c.Client = c.Network.String()
	}
	if len(c.Scopes) == 0 {
		c.Scopes = []string{coreos.ScopeOpenID, coreos.ScopeOfflineAccess}
	}
	if c.Dir == "" {
		dir, err := usualDir()
		if err != nil {
			return c, err
		}
		c.Dir = dir
	}
	return c, nil
}

// usualDir is the directory of the tokens' files by default.
func usualDir() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("device: %w", err)
	}
	return filepath.Join(dir, "aweigh", "tokens"), nil
}

// session is an issuer whose endpoints are known.
type session struct {
	Config
	ctx      context.Context // with the client for the issuer, as both libraries expect it
	oauth    oauth2.Config
	provider *coreos.Provider
}

// discover finds the issuer's endpoints.
func (c Config) discover(ctx context.Context) (*session, error) {
	client, err := oidc.HTTPClient(c.CA)
	if err != nil {
		return nil, err
	}
	ctx = coreos.ClientContext(ctx, client)
	p, err := coreos.NewProvider(ctx, c.Issuer)
	if err != nil {
		return nil, fmt.Errorf("device: %w", oidc.Brief(err))
	}
	at := p.Endpoint()
	at.AuthStyle = oauth2.AuthStyleInParams // a public client has no secret for the other style
	return &session{c, ctx, oauth2.Config{ClientID: c.Client, Endpoint: at, Scopes: c.Scopes}, p}, nil
}

// token checks an answer of the token endpoint and returns its ID token, with the refresh token beside it.
func (s *session) token(t *oauth2.Token) (Token, error) {
	raw, ok := t.Extra("id_token").(string)
	if !ok {
		return Token{}, fmt.Errorf("%w; the issuer returned no ID token", ErrNone)
	}
	id, err := s.provider.VerifierContext(s.ctx, &coreos.Config{ClientID: s.Client}).Verify(s.ctx, raw)
	if err != nil {
		return Token{}, fmt.Errorf("device: the issuer returned an ID token that is not valid: %w", oidc.Brief(err))
	}
	return Token{
		Issuer: s.Issuer, Network: s.Network, ID: raw, Refresh: t.RefreshToken, Until: id.Expiry, Client: s.Client, CA: s.CA,
	}, nil
}

// problem is an error of an issuer's endpoint, without what the issuer's answer holds beside the code of the error.
func problem(err error) error {
	var e *oauth2.RetrieveError
	if !errors.As(err, &e) {
		return fmt.Errorf("device: %w", oidc.Brief(err))
	}
	switch e.ErrorCode {
	case "access_denied":
		return ErrDenied
	case "expired_token":
		return ErrExpired
	case "invalid_grant":
		return ErrNone
	case "":
		return fmt.Errorf("device: the issuer answers %s", e.Response.Status)
	}
	return fmt.Errorf("device: the issuer answers %.40q: %.200q", e.ErrorCode, e.ErrorDescription)
}
