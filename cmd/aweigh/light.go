package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	grpc "google.golang.org/grpc/codes"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/api"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/etcd"
	"github.com/aweigh/aweigh/internal/daemon"
	"github.com/aweigh/aweigh/scope"
)

func (a *app) light() *cobra.Command {
	c := &cobra.Command{
		Use: "light", Short: "Serve etcd's reads and watches out of nodes that it does not believe", Args: cobra.NoArgs,
		Long: "Serves the part of etcd's API that reads, until interrupted: Range and Watch. Each answer of a node is\n" +
			"verified here, from the network's identity alone; if one does not hold, the log names the node, and the\n" +
			"next one is asked. Nothing is stored.\n\n" +
			"Of the changes of a key between two proofs, a watch delivers the last one. If nodes hide a change, or\n" +
			"answer no more, the watch delivers it or ends, within three times --at-most (of 5 s or more).",
		Example: "  aweigh light --network ID --api node1.example.org:7000,node2.example.org:7000\n" +
			"  etcdctl --endpoints 127.0.0.1:2379 watch /org/ --prefix",
	}
	listen := c.Flags().String("etcd-listen", defaultEtcd, "where etcd's API is served, host:port, on a loopback address")
	network := c.Flags().String("network", "", "identity of the network (default: that of the one that runs here)")
	atMost := c.Flags().Duration("at-most", 10*time.Second, "refuse what was the newest longer ago than this, by the clock here")
	level := c.Flags().String("log-level", "info", "debug, info, warn or error")
	a.trustingFlags(c)
	c = a.asking(c, func(ctx context.Context, s *session, _ []string) error {
		if *atMost < leastAtMost {
			return fmt.Errorf("%w: --at-most is %s or more, and not %s: nodes prove by blocks that are up to 2s old",
				errUsage, leastAtMost, *atMost)
		}
		if err := api.CheckAddress(*listen); err != nil {
			return fmt.Errorf("%w: --etcd-listen: %w", errUsage, err)
		}
		if !api.Loopback(*listen) {
			return fmt.Errorf("%w: --etcd-listen %s: a light reader is for this machine, and listens on loopback addresses alone",
				errUsage, *listen)
		}
		if !c.Flags().Changed("network") {
			if *network = s.network; *network == "" {
				return fmt.Errorf("%w: no network runs here; give its identity with --network", errUsage)
			}
		}
		id, err := networkOf(*network)
		if err != nil {
			return err
		}
		if _, _, err := a.trusts.pin(); err != nil {
			return err
		}
		log, err := logger(a.err, *level, "text")
		if err != nil {
			return fmt.Errorf("%w: --log-level: %w", errUsage, err)
		}
		reader := s.Client.Verified(id, *atMost, a.trustsRange)
		reader.Refused = func(node string, err error) {
			log.Warn("an answer of a node does not hold", "node", node, "err", err)
		}
		l, err := etcd.ListenLight(etcd.LightConfig{
			Listen: *listen, Network: id, Reader: reader, AtMost: *atMost,
			Hints: s.Client.Hints, Final: finalCode, Log: log,
		})
		if err != nil {
			return daemon.Taken("etcd-listen", *listen, err)
		}
		if err := a.begins(ctx, s, reader); err != nil {
			return errors.Join(err, l.Close())
		}
		fmt.Fprintf(a.out, "etcd's reads and watches of network %s are served at %s, each answer verified here\n",
			aweigh.Hash(id).Short(), l.Addr())
		return l.Run(ctx)
	})
	c.Flags().Lookup("timeout").Hidden = true
	c.Flags().Lookup("output").Hidden = true
	return c
}

// leastAtMost is the least --at-most of a light reader.
const leastAtMost = 3 * time.Second

// begins tries a first read. Where no node answers, it only says so: one may soon.
func (a *app) begins(ctx context.Context, s *session, reader *client.Verified) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	switch _, _, err := reader.Range(ctx, []byte("/"), nil); {
	case err == nil || finalCode(err) != grpc.OK:
	case errors.Is(err, scope.ErrProof) && !errors.Is(err, client.ErrAged):
		return err
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	default:
		fmt.Fprintf(a.err, "aweigh: no node proves anything yet: %s\n", message(err))
	}
	return nil
}

// finalCode returns the code of an error that the same request would meet again, OK for any other.
func finalCode(err error) grpc.Code {
	switch {
	case errors.Is(err, client.ErrUnreachable) || errors.Is(err, client.ErrBusy) || errors.Is(err, client.ErrUnread):
		return grpc.OK // a node that does not answer now may say something else
	case errors.Is(err, client.ErrDenied):
		return grpc.PermissionDenied
	case errors.Is(err, client.ErrInvalid):
		return grpc.InvalidArgument
	}
	return grpc.OK
}
