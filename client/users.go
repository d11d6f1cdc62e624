package client

import (
	"context"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/api/aweigh/v1/aweighv1connect"
)

// Users returns users and roles at the port of etcd's API.
func (c *Client) Users(ctx context.Context) (*aweighv1.UsersResponse, error) {
	return read(ctx, c, aweighv1connect.NodeClient.Users, &aweighv1.UsersRequest{Linearizable: true})
}

// WhoAmI returns the caller that a node takes the client for, and its rights.
func (c *Client) WhoAmI(ctx context.Context) (*aweighv1.WhoAmIResponse, error) {
	return read(ctx, c, aweighv1connect.NodeClient.WhoAmI, &aweighv1.WhoAmIRequest{})
}

// DisableUsers allows every client there again. The node must be on this machine.
func (c *Client) DisableUsers(ctx context.Context, once *aweighv1.Once) (*aweighv1.DisableUsersResponse, error) {
	req := &aweighv1.DisableUsersRequest{Once: once}
	fresh := fill(&req.Once)
	return write(ctx, c, aweighv1connect.NodeClient.DisableUsers, req, req.Once, fresh)
}
