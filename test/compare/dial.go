package main

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	// divide gives each prefix a scope of its own, where there are such, and tells which member takes writes.
	divide(ctx context.Context, c *cluster, prefixes ...string) (member, error)
}

// member is one that takes writes.
type member struct{ api, address string }

// What a member's api is.
const (
	apiAweigh = "aweigh"
	apiEtcd   = "etcd"
)

// eachIsolated does something with every system that can be isolated, in turn.
func (r *runner) eachIsolated(ctx context.Context, prefixes []string, do func(at int, to member) error) error {
	return r.turns(func(repetition, at int) error {
		s, ok := r.systems[at].(isolated)
		if !ok {
			return nil
		}
		return r.with(ctx, repetition, at, func(c *cluster, err error) error {
			if err != nil {
				return err
			}
			to, err := s.divide(ctx, c, prefixes...)
			if err != nil {
				return err
			}
			return do(at, to)
		})
	})
}

// divide implements isolated.
func (a *aweigh) divide(ctx context.Context, c *cluster, prefixes ...string) (member, error) {
	for _, prefix := range prefixes {
		template := map[string]string{"bft": "standard", "fast": "fast", "crash": "light"}[a.mode]
		args := []string{"scope", "create", prefix, "--template", template, "--here"}
		if prefix == floodPrefix && a.rate > 0 {
			policy := filepath.Join(c.state, "rate.yaml")
			if err := os.WriteFile(policy, fmt.Appendf(nil, "limits:\n  rate: %d\n", a.rate), 0o600); err != nil {
				return member{}, err
			}
			args = append(args, "--policy", policy)
		}
		if _, err := output(ctx, []string{"XDG_RUNTIME_DIR=" + c.state}, a.program, args...); err != nil {
			return member{}, err
		}
	}
	return member{apiAweigh, c.addresses[0]}, nil
}

// divide implements isolated: the leader takes writes.
func (e *etcd) divide(ctx context.Context, c *cluster, _ ...string) (member, error) {
	for _, address := range c.addresses {
		leads, err := leader(ctx, address)
		if err != nil {
			return member{}, err
		}
		if leads {
			return member{apiEtcd, address}, nil
		}
	}
	return member{apiEtcd, c.addresses[0]}, nil
}

// leader reports whether a member of etcd leads.
func leader(ctx context.Context, address string) (leads bool, err error) {
	d, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	s, err := etcdpb.NewMaintenanceClient(d).Status(ctx, &etcdpb.StatusRequest{})
	if err != nil {
		return false, err
	}
	return s.Leader == s.Header.MemberId, nil
}

// dial makes connections to a member.
func (m member) dial(connections int) (all []putter, hangUp func(), err error) {
	var dialed []io.Closer
	hangUp = func() {
		for _, d := range dialed {
			_ = d.Close()
		}
	}
	for range connections {
		put, d, err := m.connect()
		if err != nil {
			hangUp()
			return nil, nil, err
		}
		dialed, all = append(dialed, d), append(all, put)
	}
	return all, hangUp, nil
}

func (m member) connect() (putter, io.Closer, error) {
	if m.api == apiEtcd {
		d, err := grpc.NewClient(m.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, nil, err
		}
		kv := etcdpb.NewKVClient(d)
		return func(ctx context.Context, key string, value []byte) error {
			_, err := kv.Put(ctx, &etcdpb.PutRequest{Key: []byte(key), Value: value})
			return err
		}, d, nil
	}
	d, err := client.Dial(m.address)
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context, key string, value []byte) error {
		_, err := d.Put(ctx, &aweighv1.PutRequest{Key: []byte(key), Value: value})
		return err
	}, d, nil
}
