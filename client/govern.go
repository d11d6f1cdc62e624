package client

import (
	"context"
	"fmt"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/api/aweigh/v1/aweighv1connect"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/scope"
)

// Trust returns the standing of every anchor and the pending decisions.
func (c *Client) Trust(ctx context.Context) (*aweighv1.TrustResponse, error) {
	return read(ctx, c, aweighv1connect.NodeClient.Trust, &aweighv1.TrustRequest{Linearizable: true})
}

// TrustUnder is Trust with what would follow under a policy. The error wraps
// ErrInvalid if the scope could not have it.
func (c *Client) TrustUnder(ctx context.Context, p scope.Policy) (*aweighv1.TrustResponse, error) {
	return read(ctx, c, aweighv1connect.NodeClient.Trust, &aweighv1.TrustRequest{Policy: canon.Encode(p), Linearizable: true})
}

// Topology returns where the changes of a scope go.
func (c *Client) Topology(ctx context.Context) (*aweighv1.TopologyResponse, error) {
	return read(ctx, c, aweighv1connect.NodeClient.Topology, &aweighv1.TopologyRequest{Linearizable: true})
}

// Explain lists what moved an anchor's trust, newest first.
func (c *Client) Explain(ctx context.Context, req *aweighv1.ExplainRequest) (*aweighv1.ExplainResponse, error) {
	return read(ctx, c, aweighv1connect.NodeClient.Explain, req)
}

// FollowEpochs verifies the handovers from an epoch, which must be known from a trusted
// source, to the newest one of the node: one certificate for each epoch (P26). each, if
// not nil, gets them as they come. Errors wrap scope.ErrProof if the node's answer does
// not verify.
func (c *Client) FollowEpochs(ctx context.Context, e *scope.Epoch, each func(scope.Handover, *scope.Epoch)) (*scope.Epoch, error) {
	for {
		resp, err := read(ctx, c, aweighv1connect.NodeClient.Handovers, &aweighv1.HandoversRequest{After: uint64(e.Start)})
		if err != nil {
			return nil, err
		}
		for _, raw := range resp.Handovers {
			var h scope.Handover
			if err := canon.Decode(raw, &h); err != nil {
				return nil, fmt.Errorf("%w: the handover of epoch %d: %w", scope.ErrProof, e.Number, err)
			}
			next, err := e.Follow(h)
			if err != nil {
				return nil, fmt.Errorf("%w: the handover of epoch %d: %w", scope.ErrProof, e.Number, err)
			}
			if e = next; each != nil {
				each(h, e)
			}
		}
		if !resp.More || len(resp.Handovers) == 0 {
			return e, nil
		}
	}
}

// Govern proposes or approves a decision with the anchor's key of a node, by the node's socket or with a certificate
// that its api-admins names. A Once that is missing, or incomplete, is filled in.
func (c *Client) Govern(ctx context.Context, d scope.Decision, once *aweighv1.Once) (*aweighv1.GovernResponse, error) {
	req := &aweighv1.GovernRequest{Decision: canon.Encode(d), Once: once}
	fresh := fill(&req.Once)
	return write(ctx, c, aweighv1connect.NodeClient.Govern, req, req.Once, fresh)
}

// Application returns what a node would sign to become an anchor: the encoding of a scope.Decision without the consent.
// The node takes such callers as Govern does.
func (c *Client) Application(ctx context.Context, sponsor []byte, name string) (*aweighv1.GovernResponse, error) {
	return read(ctx, c, aweighv1connect.NodeClient.Apply, &aweighv1.ApplyRequest{Sponsor: sponsor, Name: name})
}

// Apply asks the anchors to admit a node, which takes such callers as Govern does, by the application that Application
// returned. A Once that is missing, or incomplete, is filled in.
func (c *Client) Apply(ctx context.Context, req *aweighv1.ApplyRequest) (*aweighv1.GovernResponse, error) {
	fresh := fill(&req.Once)
	return write(ctx, c, aweighv1connect.NodeClient.Apply, req, req.Once, fresh)
}
