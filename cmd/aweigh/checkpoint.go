package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// errFew is wrapped where too few anchors answered.
var errFew = errors.New("too few anchors")

func (a *app) checkpoint() *cobra.Command {
	c := &cobra.Command{
		Use: "checkpoint", Short: "Write the head of a scope's history, signed by its anchors", Args: cobra.NoArgs,
		Long: "Asks for the size and the root hash of all that ever happened in a scope, and the anchors\n" +
			"to sign it. It is verified here, from the network's identity, and written as a signed\n" +
			"note, which witnesses and monitors of other transparency logs read, too (C2SP:\n" +
			"tlog-checkpoint, tlog-cosignature). With a kept note, --since verifies later\n" +
			"that nothing before it was changed.\n\n" +
			"Anchors whose keys are of another scheme than ed25519, or that do not answer within\n" +
			"two seconds, are left out. The exit code is 6 if so few signed that all of them might\n" +
			"lie.",
		Example: "  aweigh checkpoint > head.note\n  aweigh checkpoint --since head.note\n  aweigh checkpoint --scope /registry/secrets/\n  aweigh checkpoint --keys > verifiers.txt",
	}
	since := c.Flags().String("since", "", "a file that this command wrote: verify that the history only grew since")
	keys := c.Flags().Bool("keys", false, "write the anchors' keys instead, as tools for signed notes take them")
	network := c.Flags().String("network", "", "identity of the network (default: that of the node that runs here, or else the node's statement)")
	a.trustingFlags(c)
	defer hideOutput(c)
	return a.askingIn(c, func(ctx context.Context, s *session, _ []string) error {
		if err := s.plain("a checkpoint is a signed note, and keys are lines, for other tools"); err != nil {
			return err
		}
		if !c.Flags().Changed("network") {
			*network = s.network
		}
		id, err := s.networkOf(ctx, *network)
		if err != nil {
			return err
		}
		if *keys && *since != "" {
			return fmt.Errorf("%w: --keys writes keys alone; leave out --since", errUsage)
		}
		var older lineage.Checkpoint
		var kept []byte
		if *since != "" {
			if older, kept, err = readCheckpoint(*since); err != nil {
				return err
			}
		}
		// The identity of the root scope is that of the network; the note of a scope below names that scope.
		if of, ok := strings.CutPrefix(older.Origin, "aweigh/"); ok && s.in == "" && !strings.HasPrefix(of, id.String()) {
			return fmt.Errorf("%w: %s is of network %.64s, and not of %s", scope.ErrProof, *since, of, id)
		}
		ctx, cancel := s.limited(ctx)
		defer cancel()
		defer s.waitsFor("a final block and the anchors' signatures, which take a quorum")()
		head, err := s.head(ctx, id, older.Head.Size, !*keys)
		if err == nil {
			err = a.trusts.check(head.Ancestry.Root())
		}
		if err != nil {
			return err
		}
		if *keys {
			for _, x := range head.Epoch.Roster.Anchors {
				if x.Key.Scheme != votes.Ed25519 {
					fmt.Fprintf(a.err, "anchor %s has a key of the scheme %s, which signs no notes\n", x.Name, x.Key.Scheme)
					continue
				}
				if _, err := fmt.Fprintln(a.out, votes.VerifierKey(x.Key)); err != nil {
					return err
				}
			}
			return nil
		}
		if *since != "" {
			if err := grew(&older, kept, head); err != nil {
				return err
			}
			fmt.Fprintf(a.err, "%s then, %d now: nothing before was changed\n", show.Count(older.Head.Size, "entry"), head.Head.Size)
		}
		return s.cosigned(a.err, head)
	})
}

// head asks for the head of the history of the scope that --scope names.
func (s *session) head(ctx context.Context, network aweigh.NetworkID, old int64, cosign bool) (*client.Checkpoint, error) {
	c, err := s.Client.Checkpoint(ctx, network, old, cosign)
	if err != nil {
		return nil, err
	}
	g := &c.Genesis
	prefix := string(g.Prefix())
	named := prefix == s.in || prefix == s.in+"/" || strings.HasPrefix(g.Hash().String(), s.in)
	if root := g.Descent == nil; root != (s.in == "") || !root && !named {
		return nil, fmt.Errorf("%w: the node returned another scope, %s", scope.ErrProof, g.Hash())
	}
	return c, nil
}

// networkOf is the network that a word, or else the node's own, names.
func (s *session) networkOf(ctx context.Context, text string) (aweigh.NetworkID, error) {
	if text != "" {
		return networkOf(text)
	}
	ctx, cancel := s.limited(ctx)
	defer cancel()
	g, err := s.Client.Genesis(ctx)
	return g.Network(), err
}

// readCheckpoint reads the checkpoint of a signed note.
func readCheckpoint(path string) (c lineage.Checkpoint, note []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return c, nil, err
	}
	defer f.Close()
	if note, err = io.ReadAll(io.LimitReader(f, 1<<20)); err != nil {
		return c, nil, err
	}
	text, _, ok := strings.Cut(string(note), "\n\n")
	if !ok {
		return c, nil, fmt.Errorf("%w: %s is not a signed note, or it is cut off", scope.ErrProof, path)
	}
	if c, err = lineage.ParseCheckpoint(text + "\n"); err != nil {
		err = fmt.Errorf("%w: %s: %w", scope.ErrProof, path, err)
	}
	return c, note, err
}

// grew reports whether a history only grew since a note was written.
func grew(older *lineage.Checkpoint, note []byte, newer *client.Checkpoint) error {
	if older.Origin != newer.Origin {
		return fmt.Errorf("%w: the file is of %s, and this is %s; see --scope", errUsage, older.Origin, newer.Origin)
	}
	signed := len(votes.CosignedBy(note, everyAnchor(&newer.Ancestry)...))
	err := newer.Consistency.Verify(older.Head, newer.Head)
	switch {
	case signed == 0:
		return fmt.Errorf("%w: no anchor that the scope ever had signed the file: it was altered, or is cut off", scope.ErrProof)
	case err != nil:
		return fmt.Errorf("%w: the history of %d entries is not the beginning of that of %d, though %s signed it: it was changed",
			scope.ErrProof, older.Head.Size, newer.Head.Size, show.Count(signed, "anchor"))
	}
	return nil
}

// everyAnchor is the keys of all anchors that a scope ever had.
func everyAnchor(a *scope.Ancestry) (keys []votes.PublicKey) {
	seen := make(map[aweigh.Hash]bool)
	add := func(anchors []scope.Anchor) {
		for i := range anchors {
			if id := anchors[i].Key.ID(); !seen[id] {
				seen[id] = true
				keys = append(keys, anchors[i].Key)
			}
		}
	}
	add(a.Genesis.Anchors)
	for i := range a.Handovers {
		add(a.Handovers[i].Terms.Anchors)
	}
	return keys
}

// cosigned writes a checkpoint, and prints its signers.
func (s *session) cosigned(out io.Writer, c *client.Checkpoint) error {
	if err := s.Printer.Checkpoint(c); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d of %s signed, with weight %d of %d\n", len(c.Cosigned), show.Count(len(c.Epoch.Roster.Anchors), "anchor"), c.Weight,
		c.Epoch.Roster.Weights.Total())
	return fewSigned(c)
}

// fewSigned is an error if all anchors that signed a checkpoint may lie.
func fewSigned(c *client.Checkpoint) error {
	faulty := c.Epoch.Policy.Rules.Mode.FaultBudget(c.Epoch.Roster.Weights.Total())
	if c.Weight <= faulty {
		return fmt.Errorf("%w: anchors of weight %d may lie together, and those that signed have no more", errFew, faulty)
	}
	return nil
}
