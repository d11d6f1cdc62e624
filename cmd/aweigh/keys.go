package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/scope"
)

// keyHelp states how keys are written.
const keyHelp = "KEY is a key that starts with a slash (/org/wikipedia), a quoted one (\"\\x00\\xff\"), or an\n" +
	"alias (org@wikipedia.en/articles); with --raw its bytes are taken as they are."

// oneNameHelp is keyHelp for commands whose argument is a NAME, which is looked up.
var oneNameHelp = strings.Replace(keyHelp, "KEY", "NAME", 1)

// prefixHelp is keyHelp for a PREFIX.
var prefixHelp = strings.Replace(keyHelp, "KEY is a key", "PREFIX is the beginning of a key", 1)

// nameHelp states how names are written.
const nameHelp = "NAME and NEW are keys that start with a slash (/org/wikipedia), quoted ones (\"\\x00\\xff\"), or\n" +
	"aliases (org@wikipedia.en/articles)."

func (a *app) put() *cobra.Command {
	c := &cobra.Command{
		Use: "put KEY VALUE", Short: "Set a key", Args: cobra.ExactArgs(2),
		Long: "Sets a key and waits until the change is final. VALUE - reads standard input;\n" +
			"one that starts with a dash comes after --, as in: aweigh put -- /key -1\n" +
			"With --if-rev or --if-absent the key is only set if no other client changed it.\n\n" + keyHelp,
		Example: "  aweigh put /greeting hello\n  aweigh put /apps/web v2 --as alice.key\n  echo hello | aweigh put org@wikipedia.en/motd -\n" +
			"  aweigh put /leader me --if-absent\n  aweigh put /counter 8 --if-rev 41 -m \"counted again\"",
	}
	raw := c.Flags().Bool("raw", false, "take KEY as it is")
	prev := c.Flags().Bool("prev", false, "show the content before")
	rev := c.Flags().Int64("if-rev", 0, "only if the key was last changed in this revision")
	absent := c.Flags().Bool("if-absent", false, "only if the key does not exist")
	as := a.asFlags(c)
	once := patientFlags(c)
	wait := waitFlag(c)
	provisional := provisionalFlag(c, decidesProvisionally, "as", "pending", "wait", "if-rev", "if-absent")
	once = unlessProvisional(provisional, once)
	dry := dryFlag(c, "provisional", "nonce", "token", "wait")
	c.MarkFlagsMutuallyExclusive("if-rev", "if-absent")
	return a.asking(c, func(ctx context.Context, s *session, args []string) error {
		name, err := nameOf(args[0], *raw, writes)
		if err == nil && name.Version() != 0 {
			err = fmt.Errorf("%w: versions that are there do not change; leave out .v%d, or see aweigh rollback", errUsage, name.Version())
		}
		if err != nil {
			return err
		}
		value, _, err := a.valueOf(args[1:], "")
		if err != nil {
			return err
		}
		req := &aweighv1.PutRequest{Key: name.Key(), Value: value, PrevKv: *prev}
		if req.Once, err = once(); err != nil {
			return err
		}
		if err := as.unlock(ctx); err != nil {
			return err
		}
		ctx, cancel := s.limited(ctx)
		defer cancel()
		if *provisional {
			req.Provisional = true
			resp, err := s.Client.Put(ctx, req)
			if err != nil {
				return err
			}
			return cmp.Or(s.Printer.Put(resp), a.provisional(resp.Header, s.Format))
		}
		conditional := *absent || c.Flags().Changed("if-rev")
		key, r, err := a.led(ctx, s, name, false)
		switch {
		case err != nil:
			return err
		case r == nil || r.Moved == nil:
		case *absent && len(req.Once.Nonce) > 0: // a repetition: its object may have been moved since
		case *absent:
			return fmt.Errorf("%w: %s leads to %s; put the key %s to make another object", client.ErrCondition, args[0], show.Key(key), show.Key(req.Key))
		default:
			req.Key = key
			if !conditional { // the object may be moved again meanwhile
				conditional, *rev = true, r.Kv.ModRevision
			}
		}
		if *dry {
			return a.foreseePut(ctx, s, req, conditional, *rev, as)
		}
		if as.given() {
			compare := []scope.Compare(nil)
			if conditional {
				compare = []scope.Compare{{Target: scope.OnMod, Relation: scope.Equal, Key: req.Key, Number: *rev}}
			}
			txn, err := as.txn(ctx, s, scope.Txn{
				Compare: compare, Success: []scope.Op{{Kind: scope.OpPut, Key: req.Key, Value: req.Value, Prev: req.PrevKv}},
			}, req.Once)
			if err == nil && !txn.Succeeded && conditional {
				err = client.ErrCondition
			}
			if err != nil {
				return a.pended(ctx, s, err, wait())
			}
			resp := &aweighv1.PutResponse{Header: txn.Header, Repeated: txn.Repeated}
			if len(txn.Responses) > 0 {
				put := txn.Responses[0].GetPut()
				resp.PrevKv, resp.Uid = put.GetPrevKv(), put.GetUid()
			}
			return s.Printer.Put(resp)
		}
		if !conditional {
			resp, err := s.Client.Put(ctx, req)
			if err != nil {
				return a.pended(ctx, s, err, wait())
			}
			return s.Printer.Put(resp)
		}
		resp, err := s.PutIf(ctx, req, *rev)
		if err != nil {
			return a.pended(ctx, s, err, wait())
		}
		return s.Printer.Put(resp)
	})
}

// rangeFlags adds the ways to name more keys than one; end is the end of the
// range, and start where it begins.
func rangeFlags(c *cobra.Command) func(key []byte) (start, end []byte) {
	prefix := c.Flags().Bool("prefix", false, "all keys that start with KEY")
	fromKey := c.Flags().Bool("from-key", false, "all keys from KEY on")
	rangeEnd := c.Flags().String("range-end", "", "all keys from KEY on up to, and without, this one")
	c.MarkFlagsMutuallyExclusive("prefix", "from-key", "range-end")
	return func(key []byte) (start, end []byte) {
		switch {
		case *prefix:
			return key, prefixEnd(key)
		case *fromKey:
			return key, []byte{0}
		case *rangeEnd != "":
			return key, []byte(*rangeEnd)
		}
		return key, nil
	}
}

// prefixEnd is the end of the range of keys that start with a prefix.
func prefixEnd(prefix []byte) []byte {
	if end := kv.PrefixEnd(prefix); end != nil {
		return end
	}
	return []byte{0}
}

func (a *app) get() *cobra.Command {
	c := &cobra.Command{
		Use: "get KEY", Short: "Read a key, or a range of keys", Args: cobra.ExactArgs(1),
		Long: "Reads what was final before the command began. With --serializable one node answers\n" +
			"alone, faster, even without a quorum, and maybe with something old.\n\n" +
			"-o value ends each value with a line break; -o raw writes the bytes that were put, and no more.\n" +
			"The table cuts values of more than 60 characters, and ends them with …; other outputs have all.\n\n" +
			"With --verified the answer carries its proof: that the value is the newest, that the key is absent, or\n" +
			"that the list is complete. It is verified here, so that no node need be trusted; if the answer of one\n" +
			"does not hold, the next is asked. --proof also writes the proof to a file, for \"aweigh verify\". With --block\n" +
			"they show what held after that block of the root scope, or of the one of --scope; \"aweigh history KEY\"\n" +
			"lists blocks.\n\n" + keyHelp,
		Example: "  aweigh get /greeting\n  aweigh get /greeting -o value\n  aweigh get /logo -o raw >logo.png\n  aweigh get / --prefix --limit 10\n" +
			"  aweigh get /greeting --rev 2\n  aweigh get /greeting --block 7 --proof then.proof\n  aweigh get org@wikipedia.en/articles/42.v3",
	}
	raw := c.Flags().Bool("raw", false, "take KEY as it is")
	rev := c.Flags().Int64("rev", 0, "as of this revision")
	limit := c.Flags().Int64("limit", 0, "at most so many keys")
	serializable := c.Flags().Bool("serializable", false, "the node answers alone")
	provisional := provisionalFlag(c, readsProvisionally, "serializable", "rev")
	version := versionFlag(c, "this version of the object, and not the newest")
	bounds := rangeFlags(c)
	proof := a.proofFlags(c, "rev", "limit", "serializable", "provisional", "version")
	for _, f := range []string{"rev", "limit", "prefix", "from-key", "range-end", "provisional"} {
		c.MarkFlagsMutuallyExclusive("version", f)
	}
	return a.asking(c, func(ctx context.Context, s *session, args []string) error {
		if err := proof.check(); err != nil {
			return err
		}
		name, err := nameOf(args[0], *raw, reads)
		if err != nil {
			return err
		}
		v, err := version(name)
		if err != nil {
			return err
		}
		start, end := bounds(name.Key())
		if proof.asked() {
			if v > 0 {
				return fmt.Errorf("%w: a proof is of what a key holds now, or with --block held after a block, and not of version %d", errUsage, v)
			}
			return a.getProven(ctx, s, proof, start, end)
		}
		if one := end == nil && *rev == 0 && !*provisional; one && (v > 0 || !name.Raw()) {
			ctx, cancel := s.limited(ctx)
			defer cancel()
			r, err := a.resolve(ctx, s, start, v, *serializable)
			if err != nil {
				return err
			}
			a.more(&aweighv1.RangeResponse{Header: r.Header}, s.Format)
			return s.Printer.Resolved(r)
		} else if !one && v > 0 {
			return fmt.Errorf("%w: version %d of one object is asked for, and a range or a revision", errUsage, v)
		}
		ctx, cancel := s.limited(ctx)
		defer cancel()
		resp, err := s.Client.Range(ctx, &aweighv1.RangeRequest{
			Key: start, RangeEnd: end, Revision: *rev, Limit: *limit, Serializable: *serializable, Provisional: *provisional,
		})
		if err != nil {
			return s.futureOf(ctx, start, err)
		}
		if end == nil && len(resp.Kvs) == 0 {
			return s.keyNotFound(ctx, start, args[0])
		}
		a.more(resp, s.Format)
		_ = a.provisional(resp.Header, s.Format) // no error: the read did what was asked
		return s.Printer.Range(resp, end == nil)
	})
}

// futureOf adds to an error about a revision that is not there the newest one of the scope that decides about a key, or
// the one up to which that scope is compacted.
func (s *session) futureOf(ctx context.Context, key []byte, err error) error {
	if errors.Is(err, client.ErrCompacted) {
		return s.compactedOf(ctx, key, err)
	}
	if !errors.Is(err, client.ErrFuture) {
		return err
	}
	r, readErr := s.Client.Range(ctx, &aweighv1.RangeRequest{Key: key, CountOnly: true, Serializable: true})
	if readErr != nil {
		return err
	}
	return fmt.Errorf("%w; the newest is %d", err, r.Header.GetRevision())
}

// compactedOf adds to an error about a revision that is compacted up to which one the scope that decides about a key
// is.
func (s *session) compactedOf(ctx context.Context, key []byte, err error) error {
	all, listErr := s.Client.Scopes(ctx)
	x := deciding(all, key, false)
	if listErr != nil || x == nil {
		return err
	}
	in := ""
	if len(x.Prefix) > 0 {
		in = inScope(x)
	}
	return s.revisionsOf(ctx, in, err)
}

// revisionsOf adds to an error about a revision that cannot be read the oldest or the newest one of a scope.
func (s *session) revisionsOf(ctx context.Context, in string, err error) error {
	compacted, future := errors.Is(err, client.ErrCompacted), errors.Is(err, client.ErrFuture)
	if !compacted && !future {
		return err
	}
	r, readErr := s.Client.In(in).Status(ctx)
	switch {
	case readErr != nil:
		return err
	case future:
		return fmt.Errorf("%w; the newest is %d", err, r.Header.GetRevision())
	case r.Compacted == 0:
		return err
	}
	return fmt.Errorf("%w; the oldest that can be read is %d", err, r.Compacted)
}

// duplicate names in an error about a key that stands twice in a transaction the first that does.
func duplicate(req *aweighv1.TxnRequest, err error) error {
	if !strings.Contains(err.Error(), "duplicate key") {
		return err
	}
	for _, branch := range [][]*aweighv1.Op{req.Success, req.Failure} {
		seen := make(map[string]bool)
		for _, op := range branch {
			key := string(op.GetPut().GetKey())
			if key != "" && seen[key] {
				return fmt.Errorf("%w: %s is put twice", err, show.Key([]byte(key)))
			}
			seen[key] = true
		}
	}
	return fmt.Errorf("%w: a key is put, and deleted as well", err)
}

func (a *app) del() *cobra.Command {
	c := &cobra.Command{
		Use: "del KEY", Short: "Remove a key, or a range of keys", Args: cobra.ExactArgs(1),
		Long: "Removes keys and waits until that is final. Their history stays. The exit code is 3 if there is\n" +
			"no such KEY; a range in which there is none is no error.\n\n" + keyHelp,
		Example: "  aweigh del /greeting\n  aweigh del /tmp/ --prefix --prev",
	}
	raw := c.Flags().Bool("raw", false, "take KEY as it is")
	prev := c.Flags().Bool("prev", false, "show the content before")
	as := a.asFlags(c)
	once := patientFlags(c)
	wait := waitFlag(c)
	bounds := rangeFlags(c)
	provisional := provisionalFlag(c, decidesProvisionally, "as", "pending", "wait", "prefix", "from-key", "range-end")
	once = unlessProvisional(provisional, once)
	dry := dryFlag(c, "provisional", "nonce", "token", "wait")
	return a.asking(c, func(ctx context.Context, s *session, args []string) error {
		name, err := newest(args[0], *raw, writes)
		if err != nil {
			return err
		}
		req := &aweighv1.DeleteRequest{PrevKv: *prev, Provisional: *provisional}
		req.Key, req.RangeEnd = bounds(name.Key())
		if req.Once, err = once(); err != nil {
			return err
		}
		if err := as.unlock(ctx); err != nil {
			return err
		}
		ctx, cancel := s.limited(ctx)
		defer cancel()
		if *dry {
			return a.foresee(ctx, s, &aweighv1.ForecastRequest{Change: &aweighv1.ForecastRequest_Delete{Delete: req}}, as)
		}
		var resp *aweighv1.DeleteResponse
		if as.given() {
			resp, err = as.remove(ctx, s, req)
		} else {
			resp, err = s.Client.Delete(ctx, req)
		}
		if err != nil {
			return a.pended(ctx, s, err, wait())
		}
		if err := s.Printer.Delete(resp); err != nil {
			return err
		}
		if resp.Deleted == 0 && req.RangeEnd == nil && !resp.Repeated {
			return s.keyNotFound(ctx, req.Key, args[0])
		}
		return a.provisional(resp.Header, s.Format)
	})
}

func (a *app) ls() *cobra.Command {
	c := &cobra.Command{
		Use: "ls [PREFIX]", Short: "List keys", Args: cobra.MaximumNArgs(1),
		Long: "Lists the keys that start with PREFIX, or all keys. If some of their scopes do not let the node read, it\n" +
			"lists the keys of the others, names those scopes, and exits with 4.\n\n" +
			"With --verified or --proof the list carries the proof that it is complete: see \"aweigh get --help\".\n\n" + prefixHelp,
		Example: "  aweigh ls\n  aweigh ls /org/\n  aweigh ls /org/ --verified",
	}
	raw := c.Flags().Bool("raw", false, "take PREFIX as it is")
	rev := c.Flags().Int64("rev", 0, "as of this revision")
	limit := c.Flags().Int64("limit", 0, "at most so many keys")
	serializable := c.Flags().Bool("serializable", false, "the node answers alone")
	provisional := provisionalFlag(c, readsProvisionally, "serializable", "rev")
	proof := a.proofFlags(c, "rev", "limit", "serializable", "provisional")
	return a.asking(c, func(ctx context.Context, s *session, args []string) error {
		if err := proof.check(); err != nil {
			return err
		}
		req := &aweighv1.RangeRequest{
			Key: []byte{0}, RangeEnd: []byte{0}, KeysOnly: true, Revision: *rev, Limit: *limit, Serializable: *serializable, Provisional: *provisional,
		}
		if len(args) > 0 {
			key, err := keyOf(args[0], *raw, reads)
			if err != nil {
				return err
			}
			req.Key, req.RangeEnd = key, prefixEnd(key)
		}
		if proof.asked() {
			return a.lsProven(ctx, s, proof, req.Key, req.RangeEnd)
		}
		ctx, cancel := s.limited(ctx)
		defer cancel()
		resp, err := s.Client.Range(ctx, req)
		if unreadable(err) {
			resp, err = a.rangeApart(ctx, s, req, err)
		}
		if resp == nil {
			return s.futureOf(ctx, req.Key, err)
		}
		a.more(resp, s.Format)
		_ = a.provisional(resp.Header, s.Format) // as get
		if err := s.Printer.Keys(resp); err != nil {
			return err
		}
		return err // a part is missing
	})
}

// more prints that --limit cut a range short, or that the state is old.
func (a *app) more(r *aweighv1.RangeResponse, f show.Format) {
	if r.GetHeader().GetCatchingUp() && f != show.JSON {
		fmt.Fprintf(a.err, "aweigh: this node is catching up; what is final now may differ, see aweigh status\n")
	}
	if age := time.Duration(r.GetHeader().GetAgeNs()); len(r.Kvs) > 0 && age >= 100*time.Millisecond && f != show.JSON {
		fmt.Fprintf(a.err, "aweigh: this node does not hold the scope; its anchors said this %v ago\n", age.Round(time.Millisecond))
	}
	if r.More && f != show.JSON {
		fmt.Fprintf(a.err, "aweigh: the first %d of %d keys; there are more, see --limit\n", len(r.Kvs), r.Count)
	}
}
