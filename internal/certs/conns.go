package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"slices"
	"sync"
	"time"
)

// lookAgain is how often the certificate of a connection's client is looked at again, and after which time the files
// are: a connection ends within three times as long.
const lookAgain = time.Second / 2

// ErrEnded ends a connection whose client certificate has ended, was revoked, or is of an issuer that is not trusted
// any more.
var ErrEnded = errors.New("certs: the client's certificate is not good any more")

// Listener returns a listener whose connections end when the client's certificate does: nothing is read from them any
// more, and within 2 s they are closed, with their requests and streams. A client that has another certificate by
// then connects again. The connections are those below TLS, of a server with the settings of Server.
func Listener(l net.Listener) net.Listener { return listener{l} }

type listener struct{ net.Listener }

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c}, nil
}

// conn is a connection of a client that may have shown a certificate.
type conn struct {
	net.Conn

	mu     sync.Mutex
	good   func() bool // nil: the client showed none
	look   *time.Timer
	closed bool
}

// watch closes the connection when the client's certificate is not good any more.
func (c *conn) watch(good func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.look != nil {
		return
	}
	c.good = good
	c.look = time.AfterFunc(lookAgain, func() {
		if !good() {
			_ = c.Close()
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.closed {
			c.look.Reset(lookAgain)
		}
	})
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		return n, err
	}
	c.mu.Lock()
	good := c.good
	c.mu.Unlock()
	if good != nil && !good() {
		return 0, errors.Join(ErrEnded, c.Close())
	}
	return n, nil
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.mu.Lock()
	c.closed = true
	if c.look != nil {
		c.look.Stop()
	}
	c.mu.Unlock()
	return c.Conn.Close()
}

// forClient returns the settings for a handshake, which hand the client's certificate to the connection.
func (r *reloading) forClient(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	config := r.current().config
	c, ok := hello.Conn.(*conn)
	if !ok || config.ClientCAs == nil {
		return config, nil
	}
	config = config.Clone()
	verify := config.VerifyConnection
	config.VerifyConnection = func(s tls.ConnectionState) error {
		if verify != nil {
			if err := verify(s); err != nil {
				return err
			}
		}
		if len(s.VerifiedChains) > 0 {
			c.watch(func() bool { return r.good(s.VerifiedChains) })
		}
		return nil
	}
	return config, nil
}

// good reports whether one of the chains of a client's certificate holds now.
func (r *reloading) good(chains [][]*x509.Certificate) bool {
	of, now := r.recent(), r.now()
	for _, chain := range chains {
		ended := func(c *x509.Certificate) bool { return now.After(c.NotAfter) }
		if len(chain) > 0 && of.trusted[string(chain[len(chain)-1].Raw)] && !of.lists.any(chain) && !slices.ContainsFunc(chain, ended) {
			return true
		}
	}
	return false
}

// recent returns the content of the files, and has them looked at if that was longer ago than lookAgain. It waits for
// no file.
func (r *reloading) recent() *content {
	r.mu.Lock()
	stale, c := time.Since(r.looked) >= lookAgain, r.content
	r.mu.Unlock()
	if stale && r.reading.TryLock() {
		go func() {
			defer r.reading.Unlock()
			r.again()
		}()
	}
	return c
}
