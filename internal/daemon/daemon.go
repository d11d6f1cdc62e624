// Package daemon runs one node with its store and its API, from the files in
// its directory.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
	"golang.org/x/sync/errgroup"

	"github.com/aweigh/aweigh/api"
	"github.com/aweigh/aweigh/etcd"
	"github.com/aweigh/aweigh/internal/autocompact"
	"github.com/aweigh/aweigh/internal/home"
	"github.com/aweigh/aweigh/internal/metrics"
	"github.com/aweigh/aweigh/internal/requestlog"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/store"
	"github.com/aweigh/aweigh/store/diskstore"
	"github.com/aweigh/aweigh/votes"
)

// Daemon is a node ready to run.
type Daemon struct {
	Node     *node.Node
	store    store.Store
	socket   *api.Server     // for this machine
	server   *api.Server     // nil without api-listen
	health   *api.Server     // nil without metrics-listen
	etcd     *etcd.Server    // nil without etcd-listen
	requests *requestlog.Log // nil without audit-file
	callers  *callers
	anchor   bool // it has a key to sign with
	log      *slog.Logger
	insecure []string // ports that take clients without certificates

	compact autocompact.Setting
}

// Open opens the node of a directory. Close it, or call Run, which does.
func Open(dir home.Dir, s home.Settings, version string, log *slog.Logger) (*Daemon, error) {
	return OpenByClock(dir, s, version, log, nil)
}

// OpenByClock is Open for a node with another clock than its machine's, as a test of wrong clocks has it.
func OpenByClock(dir home.Dir, s home.Settings, version string, log *slog.Logger, clock func() time.Time) (*Daemon, error) {
	identity, anchor, err := dir.Keys()
	if err != nil {
		return nil, err
	}
	genesis, err := dir.ReadGenesis()
	if err != nil {
		return nil, err
	}
	if err := Check(s); err != nil {
		return nil, err
	}
	trusted, err := pinOf(s)
	if err != nil {
		return nil, err
	}
	for _, secret := range []string{dir.Identity(), dir.Anchor(), s.APIKey, s.EtcdKey} {
		if text := home.Exposed(secret); text != "" {
			log.Warn("a secret is exposed: " + text)
		}
	}
	d := &Daemon{log: log, insecure: InsecurePorts(s)}
	if err := d.open(dir, s, node.Config{
		Trusted: trusted, Clock: clock,
		Name: s.Name, Version: version, Genesis: genesis, Identity: identity, Anchor: anchor,
		Listen: s.Listen, Announce: s.Announce, Bootstrap: s.Bootstrap, Log: log,
		Relay: s.Relay, Relays: s.Relays, PerIP: s.PerIP, WatchMemory: int64(s.WatchMemory) << 20, AnswerMemory: int64(s.AnswerMemory) << 20, CopyMemory: int64(s.CopyMemory) << 20, Follow: followed(s.Follow), Prune: s.Prune, FirstCome: s.FirstCome,
		MakeAnchor: func() (votes.PrivateKey, error) { return dir.NewKey(dir.Anchor()) },
	}, diskstore.Options{}); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// followed are the prefixes that a node follows, nil for all.
func followed(settings []string) (prefixes [][]byte) {
	if len(settings) == 0 {
		return nil
	}
	prefixes = [][]byte{}
	for _, s := range settings {
		if s != "none" {
			prefixes = append(prefixes, []byte(s))
		}
	}
	return prefixes
}

// open opens the parts, and leaves to Close those that it opened before it failed.
func (d *Daemon) open(dir home.Dir, s home.Settings, cfg node.Config, o diskstore.Options) error {
	disk, err := diskstore.Open(dir.Store(), o)
	if err != nil {
		return err // and d.store stays nil, which a nil *Pebble in it is not
	}
	d.store = disk
	if mode := disk.Loose(); mode != 0 {
		d.log.Warn("other users could read the store; now they cannot", "directory", dir.Store(), "mode", mode)
	}
	if d.compact, err = autocompact.Parse(s.Compact[0], s.Compact[1]); err != nil {
		return fmt.Errorf("%w: %w", ErrSettings, err)
	}
	if err := bindable(s.Listen); err != nil {
		return err
	}
	cfg.Store, d.anchor = d.store, cfg.Anchor != nil
	if d.Node, err = node.New(cfg); err != nil {
		return err
	}
	who, err := newCallers(d.Node, cfg.Identity, s, d.log)
	if err != nil {
		return err
	}
	d.callers = who
	if d.requests, err = openRequests(dir, s, cfg.Name, d.log); err != nil {
		return err
	}
	users := false
	if s.Etcd != "" {
		if users, err = usersOnly(context.Background(), s, d.Node); err != nil {
			return err
		}
	}
	secure, err := apiTLS(s, clockOf(d.Node), d.log)
	if err != nil {
		return err
	}
	var port metrics.Etcd  // stays nil without one
	var shown http.Handler // is there before anything is served
	if s.Etcd != "" {
		secure, err := etcdTLS(dir, s, clockOf(d.Node), d.log)
		if err != nil {
			return err
		}
		every, err := progressEvery(s)
		if err != nil {
			return err
		}
		// The files that a killed node left there have no use.
		if err := errors.Join(os.RemoveAll(dir.Scratch()), os.MkdirAll(dir.Scratch(), 0o700)); err != nil {
			return fmt.Errorf("daemon: %w", err)
		}
		if d.etcd, err = etcd.Listen(etcd.Config{
			Scratch: dir.Scratch(), Guard: who.guard, Callers: who.row(true), Requests: d.requests,
			Announce: s.EtcdURLs, MaxRequest: s.EtcdMost, ProgressEvery: every,
			Metrics: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { shown.ServeHTTP(w, r) }),
			Listen:  s.Etcd, TLS: secure, UsersOnly: users, Node: d.Node, Log: d.log, Size: func() (taken, live int64) {
				m := disk.Metrics()
				return int64(m.Disk), int64(m.Live)
			},
		}); err != nil {
			return Taken("etcd-listen", s.Etcd, err)
		}
		port = d.etcd
	}
	shown = metrics.Handler(cfg.Version, len(d.insecure) > 0, d.Node, disk, port, &who.counts, d.requests)
	served := api.Config{
		Node: d.Node, Metrics: shown, Log: d.log, Open: d.insecure, Admins: s.APIAdmins, TLS: secure,
		Guard: who.guard, Callers: who.row(secure == nil), Requests: d.requests,
	}
	path, err := dir.Socket()
	if err != nil {
		return err
	}
	if d.socket, err = api.ListenSocket(path, served); err != nil {
		return err
	}
	if s.API != "" {
		if d.server, err = api.Listen(s.API, served); err != nil {
			return Taken("api-listen", s.API, err)
		}
	}
	if s.Metrics != "" {
		if d.health, err = api.ListenHealth(s.Metrics, d.Node, shown); err != nil {
			return Taken("metrics-listen", s.Metrics, err)
		}
	}
	return nil
}

// Taken explains why an address that a setting names cannot be listened on, and what to do; other
// errors it returns as they are.
func Taken(setting, address string, err error) error {
	for _, known := range []struct {
		errno syscall.Errno
		do    string
	}{
		{syscall.EADDRINUSE, "stop the process that listens there (on Linux, ss -lntup names it), or choose another address"},
		{syscall.EACCES, "choose a port above 1023"},
		{syscall.EADDRNOTAVAIL, "choose an address of this machine"},
	} {
		if errors.Is(err, known.errno) {
			return fmt.Errorf("daemon: %s %s: %w; %s with --%s", setting, address, known.errno, known.do, setting)
		}
	}
	return err
}

// bindable makes sure that every address can be listened on: libp2p is content
// when one of several can.
func bindable(listen []string) error {
	for _, text := range listen {
		a, err := ma.NewMultiaddr(text)
		if err != nil {
			return fmt.Errorf("--listen %q: %w", text, err)
		}
		network, address, err := manet.DialArgs(a)
		if err != nil {
			return fmt.Errorf("--listen %q: %w", text, err)
		}
		var port io.Closer
		switch network {
		case "udp", "udp4", "udp6":
			port, err = net.ListenPacket(network, address)
		default:
			port, err = net.Listen(network, address)
		}
		if err != nil {
			if known := Taken("listen", text, err); known != err {
				return known
			}
			return fmt.Errorf("--listen %q: %w", text, err)
		}
		if err := port.Close(); err != nil {
			return fmt.Errorf("--listen %q: %w", text, err)
		}
	}
	return nil
}

// Socket is the address of the node's API for this machine: unix:// and a path.
func (d *Daemon) Socket() string { return d.socket.Addr() }

// API is the address of api-listen, "" without one.
func (d *Daemon) API() string { return addrOf(d.server) }

// healthAddr is the address of metrics-listen, "" without one.
func (d *Daemon) healthAddr() string { return addrOf(d.health) }

// addrOf is the address of a server, "" without one.
func addrOf(s *api.Server) string {
	if s == nil {
		return ""
	}
	return s.Addr()
}

// etcdAddr is the address of etcd's API, with the port that was chosen; empty for none.
func (d *Daemon) etcdAddr() string {
	if d.etcd == nil {
		return ""
	}
	return d.etcd.Addr()
}

// Run runs the node and its API until ctx ends or one of them must stop, and
// closes the store.
func (d *Daemon) Run(ctx context.Context) error {
	if err := d.Node.Start(); err != nil {
		// Run closes what Start opened; ctx has nothing to run any more.
		ended, cancel := context.WithCancel(ctx)
		cancel()
		return errors.Join(d.Node.Run(ended), d.Close())
	}
	if a := d.Node.Root().Unseated(); !a.IsZero() {
		d.log.Info("this anchor is not in the roster: it follows as an observer until it is admitted", "anchor", a.Short())
	}
	d.log.Info("running", "node", d.Node.Name(), "peer", d.Node.Peer(), "socket", d.Socket(), "api", d.API(),
		"etcd", d.etcdAddr(), "metrics", d.healthAddr(), "anchor", d.anchor && d.Node.Root().Unseated().IsZero(), "network", d.Node.Root().Genesis().Hash().Short())
	group, ctx := errgroup.WithContext(ctx)
	served := make(chan struct{})
	group.Go(func() error {
		defer close(served)
		all, ctx := errgroup.WithContext(ctx)
		for _, server := range []*api.Server{d.socket, d.server, d.health} {
			if server != nil {
				all.Go(func() error { return server.Run(ctx) })
			}
		}
		all.Go(func() error { return autocompact.Run(ctx, d.compact, d.Node, d.log) })
		all.Go(func() error { return d.callers.run(ctx) })
		if d.etcd != nil {
			all.Go(func() error { return d.etcd.Run(ctx) })
		}
		return all.Wait()
	})
	group.Go(func() error { // the record ends after the last request
		ended, cancel := context.WithCancel(context.WithoutCancel(ctx))
		go func() {
			<-served
			cancel()
		}()
		return d.requests.Run(ended)
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
	err := group.Wait()
	if closing := d.store.Close(); !errors.Is(err, closing) { // it repeats why the node stopped
		err = errors.Join(err, closing)
	}
	if err == nil {
		d.log.Info("stopped")
	}
	return err // the caller of Run reports it
}

// Close releases what Open opened, if it is not to Run.
func (d *Daemon) Close() (err error) {
	for _, server := range []*api.Server{d.socket, d.server, d.health} {
		if server != nil {
			err = errors.Join(err, server.Close())
		}
	}
	if d.etcd != nil {
		err = errors.Join(err, d.etcd.Close())
	}
	err = errors.Join(err, d.requests.Close())
	if d.Node != nil {
		err = errors.Join(err, d.Node.Close())
	}
	if d.store != nil {
		err = errors.Join(err, d.store.Close())
	}
	return err
}
