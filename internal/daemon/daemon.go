// Package daemon runs one node with its store and its API, from the files in
// its directory.
package daemon

import (
	"context"
	"errors"
	"log/slog"

	"golang.org/x/sync/errgroup"

	"github.com/aweigh/aweigh/api"
	"github.com/aweigh/aweigh/internal/home"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/store"
)

// Daemon is a node ready to run.
type Daemon struct {
	Node   *node.Node
	store  store.Store
	server *api.Server
	log    *slog.Logger
}

// Open opens the node of a directory. Close it, or let Run do that.
func Open(dir home.Dir, s home.Settings, version string, log *slog.Logger) (d *Daemon, err error) {
	identity, anchor, err := dir.Keys()
	if err != nil {
		return nil, err
	}
	genesis, err := dir.ReadGenesis()
	if err != nil {
		return nil, err
	}
	d = &Daemon{log: log}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	if d.store, err = store.OpenPebble(dir.Store(), store.Options{}); err != nil {
		return nil, err
	}
	if d.Node, err = node.New(node.Config{
		Name: s.Name, Version: version, Genesis: genesis, Identity: identity, Anchor: anchor, Store: d.store,
		Listen: s.Listen, Announce: s.Announce, Bootstrap: s.Bootstrap, Log: log,
	}); err != nil {
		return nil, err
	}
	d.server, err = api.Listen(s.API, s.APIOpen, api.Handler(d.Node))
	return d, err
}

// API is the address of the node's API.
func (d *Daemon) API() string { return d.server.Addr() }

// Run runs the node and its API until ctx ends or one of them must stop, and
// closes the store.
func (d *Daemon) Run(ctx context.Context) error {
	d.log.Info("running", "node", d.Node.Name(), "peer", d.Node.Peer(), "api", d.API(),
		"network", d.Node.Genesis().Hash().Short())
	group, ctx := errgroup.WithContext(ctx)
	served := make(chan struct{})
	group.Go(func() error {
		defer close(served)
		return d.server.Run(ctx)
	})
	group.Go(func() error {
		// The API stops first: its requests hold snapshots of the store.
		nodeCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		go func() {
			<-served
			cancel()
		}()
		return d.Node.Run(nodeCtx)
	})
	err := errors.Join(group.Wait(), d.store.Close())
	if err != nil {
		d.log.Error("stopped", "err", err)
	} else {
		d.log.Info("stopped")
	}
	return err
}

// Close releases what Open opened, if it is not to Run.
func (d *Daemon) Close() (err error) {
	if d.server != nil {
		err = d.server.Close()
	}
	if d.store != nil {
		err = errors.Join(err, d.store.Close())
	}
	return err
}
