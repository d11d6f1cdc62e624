package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/aweigh/aweigh/etcd/etcdpb"
)

// generator is the path of etcd's own load generator.
type generator string

// readKey is the one key that gets read.
const readKey = "compare"

// watchedPuts is how many puts a second the watchers see.
const watchedPuts = 200

// load implements system.load for whatever serves etcd's API: of all clients at the leader, or at
// all addresses. The generator takes a number of requests, not a time: the warm-up tells how many fit.
func (g generator) load(ctx context.Context, addresses []string, leader bool, w work) (loaded, error) {
	total := max(500, 10*w.clients)
	if w.expected > 0 {
		total = max(w.clients, int(w.expected*w.duration.Seconds()))
	}
	args := []string{
		"--precise", "--endpoints", strings.Join(addresses, ","),
		"--clients", strconv.Itoa(w.clients), "--conns", strconv.Itoa(w.connections),
	}
	if leader {
		args = append(args, "--target-leader")
	}
	sizes := []string{"--key-size", strconv.Itoa(keySize), "--val-size", strconv.Itoa(valueSize)}
	keys := append(sizes, "--key-space-size", strconv.Itoa(keySpace), "--total", strconv.Itoa(total))
	switch w.operation {
	case put:
		args = append(append(args, "put"), keys...)
	case txn:
		args = append(append(args, "txn-put"), keys...)
	case get, stale:
		if err := write(ctx, addresses[0]); err != nil {
			return loaded{}, err
		}
		consistency := map[string]string{get: "l", stale: "s"}[w.operation]
		args = append(args, "range", readKey, "--consistency", consistency, "--total", strconv.Itoa(total))
	case alive:
		args = append(args, "lease-keepalive", "--total", strconv.Itoa(total))
	case watch:
		lasts := w.duration
		if w.expected == 0 {
			lasts = w.warmUp()
		}
		args = append(append(args, "watch-latency", "--put-rate", strconv.Itoa(watchedPuts),
			"--put-total", strconv.Itoa(int(watchedPuts*lasts/time.Second))), sizes...)
	default:
		return loaded{}, errNone
	}
	text, err := output(ctx, nil, string(g), args...)
	if err != nil {
		return loaded{}, err
	}
	return parseEtcd(text)
}

// write puts readKey.
func write(ctx context.Context, address string) error {
	c, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = etcdpb.NewKVClient(c).Put(ctx, &etcdpb.PutRequest{Key: []byte(readKey), Value: make([]byte, valueSize)})
	return err
}

// throughEtcd is a system that is loaded by etcd's generator, through etcd's API.
type throughEtcd struct {
	system
	bench  generator
	leader bool
}

func newThroughEtcd(p programs, s system, spread bool) (system, error) {
	bench, err := p.find("benchmark")
	return throughEtcd{s, generator(bench), !spread}, err
}

func (s throughEtcd) load(ctx context.Context, c *cluster, w work) (loaded, error) {
	if len(c.etcd) == 0 {
		return loaded{}, errNone
	}
	return s.bench.load(ctx, c.etcd, s.leader, w)
}
