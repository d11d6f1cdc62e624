package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/etcd/etcdpb"
)

// How much of a flood reaches those who write little: the latency of one client that writes a key of one
// prefix every few milliseconds, alone and while a hundred clients write to another prefix as
// fast as they can. In Aweigh each prefix is a scope of its own; in etcd all keys share one
// pipeline.

const (
	quietPrefix, floodPrefix = "/quiet/", "/flood/"
	quietPause               = 5 * time.Millisecond
	floodClients             = 100
)

// putter writes one key, through one connection.
type putter func(ctx context.Context, key string, value []byte) error

// isolated is a system whose prefixes can be told apart.
type isolated interface {
	system
	// dial makes connections to one member.
	dial(ctx context.Context, c *cluster, connections int) (all []putter, hangUp func(), err error)
}

// dial implements isolated, once both prefixes have scopes.
func (a *aweigh) dial(ctx context.Context, c *cluster, connections int) (all []putter, hangUp func(), err error) {
	for _, prefix := range []string{quietPrefix, floodPrefix} {
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
func (e *etcd) dial(ctx context.Context, c *cluster, connections int) (all []putter, hangUp func(), err error) {
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

// quiet are the latencies of a client that writes little, in order, and how much a flood wrote beside it.
type quiet struct {
	took  []time.Duration
	flood float64 // puts a second
}

func (q *quiet) at(percent int) time.Duration { return q.took[len(q.took)*percent/100] }

// beside measures them while so many clients flood a prefix.
func beside(ctx context.Context, all []putter, d time.Duration, clients int, prefix string) (q quiet, err error) {
	ctx, cancel := context.WithCancel(ctx)
	value := make([]byte, valueSize)
	var flooding sync.WaitGroup
	var wrote atomic.Uint64
	for k := range clients {
		flooding.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if all[1+k%(len(all)-1)](ctx, fmt.Sprint(prefix, k, "-", i%100), value) == nil {
					wrote.Add(1)
				}
			}
		})
	}
	defer flooding.Wait()
	defer cancel()
	time.Sleep(min(d/5, time.Second))
	begin, before := time.Now(), wrote.Load()
	for i := 0; time.Since(begin) < d; i++ {
		start := time.Now()
		if err := all[0](ctx, fmt.Sprint(quietPrefix, i%100), value); err != nil {
			return q, err
		}
		q.took = append(q.took, time.Since(start))
		time.Sleep(quietPause)
	}
	q.flood = float64(wrote.Load()-before) / time.Since(begin).Seconds()
	slices.Sort(q.took)
	return q, ctx.Err()
}

// isolation measures systems in turn, and prints a table.
func isolation(ctx context.Context, o options, systems []system, titles []string, dir string) error {
	type row struct{ alone, elsewhere, here []quiet }
	rows := make([]row, len(systems))
	for r := range o.repetitions {
		for k := range systems {
			i := (k + r) % len(systems)
			s, ok := systems[i].(isolated)
			if !ok {
				continue
			}
			fmt.Fprintf(os.Stderr, "%s, %d of %d\n", titles[i], r+1, o.repetitions)
			err := func() (err error) {
				home := filepath.Join(dir, fmt.Sprintf("%d-%d", r, i))
				if err := os.MkdirAll(home, 0o700); err != nil {
					return err
				}
				c, err := s.start(ctx, home)
				if c != nil {
					defer func() { err = errors.Join(err, c.stop(), os.RemoveAll(home)) }()
				}
				if err != nil {
					return err
				}
				all, hangUp, err := s.dial(ctx, c, o.connections+1)
				if err != nil {
					return err
				}
				defer hangUp()
				for _, x := range []struct {
					clients int
					prefix  string
					to      *[]quiet
				}{{0, "", &rows[i].alone}, {floodClients, floodPrefix, &rows[i].elsewhere}, {floodClients, quietPrefix, &rows[i].here}} {
					q, err := beside(ctx, all, o.duration, x.clients, x.prefix)
					if err != nil {
						return err
					}
					*x.to = append(*x.to, q)
				}
				return nil
			}()
			if err != nil {
				return fmt.Errorf("compare: %s: %w", titles[i], err)
			}
		}
	}
	fmt.Println("| system | alone: p50, p99 ms | beside a flood of another prefix | of its own | other prefix, as multiples of alone: p50, p99 | the flood: puts/s |")
	fmt.Println("|---|---|---|---|---|---|")
	for i, x := range rows {
		if len(x.alone) == 0 {
			continue
		}
		ms := func(all []quiet, percent int) float64 {
			return median(all, func(q *quiet) float64 { return milliseconds(q.at(percent)) })
		}
		both := func(all []quiet) string { return fmt.Sprintf("%.2f, %.2f", ms(all, 50), ms(all, 99)) }
		fmt.Printf("| %s | %s | %s | %s | %.1f, %.1f | %.0f |\n", titles[i], both(x.alone), both(x.elsewhere), both(x.here),
			ms(x.elsewhere, 50)/ms(x.alone, 50), ms(x.elsewhere, 99)/ms(x.alone, 99),
			median(x.elsewhere, func(q *quiet) float64 { return q.flood }))
	}
	return nil
}

func median(all []quiet, of func(*quiet) float64) float64 {
	var values []float64
	for i := range all {
		values = append(values, of(&all[i]))
	}
	slices.SortFunc(values, cmp.Compare[float64])
	return values[len(values)/2]
}
