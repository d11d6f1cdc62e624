package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/aweigh/aweigh/internal/ports"
)

// comet is four validators of CometBFT with the key-value store that comes with
// it, in their processes. Clients talk to one. It waits for nobody between
// blocks (by default, a second) and makes none while there is nothing to do. A
// query of it is answered by one validator alone, so there are no gets.
type comet struct{ program string }

func newComet(p programs) (*comet, error) {
	program, err := p.find("cometbft")
	return &comet{program}, err
}

// cometSettings are taken from the environment, over what the files say.
var cometSettings = []string{
	"CMT_CONSENSUS_TIMEOUT_COMMIT=0s",
	"CMT_CONSENSUS_PEER_GOSSIP_SLEEP_DURATION=5ms",
	"CMT_CONSENSUS_CREATE_EMPTY_BLOCKS=false",
	"CMT_P2P_ADDR_BOOK_STRICT=false",
	"CMT_P2P_ALLOW_DUPLICATE_IP=true",
	"CMT_P2P_FLUSH_THROTTLE_TIMEOUT=1ms",
}

func (t *comet) start(ctx context.Context, dir string) (*cluster, error) {
	const validators = 4
	free, err := ports.Free(2 * validators)
	if err != nil {
		return nil, err
	}
	if _, err := output(ctx, nil, t.program, "testnet", "--v", strconv.Itoa(validators), "--o", dir); err != nil {
		return nil, err
	}
	home := func(i int) string { return filepath.Join(dir, "node"+strconv.Itoa(i)) }
	address := func(i int) string { return "127.0.0.1:" + strconv.Itoa(free[i]) }
	peers := make([]string, validators)
	for i := range validators {
		id, err := output(ctx, nil, t.program, "show-node-id", "--home", home(i))
		if err != nil {
			return nil, err
		}
		peers[i] = strings.TrimSpace(string(id)) + "@" + address(validators+i)
	}
	c := new(cluster)
	for i := range validators {
		p, err := launch(filepath.Join(dir, "node"+strconv.Itoa(i)+".log"), cometSettings, t.program,
			"start", "--home", home(i), "--proxy_app", "persistent_kvstore", "--log_level", "error",
			"--rpc.laddr", "tcp://"+address(i), "--p2p.laddr", "tcp://"+address(validators+i),
			"--p2p.persistent_peers", strings.Join(peers, ","))
		if err != nil {
			return c, err
		}
		c.processes = append(c.processes, p)
		c.pids = append(c.pids, p.pid())
		c.addresses = append(c.addresses, address(i))
	}
	return c, until(ctx, func(ctx context.Context) error {
		for _, p := range c.processes {
			if err := p.alive(); err != nil {
				return err
			}
		}
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		_, err := cometLoad(ctx, c.addresses[0], work{operation: put, clients: 1, connections: 1}, 1)
		return err
	})
}

func (t *comet) load(ctx context.Context, c *cluster, w work) (loaded, error) {
	if w.operation != put {
		return loaded{}, errNone
	}
	if w.expected == 0 {
		w.duration = w.warmUp()
	}
	l, err := cometLoad(ctx, c.addresses[0], w, 0)
	for _, p := range c.processes {
		err = errors.Join(err, p.alive())
	}
	if err != nil {
		return loaded{}, fmt.Errorf("compare: load of CometBFT: %w", err)
	}
	return l, nil
}
