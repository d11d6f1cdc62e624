package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/aweigh/aweigh/internal/ports"
)

// etcd is three members with the defaults of the project. Clients talk to the
// leader alone, which is faster here than to talk to all three, unless spread.
type etcd struct {
	server string
	bench  generator
	spread bool
}

func newEtcd(p programs, spread bool) (*etcd, error) {
	server, err := p.find("etcd")
	if err != nil {
		return nil, err
	}
	bench, err := p.find("benchmark")
	return &etcd{server, generator(bench), spread}, err
}

func (e *etcd) start(ctx context.Context, dir string) (*cluster, error) {
	const members = 3
	free, err := ports.Free(2 * members)
	if err != nil {
		return nil, err
	}
	address := func(i int) string { return "127.0.0.1:" + strconv.Itoa(free[i]) }
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
		c.etcd = append(c.etcd, address(i))
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
	return c, nil
}

func (e *etcd) load(ctx context.Context, c *cluster, w work) (loaded, error) {
	return e.bench.load(ctx, c.etcd, !e.spread, w)
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
