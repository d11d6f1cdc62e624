package oidc

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"
	"unicode"
)

// Bounds of one request to an issuer.
const (
	fetchTime   = 10 * time.Second // from the dial to the last byte
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
		Timeout: fetchTime,
		CheckRedirect: func(_ *http.Request, via []*http.Request) error {
			if len(via) > maxRedirect {
				return errors.New("too many redirects")
			}
			return nil
		},
		Transport: &bounded{&http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: settings, DisableKeepAlives: true,
			MaxResponseHeaderBytes: 64 << 10,
		}},
	}, nil
}

// bounded is a transport for https alone, whose answers end with an error after maxAnswer bytes.
type bounded struct {
	*http.Transport
}

// RoundTrip implements http.RoundTripper.
func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" {
		return nil, errors.New("an issuer is asked over https alone")
	}
	resp, err := b.Transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body = http.MaxBytesReader(nil, resp.Body, maxAnswer)
	return resp, nil
}

// brief is an error with a short text of printable characters.
func brief(err error) error {
	text := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, err.Error())
	if len(text) > maxReport {
		text = strings.ToValidUTF8(text[:maxReport], "") + " …"
	}
	return errors.New(text)
}
