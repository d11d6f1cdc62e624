package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
)

// etcd is three members with the defaults of the project. Clients talk to the
// leader alone, which is faster here than to talk to all three, unless spread.
type etcd struct {
	server, bench string
	spread        bool
}

func newEtcd(p programs, spread bool) (*etcd, error) {
	server, err := p.find("etcd")
	if err != nil {
		return nil, err
	}
	bench, err := p.find("benchmark")
	return &etcd{server, bench, spread}, err
}

func (e *etcd) start(ctx context.Context, dir string) (*cluster, error) {
	const members = 3
	ports, err := freePorts(2 * members)
	if err != nil {
		return nil, err
	}
	address := func(i int) string { return "127.0.0.1:" + strconv.Itoa(ports[i]) }
	peers := make([]string, members)
	for i := range members {
		peers[i] = fmt.Sprintf("m%d=http://%s", i, address(members+i))
	}
	// Syncs of the log. Those of the backend, ten commits a second, are left out,
	// as flushes and compactions are for Aweigh.
	c := &cluster{syncs: []string{"etcd_disk_wal_fsync_duration_seconds_count"}}
	for i := range members {
		name := "m" + strconv.Itoa(i)
		client, peer := "http://"+address(i), "http://"+address(members+i)
		p, err := launch(filepath.Join(dir, name+".log"), nil, e.server,
			"--name", name, "--data-dir", filepath.Join(dir, name), "--log-level", "error",
			"--listen-client-urls", client, "--advertise-client-urls", client,
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
			"--initial-cluster", strings.Join(peers, ","), "--initial-cluster-state", "new")
		if err != nil {
			return c, err
		}
		c.processes = append(c.processes, p)
		c.pids = append(c.pids, p.pid())
		c.addresses = append(c.addresses, address(i))
		c.metrics = append(c.metrics, client+"/metrics")
	}
	err = until(ctx, func(ctx context.Context) error {
		for i, p := range c.processes {
			if err := p.alive(); err != nil {
				return err
			}
			if _, err := fetch(ctx, "http://"+c.addresses[i]+"/health"); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return c, err
	}
	return c, e.write(ctx, c.addresses[0])
}

// readKey is the one key that gets read.
const readKey = "compare"

// write puts readKey.
func (e *etcd) write(ctx context.Context, address string) error {
	encode := base64.StdEncoding.EncodeToString
	body := fmt.Sprintf(`{"key":%q,"value":%q}`, encode([]byte(readKey)), encode(make([]byte, valueSize)))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/v3/kv/put", strings.NewReader(body))
	if err != nil {
		return err
	}
	_, err = answer(req)
	return err
}

// load runs etcd's own load generator. It takes a number of requests, not a
// time: the warm-up tells how many fit.
func (e *etcd) load(ctx context.Context, c *cluster, w work) (loaded, error) {
	total := max(500, 10*w.clients)
	if w.expected > 0 {
		total = max(w.clients, int(w.expected*w.duration.Seconds()))
	}
	args := []string{
		"--precise", "--endpoints", strings.Join(c.addresses, ","),
		"--clients", strconv.Itoa(w.clients), "--conns", strconv.Itoa(w.connections),
	}
	if !e.spread {
		args = append(args, "--target-leader")
	}
	if w.operation == put {
		args = append(args, "put", "--key-size", strconv.Itoa(keySize), "--val-size", strconv.Itoa(valueSize),
			"--key-space-size", strconv.Itoa(keySpace))
	} else {
		args = append(args, "range", readKey, "--consistency", "l")
	}
	text, err := output(ctx, nil, e.bench, append(args, "--total", strconv.Itoa(total))...)
	if err != nil {
		return loaded{}, err
	}
	return parseEtcd(text)
}

// fetch is the text at a URL.
func fetch(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	return answer(req)
}

// errAnswer means that a request was not answered with 200.
var errAnswer = errors.New("compare: refused")

func answer(req *http.Request) (string, error) {
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%w: %s: %s", errAnswer, req.URL, resp.Status)
	}
	return string(text), nil
}
