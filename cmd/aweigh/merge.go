package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh/api"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/merge"
	"github.com/aweigh/aweigh/internal/show"
)

// errConflict is wrapped where both sides of a merge changed the same part.
var errConflict = errors.New("conflict")

// mostMerged is how many changes of an object are searched for the last merge.
const mostMerged = 1000

func (a *app) merge() *cobra.Command {
	c := &cobra.Command{
		Use: "merge SRC DST", Short: "Merge what one object holds into another", Args: cobra.ExactArgs(2),
		Long: "Gives DST a new version, made from its content, from that of SRC, and from the version\n" +
			"that both come from: the one that was merged last, or at which one was forked. Lines of\n" +
			"texts and members of JSON objects that only one side changed are merged; other content\n" +
			"is one part. Where both sides changed one part, nothing is written, the parts are\n" +
			"shown, and the exit code is 4: --ours takes DST's, --theirs SRC's, and --resolve takes\n" +
			"a whole value, such as the file that --conflicts writes, once it was edited. DST's\n" +
			"lineage names both parents. If SRC or DST changes meanwhile, nothing is written, and the\n" +
			"exit code is 4.\n\nRights: alias or read of SRC, and put of DST.\n\n" + strings.Replace(keyHelp, "KEY", "SRC, like DST,", 1),
		Example: "  aweigh merge org@wikipedia.en/drafts/42 org@wikipedia.en/articles/42\n" +
			"  aweigh merge /draft /article --dry-run\n  aweigh merge /draft /article --conflicts merged.txt\n" +
			"  aweigh merge /draft /article --resolve merged.txt -m \"by hand\"",
	}
	f := c.Flags()
	raw := f.Bool("raw", false, "take SRC and DST as they are")
	ours := f.Bool("ours", false, "where both changed one part, take DST's")
	theirs := f.Bool("theirs", false, "where both changed one part, take SRC's")
	resolve := f.String("resolve", "", "file with the merged value; - reads standard input")
	conflicts := f.String("conflicts", "", "on conflicts, write them to this new file: of a text with markers around both\n"+
		"sides, of a JSON object with DST's members")
	dry := f.Bool("dry-run", false, "show what would be written, and write nothing")
	as := a.asFlags(c)
	once := patientFlags(c)
	wait := waitFlag(c)
	c.MarkFlagsMutuallyExclusive("ours", "theirs", "resolve", "conflicts")
	return a.asking(c, func(ctx context.Context, s *session, args []string) error {
		o, err := once()
		if err != nil {
			return err
		}
		if err := as.unlock(ctx); err != nil {
			return err
		}
		var resolved []byte
		if *resolve != "" {
			if resolved, _, err = a.valueOf(nil, *resolve); err != nil {
				return err
			}
		}
		ctx, cancel := s.limited(ctx)
		defer cancel()
		from, to, err := a.sides(ctx, s, args, *raw)
		if err != nil {
			return err
		}
		m, err := s.merged(ctx, from, to, *theirs)
		if err != nil {
			return err
		}
		if *resolve != "" {
			if err := resolves(m.Result, resolved); err != nil {
				return err
			}
			m.Value, m.Conflicts, m.Marked = resolved, nil, nil
		}
		settled := *ours || *theirs || len(m.Conflicts) == 0
		if *dry || !settled {
			if err := s.Printer.Merge(m, settled); err != nil {
				return err
			}
			if !settled {
				next := "--resolve FILE"
				if *conflicts != "" {
					if err := writeConflicts(*conflicts, m.Result); err != nil {
						return err
					}
					next = "edit " + *conflicts + ", which has the conflicts, and merge with --resolve " + show.Word(*conflicts)
				}
				return fmt.Errorf("%w: %s and %s changed the same part (%d of them); nothing was written; next: --ours, --theirs or %s",
					errConflict, show.Key(from.Key), show.Key(to.Key), len(m.Conflicts), next)
			}
			return nil
		}
		x := &client.Merge{From: from.Key, To: to.Key, FromRevision: from.Kv.ModRevision, ToRevision: to.Kv.ModRevision, Value: m.Value}
		resp, err := a.writeMerge(ctx, s, as, x, o)
		if err != nil {
			return a.pended(ctx, s, err, wait())
		}
		return s.Printer.MergeDone(m, resp)
	})
}

// resolves reports whether a person's value can settle the conflicts of a merge.
func resolves(m merge.Result, value []byte) error {
	switch {
	case len(m.Conflicts) == 0:
		return fmt.Errorf("%w: there is no conflict to resolve; merge without --resolve", errState)
	case len(value) == 0:
		return fmt.Errorf("%w: the resolved value is empty; nothing was written", errUsage)
	case m.Kind == merge.JSON && !json.Valid(value):
		return fmt.Errorf("%w: both sides are JSON, and the resolved value is not; nothing was written", errUsage)
	}
	if line := m.Marker(value); line != "" {
		return fmt.Errorf("%w: the resolved value still has the marker %q; nothing was written; next: edit it until no marker is left",
			errUsage, line)
	}
	return nil
}

// writeConflicts writes a value to edit, with what both sides have.
func writeConflicts(file string, m merge.Result) error {
	value := m.Marked
	switch m.Kind {
	case merge.JSON:
		value = append(m.Value, '\n')
	case merge.Binary:
		return fmt.Errorf("%w: --conflicts: the contents are no texts with a common version, and no JSON objects; nothing was written", errState)
	}
	return writeNew(file, value, 0o600)
}

// sides are the two objects of a merge, as they are now.
func (a *app) sides(ctx context.Context, s *session, args []string, raw bool) (from, to *aweighv1.ResolveResponse, err error) {
	if from, err = a.object(ctx, s, args[0], raw, unversioned); err != nil {
		return nil, nil, err
	}
	if to, err = a.object(ctx, s, args[1], raw, unversioned); err != nil {
		return nil, nil, err
	}
	if from.Uid == to.Uid {
		return nil, nil, fmt.Errorf("%w: %s and %s name one object; there is nothing to merge", errUsage, show.Key(from.Key), show.Key(to.Key))
	}
	return from, to, nil
}

// merged is what a merge of two objects would write. It reports errState if one side has nothing new.
func (s *session) merged(ctx context.Context, from, to *aweighv1.ResolveResponse, theirs bool) (m show.Merged, err error) {
	m = show.Merged{From: from, To: to}
	var objects [2]*aweighv1.ObjectResponse
	for i, r := range []*aweighv1.ResolveResponse{from, to} {
		if objects[i], err = s.Client.Object(ctx, &aweighv1.ObjectRequest{Uid: r.Uid, Limit: mostMerged}); err != nil {
			return m, err
		}
	}
	var base []byte
	place, own := client.Ancestor(objects[0], objects[1])
	if place != nil {
		r, err := s.Client.Range(ctx, &aweighv1.RangeRequest{Key: place.Key, Revision: place.Revision})
		switch {
		case errors.Is(err, client.ErrCompacted): // as if it were not known
		case err != nil:
			return m, fmt.Errorf("the version that both come from, %s as of revision %d: %w", show.Key(place.Key), place.Revision, err)
		case len(r.Kvs) == 1 && r.Kvs[0].ModRevision == place.Revision:
			m.Base, base = r.Kvs[0], append([]byte{}, r.Kvs[0].Value...)
		}
	}
	if m.Base != nil && (own && from.Kv.ModRevision == m.Base.ModRevision || bytes.Equal(from.Kv.Value, base)) {
		return m, fmt.Errorf("%w: %s has all that %s holds", errState, show.Key(to.Key), show.Key(from.Key))
	}
	prefer := merge.Ours
	if theirs {
		prefer = merge.Theirs
	}
	m.Result = merge.Merge(base, to.Kv.Value, from.Kv.Value, prefer, merge.Labels{Ours: show.Key(to.Key), Theirs: show.Key(from.Key)})
	return m, nil
}

// writeMerge writes what was merged, by the node or by an author.
func (a *app) writeMerge(ctx context.Context, s *session, as *signedBy, m *client.Merge, once *aweighv1.Once) (*aweighv1.TxnResponse, error) {
	if !as.given() {
		return s.Client.Merge(ctx, m, once)
	}
	t, err := api.TxnOf(m.Txn())
	if err != nil {
		return nil, err
	}
	r, err := as.txn(ctx, s, t, once)
	if err != nil {
		return nil, err
	}
	return r, m.Failure(r)
}
