package oidc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aweigh/aweigh/internal/plain"
)

// Bounds of one request to an issuer.
const (
	fetchTime   = 10 * time.Second // from the dial to the last byte, of each redirect
	maxAnswer   = 256 << 10        // bytes, after decompression
	maxRedirect = 3
	maxReport   = 300 // bytes of an error's text: an issuer's answer may be part of it
)

// HTTPClient returns a client for an issuer, bounded in time, in the size of answers and in redirects, that uses https
// alone. ca is a file of certificates as PEM that vouch for the issuer's server; empty: the system's do.
func HTTPClient(ca string) (*http.Client, error) {
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("oidc: %w", err)
		}
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("oidc: %s holds no certificate as PEM", ca)
		}
	}
	return &http.Client{
		CheckRedirect: func(_ *http.Request, via []*http.Request) error {
			if len(via) > maxRedirect {
				return errors.New("too many redirects")
			}
			return nil
		},
		Transport: &bounded{within: fetchTime, Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: settings, DisableKeepAlives: true,
			MaxResponseHeaderBytes: 64 << 10,
		}},
	}, nil
}

// bounded is a transport for https alone, whose answers end with an error after maxAnswer bytes or some time. The time
// is not left to http.Client, which counts on until the body is closed: package oauth2 does not close each body.
type bounded struct {
	*http.Transport
	within time.Duration
}

// RoundTrip implements http.RoundTripper.
func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" {
		return nil, errors.New("an issuer is asked over https alone")
	}
	ctx, cancel := context.WithTimeout(r.Context(), b.within)
	resp, err := b.Transport.RoundTrip(r.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = &body{http.MaxBytesReader(nil, resp.Body, maxAnswer), cancel}
	return resp, nil
}

// body is an answer that gives up its time with its last byte.
type body struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.cancel()
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.cancel()
	return b.ReadCloser.Close()
}

// Brief returns an error that wraps another, with a short text of printable characters.
func Brief(err error) error {
	text := strings.Map(func(r rune) rune {
		if !plain.Prints(r) {
			return ' '
		}
		return r
	}, err.Error())
	if len(text) > maxReport {
		text = strings.ToValidUTF8(text[:maxReport], "") + " …"
	}
	return &shortened{text, err}
}

// shortened is an error with another text.
type shortened struct {
	text string
	err  error
}

// Error implements error.
func (s *shortened) Error() string { return s.text }

// Unwrap returns the error with its own text.
func (s *shortened) Unwrap() error { return s.err }
