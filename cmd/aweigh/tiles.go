package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/daemon"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/internal/tiles"
	"github.com/aweigh/aweigh/internal/witness"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

func (a *app) tiles() *cobra.Command {
	c := &cobra.Command{
		Use: "tiles DIR", Short: "Keep the history of a scope as files for monitors and witnesses", Args: cobra.ExactArgs(1),
		Long: "Writes the history of a scope into a directory that any web server can serve, in the form\n" +
			"that monitors of transparency logs read (C2SP: tlog-tiles): the hashes in tiles, the\n" +
			"entries in bundles, and a checkpoint that the anchors signed. Run again, it adds what is\n" +
			"new. Everything is verified before it is shown: the entries by the root that the\n" +
			"checkpoint names, and the checkpoint from the network's identity.\n\n" +
			"An entry is the canonical CBOR of a change: the key, the author and for whom it acted,\n" +
			"the object, hashes of values; values never. Who reads the directory reads them all.\n\n" +
			"With --witnesses it asks witnesses of transparency logs to sign, too (C2SP:\n" +
			"tlog-witness), and shows a checkpoint only with the cosignatures that the file's quorum\n" +
			"takes. A witness signs no second history, so a network that shows different histories\n" +
			"to different readers is found. The file is a policy (C2SP: tlog-policy), of lines such as\n\n" +
			"  witness w1 w1.example+33a8b2cd+BNV… https://w1.example\n" +
			"  witness w2 w2.example+0f1e2d3c+BKa… https://w2.example/log\n" +
			"  group two all w1 w2\n" +
			"  quorum two\n\n" +
			"With --every it goes on until interrupted, and with --listen it also serves the files by\n" +
			"HTTP. The exit code is 6 if so few anchors signed that all of them might lie, or too few\n" +
			"witnesses, and 7 if a witness signed another history.",
		Example: "  aweigh tiles ./history\n  aweigh tiles ./history --every 1m\n  aweigh tiles ./history --every 1m --listen 127.0.0.1:8080\n  aweigh tiles ./history --witnesses policy.txt\n  aweigh tiles ./secrets --scope /registry/secrets/",
	}
	every := c.Flags().Duration("every", 0, "add what is new so often, until interrupted")
	listen := c.Flags().String("listen", "", "with --every: serve the files meanwhile at this HOST:PORT, by HTTP, to all that reach it")
	c.Flags().String("witnesses", "", "file with the witnesses that are to sign, and how many must (C2SP: tlog-policy)")
	network := c.Flags().String("network", "", "identity of the network (default: that of the node that runs here, or else the node's statement)")
	a.trustingFlags(c)
	return a.askingIn(c, func(ctx context.Context, s *session, args []string) error {
		if *every < 0 {
			return fmt.Errorf("%w: --every is a duration, such as 1m", errUsage)
		}
		if *listen != "" && *every == 0 {
			return fmt.Errorf("%w: --listen goes with --every, which says how often to add what is new", errUsage)
		}
		if !c.Flags().Changed("network") {
			*network = s.network
		}
		policy, err := witnessesOf(c.Flags().Lookup("witnesses"))
		if err != nil {
			return err
		}
		id, err := s.networkOf(ctx, *network)
		if err != nil {
			return err
		}
		if *listen != "" {
			stop, err := a.serveTiles(ctx, *listen, args[0])
			if err != nil {
				return err
			}
			defer stop()
		}
		for {
			err := a.tile(ctx, s, id, args[0], policy)
			if *every == 0 || ctx.Err() != nil || err != nil && !passes(err) {
				return err
			}
			if err != nil {
				fmt.Fprintf(a.err, "aweigh: %s; it goes on in %s\n", message(err), *every)
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(*every):
			}
		}
	})
}

// serveTiles serves a directory until the function that it returns has ended, and prints where.
func (a *app) serveTiles(ctx context.Context, listen, dir string) (stop func(), err error) {
	if _, _, err := net.SplitHostPort(listen); err != nil {
		return nil, fmt.Errorf("%w: --listen: %q is no HOST:PORT: %w", errUsage, listen, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, daemon.Taken("listen", listen, err)
	}
	fmt.Fprintf(a.err, "aweigh: %s is served at http://%s\n", dir, l.Addr())
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := tiles.Serve(ctx, l, dir); err != nil {
			fmt.Fprintf(a.err, "aweigh: %s is not served any more: %s\n", dir, message(err))
		}
	}()
	return func() { cancel(); <-ended }, nil
}

// passes reports whether a later run may succeed where this one failed.
func passes(err error) bool {
	switch {
	case errors.Is(err, tiles.ErrDamaged):
		return false
	case errors.Is(err, client.ErrUnreachable), errors.Is(err, errFew), errors.Is(err, witness.ErrFew), errors.Is(err, tiles.ErrBusy):
		return true
	}
	return false
}

// witnessesOf reads the policy of the file that a flag names, if it is given.
func witnessesOf(flag *pflag.Flag) (*witness.Policy, error) {
	name := flag.Value.String()
	switch {
	case !flag.Changed:
		return nil, nil
	case name == "":
		return nil, fmt.Errorf("%w: --witnesses is empty, and names a file", errUsage)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	p, err := witness.Parse(string(text))
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return p, err
}

// tile brings a directory up to the head of the history of the scope that --scope names.
func (a *app) tile(ctx context.Context, s *session, network aweigh.NetworkID, dir string, policy *witness.Policy) (err error) {
	head, err := a.tileHead(ctx, s, network)
	if err != nil {
		return err
	}
	d, err := tiles.Open(dir, head.Origin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	had := d.Size()
	if had > head.Head.Size {
		return fmt.Errorf("%w: %s has %d entries, and the node's history has %d", scope.ErrProof, dir, had, head.Head.Size)
	}
	if had < head.Head.Size {
		if err := added(ctx, s, d, head.Head.Size); err != nil {
			return err
		}
	}
	if err := d.Check(head.Head); err != nil {
		return err
	}
	note, out := votes.Note(head.Text(), head.Cosigned), show.Tiles{Directory: dir, Had: had, Checkpoint: head}
	if policy != nil {
		by, err := s.witnessed(ctx, policy, witness.Submission{Checkpoint: head.Checkpoint, Note: note, Old: had, Prove: d.Prove})
		if err != nil {
			return err
		}
		note, out.Witnesses, out.Signed = by.Note, policy.Len(), by.Names
	}
	if err := d.Seal(head.Head, note); err != nil {
		return err
	}
	if err := s.Printer.Tiles(out); err != nil {
		return err
	}
	return fewSigned(head)
}

// witnessed asks witnesses to cosign, and prints which did not though enough did.
func (s *session) witnessed(ctx context.Context, p *witness.Policy, c witness.Submission) (witness.Cosigned, error) {
	defer s.waitsFor("the cosignatures of witnesses")()
	by, err := p.Cosign(ctx, c)
	if err == nil {
		for _, err := range by.Failed {
			fmt.Fprintf(s.told, "aweigh: %s\n", message(err))
		}
	}
	return by, err
}

func (a *app) tileHead(ctx context.Context, s *session, network aweigh.NetworkID) (*client.Checkpoint, error) {
	ctx, cancel := s.limited(ctx)
	defer cancel()
	defer s.waitsFor("a final block and the anchors' signatures, which take a quorum")()
	head, err := s.head(ctx, network, 0, true)
	if err == nil {
		err = a.trusts.check(head.Ancestry.Root())
	}
	return head, err
}

// errTiled ends the reading of entries.
var errTiled = errors.New("all are there")

// added adds entries until there are so many.
func added(ctx context.Context, s *session, d *tiles.Dir, to int64) error {
	err := s.Client.Tail(ctx, &aweighv1.TailRequest{SinceIndex: d.Size()}, func(p *aweighv1.TailResponse) error {
		for _, x := range p.Items {
			switch {
			case d.Size() == to:
				return errTiled
			case len(x.Entry) == 0 && x.To == d.Size(): // what is there already
				continue
			case len(x.Entry) == 0:
				return fmt.Errorf("%w: the node does not show entry %d; a caller that may read the whole scope sees it", scope.ErrDenied, d.Size())
			case x.Index != d.Size():
				return fmt.Errorf("%w: the node returned entry %d, and %d is next", scope.ErrProof, x.Index, d.Size())
			}
			if err := d.Add(x.Entry); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, errTiled) || err == nil && d.Size() == to {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("%w: the node returned %d entries of %d", scope.ErrProof, d.Size(), to)
	}
	return err
}
