package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/scope"
)

func (a *app) status() *cobra.Command {
	c := &cobra.Command{
		Use: "status", Short: "Show a node, its scope and the anchors", Args: cobra.NoArgs,
		Long:    "Shows what one node knows: the scope's height and roster, who is reachable from there,\nand how many anchors may still fail.",
		Example: "  aweigh status\n  aweigh status --api 127.0.0.1:7177 -o json",
	}
	return a.asking(c, func(ctx context.Context, s *session, _ []string) error {
		ctx, cancel := s.limited(ctx)
		defer cancel()
		resp, err := s.Client.Status(ctx)
		if err != nil {
			return err
		}
		return s.Printer.Status(resp)
	})
}

func (a *app) history() *cobra.Command {
	c := &cobra.Command{
		Use: "history KEY", Short: "List what happened to a key's object", Args: cobra.ExactArgs(1),
		Long:    "Lists every change of the object that KEY names, or named last, newest first.\n\n" + keyHelp,
		Example: "  aweigh history /greeting",
	}
	raw := c.Flags().Bool("raw", false, "take KEY as it is")
	limit := c.Flags().Int64("limit", 100, "at most so many changes")
	return a.asking(c, func(ctx context.Context, s *session, args []string) error {
		key, err := keyOf(args[0], *raw)
		if err != nil {
			return err
		}
		ctx, cancel := s.limited(ctx)
		defer cancel()
		resp, err := s.Client.History(ctx, &aweighv1.HistoryRequest{Key: key, Limit: *limit})
		if err != nil {
			return err
		}
		return s.Printer.History(resp)
	})
}

func (a *app) why() *cobra.Command {
	c := &cobra.Command{
		Use: "why KEY", Short: "Show and verify who stands behind a key", Args: cobra.ExactArgs(1),
		Long: "Asks for a proof of the key's newest change, verifies it here against the network's\n" +
			"identity, and shows what it proves: who asked for the change, and which anchors of\n" +
			"what weight made it final. The node that answers need not be trusted.\n\n" + keyHelp,
		Example: "  aweigh why /greeting\n  aweigh why /greeting --proof greeting.proof\n  aweigh verify greeting.proof",
	}
	raw := c.Flags().Bool("raw", false, "take KEY as it is")
	save := c.Flags().String("proof", "", "also write the proof to this file")
	network := c.Flags().String("network", "", "identity of the network (default: that of the one that runs here)")
	return a.asking(c, func(ctx context.Context, s *session, args []string) error {
		key, err := keyOf(args[0], *raw)
		if err != nil {
			return err
		}
		ctx, cancel := s.limited(ctx)
		defer cancel()
		proof, err := s.Client.Prove(ctx, key)
		if err != nil {
			return err
		}
		if string(proof.Entry.Key) != string(key) {
			return fmt.Errorf("%w: the node answered for another key", scope.ErrProof)
		}
		if *network == "" {
			*network = s.network
		}
		if err := a.verified(s.Printer, proof, *network); err != nil || *save == "" {
			return err
		}
		return os.WriteFile(*save, proof.Encode(), 0o644)
	})
}

func (a *app) verify() *cobra.Command {
	c := &cobra.Command{
		Use: "verify FILE", Short: "Verify a proof offline", Args: cobra.ExactArgs(1),
		Long: "Verifies a proof that \"aweigh why --proof\" wrote, without any network. Give the\n" +
			"network's identity from a source that you trust: without it, the proof only shows\n" +
			"that it holds in the network that it names.",
		Example: "  aweigh verify greeting.proof --network 3f1a…",
	}
	network := c.Flags().String("network", "", "identity of the network, 64 hexadecimal digits")
	output := c.Flags().StringP("output", "o", "table", "table or json")
	c.RunE = func(_ *cobra.Command, args []string) error {
		format, err := show.ParseFormat(*output)
		if err != nil {
			return fmt.Errorf("%w: %w", errUsage, err)
		}
		f, err := os.Open(args[0])
		if err != nil {
			return err
		}
		defer f.Close()
		raw, err := io.ReadAll(io.LimitReader(f, scope.MaxProofBytes+1))
		if err != nil {
			return err
		}
		proof, err := scope.DecodeKeyProof(raw)
		if err != nil {
			return err
		}
		return a.verified(show.Printer{Out: a.out, Format: format}, proof, *network)
	}
	return c
}

// verified verifies a proof and shows it. Where the network is not known from
// elsewhere, it says that the proof's own word was taken.
func (a *app) verified(p show.Printer, proof *scope.KeyProof, network string) error {
	id := proof.Genesis.Hash()
	if network != "" {
		var err error
		if id, err = aweigh.ParseHash(network); err != nil {
			return fmt.Errorf("%w: --network: %w", errUsage, err)
		}
	}
	report, err := proof.Verify(id)
	if err != nil {
		return err
	}
	if err := p.Why(proof.Genesis, report); err != nil {
		return err
	}
	if p.Format == show.Table {
		fmt.Fprintf(a.out, "verified here for network %s\n", hex.EncodeToString(id[:]))
	}
	if network == "" {
		fmt.Fprintln(a.err, "aweigh: which network this is, the proof says itself; name the one that you trust with --network")
	}
	return nil
}

func (a *app) version() *cobra.Command {
	c := &cobra.Command{Use: "version", Short: "Show the version of this program", Args: cobra.NoArgs}
	output := c.Flags().StringP("output", "o", "table", "table or json")
	c.RunE = func(*cobra.Command, []string) error {
		if *output == "json" {
			return show.Printer{Out: a.out}.JSON(struct {
				Version string `json:"version"`
				Go      string `json:"go"`
				System  string `json:"system"`
				Format  int    `json:"format"` // of blocks and ballots
			}{version(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, scope.Format})
		}
		_, err := fmt.Fprintf(a.out, "aweigh %s (%s, %s/%s, format %d)\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH, scope.Format)
		return err
	}
	return c
}

// release is set by the linker for released programs.
var release string

// version is the release, or what the Go toolchain knows of the source.
func version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "dev"
	}
	return info.Main.Version
}
