package client

import (
	"context"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/api/aweigh/v1/aweighv1connect"
)

// Resolve finds the object that an alias names, or named until it was moved, and
// reads one of its versions. The error wraps ErrNotFound if there is none.
func (c *Client) Resolve(ctx context.Context, req *aweighv1.ResolveRequest) (*aweighv1.ResolveResponse, error) {
	return read(ctx, c, aweighv1connect.NodeClient.Resolve, req)
}

// Object returns the record of a UID, or of the only UID that begins so.
func (c *Client) Object(ctx context.Context, req *aweighv1.ObjectRequest) (*aweighv1.ObjectResponse, error) {
	return read(ctx, c, aweighv1connect.NodeClient.Object, req)
}

// Redirects lists moved aliases that still lead somewhere.
func (c *Client) Redirects(ctx context.Context, req *aweighv1.RedirectsRequest) (*aweighv1.RedirectsResponse, error) {
	return read(ctx, c, aweighv1connect.NodeClient.Redirects, req)
}

// Name changes which keys name an object. A Once that is missing, or incomplete,
// is filled in.
func (c *Client) Name(ctx context.Context, req *aweighv1.NameRequest) (*aweighv1.NameResponse, error) {
	fresh := fill(&req.Once)
	return write(ctx, c, aweighv1connect.NodeClient.Name, req, req.Once, fresh)
}
