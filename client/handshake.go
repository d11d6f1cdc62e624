package client

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"time"
)

// connectTLS makes a connection with TLS, for one of the protocols.
func (p *place) connectTLS(ctx context.Context, protocols ...string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	c, err := p.handshake(ctx, true, protocols)
	if errors.Is(err, errServerSpokeFirst) {
		c, err = p.handshake(ctx, false, protocols)
	}
	return c, err
}

// handshake makes a connection, and awaits the verdict of the server on this client's certificate. In TLS 1.3 a client
// has shaken hands before the server has looked at that (RFC 8446, section 2). If the client writes then, and the
// server refuses it, the system may discard the alert that says why, and the client does not know whether its request
// arrived.
func (p *place) handshake(ctx context.Context, await bool, protocols []string) (net.Conn, error) {
	plain, err := p.connect(ctx)
	if err != nil {
		return nil, err
	}
	settings := p.tls.Clone()
	settings.NextProtos, settings.ClientSessionCache = protocols, forgetful{}
	c := &awaited{Conn: plain}
	secure := tls.Client(c, settings)
	if err = secure.HandshakeContext(ctx); err == nil && await && secure.ConnectionState().Version >= tls.VersionTLS13 {
		err = c.verdict(secure)
	}
	if err != nil {
		_ = plain.Close()
		return nil, &handshakeError{err}
	}
	return secure, nil
}

// errServerSpokeFirst means that a server accepts this client, as it sends data, and the first byte of that is lost.
var errServerSpokeFirst = errors.New("client: the server speaks first")

// awaited is a connection whose next bytes can be awaited before anything is written.
type awaited struct {
	net.Conn
	read []byte // already
	only bool   // and no more is to be read
}

// verdictTime bounds the wait for a server that sends no session ticket.
const verdictTime = 500 * time.Millisecond

// verdict waits for what the server sends after its handshake: a session ticket, or an alert, which is the error.
func (c *awaited) verdict(secure *tls.Conn) error {
	if err := c.SetReadDeadline(time.Now().Add(verdictTime)); err != nil {
		return err
	}
	first := make([]byte, 4<<10)
	n, err := c.Conn.Read(first)
	if n == 0 {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return c.SetReadDeadline(time.Time{})
		}
		return err
	}
	c.read, c.only = first[:n], true
	n, err = secure.Read(make([]byte, 1))
	c.only = false
	switch {
	case n > 0:
		return errServerSpokeFirst
	case errors.Is(err, os.ErrDeadlineExceeded): // there was a ticket
		return c.SetReadDeadline(time.Time{})
	}
	return err
}

// Read implements net.Conn.
func (c *awaited) Read(p []byte) (int, error) {
	switch {
	case len(c.read) > 0:
		n := copy(p, c.read)
		c.read = c.read[n:]
		return n, nil
	case c.only:
		return 0, os.ErrDeadlineExceeded
	}
	return c.Conn.Read(p)
}

// forgetful makes servers send session tickets, and keeps none: each connection shows its certificate.
type forgetful struct{}

// Get implements tls.ClientSessionCache.
func (forgetful) Get(string) (*tls.ClientSessionState, bool) { return nil, false }

// Put implements tls.ClientSessionCache.
func (forgetful) Put(string, *tls.ClientSessionState) {}

// handshakeError is an error of a TLS handshake: no request was sent.
type handshakeError struct{ cause error }

// Error implements error.
func (u *handshakeError) Error() string { return "the TLS handshake failed: " + u.cause.Error() }

// Unwrap gives the cause.
func (u *handshakeError) Unwrap() error { return u.cause }
