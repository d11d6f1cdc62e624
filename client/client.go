// Package client calls the API of Aweigh nodes (api/aweigh/v1).
//
// A Client knows one or more nodes of one network. Reads go to any of them; a node that cannot be reached,
// or does not answer a probe, is skipped. Writes carry a nonce, and a write whose outcome is unknown is only
// ever repeated at the node that may have taken it, with the same nonce, so that it applies at most once.
//
//	c, err := client.Dial("unix:///var/lib/aweigh/run/api.sock")
//	_, err = c.Put(ctx, &aweighv1.PutRequest{Key: []byte("/greeting"), Value: []byte("hello")})
//	kv, err := c.Get(ctx, []byte("/greeting"))
//
// Reads and writes of keys go over connections that are upgraded to gRPC where the
// node and the proxies in between allow that, and by Connect where not.
//
// Errors wrap one of the errors of this package, to be found with errors.Is.
package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/aweigh/aweigh/api/aweigh/v1/aweighv1connect"
)

// Client calls the nodes that it was dialled to. Safe for concurrent use.
type Client struct {
	endpoints []*endpoint
	preferred atomic.Int64 // index of the endpoint that answered last
	in        string       // the scope, as In has it
}

// endpoint is one node.
type endpoint struct {
	place
	node aweighv1connect.NodeClient
	conn *grpc.ClientConn // upgraded
	http *http.Transport
	live liveness
}

// maxAnswer bounds an answer, in bytes.
const maxAnswer = 64 << 20

// Dial makes a client of the nodes at the addresses: host:port, a URL of that with http:// or https://, or unix:// and
// the path of a node's socket. It connects when there is something to ask.
func Dial(addresses ...string) (*Client, error) { return DialTLS(nil, addresses...) }

// DialTLS is Dial with the settings of connections with TLS: the issuers of the nodes' certificates, and a certificate
// of the client, which nodes ask for. An address without a scheme then is one with TLS. Without settings only one that
// begins with https:// is.
func DialTLS(secure *tls.Config, addresses ...string) (*Client, error) {
	return DialAs(Credentials{TLS: secure}, addresses...)
}

// Credentials are what a client shows of itself.
type Credentials struct {
	TLS *tls.Config // as DialTLS takes it; may be nil
	// Token, if not nil, returns the token of each request. It is sent over TLS, to a socket, or to a loopback address.
	Token func(context.Context) (string, error)
}

// DialAs is Dial with credentials.
func DialAs(own Credentials, addresses ...string) (*Client, error) {
	if len(addresses) == 0 {
		return nil, fmt.Errorf("%w: no address", ErrInvalid)
	}
	c := &Client{}
	for _, a := range addresses {
		p, err := placeOf(a, own.TLS)
		if p.token = own.Token; err == nil && p.token != nil && p.readable() {
			err = fmt.Errorf("%w: a token goes to another machine over TLS alone: https://%s", ErrInvalid, p.host)
		}
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		e, err := newEndpoint(p)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.endpoints = append(c.endpoints, e)
	}
	return c, nil
}

func newEndpoint(p place) (*endpoint, error) {
	protocols := new(http.Protocols)
	protocols.SetHTTP2(p.tls != nil)
	protocols.SetUnencryptedHTTP2(p.tls == nil)
	t := &http.Transport{
		Protocols:      protocols,
		DialContext:    func(ctx context.Context, _, _ string) (net.Conn, error) { return p.connect(ctx) },
		DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return p.connectTLS(ctx, "h2") },
		HTTP2:          &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}
	// Connect's own protocol costs about a fifth less than gRPC over net/http on
	// both sides together (BenchmarkProtocols).
	node := aweighv1connect.NewNodeClient(&http.Client{Transport: p.bearing(t)}, p.url, connect.WithReadMaxBytes(maxAnswer))
	u, err := upgrading(p, node)
	if err != nil {
		return nil, err
	}
	return &endpoint{place: p, http: t, node: u, conn: u.conn}, nil
}

// Addresses are those of the nodes, in the order given to Dial.
func (c *Client) Addresses() []string {
	out := make([]string, len(c.endpoints))
	for i, e := range c.endpoints {
		out[i] = e.address
	}
	return out
}

// Close closes the connections. Calls in progress may fail. Closing twice is harmless.
func (c *Client) Close() (err error) {
	for _, e := range c.endpoints {
		e.http.CloseIdleConnections()
		if again := e.conn.Close(); status.Code(again) != codes.Canceled { // it was closed before
			err = errors.Join(err, again)
		}
	}
	return err
}

// order visits the endpoints, the preferred one first. With several, those that do not answer a probe come last.
func (c *Client) order(ctx context.Context, visit func(*endpoint) (done bool)) {
	first, silent := int(c.preferred.Load()), []int(nil)
	try := func(at int) bool {
		e := c.endpoints[at]
		if !visit(e) {
			return false
		}
		e.live.found(ctx, ctx.Err() == nil)
		c.preferred.Store(int64(at))
		return true
	}
	for i := range c.endpoints {
		at := (first + i) % len(c.endpoints)
		if len(c.endpoints) > 1 && !c.endpoints[at].answers(ctx) {
			silent = append(silent, at)
		} else if try(at) {
			return
		}
	}
	for _, at := range silent {
		if try(at) {
			return
		}
	}
}

// method is a method of the API, such as aweighv1connect.NodeClient.Range.
type method[Req, Resp any] func(aweighv1connect.NodeClient, context.Context, *connect.Request[Req]) (*connect.Response[Resp], error)

// at makes one request to a node.
func (f method[Req, Resp]) at(ctx context.Context, e *endpoint, req *Req) (*Resp, error) {
	resp, err := f(e.node, ctx, connect.NewRequest(req))
	if err != nil {
		return nil, translate(err)
	}
	return resp.Msg, nil
}

// read asks the nodes in turn until one can answer.
func read[Req, Resp any](ctx context.Context, c *Client, ask method[Req, Resp], req *Req) (resp *Resp, err error) {
	var failed []error // of the nodes asked so far that could not answer, and of one that took too long
	c.order(ctx, func(e *endpoint) bool {
		if resp, err = ask.at(ctx, e, req); err == nil {
			return true
		}
		next, late := elsewhere(err) && ctx.Err() == nil, errors.Is(err, context.DeadlineExceeded)
		if next || late {
			failed = append(failed, fmt.Errorf("%s: %w", e.address, err))
		}
		return !next
	})
	if err != nil && (len(failed) == len(c.endpoints) || errors.Is(err, context.DeadlineExceeded)) {
		return nil, errors.Join(failed...)
	}
	return resp, err
}

// receive gives each what a stream of a node brings. It returns stopped if the stream cannot be opened, or if each
// fails, and otherwise the error with which the stream ended, nil if the node ended it.
func receive[Req, Resp any](ctx context.Context, e *endpoint,
	open func(aweighv1connect.NodeClient, context.Context, *connect.Request[Req]) (*connect.ServerStreamForClient[Resp], error),
	req *Req, each func(*Resp) error) (ended, stopped error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := open(e.node, ctx, connect.NewRequest(req))
	if err != nil {
		return nil, translate(err)
	}
	defer stream.Close()
	for stream.Receive() {
		if err := each(stream.Msg()); err != nil {
			return nil, err
		}
	}
	return stream.Err(), nil
}

// elsewhere reports whether another node may be able to answer a read.
func elsewhere(err error) bool {
	return errors.Is(err, ErrUnreachable) || errors.Is(err, ErrBusy) || errors.Is(err, ErrUnread) || errors.Is(err, ErrNotHeld)
}
