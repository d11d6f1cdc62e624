package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/aweigh/aweigh/api"
	"github.com/aweigh/aweigh/internal/config"
	"github.com/aweigh/aweigh/internal/daemon"
	"github.com/aweigh/aweigh/internal/devnet"
	"github.com/aweigh/aweigh/internal/home"
	"github.com/aweigh/aweigh/internal/running"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// stateDir is a directory below the one for this user's data.
func stateDir(name string) string {
	d, err := running.StateDir()
	if err != nil {
		return "aweigh-" + name
	}
	return filepath.Join(d, name)
}

func (a *app) devnet() *cobra.Command {
	c := &cobra.Command{
		Use: "devnet", Short: "Run a network of anchors on this machine", Args: cobra.NoArgs,
		Long: "Makes a network of anchors of equal weight on 127.0.0.1, each with its own keys,\n" +
			"store and ports, and runs it until interrupted. When it is started again with the\n" +
			"same directory it continues. Other commands find it by themselves.\n\n" +
			"Its ports take any client, on this machine alone. With --secure it makes an authority\n" +
			"and certificates in tls in its directory: the ports ask clients for one, etcd's users\n" +
			"are enabled, and it prints the flags with which clients reach them.\n\n" +
			"With --processes you can see what happens when nodes die: the process ID of each\n" +
			"stands in node.pid in its directory, and the others go on.",
		Example: "  aweigh devnet\n  aweigh devnet --nodes 7 --mode bft --data-dir ./net\n  aweigh devnet --processes\n  aweigh devnet --secure --data-dir ./secure\n  aweigh devnet --ephemeral\n  aweigh devnet --nodes 6 --policy policy.yaml --processes",
	}
	nodes := c.Flags().Int("nodes", 0, "how many anchors (default 4, or as many as there are)")
	dir := c.Flags().String("data-dir", "", fmt.Sprintf("where to keep it (default %s)", stateDir("devnet")))
	processes := c.Flags().Bool("processes", false, "run every node as a process of its own")
	ephemeral := c.Flags().Bool("ephemeral", false, "use a new directory, and remove it at the end")
	mode := c.Flags().String("mode", "", "bft: a third of the anchors may lie; fast: as many, and one round of votes decides; crash: less than\na half may stop (default bft)")
	etcd := c.Flags().String("etcd-listen", defaultEtcd, "where the first node serves etcd's API, host:port (default: this, or a free port if it is taken); the others\nat free ports; empty for none")
	policy := c.Flags().String("policy", "", "file with the differences from the default policy, in the form of \"aweigh policy show\"")
	level := c.Flags().String("log-level", "warn", "debug, info, warn or error")
	format := c.Flags().String("log-format", "text", "text or json")
	secure := c.Flags().Bool("secure", false, "make an authority, and take clients with its certificates alone; enable etcd's users")
	c.MarkFlagsMutuallyExclusive("ephemeral", "data-dir")
	choices(c, "mode", "bft", "fast", "crash")
	choices(c, "log-level", "debug", "info", "warn", "error")
	choices(c, "log-format", "text", "json")
	c.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		var m quorum.Mode
		if *mode != "" {
			if m, err = quorum.ParseMode(*mode); err != nil {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
		}
		log, err := logger(a.err, *level, *format)
		if err != nil {
			return err
		}
		log = slog.New(lasting{log.Handler(), cmd.Context()}) // that the others stop is no news then
		switch {
		case *ephemeral:
			if *dir, err = os.MkdirTemp("", "aweigh-devnet-"); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, os.RemoveAll(*dir)) }()
		case *dir == "":
			*dir = stateDir("devnet")
		}
		if err := unused(*dir); err != nil {
			return err
		}
		chosen := cmd.Flags().Changed("etcd-listen") && *etcd != ""
		if *etcd != "" {
			if err := api.CheckAddress(*etcd); err != nil {
				return fmt.Errorf("%w: --etcd-listen: %w", errUsage, err)
			}
			if !api.Loopback(*etcd) {
				return fmt.Errorf("%w: --etcd-listen %s: a devnet is for this machine, and listens on loopback addresses alone", errUsage, *etcd)
			}
		}
		if chosen { // before anything is made
			if err := devnet.Free(*etcd); err != nil {
				return daemon.Taken("etcd-listen", *etcd, err)
			}
		}
		open := devnet.Make
		if *secure {
			open = devnet.MakeSecure
		}
		if *policy != "" {
			under, err := policyFrom(*policy, scope.DefaultPolicy(cmp.Or(m, quorum.BFT)))
			if err != nil {
				return err
			}
			open = func(dir string, nodes int, _ quorum.Mode) (*devnet.Network, error) {
				return devnet.MakeUnder(dir, nodes, under, *secure)
			}
		}
		n, err := open(*dir, *nodes, m)
		if err != nil {
			return err
		}
		if n.Admin != (devnet.Admin{}) {
			a.warnExposed(filepath.Join(filepath.Dir(n.Admin.CA), "ca.key"))
			a.warnExposed(n.Admin.Key)
		}
		if *etcd != "" {
			if err := n.ServeEtcd(*etcd, chosen); err != nil {
				return daemon.Taken("etcd-listen", *etcd, err)
			}
			if got := n.Nodes[0].Etcd; !chosen && got != *etcd {
				fmt.Fprintf(a.err, "aweigh: %s is taken by another program, so %s serves etcd's API at %s\n", *etcd, n.Nodes[0].Name, got)
			}
		}
		if err := n.Free(); err != nil {
			return err
		}
		var ready atomic.Bool
		run := func(ctx context.Context) error { return n.Run(ctx, version(), log) }
		if *processes {
			program, err := os.Executable()
			if err != nil {
				return err
			}
			run = func(ctx context.Context) error {
				return n.RunProcesses(ctx, func(err error) bool {
					if ready.Load() {
						fmt.Fprintf(a.err, "aweigh: %s\n", message(err))
					}
					return ready.Load()
				}, program, "node", "--with-parent", "--log-level", *level, "--log-format", *format)
			}
		}
		return a.runDevnet(cmd.Context(), n, *processes, run, &ready)
	}
	return c
}

// unused makes sure that nothing runs in a directory.
func unused(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	entries, err := running.List()
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.DataDir == dir {
			return fmt.Errorf("a %s runs in %s already (process %d); stop it, or choose another --data-dir", e.Kind, dir, e.PID)
		}
	}
	return nil
}

// greetTime is how long the first block of a devnet may take.
const greetTime = 30 * time.Second

// runDevnet runs a devnet and, once it decides, sets ready and prints its addresses.
func (a *app) runDevnet(signalled context.Context, n *devnet.Network, processes bool, run func(context.Context) error, ready *atomic.Bool) error {
	ctx, cancel := context.WithCancel(signalled)
	defer cancel()
	fmt.Fprintf(a.out, "devnet of %s, mode %s, network %s\nin %s\n", show.Count(len(n.Nodes), "anchor"), n.Genesis.Policy.Rules.Mode, n.Genesis.Hash(), n.Dir)
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	greeted := make(chan error, 1)
	var height uint64
	go func() {
		limited, cancel := context.WithTimeout(ctx, greetTime)
		defer cancel()
		var err error
		if height, err = n.Greet(limited); err == nil && n.Admin != (devnet.Admin{}) && n.Nodes[0].Etcd != "" {
			err = n.EnableUsers(limited)
		}
		greeted <- err
	}()
	select {
	case err := <-ended:
		return err
	case err := <-greeted:
		if err != nil {
			cancel()
			if signalled.Err() != nil { // before the first block
				err = <-ended
				fmt.Fprintln(a.out, "\nstopped")
				return err
			}
			return errors.Join(fmt.Errorf("no block became final within %s: %w", greetTime, err), <-ended)
		}
	}
	addresses, err := n.APIs()
	if err != nil {
		cancel()
		return errors.Join(err, <-ended)
	}
	remove, err := running.Add(running.Entry{
		Kind: "devnet", DataDir: n.Dir, Network: n.Genesis.Hash().String(), APIs: addresses, Anchors: true,
	})
	if err != nil {
		cancel()
		return errors.Join(err, <-ended)
	}
	defer remove()
	ready.Store(true)
	rows := make([]show.Member, len(n.Nodes))
	for i, x := range n.Nodes {
		rows[i] = show.Member{Name: x.Name, Peer: string(x.Peer), API: x.API, Etcd: x.Etcd, Dir: string(x.Home)}
		if processes {
			rows[i].Log, rows[i].PID = x.LogFile(), x.PID()
		}
	}
	if err := (show.Printer{Out: a.out}).Members(rows, height, devnet.GreetingKey, show.Access(n.Admin)); err != nil {
		cancel()
		return errors.Join(err, <-ended)
	}
	if hint := callHint(); hint != "" {
		fmt.Fprintf(a.out, "\n%s\n", hint)
	}
	err = <-ended
	fmt.Fprintln(a.out, "\nstopped")
	return err
}

func (a *app) node() *cobra.Command {
	c := &cobra.Command{
		Use: "node", Short: "Run one node", Args: cobra.NoArgs,
		Long: "Runs the node of a directory that \"aweigh init\" or \"aweigh join\" made, until it is\n" +
			"interrupted. Flags go before environment variables (AWEIGH_ETCD_LISTEN for\n" +
			"--etcd-listen), and those before the file. It logs to standard error.",
		Example: "  aweigh node --data-dir /var/lib/aweigh\n  aweigh node --config /etc/aweigh.yaml --log-format json",
	}
	file := c.Flags().String("config", "", "settings, YAML (default: config.yaml in the data directory)")
	withParent := c.Flags().Bool("with-parent", false, "stop when standard input ends")
	if err := c.Flags().MarkHidden("with-parent"); err != nil {
		panic(err)
	}
	settings := nodeFlags(defaultListen...)
	c.Flags().AddFlagSet(settings)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		dir, s, err := nodeSettings(settings, *file)
		if err != nil {
			return err
		}
		ctx := cmd.Context()
		if *withParent {
			ctx = devnet.WithParent(ctx, a.in)
		}
		return a.runNode(ctx, dir, s, !*withParent, nil)
	}
	return c
}

// defaultEtcd is where a devnet serves etcd's API by default; etcd's own.
const defaultEtcd = "127.0.0.1:2379"

// defaultListen is where a node listens for others by default.
var defaultListen = []string{"/ip4/0.0.0.0/tcp/4177", "/ip4/0.0.0.0/udp/4177/quic-v1"}

// nodeFlags are the settings of a node.
func nodeFlags(listen ...string) *pflag.FlagSet {
	f := pflag.NewFlagSet("node", pflag.ContinueOnError)
	f.String("data-dir", stateDir("node"), "the node's directory")
	f.String("name", "", "the node's name")
	f.StringSlice("listen", listen, "multiaddrs for other nodes")
	f.StringSlice("announce", nil, "multiaddrs that other nodes get instead, behind NAT")
	f.StringSlice("bootstrap", nil, "multiaddrs of nodes to ask first, ending in /p2p/ID")
	f.Bool("relay", false, "carry connections to nodes of this network that cannot be dialed")
	f.StringSlice("relays", nil, "multiaddrs of nodes with --relay through which others reach this one, ending in /p2p/ID")
	f.String("trusted", "", "a recent roster, EPOCH:HASH, as \"aweigh trust verify\" prints it at a node that you trust: a history by another\nis refused, and nothing is served before")
	f.StringSlice("follow", nil, "prefixes: of the scopes below and above them the node keeps the state, and of those that it\nanchors; others it asks. none: of no other (default: of all)")
	f.Bool("prune", false, "drop blocks all of whose changes were compacted, except the newest 10,000;\nproofs of their content need a node that keeps them")
	f.Bool("first-come", false, "take clients' changes first come, first served: a scope that is written to far more than\nothers does not give way to them while processors are short")
	f.Int("conns-per-ip", 0, "connections that one IP address may hold (default 128)")
	f.Int("answer-memory", 0, "MiB that the answers to ranges may hold together while they are read and sent (default 128)")
	f.Int("copy-memory", 0, "MiB that copies of keys of scopes that the node does not hold may take; -1: no copies (default 64)")
	f.Int("watch-memory", 0, "MiB of changes that all watches of clients may hold together (default 64)")
	f.String("api-listen", "", "where clients on other machines reach this node, host:port, with the three files below; on this machine\nits user reaches it at DIR/run/api.sock")
	f.String("api-cert", "", "PEM file of the certificate that clients at --api-listen are shown; read again when it changes")
	f.String("api-key", "", "PEM file of its key")
	f.String("api-client-ca", "", "PEM file of the issuers of the certificates that these clients must show, or with\n--oidc-issuers may show")
	f.String("api-client-crl", "", "file of the lists of certificates that those issuers revoked, PEM or DER")
	f.StringSlice("api-admins", nil, "callers that may govern and vote with this anchor's key: common names of certificates,\nor identities such as oidc:ISSUER#SUBJECT, as \"aweigh whoami\" prints them")
	f.String("oidc-issuers", "", "YAML file of the issuers of OpenID Connect whose tokens callers may show")
	f.String("etcd-listen", "", "serve etcd's API at this address too, host:port, to clients of etcd")
	f.StringSlice("etcd-announce", nil, "URLs at which clients of etcd reach this node, which other nodes report (default: that of --etcd-listen)")
	f.String("etcd-cert-file", "", "PEM file of the certificate that clients of etcd are shown: TLS; read again when it changes")
	f.String("etcd-key-file", "", "PEM file of its key")
	f.String("etcd-trusted-ca-file", "", "PEM file of the issuers of the certificates that clients of etcd must show (mutual TLS)")
	f.Bool("etcd-auto-tls", false, "show clients of etcd a certificate that the node makes itself, DIR/tls/auto.crt")
	f.String("client-crl-file", "", "file of the lists of certificates that the issuers in --etcd-trusted-ca-file revoked, PEM or DER")
	f.Int("max-request-bytes", 0, "largest request of a client of etcd (default 1572864, at most 6291456); the policy's limits bound it too")
	f.String("watch-progress-notify-interval", "", "how often a watch of etcd's gets progress, if it asked for that (default 10m)")
	f.String("auto-compaction-mode", "", "periodic or revision: how --auto-compaction-retention is read (default periodic)")
	f.String("auto-compaction-retention", "", "compact the history by itself, and keep so much: a duration, or a number of hours; in mode\nrevision a number of revisions (default: keep all). Nodes with the same setting do it once")
	f.Bool("insecure", false, "let --api-listen and --etcd-listen take clients without certificates: every client that reaches them\ncan read and write, and every program on this machine can use the anchor's key by --api-listen, to govern and vote")
	f.String("metrics-listen", "", "serve metrics and health at this address too, host:port, to every client that reaches it")
	f.String("audit-file", "", "record refused requests in this file, rotated by size, and reads by --audit-level")
	f.StringSlice("audit-level", nil, "what is recorded for keys that begin so, PREFIX=LEVEL (repeatable):\n"+
		"none, metadata (refused requests, which is the default) or request (also reads)")
	f.String("log-level", "info", "debug, info, warn or error")
	f.String("log-format", "text", "text or json")
	return f
}

// nodeSettings brings the settings of a node together. The data directory names
// the file if none is given, so flags and environment are read for it first.
func nodeSettings(flags *pflag.FlagSet, file string) (home.Dir, home.Settings, error) {
	if file == "" {
		k, err := config.Load(flags, "")
		if err != nil {
			return "", home.Settings{}, err
		}
		name := home.Dir(k.String("data-dir")).Config()
		if _, err := os.Stat(name); err == nil {
			file = name
		}
	}
	k, err := config.Load(flags, file)
	if err != nil {
		return "", home.Settings{}, err
	}
	return home.Dir(k.String("data-dir")), home.SettingsOf(k), nil
}

// runNode runs a node. If list is set, other commands find it by themselves.
// ready, if any, is called with it before it runs.
func (a *app) runNode(ctx context.Context, dir home.Dir, s home.Settings, list bool, ready func(*daemon.Daemon)) error {
	log, err := logger(a.err, s.LogLevel, s.LogFormat)
	if err != nil {
		return err
	}
	d, err := daemon.Open(dir, s, version(), log)
	if err != nil {
		return err
	}
	if open := daemon.InsecurePorts(s); len(open) > 0 {
		log.Warn("insecure: every client that reaches these ports is served, without a certificate", "ports", strings.Join(open, ", "))
	}
	if list {
		abs, err := filepath.Abs(string(dir))
		if err != nil {
			return errors.Join(err, d.Close())
		}
		_, anchor, err := dir.Keys()
		if err != nil {
			return errors.Join(err, d.Close())
		}
		remove, err := running.Add(running.Entry{
			Kind: "node", DataDir: abs, Network: d.Node.Root().Genesis().Hash().String(), APIs: []string{d.Socket()}, Anchors: anchor != nil,
		})
		if err != nil {
			return errors.Join(err, d.Close())
		}
		defer remove()
	}
	if ready != nil {
		ready(d)
	}
	return d.Run(ctx)
}
