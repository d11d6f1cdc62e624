package client

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// place is where a node's API is.
type place struct {
	address string      // as errors name it, and as Dial takes it
	url     string      // the beginning of its URLs
	host    string      // the host in requests
	network string      // tcp or unix
	dial    string      // host:port, or the path of a socket
	tls     *tls.Config // nil: no TLS
}

// placeOf reads an address. secure are the settings for TLS, if there are any.
func placeOf(address string, secure *tls.Config) (p place, err error) {
	if path, ok := strings.CutPrefix(address, "unix://"); ok {
		if !strings.HasPrefix(path, "/") {
			return p, fmt.Errorf("%w: address %q is not unix:// and an absolute path, such as unix:///var/lib/aweigh/run/api.sock", ErrInvalid, address)
		}
		return place{address: address, url: "http://localhost", host: "localhost", network: "unix", dial: path}, nil
	}
	scheme, host, ok := strings.Cut(address, "://")
	if !ok {
		scheme, host = "http", address
		if secure != nil {
			scheme = "https"
		}
	}
	host = strings.TrimSuffix(host, "/")
	name, port, err := net.SplitHostPort(host)
	n, portErr := strconv.ParseUint(port, 10, 16)
	if err != nil || portErr != nil || n == 0 || scheme != "http" && scheme != "https" {
		return p, fmt.Errorf("%w: address %q is not host:port, with a port from 1 to 65535, and not unix:// with a path", ErrInvalid, address)
	}
	p = place{address: host, url: scheme + "://" + host, host: host, network: "tcp", dial: host}
	if scheme == "https" {
		if p.address = p.url; secure == nil {
			secure = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		if p.tls = secure.Clone(); p.tls.ServerName == "" {
			p.tls.ServerName = name
		}
	}
	return p, nil
}

// connectTime bounds the time in which a connection must be there.
const connectTime = 5 * time.Second

// connect makes a connection, without TLS.
func (p *place) connect(ctx context.Context) (net.Conn, error) {
	return (&net.Dialer{Timeout: connectTime}).DialContext(ctx, p.network, p.dial)
}

// connectTLS makes a connection with TLS, for one of the protocols.
func (p *place) connectTLS(ctx context.Context, protocols ...string) (net.Conn, error) {
	c, err := p.connect(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	settings := p.tls.Clone()
	settings.NextProtos = protocols
	secure := tls.Client(c, settings)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = c.Close()
		return nil, &unshaken{err}
	}
	return secure, nil
}

// unshaken is an error of a TLS handshake: no request was sent.
type unshaken struct{ cause error }

// Error implements error.
func (u *unshaken) Error() string { return "the TLS handshake failed: " + u.cause.Error() }

// Unwrap gives the cause.
func (u *unshaken) Unwrap() error { return u.cause }
