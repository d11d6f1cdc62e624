package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
)

func (a *app) invite() *cobra.Command {
	c := &cobra.Command{
		Use: "invite", Short: "Print an invite to the network",
		Long: "Prints a string with which \"aweigh join\" finds the network, recognizes it, and is admitted as\n" +
			"an observer: a node that reads everything, and changes nothing until an author or anchor\n" +
			"lets it. The invite is a secret. It admits --uses nodes until --for is over. What was\n" +
			"admitted stays so until \"aweigh invite revoke\". Both are keys, below the list that the\n" +
			"policy names (authors: observers who=listed list=/observers/ verbs=read).\n\n" +
			"Where the policy lets every node read (who=any verbs=read), an invite holds no secret.",
		Example: "  aweigh invite\n  aweigh invite --uses 3 --for 1h --name vaasa\n  aweigh invite ls\n  aweigh invite revoke vaasa --observers",
	}
	name := c.Flags().String("name", "", "the invite's name (default: drawn)")
	uses := c.Flags().Uint32("uses", 1, "how many nodes it admits")
	span := c.Flags().Duration("for", 24*time.Hour, "how long it can be used")
	to := c.Flags().String("file", "", "write the invite to this new file, readable by its owner alone (default: to standard output)")
	once := onceFlags(c)
	ask := a.asking(c, func(ctx context.Context, s *session, _ []string) error {
		ctx, cancel := s.limited(ctx)
		defer cancel()
		o, err := once()
		if err != nil {
			return err
		}
		t := node.Tickets{Name: *name, Uses: int(*uses), For: *span}
		if err := t.Check(); err != nil {
			return fmt.Errorf("%w: %w", errUsage, err)
		}
		var file *reserved
		if *to != "" { // before there is an invite, as it would be lost
			if file, err = reserveSecret(*to); err != nil {
				return err
			}
			defer file.release()
		}
		r, err := s.Client.Invite(ctx, &aweighv1.InviteRequest{Name: *name, Uses: *uses, ForNs: int64(*span), Once: o})
		if err != nil {
			return err
		}
		if len(r.Motion) > 0 {
			fmt.Fprintf(a.err, "it is of use when motion %.8x is carried: aweigh motion show %.8x\n", r.Motion, r.Motion)
		}
		if r.Name == "" && (c.Flags().Changed("name") || c.Flags().Changed("uses") || c.Flags().Changed("for")) {
			fmt.Fprintln(a.err, "warning: the policy lets every node read, so the invite has no secret, no uses and no end")
		}
		if file != nil {
			if err := file.write([]byte(r.Invite + "\n")); err != nil {
				return err
			}
		}
		if s.Format == show.JSON {
			out := r.Invite
			if file != nil {
				out = ""
			}
			return s.Printer.JSON(struct {
				Invite string `json:"invite,omitempty"` // none: it is in a file
				Name   string `json:"name,omitempty"`   // none: it has no secret
				Motion string `json:"motion,omitempty"`
			}{out, r.Name, fmt.Sprintf("%x", r.Motion)})
		}
		if r.Name != "" {
			fmt.Fprintf(a.err, "invite %s, for %s, until %s\n", show.Line(r.Name), show.Count(*uses, "node"),
				time.Now().Add(*span).UTC().Format(time.RFC3339))
		}
		if file != nil {
			return nil
		}
		_, err = fmt.Fprintln(a.out, show.Line(r.Invite))
		return err
	})
	return a.under(ask, a.inviteLs(), a.inviteRevoke())
}

// listed is what the network's state says about invites and observers.
type listed struct {
	list      []byte
	invites   []*aweighv1.KeyValue
	observers []*aweighv1.KeyValue
}

// listed reads the invites and observers of the root scope.
func (s *session) listed(ctx context.Context) (l listed, err error) {
	_, p, err := s.policy(ctx)
	if err != nil {
		return l, err
	}
	if l.list = p.List(); l.list == nil {
		return l, fmt.Errorf("%w: the policy lists no observers", errState)
	}
	if l.invites, err = s.below(ctx, scope.Ticket(l.list, "")); err == nil {
		l.observers, err = s.below(ctx, scope.Listing(l.list, ""))
	}
	return l, err
}

// peerOf is the peer ID of an observer, by that or by a name that no invite and no other observer has. Other texts are
// returned as they are.
func (l *listed) peerOf(text string) (string, error) {
	var named []string
	for _, kv := range l.observers {
		var x node.Observer
		if string(kv.Key) == string(scope.Listing(l.list, text)) {
			return text, nil
		}
		if json.Unmarshal(kv.Value, &x) == nil && x.Name == text {
			named = append(named, strings.TrimPrefix(string(kv.Key), string(scope.Listing(l.list, ""))))
		}
	}
	for _, kv := range l.invites {
		if string(kv.Key) == string(scope.Ticket(l.list, text)) {
			return text, nil
		}
	}
	switch len(named) {
	case 0:
		return text, nil
	case 1:
		return named[0], nil
	}
	return "", fmt.Errorf("%w: %d observers call themselves %q; name one by its peer ID: %s", errUsage, len(named), text,
		strings.Join(named, ", "))
}

// below reads all keys with a prefix.
func (s *session) below(ctx context.Context, prefix []byte) (all []*aweighv1.KeyValue, err error) {
	for from := prefix; ; {
		r, err := s.Client.Range(ctx, &aweighv1.RangeRequest{Key: from, RangeEnd: prefixEnd(prefix), Limit: 1000})
		if err != nil {
			return nil, err
		}
		all = append(all, r.Kvs...)
		if !r.More || len(r.Kvs) == 0 {
			return all, nil
		}
		from = append(r.Kvs[len(r.Kvs)-1].Key, 0)
	}
}

func (a *app) inviteLs() *cobra.Command {
	c := &cobra.Command{
		Use: "ls", Short: "List invites, and the observers that they admitted", Args: cobra.NoArgs,
		Long:    "Lists the invites that were made and not revoked, and the nodes that are admitted as observers.",
		Example: "  aweigh invite ls",
	}
	return a.asking(c, func(ctx context.Context, s *session, _ []string) error {
		ctx, cancel := s.limited(ctx)
		defer cancel()
		l, err := s.listed(ctx)
		if err != nil {
			return err
		}
		var all show.Admissions
		for _, kv := range l.invites {
			x := show.Ticket{Name: strings.TrimPrefix(string(kv.Key), string(scope.Ticket(l.list, "")))}
			if json.Unmarshal(kv.Value, &x.Ticket) != nil {
				x.Ticket = node.Ticket{}
			}
			all.Invites = append(all.Invites, x)
		}
		for _, kv := range l.observers {
			x := show.Observer{Peer: strings.TrimPrefix(string(kv.Key), string(scope.Listing(l.list, "")))}
			if json.Unmarshal(kv.Value, &x.Observer) != nil {
				x.Observer = node.Observer{}
			}
			all.Observers = append(all.Observers, x)
		}
		return s.Printer.Admissions(all, time.Now())
	})
}

func (a *app) inviteRevoke() *cobra.Command {
	c := &cobra.Command{
		Use: "revoke NAME|PEER", Short: "End an invite, or what an observer may read", Args: cobra.ExactArgs(1),
		Long: "Deletes an invite by its name, or an observer by its peer ID, or by its name if no invite and no other\n" +
			"observer has that name: a node chooses its name itself. Nodes give a revoked observer\n" +
			"nothing more from the next block on; it keeps what it has. The invite that admitted it is\n" +
			"deleted as well if it has uses left, or the observer could use it again.",
		Example: "  aweigh invite revoke vaasa\n  aweigh invite revoke 12D3KooW…",
	}
	with := c.Flags().Bool("observers", false, "also the observers that the invite admitted")
	once := onceFlags(c)
	return a.asking(c, func(ctx context.Context, s *session, args []string) error {
		ctx, cancel := s.limited(ctx)
		defer cancel()
		o, err := once()
		if err != nil {
			return err
		}
		l, err := s.listed(ctx)
		if err != nil {
			return err
		}
		peer, err := l.peerOf(args[0])
		if err != nil {
			return err
		}
		name, known := args[0], false
		for _, kv := range l.observers {
			var x node.Observer
			if string(kv.Key) == string(scope.Listing(l.list, peer)) {
				known = true
				if json.Unmarshal(kv.Value, &x) == nil {
					name = x.Invite
				}
			}
		}
		var invites, observers [][]byte
		for _, kv := range l.invites {
			var x node.Ticket
			if string(kv.Key) == string(scope.Ticket(l.list, name)) {
				if known && json.Unmarshal(kv.Value, &x) == nil && x.Left == 0 {
					continue // it admits none
				}
				invites = append(invites, kv.Key)
			}
		}
		first := &aweighv1.Once{Justification: o.Justification, ValidUntilNs: o.ValidUntilNs}
		r, waits, err := s.deleteKeys(ctx, first, invites)
		if err != nil {
			return err
		}
		if *with { // the invite may have admitted more meanwhile
			if l, err = s.listed(ctx); err != nil {
				return err
			}
		}
		for _, kv := range l.observers {
			var x node.Observer
			bad := json.Unmarshal(kv.Value, &x) != nil
			if string(kv.Key) == string(scope.Listing(l.list, peer)) || *with && !bad && x.Invite == args[0] {
				observers = append(observers, kv.Key)
			}
		}
		if len(invites)+len(observers) == 0 {
			return fmt.Errorf("%w: no invite and no observer %q; see \"aweigh invite ls\"", client.ErrNotFound, args[0])
		}
		more, waitsToo, err := s.deleteKeys(ctx, o, observers)
		if err != nil {
			return err
		}
		if known && len(invites) > 0 {
			fmt.Fprintf(a.err, "the invite %s, which admitted it, is revoked as well\n", show.Line(name))
		}
		if waits = errors.Join(waits, waitsToo); waits != nil {
			return waits
		}
		if more.Header != nil {
			r.Header = more.Header
		}
		r.Deleted += more.Deleted
		return s.Printer.Delete(r)
	})
}

// deleteKeys deletes keys in as few transactions as may be. It goes on after those that wait for approval, and returns
// the errors that say so.
func (s *session) deleteKeys(ctx context.Context, o *aweighv1.Once, keys [][]byte) (
	all *aweighv1.DeleteResponse, waits, err error) {
	all = new(aweighv1.DeleteResponse)
	for some := range slices.Chunk(keys, 64) { // a transaction takes a bounded number of operations
		req := &aweighv1.TxnRequest{Once: &aweighv1.Once{Justification: o.Justification, ValidUntilNs: o.ValidUntilNs}}
		if len(keys) <= 64 {
			req.Once = o
		}
		for _, k := range some {
			del := &aweighv1.DeleteRequest{Key: k}
			req.Success = append(req.Success, &aweighv1.Op{Op: &aweighv1.Op_Delete{Delete: del}})
		}
		r, err := s.Client.Txn(ctx, req)
		if errors.Is(err, client.ErrPending) {
			waits = errors.Join(waits, err)
			continue
		}
		if err != nil {
			return nil, waits, err
		}
		all.Header = r.Header
		for _, x := range r.Responses {
			all.Deleted += x.GetDelete().GetDeleted()
		}
	}
	return all, waits, nil
}
