package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/audit"
)

func (a *app) auditCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "audit", Short: "Write the history of a scope for other systems",
		Long: "Writes the history of a scope as lines that \"aweigh verify --audit\" verifies offline.",
	}
	return a.under(c, a.auditTail())
}

func (a *app) auditTail() *cobra.Command {
	c := &cobra.Command{
		Use: "tail", Short: "Write every change of a scope in order, a line each", Args: cobra.NoArgs,
		Long: "Writes an entry of the scope's history as a line, in order: the change, its key, its author\n" +
			"and for whom it acted, the block, and the entry's hash; values never. The last line is a\n" +
			"head, signed by the anchors, which proves all lines: \"aweigh verify --audit\". The \"next\"\n" +
			"of a line, as --since, goes on exactly after it, also by appending to the same file.\n\n" +
			"With --prefix, other entries are represented by hashes, and the trail states the prefix. A hash\n" +
			"can take the place of any entry, also of one with such a key: that no such entry is hidden is\n" +
			"the statement of the node, and of each holder of the file since.\n\n" +
			"-o cloudevents writes CloudEvents 1.0, and -o syslog messages of RFC 5424, both without what\n" +
			"proves them. With --follow it goes on until interrupted, and writes the head then; a file\n" +
			"without one gets it by another run with --since.",
		Example: "  aweigh audit tail > trail.jsonl\n  aweigh audit tail --since @118 >> trail.jsonl\n" +
			"  aweigh audit tail --since 42 --prefix /registry/ --follow -o syslog",
	}
	from := c.Flags().String("since", "0", "the revision to begin with, or the \"next\" of a line")
	prefix := c.Flags().String("prefix", "", "only entries with keys that begin so")
	follow := c.Flags().Bool("follow", false, "go on with what becomes final, until interrupted")
	network := c.Flags().String("network", "",
		"identity of the network (default: that of the node that runs here, or else the node's statement)")
	a.trustingFlags(c)
	c.Annotations = map[string]string{ownForms: "jsonl cloudevents syslog"}
	return a.askingIn(c, func(ctx context.Context, s *session, _ []string) error {
		revision, index, err := audit.ParseSince(*from)
		if err != nil {
			return fmt.Errorf("%w: --since: %w", errUsage, err)
		}
		if !c.Flags().Changed("network") {
			*network = s.network
		}
		id, err := s.networkOf(ctx, *network)
		if err != nil {
			return err
		}
		t := tail{app: a, session: s, network: id, prefix: []byte(*prefix), next: index, to: bufio.NewWriter(a.out)}
		req := &aweighv1.TailRequest{SinceRevision: revision, SinceIndex: index, Prefix: []byte(*prefix),
			Follow: *follow}
		return t.run(ctx, req)
	})
}

// tail is a running "audit tail".
type tail struct {
	*app
	*session
	network aweigh.NetworkID
	prefix  []byte // of the keys that are wanted
	next    int64  // index of the next entry
	to      *bufio.Writer
}

func (t *tail) run(ctx context.Context, req *aweighv1.TailRequest) error {
	limited := ctx
	if !req.Follow { // the whole may take long, and each page has its time
		limited = context.WithoutCancel(ctx)
		var cancel context.CancelFunc
		limited, cancel = context.WithCancel(limited)
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
	}
	began := false
	err := t.Client.Tail(limited, req, func(p *aweighv1.TailResponse) error {
		began = true
		return t.page(p)
	})
	stopped := ctx.Err() != nil && began
	if err != nil && !stopped {
		if began {
			return fmt.Errorf("%w; \"aweigh audit tail --since @%d\" goes on", err, t.next)
		}
		return err
	}
	if t.form != "jsonl" {
		return err
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.timeout)
	defer cancel()
	if headErr := t.head(ending); headErr != nil {
		return errors.Join(fmt.Errorf("the lines were written, and no head that proves them: %w", headErr), err)
	}
	return err
}

// page writes a page.
func (t *tail) page(p *aweighv1.TailResponse) error {
	lines, err := audit.Lines(p.Items, t.prefix)
	if err != nil {
		return err
	}
	for _, line := range lines {
		if err := t.write(line); err != nil {
			return err
		}
	}
	t.next = p.Next
	return t.to.Flush()
}

// write writes a line in the form that is wanted.
func (t *tail) write(line any) (err error) {
	var text []byte
	change, is := line.(*audit.Change)
	switch {
	case t.form == "jsonl":
		text, err = audit.Encode(line)
	case !is:
		return nil
	case t.form == "cloudevents":
		text, err = audit.CloudEvent(t.network, change)
	default:
		text, err = audit.Syslog(t.network, change)
	}
	if err == nil {
		_, err = t.to.Write(text)
	}
	return err
}

// head writes the head that holds all lines.
func (t *tail) head(ctx context.Context) error {
	defer t.waitsFor("a final block after the newest entry, which takes a quorum")()
	c, err := t.session.head(ctx, t.network, t.next, false)
	if err == nil {
		err = t.trusts.check(c.Ancestry.Root())
	}
	if err == nil {
		err = t.write(audit.HeadOf(t.next, t.network, &c.Ancestry, c.Consistency))
	}
	return errors.Join(err, t.to.Flush())
}
