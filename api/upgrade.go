package api

import (
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/aweigh/aweigh/internal/authn"
)

// upgradeProtocol is the protocol to which a client may upgrade a connection, by GET
// upgradePath (RFC 9110, section 7.8): gRPC from there on, as grpc-go has it,
// which takes half of what HTTP/2 in net/http does. It serves the methods of
// keys only, for small requests.
const (
	upgradeProtocol = "aweigh-grpc"
	upgradePath     = "/aweigh.v1.Node"
)

// maxUpgraded bounds a request on an upgraded connection, in bytes. It is small so
// that as many requests as are taken at once have bounded bodies together.
const maxUpgraded = maxBodies / maxCalls

// maxUpgrades bounds the upgraded connections of a server.
const maxUpgrades = 1024

// upgrades are the connections that were upgraded: a handler of requests to
// upgrade and, for the server of their calls, a listener. If new ones had to
// wait, idle ones could keep all clients out, so the one that is idle for
// longest is closed instead.
type upgrades struct {
	addr net.Addr
	most int
	next chan net.Conn

	mu     sync.Mutex
	all    map[*upgraded]struct{}
	closed chan struct{}
}

func newUpgrades(most int) *upgrades {
	return &upgrades{
		most: most, next: make(chan net.Conn), all: make(map[*upgraded]struct{}), closed: make(chan struct{}),
	}
}

// upgraded is a connection that gives up on a client that does not read.
type upgraded struct {
	net.Conn
	of   *upgrades
	info credentials.AuthInfo // what it shows of the client
	last atomic.Int64         // when it was not silent, ns
}

// before serves requests to upgrade by one handler, which is not to bound them as
// requests, and all others by another.
func (u *upgrades) before(upgrade, others http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == upgradePath && r.Method == http.MethodGet && r.Body == http.NoBody {
			upgrade.ServeHTTP(w, r)
			return
		}
		others.ServeHTTP(w, r)
	})
}

// ServeHTTP implements http.Handler.
func (u *upgrades) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	hijacker, ok := w.(http.Hijacker)
	if !ok || r.Header.Get("Upgrade") != upgradeProtocol {
		w.Header().Set("Upgrade", upgradeProtocol)
		http.Error(w, "aweigh: this path is for HTTP/1.1 connections that upgrade to "+upgradeProtocol, http.StatusUpgradeRequired)
		return
	}
	conn, buffered, err := hijacker.Hijack()
	if err != nil {
		return // it is gone
	}
	if buffered.Reader.Buffered() > 0 { // it did not wait for the answer
		_ = conn.Close()
		return
	}
	c := &upgraded{Conn: conn, of: u, info: infoOf(r)}
	c.last.Store(time.Now().UnixNano())
	_ = conn.SetDeadline(time.Time{})
	if ok = u.add(c); ok { // it counts before the client knows, so that no later one comes first
		_, err = c.Write([]byte("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + upgradeProtocol + "\r\n\r\n"))
	}
	if !ok || err != nil {
		_ = c.Close()
		return
	}
	select {
	case u.next <- c:
	case <-u.closed:
		_ = c.Close()
	}
}

// infoOf is what the connection of a request shows of the client.
func infoOf(r *http.Request) credentials.AuthInfo {
	private := credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}
	switch of := authn.OfHTTP(r); {
	case of.TLS != nil:
		return credentials.TLSInfo{State: *of.TLS, CommonAuthInfo: private}
	case of.UID != nil:
		return authn.SocketInfo{UID: *of.UID, CommonAuthInfo: private}
	}
	_, info, _ := insecure.NewCredentials().ServerHandshake(nil)
	return info
}

// shown are the credentials of a server whose connections were upgraded.
type shown struct {
	credentials.TransportCredentials
}

// ServerHandshake implements credentials.TransportCredentials.
func (s shown) ServerHandshake(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if u, ok := c.(*upgraded); ok {
		return c, u.info, nil
	}
	return s.TransportCredentials.ServerHandshake(c)
}

// Clone implements credentials.TransportCredentials.
func (s shown) Clone() credentials.TransportCredentials { return s }

// add counts a connection, and closes the one that has been silent for longest if
// there are too many.
func (u *upgrades) add(c *upgraded) bool {
	u.mu.Lock()
	var excess *upgraded
	if len(u.all) >= u.most {
		for x := range u.all {
			if excess == nil || x.last.Load() < excess.last.Load() {
				excess = x
			}
		}
		delete(u.all, excess)
	}
	u.all[c] = struct{}{}
	u.mu.Unlock()
	if excess != nil {
		_ = excess.Close()
	}
	select {
	case <-u.closed:
		return false
	default:
		return true
	}
}

// Accept implements net.Listener.
func (u *upgrades) Accept() (net.Conn, error) {
	select {
	case c := <-u.next:
		return c, nil
	case <-u.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (u *upgrades) Close() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	select {
	case <-u.closed:
	default:
		close(u.closed)
	}
	return nil
}

// Addr implements net.Listener.
func (u *upgrades) Addr() net.Addr { return u.addr }

// Read implements net.Conn.
func (c *upgraded) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.last.Store(time.Now().UnixNano())
	return n, err
}

// Write implements net.Conn.
func (c *upgraded) Write(p []byte) (int, error) {
	_ = c.Conn.SetWriteDeadline(time.Now().Add(writeTime))
	return c.Conn.Write(p)
}

// Close implements net.Conn.
func (c *upgraded) Close() error {
	c.of.mu.Lock()
	delete(c.of.all, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
