package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/api/aweigh/v1/aweighv1connect"
	"github.com/aweigh/aweigh/scope"
)

// Get reads the newest version of one key. The error wraps ErrNotFound if there
// is none.
func (c *Client) Get(ctx context.Context, key []byte) (*aweighv1.KeyValue, error) {
	resp, err := c.Range(ctx, &aweighv1.RangeRequest{Key: key})
	if err != nil {
		return nil, err
	}
	if len(resp.Kvs) == 0 {
		return nil, fmt.Errorf("%w: %q", ErrNotFound, key)
	}
	return resp.Kvs[0], nil
}

// Range reads keys.
func (c *Client) Range(ctx context.Context, req *aweighv1.RangeRequest) (*aweighv1.RangeResponse, error) {
	return read(ctx, c, aweighv1connect.NodeClient.Range, req)
}

// History lists what happened to the object under a key, newest first.
func (c *Client) History(ctx context.Context, req *aweighv1.HistoryRequest) (*aweighv1.HistoryResponse, error) {
	return read(ctx, c, aweighv1connect.NodeClient.History, req)
}

// Prove asks for the proof of a key's newest change. The proof comes from a
// node unverified: call its Verify with a network identity that you trust.
func (c *Client) Prove(ctx context.Context, key []byte) (*scope.KeyProof, error) {
	resp, err := read(ctx, c, aweighv1connect.NodeClient.Prove, &aweighv1.ProveRequest{Key: key})
	if err != nil {
		return nil, err
	}
	return scope.DecodeKeyProof(resp.Proof)
}

// Checkpoint asks for the head of a scope's history; old are the entries of an older
// head with which it is to be proven consistent, or 0. The result is verified: it leads
// from the network's identity, and all cosignatures are of anchors of the scope, on the
// text. Errors wrap scope.ErrProof if it does not verify.
func (c *Client) Checkpoint(ctx context.Context, network aweigh.NetworkID, old int64, cosign bool) (*Checkpoint, error) {
	resp, err := read(ctx, c, aweighv1connect.NodeClient.Checkpoint, &aweighv1.CheckpointRequest{Old: old, Cosign: cosign})
	if err != nil {
		return nil, err
	}
	return checkpoint(resp, network, old)
}

// Status returns a node's report about itself, its scope and its peers.
func (c *Client) Status(ctx context.Context) (*aweighv1.StatusResponse, error) {
	return read(ctx, c, aweighv1connect.NodeClient.Status, &aweighv1.StatusRequest{})
}

// Invite gives an invite, with which other nodes can join the network.
func (c *Client) Invite(ctx context.Context, req *aweighv1.InviteRequest) (*aweighv1.InviteResponse, error) {
	return read(ctx, c, aweighv1connect.NodeClient.Invite, req)
}

// Genesis returns the network's genesis, as the node has it.
func (c *Client) Genesis(ctx context.Context) (scope.Genesis, error) {
	resp, err := read(ctx, c, aweighv1connect.NodeClient.Genesis, &aweighv1.GenesisRequest{})
	if err != nil {
		return scope.Genesis{}, err
	}
	return scope.DecodeGenesis(resp.Genesis)
}

// Watch calls each for every response of a watch, until it returns an error,
// which Watch returns, or ctx ends. When a node goes away it continues at
// another, from the revision after the last one delivered; when all stay away
// for a while, or when ctx ends, the error is a *Gone.
func (c *Client) Watch(ctx context.Context, req *aweighv1.WatchRequest, each func(*aweighv1.WatchResponse) error) error {
	next := req.StartRevision
	created := false
	seen := time.Now() // when a node was there last
	var away error     // why no node answers, once one did
	for {
		var err, stop error
		c.order(ctx, func(e *endpoint) bool {
			again := &aweighv1.WatchRequest{
				Key: req.Key, RangeEnd: req.RangeEnd, StartRevision: next, PrevKv: req.PrevKv, Progress: req.Progress,
			}
			received := false
			err = e.watch(ctx, again, func(w *aweighv1.WatchResponse) error {
				received, seen, away = true, time.Now(), nil
				if w.Created {
					if next == 0 {
						next = w.Header.Revision + 1
					}
					if created {
						return nil
					}
					created = true
				} else {
					next = w.Header.Revision + 1
				}
				stop = each(w)
				return stop
			})
			if received {
				seen = time.Now()
			}
			return received || !errors.Is(err, ErrUnreachable)
		})
		switch {
		case stop != nil:
			return stop
		case ctx.Err() != nil && away == nil:
			return ctx.Err()
		case created && errors.Is(err, ErrUnreachable), away != nil && ctx.Err() != nil:
			if away = cmp.Or(away, err); time.Since(seen) > retryFor || sleep(ctx, watchRetryDelay) != nil {
				return &Gone{Next: next, Cause: away}
			}
		default:
			return err
		}
	}
}

func (e *endpoint) watch(ctx context.Context, req *aweighv1.WatchRequest, each func(*aweighv1.WatchResponse) error) error {
	err, stop := receive(ctx, e, aweighv1connect.NodeClient.Watch, req, each)
	if stop != nil {
		return stop
	}
	if err != nil && (ctx.Err() != nil || connect.CodeOf(err) != connect.CodeCanceled) {
		return e.named(translate(err)) // else the node stops
	}
	return fmt.Errorf("%w: the watch ended", ErrUnreachable)
}
