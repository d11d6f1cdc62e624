package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh/internal/bench"
	"github.com/aweigh/aweigh/internal/show"
)

func (a *app) bench() *cobra.Command {
	var cfg bench.Config
	c := &cobra.Command{
		Use: "bench put|get", Short: "Measure how fast nodes answer", Args: cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"put", "get"},
		Long: "Loads nodes with writes or reads of the keys below --prefix, and shows throughput and\n" +
			"latency at the end, progress meanwhile. For reads it writes the keys first. The keys, as many as --keys says,\n" +
			"stay: \"aweigh del /bench/ --prefix\" removes them.",
		Example: "  aweigh bench put --clients 256 --duration 10s\n  aweigh bench get --serializable -o json\n" +
			"  aweigh bench put --api 127.0.0.1:7177 --total 100000 --distribution zipf",
	}
	f := c.Flags()
	defer choices(c, "distribution", "uniform", "zipf", "sequential")
	f.IntVar(&cfg.Clients, "clients", 64, "requests in flight at the same time")
	f.IntVar(&cfg.Connections, "connections", 8, "connections that they share, spread over the nodes")
	f.StringVar(&cfg.Prefix, "prefix", "/bench/", "of all keys, which decides about the scope that is loaded: one that starts with a slash, or an alias")
	f.IntVar(&cfg.KeySize, "key-size", 0, "bytes of a key (default 32, or more if the prefix needs it)")
	f.IntVar(&cfg.ValueSize, "value-size", 256, "bytes of a value")
	f.IntVar(&cfg.Keys, "keys", 10_000, "how many different keys")
	f.DurationVar(&cfg.Duration, "duration", 0, "how long (default 10s, without --total)")
	f.Uint64Var(&cfg.Total, "total", 0, "how many requests")
	distribution := f.String("distribution", "uniform", "uniform, zipf or sequential")
	f.BoolVar(&cfg.Serializable, "serializable", false, "reads: the node answers alone")
	f.Uint64Var(&cfg.Seed, "seed", 0, "of the choice of keys (default random)")
	return a.asking(c, func(ctx context.Context, s *session, args []string) error {
		cfg.Addresses, cfg.Credentials, cfg.Timeout, cfg.Write = s.Addresses(), s.reach, s.timeout, args[0] == "put"
		cfg.Distribution = bench.Distribution(*distribution)
		prefix, err := prefixOf(cfg.Prefix)
		if err == nil {
			err = rooted(cfg.Prefix, prefix)
		}
		if err != nil {
			return err
		}
		cfg.Prefix = string(prefix)
		if !f.Changed("seed") {
			cfg.Seed = rand.Uint64()
		}
		r, err := bench.Run(ctx, cfg, func(p bench.Progress) {
			fmt.Fprintf(a.err, "%4.0fs  %8d/s  %s\n", p.At.Seconds(), p.Done, show.Count(p.Errors, "undecided or failed request"))
		})
		if errors.Is(err, bench.ErrConfig) {
			return fmt.Errorf("%w: %w", errUsage, err)
		}
		if err != nil {
			return err
		}
		if err := s.Printer.Bench(r); err != nil {
			return err
		}
		fmt.Fprintf(a.err, "aweigh: the keys that it wrote stay; to remove them:  aweigh del %s --prefix\n", show.Word(show.Key(prefix)))
		if err := ctx.Err(); err != nil { // the report is of what was done until then
			return err
		}
		return r.Err()
	})
}
