package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/daemon"
	"github.com/aweigh/aweigh/internal/founding"
	"github.com/aweigh/aweigh/internal/policytext"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

func (a *app) init() *cobra.Command {
	c := &cobra.Command{
		Use: "init", Short: "Make a node, and a network", Args: cobra.NoArgs,
		Long: "Makes a node's directory: keys, settings, and the genesis of a network.\n\n" +
			"Alone, the network has this node as its one anchor. For more, each founder runs\n" +
			"\"aweigh init --anchor-info\" and sends the line it prints to one of them. That one puts\n" +
			"the lines into a file and runs \"aweigh init --anchors FILE\". The others copy the\n" +
			"genesis.cbor that this makes and run \"aweigh init --genesis FILE --anchors FILE\".",
		Example: "  aweigh init --data-dir ./node && aweigh node --data-dir ./node\n" +
			"  aweigh init --data-dir ./node --name oslo --announce /ip4/192.0.2.1/tcp/4177 --anchor-info\n" +
			"  aweigh init --data-dir ./node --anchors founders.yaml --network-name consortium",
	}
	settings := nodeFlags(defaultListen...)
	c.Flags().AddFlagSet(settings)
	network := c.Flags().String("network-name", "aweigh", "the network's name")
	mode := c.Flags().String("mode", "bft", "bft: a third of the weight may lie; fast: as much, and one round of votes decides; crash: no anchor\nlies, less than a half may stop")
	policy := c.Flags().String("policy", "", "file with the differences from the default policy, in the form of \"aweigh policy show\"")
	blocks := c.Flags().Int64("epoch-blocks", 0, "end an epoch after so many blocks (default 10000)")
	probation := c.Flags().Int64("probation", 0, "epochs in which a new anchor weighs nothing (default 4)")
	group := c.Flags().String("group", "", "how many anchors weigh at a time, as in 4..7,replace=3 (see aweigh policy set --help); the others are on standby\n(default: all weigh)")
	anchors := c.Flags().String("anchors", "", "file with the founders, one line of --anchor-info each")
	genesis := c.Flags().String("genesis", "", "file with the genesis that another founder made")
	info := c.Flags().Bool("anchor-info", false, "make the keys alone, and print this node's line for --anchors")
	c.MarkFlagsMutuallyExclusive("anchor-info", "anchors")
	c.MarkFlagsMutuallyExclusive("anchor-info", "genesis")
	for _, f := range []string{"policy", "epoch-blocks", "probation", "group"} {
		c.MarkFlagsMutuallyExclusive("genesis", f)
	}
	choices(c, "mode", "bft", "fast", "crash")
	c.RunE = func(*cobra.Command, []string) error {
		dir, s, err := nodeSettings(settings, "")
		if err != nil {
			return err
		}
		m, err := quorum.ParseMode(*mode)
		if err != nil {
			return fmt.Errorf("%w: %w", errUsage, err)
		}
		rules := scope.DefaultPolicy(m)
		if *policy != "" {
			if rules, err = policyFrom(*policy, rules); err != nil {
				return err
			}
		}
		if c.Flags().Changed("epoch-blocks") {
			rules.EpochBlocks = uint64(*blocks)
		}
		if c.Flags().Changed("probation") {
			rules.Trust.Probation = uint32(*probation)
		}
		if *group != "" {
			if rules.Trust.Group, err = policytext.ParseGroup(*group, rules.Rules.Mode); err != nil {
				return err
			}
		}
		if err := rules.Check(); err != nil { // before keys are made
			return fmt.Errorf("%w: the policy: %w", errUsage, err)
		}
		if at, err := os.Stat(string(dir)); err == nil && !at.IsDir() {
			return fmt.Errorf("%w: --data-dir is a directory, and %s is a file", errUsage, dir)
		}
		// Nothing is written before all is known to be good.
		if err := errors.Join(daemon.Check(s), daemon.CheckName("network-name", *network)); err != nil {
			return err
		}
		if _, err := logger(a.err, s.LogLevel, s.LogFormat); err != nil {
			return err
		}
		if *anchors != "" {
			if _, err := founding.ReadAnchors(*anchors); err != nil {
				return err
			}
		}
		if *genesis != "" {
			if _, err := founding.ReadGenesis(*genesis); err != nil {
				if raw, readErr := a.read(*genesis, scope.MaxProofBytes); readErr == nil && kindOf(*genesis, raw) != "" {
					return fmt.Errorf("%w: %s", founding.ErrGenesis, kindOf(*genesis, raw))
				}
				return err
			}
		}
		if !*info {
			if err := founding.Vacant(dir); err != nil {
				return err // and an observer gets no anchor's key
			}
		}
		self, err := founding.Self(dir, s)
		if err != nil {
			return err
		}
		if *info {
			// The flags given now hold for the init that follows.
			s.Name = self.Name
			line, err := self.Line()
			if err == nil {
				err = dir.SaveSettings(s)
			}
			if err == nil {
				_, err = fmt.Fprintln(a.out, line)
			}
			if err == nil && len(self.Addresses) == 0 {
				fmt.Fprintln(a.err, "warning: the line names no address, so no other node can dial this one; give one with --announce or --listen")
			}
			return err
		}
		plan := founding.Plan{
			Dir: dir, Settings: s, Self: self, Network: *network, Mode: m, Policy: &rules, Anchors: *anchors, Genesis: *genesis,
			Now: aweigh.InstantOf(time.Now()),
		}
		g, err := plan.Found()
		if err != nil {
			return err
		}
		fmt.Fprintf(a.out, "network  %s, %s, mode %s\nidentity %s\npeer     %s\ndata     %s\n\nstart it:  aweigh node --data-dir %s\n",
			show.Line(g.Name), show.Count(len(g.Anchors), "anchor"), g.Policy.Rules.Mode, g.Hash(), self.Peer, dir, show.Word(string(dir)))
		if stoppable, err := g.Check(); err == nil && stoppable && len(g.Anchors) > 1 {
			fmt.Fprintf(a.err, "warning: with %d anchors in mode %s, one that fails can stop this network; bft wants 4 or more, crash 3 or more\n",
				len(g.Anchors), g.Policy.Rules.Mode)
		}
		return nil
	}
	return c
}

func (a *app) join() *cobra.Command {
	c := &cobra.Command{
		Use: "join FILE", Short: "Join a network as an observer", Args: cobra.ExactArgs(1),
		Long: "Makes a node that follows a network, checking everything, and runs it. FILE holds the invite;\n" +
			"- is standard input. An invite with a secret admits the node as an observer. Such an invite\n" +
			"is not taken on the command line, which other users of the machine can see; one without a\n" +
			"secret may stand in the place of FILE. The genesis comes from the nodes that the invite names,\n" +
			"and is checked against it. The invite also carries the roster that was in force where it\n" +
			"was made, unless the network was in its first epoch; --trusted names another. A history\n" +
			"that does not come by that roster is refused, as keys of anchors that left can sign one,\n" +
			"and nothing is served before it has come so far. Without a roster, a genesis that is older\n" +
			"than --trusting-period is refused.",
		Example: "  aweigh invite | aweigh join -\n  aweigh join ./invite --data-dir ./observer --name reader",
	}
	settings := nodeFlags("/ip4/0.0.0.0/tcp/0")
	wait := settings.Duration("timeout", 30*time.Second, "how long to wait for a node that knows the genesis")
	a.periodFlag(c)
	stay := c.Flags().Bool("no-run", false, "make the node, and do not run it")
	c.Flags().AddFlagSet(settings)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		invite, err := a.inviteOf(args[0])
		if err != nil {
			return err
		}
		dir, s, err := nodeSettings(settings, "")
		if err != nil {
			return err
		}
		if err := daemon.Check(s); err != nil {
			return err
		}
		if s.Trusted == "" { // flags and the directory's settings take precedence
			s.Trusted = invite.Recent
		}
		fmt.Fprintf(a.out, "joining %s, network %s\n", show.Line(invite.Name), invite.Network)
		there := dir.Exists()
		ctx, cancel := context.WithTimeout(cmd.Context(), *wait)
		defer cancel()
		if s, err = founding.Join(ctx, dir, s, invite, func(g scope.Genesis) error {
			if s.Trusted != "" {
				return nil
			}
			return a.trusts.young(g)
		}); err != nil {
			return err
		}
		fmt.Fprintf(a.out, "the genesis is the one that the invite names\ndata     %s\n", dir)
		if s.Trusted != "" {
			fmt.Fprintf(a.out, "trusted  roster %s; another history is refused\n", show.Line(s.Trusted))
		}
		if there && invite.Ticket != "" {
			if err := founding.Admit(ctx, dir, s, invite); err != nil {
				fmt.Fprintf(a.err, "warning: the invite did not admit this node: %v\n", err)
			}
		}
		if there {
			which := "flags hold for this run alone"
			if *stay {
				which = "flags change nothing"
			}
			fmt.Fprintf(a.out, "         there already, and left as it is: %s; %s has what stays\n", which, dir.Config())
		}
		if *stay {
			fmt.Fprintf(a.out, "\nstart it:  aweigh node --data-dir %s\n", show.Word(string(dir)))
			return nil
		}
		return a.runNode(cmd.Context(), dir, s, true, func(d *daemon.Daemon) {
			for _, address := range []string{d.Socket(), d.API()} {
				if address != "" {
					fmt.Fprintf(a.out, "api      %s\n", address)
				}
			}
			go a.progress(cmd.Context(), d.Node)
		})
	}
	return c
}

// inviteOf is the invite in a file, or the argument itself if that is an invite without a secret.
func (a *app) inviteOf(arg string) (invite node.Invite, err error) {
	text, given := []byte(arg), node.IsInvite([]byte(arg))
	if !given {
		if text, err = a.read(arg, scope.MaxProofBytes); errors.Is(err, errLarge) {
			return invite, fmt.Errorf("%w: %w", errUsage, err)
		} else if err != nil {
			return invite, err
		}
	}
	invite, err = node.ParseInvite(string(text))
	switch {
	case err != nil && !given && !node.IsInvite(text):
		if other := otherKind(arg, text, "name the file of an invite, which \"aweigh invite\" prints"); other != nil {
			return invite, other
		}
		return invite, fmt.Errorf("%w: %s: %w", errUsage, arg, err)
	case err != nil:
		return invite, fmt.Errorf("%w: %w", errUsage, err)
	case given && len(invite.Secret) > 0:
		return node.Invite{}, fmt.Errorf("%w: the secret of the invite %s stands on the command line, which other users of this "+
			"machine can see; give the name of its file, or - and the invite on standard input, as in: aweigh invite | aweigh join -; "+
			"if others can see it, end it with: aweigh invite revoke %s", errUsage, show.Line(invite.Ticket), show.Word(invite.Ticket))
	}
	return invite, nil
}

// progress prints a node's progress until it has caught up with its peers.
func (a *app) progress(ctx context.Context, n *node.Node) {
	shown := aweigh.Height(0)
	for tick := time.NewTicker(200 * time.Millisecond); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		o := n.Root().Overview()
		if o.Head.Height != shown {
			shown = o.Head.Height
			fmt.Fprintf(a.out, "synced   block %d, revision %d, %s\n", shown, o.Head.Revision, show.Count(len(o.Neighbours), "peer"))
		}
		if shown > 0 && !o.Behind && len(o.Neighbours) > 0 && n.Pin().Reached {
			fmt.Fprintln(a.out, "ready: this node has caught up and follows")
			for _, x := range n.Scopes() {
				if !x.Held {
					fmt.Fprintf(a.out, "         not held, asked for: %s, and what is below\n", show.Key(x.Genesis.Prefix()))
				}
			}
			return
		}
	}
}
