package client

import (
	"context"
	"net/http"

	"connectrpc.com/connect"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/api/aweigh/v1/aweighv1connect"
)

// scopeHeader is api.ScopeHeader.
const scopeHeader = "Aweigh-Scope"

// In is a client of one scope of the network, by its prefix, or the start of its
// identity in hex: for requests about its anchors, its rules and its decisions.
// Requests about keys need no such client: they go to the scope that decides about
// them. It shares its connections with c and is closed with it; "" gives c itself.
func (c *Client) In(scope string) *Client {
	if scope == "" {
		return c
	}
	in := &Client{in: scope}
	for _, e := range c.endpoints {
		node := aweighv1connect.NewNodeClient(&http.Client{Transport: e.http}, e.url,
			connect.WithReadMaxBytes(maxAnswer), connect.WithInterceptors(inScope(scope)))
		in.endpoints = append(in.endpoints, &endpoint{place: e.place, http: e.http, node: node, conn: e.conn})
	}
	in.preferred.Store(c.preferred.Load())
	return in
}

// inScope names a scope in every request.
type inScope string

// WrapUnary implements connect.Interceptor.
func (s inScope) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		if req.Spec().Procedure != aweighv1connect.NodeScopesProcedure { // which is about all
			req.Header().Set(scopeHeader, string(s))
		}
		return next(ctx, req)
	}
}

// WrapStreamingClient implements connect.Interceptor.
func (s inScope) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		conn := next(ctx, spec)
		conn.RequestHeader().Set(scopeHeader, string(s))
		return conn
	}
}

// WrapStreamingHandler implements connect.Interceptor.
func (inScope) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

// Namespace is Scopes with the source of the answer: a quorum of the root scope, or one node if no quorum
// answers.
func (c *Client) Namespace(ctx context.Context) (*aweighv1.ScopesResponse, error) {
	return read(ctx, c, aweighv1connect.NodeClient.Scopes, &aweighv1.ScopesRequest{Linearizable: true})
}

// Scopes lists the scopes that a node follows: the root's first, and a child after its
// parent.
func (c *Client) Scopes(ctx context.Context) ([]*aweighv1.Scope, error) {
	resp, err := read(ctx, c, aweighv1connect.NodeClient.Scopes, &aweighv1.ScopesRequest{})
	return resp.GetScopes(), err
}

// Islands lists the islands of a scope: those that the node's anchor is a member of, and those on the scope's record.
func (c *Client) Islands(ctx context.Context, req *aweighv1.IslandsRequest) (*aweighv1.IslandsResponse, error) {
	return read(ctx, c, aweighv1connect.NodeClient.Islands, req)
}
