package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/api/aweigh/v1/aweighv1connect"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/scope"
)

// deceiver serves the API of a node, and lies about what keys hold.
type deceiver struct {
	aweighv1connect.UnimplementedNodeHandler
	node  aweighv1connect.NodeClient
	lie   atomic.Pointer[func(*scope.RangeProof)]
	fail  func(ctx context.Context) error // instead; nil: it answers
	asked atomic.Int64
}

// serve serves what the deceiver says, at a URL.
func (x *deceiver) serve(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(aweighv1connect.NewNodeHandler(x))
	mux.HandleFunc("/livez", func(http.ResponseWriter, *http.Request) {})
	s := httptest.NewUnstartedServer(mux)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	return s.URL
}

// Status implements aweighv1connect.NodeHandler.
func (x *deceiver) Status(ctx context.Context, r *connect.Request[aweighv1.StatusRequest]) (*connect.Response[aweighv1.StatusResponse], error) {
	return x.node.Status(ctx, connect.NewRequest(r.Msg))
}

// ProveRange implements aweighv1connect.NodeHandler.
func (x *deceiver) ProveRange(ctx context.Context, r *connect.Request[aweighv1.ProveRangeRequest]) (*connect.Response[aweighv1.ProveRangeResponse], error) {
	x.asked.Add(1)
	if x.fail != nil {
		return nil, x.fail(ctx)
	}
	resp, err := x.node.ProveRange(ctx, connect.NewRequest(r.Msg))
	if err != nil {
		return nil, err
	}
	p, err := scope.DecodeRangeProof(resp.Msg.Proof)
	if err != nil {
		return nil, err
	}
	(*x.lie.Load())(p)
	return connect.NewResponse(&aweighv1.ProveRangeResponse{Header: resp.Msg.Header, Proof: p.Encode()}), nil
}

// newProven is a running node, clients of it, and the identity of its network.
func newProven(t *testing.T) (*running, *ports, aweigh.NetworkID) {
	t.Helper()
	r := newRunning(t, 1)
	genesis, err := r.dirs[0].ReadGenesis()
	if err != nil {
		t.Fatal(err)
	}
	return r, newPorts(t, r.on[0]), genesis.Hash()
}

// write puts a key.
func (p *ports) write(key, value string) {
	p.t.Helper()
	put := &aweighv1.PutRequest{Key: []byte(key), Value: []byte(value)}
	if _, err := p.api("").Put(p.ctx, connect.NewRequest(put)); err != nil {
		p.t.Fatal(err)
	}
}

// TestVerifiedReadersAreNotDeceived: a reader that believes no node gets the truth from an honest one, whatever the
// first one says, and names the one that lied.
func TestVerifiedReadersAreNotDeceived(t *testing.T) {
	t.Parallel()
	r, p, network := newProven(t)
	p.write("/a", "old")
	p.write("/b", "1")
	old, err := p.api("").ProveRange(p.ctx, connect.NewRequest(&aweighv1.ProveRangeRequest{Key: []byte("/a"), RangeEnd: []byte("/c")}))
	if err != nil {
		t.Fatal(err)
	}
	p.write("/a", "new")
	x := &deceiver{node: p.api("")}
	liar := x.serve(t)
	for name, lie := range map[string]func(*scope.RangeProof){ // order-free: each with clients of its own
		"another value": func(p *scope.RangeProof) { p.Parts[0].Kvs[0].Value = []byte("false") },
		"a hidden key": func(p *scope.RangeProof) {
			p.Parts[0].Kvs = p.Parts[0].Kvs[:1]
			p.Parts[0].Leaves.Leaves = p.Parts[0].Leaves.Leaves[:1]
		},
		"nothing":       func(p *scope.RangeProof) { p.Parts[0].Kvs, p.Parts[0].Leaves.Leaves = nil, nil },
		"another range": func(p *scope.RangeProof) { p.End = []byte("/b") },
		"the past": func(p *scope.RangeProof) {
			was, err := scope.DecodeRangeProof(old.Msg.Proof)
			if err != nil {
				t.Error(err)
				return
			}
			*p = *was
		},
	} {
		x.lie.Store(&lie)
		both, err := client.Dial(liar, r.on[0].API())
		if err != nil {
			t.Fatal(err)
		}
		alone, err := client.Dial(liar)
		if err != nil {
			t.Fatal(err)
		}
		reader := both.Verified(network, 0, nil)
		if name == "the past" { // which a reader knows that has been here since
			honest := func(*scope.RangeProof) {}
			x.lie.Store(&honest)
			if _, _, err := reader.Range(p.ctx, []byte("/a"), []byte("/c")); err != nil {
				t.Fatal(err)
			}
			x.lie.Store(&lie)
		}
		asked := x.asked.Load()
		_, got, err := reader.Range(p.ctx, []byte("/a"), []byte("/c"))
		if err != nil || len(got.Kvs) != 2 || string(got.Kvs[0].Value) != "new" {
			t.Errorf("%s: %+v, %v", name, got.Kvs, err)
		}
		if x.asked.Load() == asked {
			t.Errorf("%s: the liar was not asked", name)
		}
		only := alone.Verified(network, 0, nil)
		if name == "the past" {
			only = alone.Verified(network, 1, nil) // a nanosecond: no answer is as new
		}
		_, _, err = only.Range(p.ctx, []byte("/a"), []byte("/c"))
		if !errors.Is(err, scope.ErrProof) || !strings.Contains(err.Error(), strings.TrimPrefix(liar, "http://")) {
			t.Errorf("%s, from the liar alone: %v", name, err)
		}
		for _, c := range []*client.Client{both, alone} {
			c.Close()
		}
	}
	honest, err := client.Dial(r.on[0].API())
	if err != nil {
		t.Fatal(err)
	}
	defer honest.Close()
	reader := honest.Verified(network, 0, nil)
	if v, err := reader.Get(p.ctx, []byte("/a")); err != nil || string(v.Value) != "new" {
		t.Error(v, err)
	}
	if _, err := reader.Get(p.ctx, []byte("/none")); !errors.Is(err, client.ErrNotFound) {
		t.Error(err)
	}
}

// TestVerifiedReadsBesideEachOtherAccuseNoNode: an answer to a read is not measured by what another read found that
// ended before it.
func TestVerifiedReadsBesideEachOtherAccuseNoNode(t *testing.T) {
	t.Parallel()
	r, p, network := newProven(t)
	c, err := client.Dial(r.on[0].API())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	reader := c.Verified(network, 0, nil)
	reader.Refused = func(node string, err error) { t.Errorf("%s is accused: %v", node, err) }
	var readers sync.WaitGroup
	for range 16 {
		readers.Go(func() {
			for range 30 {
				if _, _, err := reader.Range(p.ctx, []byte("/a"), []byte("/z")); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range 60 {
		p.write("/a", fmt.Sprint(i))
	}
	readers.Wait()
}

// TestVerifiedReadersGoOnWhateverANodeSays: a node that denies, fails or stalls keeps no reader from the others, and is
// not asked first again.
func TestVerifiedReadersGoOnWhateverANodeSays(t *testing.T) {
	t.Parallel()
	r, p, network := newProven(t)
	for name, fail := range map[string]func(context.Context) error{ // order-free: each with clients of its own
		"denies": func(context.Context) error {
			return connect.NewError(connect.CodePermissionDenied, errors.New("denied"))
		},
		"fails":  func(context.Context) error { return connect.NewError(connect.CodeInternal, errors.New("broken")) },
		"stalls": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		x := &deceiver{node: p.api(""), fail: fail}
		c, err := client.Dial(x.serve(t), r.on[0].API())
		if err != nil {
			t.Fatal(err)
		}
		reader := c.Verified(network, 0, nil)
		reader.Refused = func(node string, err error) { t.Errorf("%s: %s is accused: %v", name, node, err) }
		for range 3 {
			ctx, cancel := context.WithTimeout(p.ctx, 4*time.Second)
			if _, _, err := reader.Range(ctx, []byte("/a"), nil); err != nil {
				t.Errorf("a node %s: %v", name, err)
			}
			cancel()
		}
		if n := x.asked.Load(); n != 1 {
			t.Errorf("a node %s: it was asked %d times, not once", name, n)
		}
		c.Close()
	}
}
