package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/aweigh/aweigh/internal/certs"
)

// port splits the connections of one address into those of gRPC and those of HTTP/1. Under TLS the protocol that is
// negotiated tells (RFC 7301): a client that can speak HTTP/1.1 too gets that, since clients of gRPC offer HTTP/2
// alone. Without TLS the first bytes tell (RFC 9113, section 3.4). gRPC's connections are served by its own transport
// in any case, at the same cost as on a port of its own.
type port struct {
	net.Listener
	tls        *tls.Config // nil: clients come as they are
	grpc, http *part
	ctx        context.Context // ends the handshakes that are under way
	routing    sync.WaitGroup
}

func newPort(ctx context.Context, l net.Listener, secure *tls.Config) *port {
	if secure != nil {
		l = certs.Listener(l)
	}
	return &port{Listener: l, tls: alpn(secure), grpc: newPart(l.Addr()), http: newPart(l.Addr()), ctx: ctx}
}

// protocols are those that TLS negotiates, in the order of preference.
var protocols = []string{"http/1.1", "h2"}

// alpn is the settings with the protocols, whichever settings a handshake gets.
func alpn(c *tls.Config) *tls.Config {
	if c == nil {
		return nil
	}
	c = c.Clone()
	c.NextProtos = protocols
	if choose := c.GetConfigForClient; choose != nil {
		c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			chosen, err := choose(hello)
			if chosen != nil && !slices.Equal(chosen.NextProtos, protocols) {
				chosen = chosen.Clone()
				chosen.NextProtos = protocols
			}
			return chosen, err
		}
	}
	return c
}

// run accepts connections until the listener is closed, and ends both parts.
func (p *port) run() error {
	defer func() {
		p.routing.Wait()
		_, _ = p.grpc.Close(), p.http.Close()
	}()
	for wait := 5 * time.Millisecond; ; {
		c, err := p.Accept()
		if err == nil {
			wait = 5 * time.Millisecond
			p.routing.Add(1)
			go p.route(c)
			continue
		}
		var temporary interface{ Temporary() bool } // as too many open files are: grpc-go and net/http wait as well
		if !errors.As(err, &temporary) || !temporary.Temporary() {
			return err
		}
		select {
		case <-time.After(wait):
			wait = min(2*wait, time.Second)
		case <-p.ctx.Done():
		}
	}
}

// route hands a connection over once it has shaken hands and shows which protocol it speaks.
func (p *port) route(c net.Conn) {
	defer p.routing.Done()
	ended := context.AfterFunc(p.ctx, func() { _ = c.Close() })
	r, to, err := p.greet(c)
	if !ended() || err != nil || !to.give(r) {
		_ = c.Close() // nothing is left to say to it
	}
}

func (p *port) greet(c net.Conn) (r *routed, to *part, err error) {
	if err := c.SetDeadline(time.Now().Add(greeting)); err != nil {
		return nil, nil, err
	}
	r = &routed{Conn: c}
	if p.tls == nil {
		_, r.info, _ = insecure.NewCredentials().ServerHandshake(c)
		to, err = p.peek(r)
	} else {
		secure := tls.Server(c, p.tls)
		err = secure.HandshakeContext(p.ctx)
		state := secure.ConnectionState()
		r.Conn, r.info = secure, credentials.TLSInfo{State: state, CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}}
		if to = p.http; state.NegotiatedProtocol == "h2" {
			to = p.grpc
		}
	}
	if err != nil {
		return nil, nil, err
	}
	return r, to, c.SetDeadline(time.Time{})
}

// preface is how a connection of HTTP/2 begins; no method of HTTP/1 does.
const preface = "PRI"

// peek reads the first bytes of a connection, and leaves them to be read.
func (p *port) peek(r *routed) (*part, error) {
	var first [len(preface)]byte
	for n := range first {
		if _, err := r.Conn.Read(first[n : n+1]); err != nil {
			return nil, err
		}
		r.read = first[:n+1]
		if first[n] != preface[n] {
			return p.http, nil
		}
	}
	return p.grpc, nil
}

// routed is a connection that has shaken hands.
type routed struct {
	net.Conn
	info credentials.AuthInfo
	read []byte // what was read of it already
}

// Read implements net.Conn.
func (r *routed) Read(b []byte) (int, error) {
	if len(r.read) > 0 {
		n := copy(b, r.read)
		r.read = r.read[n:]
		return n, nil
	}
	return r.Conn.Read(b)
}

// part is the connections of one protocol, as a listener.
type part struct {
	addr  net.Addr
	conns chan net.Conn
	done  chan struct{}
	close func()
}

func newPart(addr net.Addr) *part {
	x := &part{addr: addr, conns: make(chan net.Conn), done: make(chan struct{})}
	x.close = sync.OnceFunc(func() { close(x.done) })
	return x
}

// give reports whether a listener takes the connection.
func (x *part) give(c net.Conn) bool {
	select {
	case x.conns <- c:
		return true
	case <-x.done:
		return false
	}
}

// Accept implements net.Listener.
func (x *part) Accept() (net.Conn, error) {
	select {
	case c := <-x.conns:
		return c, nil
	case <-x.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (x *part) Close() error {
	x.close()
	return nil
}

// Addr implements net.Listener.
func (x *part) Addr() net.Addr { return x.addr }

// greeted are the credentials of a server whose connections have shaken hands.
type greeted struct {
	credentials.TransportCredentials
}

func newGreeted() greeted { return greeted{insecure.NewCredentials()} }

// gatewayInfo marks the connection of the gateway to the server that it is part of. Its calls are those of the
// gateway's clients, who say who they are with each.
type gatewayInfo struct{ credentials.CommonAuthInfo }

// AuthType implements credentials.AuthInfo.
func (gatewayInfo) AuthType() string { return "gateway" }

// ServerHandshake implements credentials.TransportCredentials. Only the gateway's connection was not routed.
func (greeted) ServerHandshake(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if r, ok := c.(*routed); ok {
		return c, r.info, nil
	}
	return c, gatewayInfo{credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}}, nil
}

// Clone implements credentials.TransportCredentials.
func (g greeted) Clone() credentials.TransportCredentials { return g }
