package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/scope"
)

func (a *app) status() *cobra.Command {
	c := &cobra.Command{
		Use: "status", Short: "Show a node, its scope and the anchors", Args: cobra.NoArgs,
		Long:    "Shows the state of one node: the scope's height and roster, the peers that it can reach,\nand how many anchors may still fail.",
		Example: "  aweigh status\n  aweigh status --api 127.0.0.1:7177 -o json",
	}
	return a.askingIn(c, func(ctx context.Context, s *session, _ []string) error {
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
		Long: "Lists every change of the object that KEY names, or named last, newest first, under\n" +
			"whatever name it happened.\n\n" + keyHelp,
		Example: "  aweigh history /greeting",
	}
	raw := c.Flags().Bool("raw", false, "take KEY as it is")
	limit := c.Flags().Int64("limit", 100, "at most so many changes")
	return a.asking(c, func(ctx context.Context, s *session, args []string) error {
		name, err := nameOf(args[0], *raw, reads)
		if err == nil && name.Version() != 0 {
			err = fmt.Errorf("%w: the history is that of all versions; leave out .v%d", errUsage, name.Version())
		}
		if err != nil {
			return err
		}
		ctx, cancel := s.limited(ctx)
		defer cancel()
		defer s.waitsFor("a quorum, which confirms what is newest")()
		key := name.Key()
		if !name.Raw() {
			r, err := a.resolve(ctx, s, key, 0, false)
			if err == nil {
				key = r.Key
			} else if !errors.Is(err, client.ErrNotFound) { // a deleted key has a history
				return err
			}
		}
		resp, err := s.Client.History(ctx, &aweighv1.HistoryRequest{Key: key, Limit: *limit})
		if err != nil {
			return err
		}
		return s.Printer.History(resp)
	})
}

func (a *app) why() *cobra.Command {
	c := &cobra.Command{
		Use: "why KEY", Short: "Show and verify the signers behind a key", Args: cobra.ExactArgs(1),
		Long: "Asks for a proof of the key's newest change, verifies it here against the network's\n" +
			"identity, and shows its content: the author of the change, the anchors that\n" +
			"made it final and, if the policy requires approval, its approvers, each with its\n" +
			"weight. The node that answers need not be trusted.\n\n" + keyHelp,
		Example: "  aweigh why /greeting\n  aweigh why /greeting --proof greeting.proof\n  aweigh verify greeting.proof",
	}
	raw := c.Flags().Bool("raw", false, "take KEY as it is")
	save := c.Flags().String("proof", "", "also write the proof to this file")
	network := c.Flags().String("network", "", "identity of the network (default: that of the one that runs here)")
	a.trustingFlags(c)
	return a.asking(c, func(ctx context.Context, s *session, args []string) error {
		key, err := keyOf(args[0], *raw, reads)
		if err != nil {
			return err
		}
		if c.Flags().Changed("network") {
			if _, err := networkOf(*network); err != nil {
				return err
			}
		}
		var file *reserved
		if *save != "" {
			if file, err = reserveNew(*save); err != nil {
				return err
			}
			defer file.release()
		}
		ctx, cancel := s.limited(ctx)
		defer cancel()
		defer s.waitsFor("a final block after the change, which takes a quorum")()
		proof, err := s.Client.Prove(ctx, key)
		if err != nil {
			return err
		}
		if string(proof.Change.Entry.Key) != string(key) {
			return fmt.Errorf("%w: the node answered for another key", scope.ErrProof)
		}
		if !c.Flags().Changed("network") {
			*network = s.network
		}
		if err := a.verified(s.Printer, proof, *network, *network != ""); err != nil || *save == "" {
			return err
		}
		return file.write(proof.Encode())
	})
}

func (a *app) verify() *cobra.Command {
	c := &cobra.Command{
		Use: "verify [FILE]", Short: "Verify a proof or a trail offline", Args: cobra.MaximumNArgs(1),
		Long: "Verifies a proof that --proof of \"aweigh get\", \"ls\", \"why\", \"resolve\" or \"trust explain\" wrote,\n" +
			"without any network, across all epochs since the genesis. Give the network's identity\n" +
			"from a source that you trust: without it, the proof is only valid in the\n" +
			"network that it names. For the newest roster see \"aweigh trust verify\".\n\n" +
			"A proof of \"get\" or \"ls\" shows what the keys held until a final block. Nothing shows that no block\n" +
			"followed: its time says how old that is, and --at-most refuses what is older.\n\n" +
			"FILE may be -, standard input.\n\n" +
			"With --audit, it verifies a trail that \"aweigh audit tail\" wrote: that each line has the hash of\n" +
			"its entry, that none between the first and the last was changed, added, removed or moved, and\n" +
			"that a final head holds them all. It names the first line that is wrong. A trail of \"audit tail\n" +
			"--prefix\" needs the same --prefix here: it may have hashes in the place of lines. These hide\n" +
			"any entries, also some with such keys.",
		Example: "  aweigh verify greeting.proof --network 3f1a…\n  aweigh verify org.proof --network 3f1a… --at-most 10s\n  aweigh verify greeting.proof --network 3f1a… --trusted 12:9c56…\n" +
			"  aweigh verify --audit trail.jsonl --network 3f1a… --checkpoint head.note\n" +
			"  aweigh verify --audit registry.jsonl --network 3f1a… --prefix /registry/",
	}
	var trail trailFlags
	trail.add(c)
	network := c.Flags().String("network", "", "identity of the network, 64 hexadecimal digits")
	atMost := c.Flags().Duration("at-most", 0, "refuse what was the newest longer ago than this, by the clock here")
	a.trustingFlags(c)
	output := outputFlag(c)
	c.RunE = func(_ *cobra.Command, args []string) error {
		format, err := formatOf(*output, false)
		if err != nil {
			return err
		}
		pinned := c.Flags().Changed("network")
		if pinned {
			if _, err := networkOf(*network); err != nil {
				return err
			}
		}
		if done, err := trail.chosen(args); done || err != nil {
			if err == nil && c.Flags().Changed("at-most") {
				err = fmt.Errorf("%w: --at-most is for proofs of \"aweigh get\" and \"aweigh ls\", and not for trails", errUsage)
			}
			if err != nil {
				return err
			}
			return a.verifyTrail(show.Printer{Out: a.out, Format: format}, &trail, *network, pinned)
		}
		raw, err := a.read(args[0], scope.MaxProofBytes)
		if err != nil {
			return err
		}
		if len(raw) == 0 {
			return fmt.Errorf("%w: %s is empty", scope.ErrProof, args[0])
		}
		if holds, err := scope.DecodeRangeProof(raw); err == nil {
			return a.verifiedRange(show.Printer{Out: a.out, Format: format}, holds, *network, pinned, *atMost)
		}
		if *atMost > 0 {
			return fmt.Errorf("%w: --at-most is for proofs of \"aweigh get\" and \"aweigh ls\"", errUsage)
		}
		proof, err := scope.DecodeKeyProof(raw)
		if err != nil {
			if fault, other := scope.DecodeFaultProof(raw); other == nil {
				return a.verifiedFault(show.Printer{Out: a.out, Format: format}, fault, *network, pinned)
			}
			if other := kindOf(args[0], raw); other != "" {
				return fmt.Errorf("%w: %s", errOtherKind, other)
			}
			return fmt.Errorf("%s: this is not a proof, or it is damaged or cut off: %w", args[0], err)
		}
		return a.verified(show.Printer{Out: a.out, Format: format}, proof, *network, pinned)
	}
	return c
}

// networkOf reads the identity of a network.
func networkOf(text string) (aweigh.NetworkID, error) {
	id, err := aweigh.ParseHash(text)
	if err != nil {
		err = fmt.Errorf("%w: --network is the identity of a network, 64 hexadecimal digits, not %q", errUsage, text)
	}
	return id, err
}

// verified verifies a proof and shows it. If the network is not known from
// elsewhere (pinned is false), it takes the network that the proof names.
func (a *app) verified(p show.Printer, proof *scope.KeyProof, network string, pinned bool) error {
	id := proof.Ancestry.Genesis.Network()
	if pinned {
		var err error
		if id, err = networkOf(network); err != nil {
			return err
		}
	}
	if claimed := proof.Ancestry.Genesis.Network(); claimed != id {
		return otherNetwork("the proof", claimed, id)
	}
	report, err := proof.Verify(id)
	if err == nil {
		err = a.trusts.check(proof.Ancestry.Root())
	}
	if err != nil {
		return err
	}
	if err := p.Why(proof.Ancestry.Genesis, report, pinned); err != nil {
		return err
	}
	switch {
	case p.Format != show.Table:
		return nil
	case pinned:
		_, err = fmt.Fprintf(a.out, "verified here for network %s\n", id)
	default:
		_, err = fmt.Fprintf(a.out, "consistent with itself, for network %s; give --network to compare\n", id)
	}
	return err
}

// otherNetwork is the error for something of another network than the named one.
func otherNetwork(what string, of, named aweigh.NetworkID) error {
	return fmt.Errorf("%w: %s is of network %s, and not of %s", scope.ErrProof, what, of, named)
}

// verifiedFault verifies that an anchor lied, and shows how.
func (a *app) verifiedFault(p show.Printer, proof *scope.FaultProof, network string, pinned bool) error {
	id := proof.Genesis.Hash()
	if pinned {
		var err error
		if id, err = networkOf(network); err != nil {
			return err
		}
	}
	if claimed := proof.Genesis.Hash(); claimed != id {
		return otherNetwork("the proof", claimed, id)
	}
	e, who, err := proof.Verify(id)
	if err == nil {
		err = a.trusts.check(proof.Root())
	}
	if err != nil {
		return err
	}
	return p.Fault(proof, e, who, pinned)
}

func (a *app) version() *cobra.Command {
	c := &cobra.Command{Use: "version", Short: "Show the version of this program", Args: cobra.NoArgs}
	output := outputFlag(c)
	c.RunE = func(*cobra.Command, []string) error {
		format, err := formatOf(*output, false)
		if err != nil {
			return err
		}
		if format == show.JSON {
			return show.Printer{Out: a.out}.JSON(struct {
				Version string `json:"version"`
				Go      string `json:"go"`
				System  string `json:"system"`
				Format  int    `json:"format"` // of blocks and ballots
			}{version(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, scope.Format})
		}
		_, err = fmt.Fprint(a.out, versionLine())
		return err
	}
	return c
}

func versionLine() string {
	return fmt.Sprintf("aweigh %s (%s, %s/%s, format %d)\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH, scope.Format)
}

// release is set by the linker for released programs.
var release string

// version is the release, or the Go toolchain's description of the source.
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
