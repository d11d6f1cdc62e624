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
	address string                                // as errors name it, and as Dial takes it
	url     string                                // the beginning of its URLs
	host    string                                // the host in requests
	network string                                // tcp or unix
	dial    string                                // host:port, or the path of a socket
	tls     *tls.Config                           // nil: no TLS
	token   func(context.Context) (string, error) // of each request; nil: none
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
