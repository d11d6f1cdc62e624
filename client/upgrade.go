package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/api/aweigh/v1/aweighv1connect"
)

// The limits of an upgraded connection of a node: see api.Upgrade.
const (
	upgradeTo   = "aweigh-grpc"
	upgradePath = "/aweigh.v1.Node"
	maxUpgraded = 64 << 10
	longest     = time.Minute
)

// upgraded calls the methods of keys over a connection that is upgraded to gRPC,
// which costs both sides half, and all other methods by Connect: also requests
// that are large or may take long, and those that could not be sent, as where a
// proxy on the way does not upgrade connections.
type upgraded struct {
	aweighv1connect.NodeClient
	conn *grpc.ClientConn
}

// upgrading is a NodeClient that upgrades connections to a node.
func upgrading(p place, node aweighv1connect.NodeClient) (*upgraded, error) {
	dial := func(ctx context.Context, _ string) (net.Conn, error) { return upgrade(ctx, &p) }
	var own []grpc.DialOption
	if p.token != nil {
		own = append(own, grpc.WithPerRPCCredentials(perCall{&p}))
	}
	conn, err := grpc.NewClient("passthrough:///"+p.host, append(own, // TLS, if any, is below the upgrade
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(dial), grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 15 * time.Second}),
		grpc.WithConnectParams(grpc.ConnectParams{
			MinConnectTimeout: 2 * time.Second, // calls wait for it, and then go by Connect
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 2, Jitter: 0.2, MaxDelay: 5 * time.Second},
		}))...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return &upgraded{node, conn}, nil
}

// errNoUpgrade means that what answers at an address does not upgrade connections.
var errNoUpgrade = errors.New("client: the connection was not upgraded")

// upgrade makes a connection to a node that carries gRPC.
func upgrade(ctx context.Context, p *place) (net.Conn, error) {
	connect := p.connect
	if p.tls != nil {
		connect = func(ctx context.Context) (net.Conn, error) { return p.connectTLS(ctx, "http/1.1") }
	}
	conn, err := connect(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	r := bufio.NewReader(conn)
	var token string
	if p.token != nil {
		token, err = p.token(ctx)
	}
	if err == nil {
		err = ask(conn, r, p.host, token)
	}
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &begun{conn, r}, nil
}

// begun is a connection whose beginning was read already: the node's side of gRPC
// speaks first.
type begun struct {
	net.Conn
	r *bufio.Reader // nil when it holds nothing any more
}

// Read implements net.Conn.
func (c *begun) Read(p []byte) (int, error) {
	if c.r == nil {
		return c.Conn.Read(p)
	}
	if c.r.Buffered() > 0 {
		return c.r.Read(p[:min(len(p), c.r.Buffered())])
	}
	c.r = nil
	return c.Conn.Read(p)
}

func ask(conn net.Conn, r *bufio.Reader, host, token string) error {
	bearer := ""
	if token != "" {
		bearer = "Authorization: Bearer " + token + "\r\n"
	}
	_, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: %s\r\n%s\r\n",
		upgradePath, host, upgradeTo, bearer)
	if err != nil {
		return err
	}
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", errNoUpgrade, err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusSwitchingProtocols || resp.Header.Get("Upgrade") != upgradeTo {
		return fmt.Errorf("%w: %s", errNoUpgrade, resp.Status)
	}
	return nil
}

// Put implements aweighv1connect.NodeClient.
func (u *upgraded) Put(ctx context.Context, req *connect.Request[aweighv1.PutRequest]) (*connect.Response[aweighv1.PutResponse], error) {
	return invoke(ctx, u, aweighv1connect.NodePutProcedure, u.NodeClient.Put, req)
}

// Delete implements aweighv1connect.NodeClient.
func (u *upgraded) Delete(ctx context.Context, req *connect.Request[aweighv1.DeleteRequest]) (*connect.Response[aweighv1.DeleteResponse], error) {
	return invoke(ctx, u, aweighv1connect.NodeDeleteProcedure, u.NodeClient.Delete, req)
}

// Range implements aweighv1connect.NodeClient.
func (u *upgraded) Range(ctx context.Context, req *connect.Request[aweighv1.RangeRequest]) (*connect.Response[aweighv1.RangeResponse], error) {
	return invoke(ctx, u, aweighv1connect.NodeRangeProcedure, u.NodeClient.Range, req)
}

// Txn implements aweighv1connect.NodeClient.
func (u *upgraded) Txn(ctx context.Context, req *connect.Request[aweighv1.TxnRequest]) (*connect.Response[aweighv1.TxnResponse], error) {
	return invoke(ctx, u, aweighv1connect.NodeTxnProcedure, u.NodeClient.Txn, req)
}

// invoke makes one request, by gRPC if it can be sent so.
func invoke[Req, Resp any](ctx context.Context, u *upgraded, procedure string,
	otherwise func(context.Context, *connect.Request[Req]) (*connect.Response[Resp], error), req *connect.Request[Req]) (*connect.Response[Resp], error) {
	at, ok := ctx.Deadline()
	if ok && time.Until(at) > longest || proto.Size(any(req.Msg).(proto.Message)) > maxUpgraded {
		return otherwise(ctx, req)
	}
	resp := new(Resp)
	var to peer.Peer
	err := u.conn.Invoke(ctx, procedure, req.Msg, resp, grpc.Peer(&to))
	switch {
	case err == nil:
		return connect.NewResponse(resp), nil
	case to.Addr == nil && ctx.Err() == nil: // it was not sent
		return otherwise(ctx, req)
	}
	return nil, connectError(err)
}

// connectError is an error of gRPC as one of Connect, with the same code, text
// and details.
func connectError(err error) error {
	s := status.Convert(err)
	e := connect.NewError(connect.Code(s.Code()), errors.New(s.Message()))
	for _, d := range s.Proto().GetDetails() {
		if detail, err := connect.NewErrorDetail(d); err == nil {
			e.AddDetail(detail)
		}
	}
	return e
}
