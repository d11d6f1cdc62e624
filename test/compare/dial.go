package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/etcd/etcdpb"
)

// putter writes one key, through one connection.
type putter func(ctx context.Context, key string, value []byte) error

// isolated is a system that is written to from here, so that its prefixes can be told apart.
type isolated interface {
	system
	// dial makes connections to one member, once the prefixes have scopes where there are such.
	dial(ctx context.Context, c *cluster, connections int, prefixes ...string) (all []putter, hangUp func(), err error)
}

// eachIsolated does something with every system that can be isolated, in turn: with putters of connections to one member.
func (r *runner) eachIsolated(ctx context.Context, connections int, prefixes []string, do func(at int, all []putter) error) error {
	return r.turns(func(repetition, at int) error {
		s, ok := r.systems[at].(isolated)
		if !ok {
			return nil
		}
		return r.with(ctx, repetition, at, func(c *cluster, err error) error {
			if err != nil {
				return err
			}
			putters, hangUp, err := s.dial(ctx, c, connections, prefixes...)
			if err != nil {
				return err
			}
			defer hangUp()
			return do(at, putters)
		})
	})
}

// dial implements isolated.
func (a *aweigh) dial(ctx context.Context, c *cluster, connections int, prefixes ...string) (all []putter, hangUp func(), err error) {
	for _, prefix := range prefixes {
		template := map[string]string{"bft": "standard", "crash": "light"}[a.mode]
		args := []string{"scope", "create", prefix, "--template", template, "--here"}
		if prefix == floodPrefix && a.rate > 0 {
			policy := filepath.Join(c.state, "rate.yaml")
			if err := os.WriteFile(policy, fmt.Appendf(nil, "limits:\n  rate: %d\n", a.rate), 0o600); err != nil {
				return nil, nil, err
			}
			args = append(args, "--policy", policy)
		}
		if _, err := output(ctx, []string{"XDG_RUNTIME_DIR=" + c.state}, a.program, args...); err != nil {
			return nil, nil, err
		}
	}
	var dialed []*client.Client
	hangUp = func() {
		for _, d := range dialed {
			_ = d.Close()
		}
	}
	for range connections {
		d, err := client.Dial(c.addresses[0])
		if err != nil {
			hangUp()
			return nil, nil, err
		}
		dialed = append(dialed, d)
		all = append(all, func(ctx context.Context, key string, value []byte) error {
			_, err := d.Put(ctx, &aweighv1.PutRequest{Key: []byte(key), Value: value})
			return err
		})
	}
	return all, hangUp, nil
}

// dial implements isolated: all connections are to the leader.
func (e *etcd) dial(ctx context.Context, c *cluster, connections int, _ ...string) (all []putter, hangUp func(), err error) {
	var dialed []*grpc.ClientConn
	hangUp = func() {
		for _, d := range dialed {
			_ = d.Close()
		}
	}
	connect := func(address string) (*grpc.ClientConn, error) {
		d, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err == nil {
			dialed = append(dialed, d)
		}
		return d, err
	}
	leader := c.addresses[0]
	for _, address := range c.addresses {
		d, err := connect(address)
		if err != nil {
			hangUp()
			return nil, nil, err
		}
		s, err := etcdpb.NewMaintenanceClient(d).Status(ctx, &etcdpb.StatusRequest{})
		if err != nil {
			hangUp()
			return nil, nil, err
		}
		if s.Leader == s.Header.MemberId {
			leader = address
		}
	}
	for range connections {
		d, err := connect(leader)
		if err != nil {
			hangUp()
			return nil, nil, err
		}
		kv := etcdpb.NewKVClient(d)
		all = append(all, func(ctx context.Context, key string, value []byte) error {
			_, err := kv.Put(ctx, &etcdpb.PutRequest{Key: []byte(key), Value: value})
			return err
		})
	}
	return all, hangUp, nil
}
