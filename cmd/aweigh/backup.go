package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/backup"
	"github.com/aweigh/aweigh/internal/home"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/node/fsck"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/store/diskstore"
	"github.com/aweigh/aweigh/votes"
)

func (a *app) backup() *cobra.Command {
	c := &cobra.Command{
		Use: "backup DIR", Short: "Copy a node, also while it runs", Args: cobra.ExactArgs(1),
		Long: "Copies the node of a data directory into DIR, which must not exist: its store, as of\n" +
			"one moment, its genesis and its settings. A node that runs goes on meanwhile. Keys\n" +
			"are copied with --with-keys only: their holder acts as this node.\n\n" +
			"The backup of an anchor is old as soon as the anchor signs again. One that starts\n" +
			"from it and has forgotten ballots stays silent in this epoch.",
		Example: "  aweigh backup --data-dir /var/lib/aweigh /backup/monday\n  aweigh restore /backup/monday --from 12D3KooW... --data-dir ./again",
	}
	dir := c.Flags().String("data-dir", stateDir("node"), "the node's directory")
	api := c.Flags().String("api", "", "address of the node, if it runs (default: its socket)")
	keys := c.Flags().Bool("with-keys", false, "copy the node's keys as well")
	output := outputFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		format, err := formatOf(*output, false)
		if err != nil {
			return err
		}
		d := home.Dir(*dir)
		m, signer, err := manifestOf(d)
		if err != nil {
			return err
		}
		maker := backup.Maker{From: d, Keys: *keys, Progress: a.copied(), Signer: signer}
		m, err = a.makeBackup(cmd.Context(), maker, args[0], m, *api)
		if err != nil {
			return err
		}
		if m.Keys {
			fmt.Fprintln(a.err, "aweigh: the backup holds the node's keys, readable by their owner alone: their holder acts as this node")
		} else {
			fmt.Fprintln(a.err, "aweigh: the keys are not in it (--with-keys); keep identity.key, and an anchor's anchor.key, elsewhere")
		}
		return show.Printer{Out: a.out, Format: format}.Backup(args[0], &m)
	}
	return c
}

// manifestOf is the manifest of a node before it is copied.
func manifestOf(d home.Dir) (m backup.Manifest, signer votes.PrivateKey, err error) {
	g, err := d.ReadGenesis()
	if err != nil {
		return m, signer, err
	}
	signer, anchor, err := d.Keys()
	if err != nil {
		return m, signer, err
	}
	m = backup.Manifest{Made: time.Now().UTC(), Version: version(), Network: g.Hash().String(), Anchor: anchor != nil}
	if s, err := d.ReadSettings(); err == nil {
		m.Name = s.Name
	}
	return m, signer, nil
}

// makeBackup asks the node for its store if it runs, and reads it otherwise.
func (a *app) makeBackup(ctx context.Context, maker backup.Maker, to string, m backup.Manifest, address string) (backup.Manifest, error) {
	if address == "" {
		done, err := maker.Stopped(to, m)
		if !errors.Is(err, diskstore.ErrLocked) {
			return done, err
		}
		if address, err = addressOf(maker.From); err != nil {
			return m, err
		}
	}
	c, err := client.Dial(address)
	if err != nil {
		return m, err
	}
	defer c.Close()
	if err := isNode(ctx, c, maker.From, m.Network); err != nil {
		return m, fmt.Errorf("%s: %w", address, err)
	}
	return maker.Running(ctx, to, m, c)
}

// addressOf is where the node of a directory serves its API.
func addressOf(d home.Dir) (string, error) {
	path, err := d.Socket()
	return "unix://" + path, err
}

// isNode makes sure that a client speaks with the node of a directory.
func isNode(ctx context.Context, c *client.Client, d home.Dir, network string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	s, err := c.Status(ctx)
	if err != nil {
		return err
	}
	identity, _, err := d.Keys()
	if err != nil {
		return err
	}
	peer, err := machine.PeerOf(identity)
	if err != nil {
		return err
	}
	if got := fmt.Sprintf("%x", s.Header.GetNetwork()); got != network || s.Peer != string(peer) {
		return fmt.Errorf("%w: that is node %s of network %.8s, not the one in %s; choose with --api HOST:PORT", errUsage, show.Line(s.NodeName), got, d)
	}
	return nil
}

func (a *app) restore() *cobra.Command {
	c := &cobra.Command{
		Use: "restore BACKUP", Short: "Make a node of a backup", Args: cobra.ExactArgs(1),
		Long: "Makes a node of a copy by \"aweigh backup\", in a directory without a node. The backup\n" +
			"must be signed by the node that --from names, by the peer ID that \"aweigh backup\" and\n" +
			"\"aweigh status\" print, or by the identity that is in the directory already. Its store is\n" +
			"checked against the network's final blocks: every roster, block and record. Keys that are in\n" +
			"the directory already are kept, and so are settings. With --from any, settings that open ports\n" +
			"for clients, decide who they are, or name files are left out, and listed. A restore that is interrupted leaves nothing.\n\n" +
			"Old keys of anchors can sign another history. --trusted refuses it, by a roster that you\n" +
			"know; without one, --from any takes no genesis older than --trusting-period.\n\n" +
			"An anchor that starts from a backup asks the others before it signs. If it signed\n" +
			"anything after the backup was made it stays silent in this epoch, and \"aweigh\n" +
			"status\" and its log report that. Never run it beside the node that was backed up.",
		Example: "  aweigh restore /backup/monday --from 12D3KooW... --data-dir ./again && aweigh node --data-dir ./again\n" +
			"  aweigh restore /backup/monday --from 12D3KooW... --data-dir ./look --as-observer",
	}
	dir := c.Flags().String("data-dir", stateDir("node"), "the directory to make")
	observer := c.Flags().Bool("as-observer", false, "leave the keys out, and make a new identity and settings with free ports: the node does\nnot vote, and may run beside the original")
	signer := c.Flags().String("from", "", "peer ID or key of the node whose backup it must be; \"any\" takes that of an unknown node")
	a.trustingFlags(c)
	c.Flags().Lookup("trusting-period").Usage = "with --from any, how old the genesis may be where no roster is --trusted; 0: any age"
	output := outputFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		format, err := formatOf(*output, false)
		if err != nil {
			return err
		}
		_, pinned, err := a.trusts.pin()
		if err != nil {
			return err
		}
		k := backup.Restorer{To: home.Dir(*dir), Observer: *observer, Signer: *signer, Copied: a.copied(), Checked: a.audited()}
		if pinned || *signer == backup.Anyone { // else the node that signed the backup verified the history itself
			k.Trusts = a.trusts.check
		}
		r, err := k.Restore(cmd.Context(), args[0])
		if errors.Is(err, context.Canceled) {
			return fmt.Errorf("%w: nothing was restored, and nothing is left in %s", errSignal, show.Text(*dir))
		}
		if err != nil {
			return err
		}
		if _, anchor, err := home.Dir(*dir).Keys(); err == nil && anchor != nil {
			fmt.Fprintln(a.err, "aweigh: if this anchor signed anything since, it stays silent in this epoch; it must never run beside the node that was backed up")
		}
		return show.Printer{Out: a.out, Format: format}.Restored(*dir, args[0], &r)
	}
	return c
}

// audited shows on standard error how far an audit is, once a second.
func (a *app) audited() func(fsck.Progress) {
	last := time.Now()
	return func(p fsck.Progress) {
		if time.Since(last) < time.Second {
			return
		}
		last = time.Now()
		of := ""
		if p.Of > 0 {
			of = fmt.Sprintf(" of %d", p.Of)
		}
		fmt.Fprintf(a.err, "checked %d%s %s of scope %s; %s in all\n", p.Done, of, p.What, p.Scope.Short(), show.Size(p.Bytes))
	}
}

// copied shows on standard error how far something large is, once a second.
func (a *app) copied() backup.Progress {
	last := time.Now()
	return func(done, total int64) {
		if time.Since(last) >= time.Second {
			last = time.Now()
			fmt.Fprintf(a.err, "%s of %s\n", show.Size(done), show.Size(total))
		}
	}
}
