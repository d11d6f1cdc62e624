package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/api"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/internal/signer"
	"github.com/aweigh/aweigh/internal/token"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// signedBy are the flags of writes that an author signs with its own key.
type signedBy struct {
	app                        *app
	key, token, passphraseFile *string
	opened                     *openedKey // nil until it is open
}

// openedKey is the key that signs, and the token that it uses, if any.
type openedKey struct {
	key  votes.Signer
	held *token.Token
}

// asFlags adds the flags of writes that an author signs.
func (a *app) asFlags(c *cobra.Command) *signedBy {
	return &signedBy{a,
		c.Flags().String("as", "", "sign with this key and not with the node's: the FILE of \"aweigh voter new\" or \"aweigh token create\",\n"+
			"or ssh-agent:NAME; the policy lists which keys may change what, see \"aweigh auth\""),
		c.Flags().String("token", "", "a token that was made for the key of --as (\"aweigh token create --to\")"),
		c.Flags().String("passphrase-file", "", "file with the passphrase of --as (default: ask)"), nil}
}

func (by *signedBy) given() bool { return *by.key != "" || *by.token != "" }

// unlock opens the key, if one is given. It comes before the time of a request begins, which a person who types a
// passphrase does not use up.
func (by *signedBy) unlock(ctx context.Context) error {
	if !by.given() {
		return nil
	}
	key, held, err := by.open(ctx)
	by.opened = &openedKey{key, held}
	return err
}

// author opens the key, for writes to the scope that decides about a key.
func (by *signedBy) author(ctx context.Context, s *session, key []byte) (*client.Author, *aweighv1.Scope, error) {
	private, held := by.opened.key, by.opened.held
	if agent, is := private.(*signer.Agent); is {
		private = agent.In(ctx) // which waits for a person no longer than the request
	}
	in, x, err := s.whereDecided(ctx, key)
	if err != nil {
		return nil, nil, err
	}
	if len(x.Id) != len(aweigh.ScopeID{}) {
		return nil, nil, fmt.Errorf("%w: the node returned no identity of %s", errAbsent, show.ScopeName(x))
	}
	_, p, err := in.policy(ctx)
	if err != nil {
		return nil, nil, err
	}
	out := &client.Author{Client: s.Client, Key: private, Scope: aweigh.ScopeID(x.Id), Limits: p.Limits}
	if held != nil {
		if out.Grants = held.Chain(); held.Last().Scope != out.Scope {
			return nil, nil, fmt.Errorf("%w: the token is for another scope than %s, which decides about %s",
				client.ErrDenied, show.ScopeName(x), show.Key(key))
		}
		out.Caller = "token:" + held.Last().Name
	}
	return out, x, nil
}

// open opens the key, and the token that it uses, if any.
func (by *signedBy) open(ctx context.Context) (key votes.Signer, held *token.Token, err error) {
	if *by.key == "" {
		return key, nil, fmt.Errorf("%w: --token goes with --as, the key that the token is for", errUsage)
	}
	if token.Is([]byte(*by.key)) {
		return key, nil, fmt.Errorf("%w: --as takes the name of a file, and not a token", errUsage)
	}
	var data []byte
	if !strings.HasPrefix(*by.key, agentPrefix) {
		if data, err = readSome(*by.key); err != nil {
			return key, nil, err
		}
	}
	if token.Is(data) && *by.token == "" {
		held, err = readToken(*by.key)
		switch {
		case err != nil:
		case held.Key.IsZero():
			err = fmt.Errorf("%w: the token is for the key %s; name its file with --as, and the token with --token", errUsage, held.Last().To)
		default:
			by.app.warnExposed(*by.key)
			key = held.Key.Signer()
		}
		return key, held, err
	}
	if key, _, err = by.app.openKey(ctx, *by.key, *by.passphraseFile); err != nil || *by.token == "" {
		return key, nil, err
	}
	if held, err = readToken(*by.token); err == nil && held.Last().To.ID() != key.Public().ID() {
		err = fmt.Errorf("%w: the token is for the key %s, not for that of --as", errUsage, held.Last().To)
	}
	return key, held, err
}

// unlisted adds to the error of an author that the policy of a scope does not list how to list it. A write by grants
// needs the rights of the key that signed the first of them.
func unlisted(by *client.Author, x *aweighv1.Scope, err error) error {
	if !deniedAs(err, scope.ErrNoAuthor) {
		return err
	}
	key, in := by.Key.Public(), ""
	if chain, bad := by.Chain(); bad == nil && len(chain) > 0 {
		key = chain[0].By
	}
	if len(x.Prefix) > 0 {
		in = " --scope " + show.Word(inScope(x))
	}
	return fmt.Errorf("%w: the write needs an entry for the key %s; at an anchor's node, propose one: aweigh auth grant NAME --public-key %s%s",
		err, key, key, in)
}

// txn executes a transaction. All its keys belong to the scope of the first.
func (by *signedBy) txn(ctx context.Context, s *session, t scope.Txn, once *aweighv1.Once) (*aweighv1.TxnResponse, error) {
	var first []byte
	t.Ranges(func(key, _ []byte) bool {
		first = key
		return false
	})
	a, x, err := by.author(ctx, s, first)
	if err != nil {
		return nil, err
	}
	r, err := a.Txn(ctx, t, once)
	return r, unlisted(a, x, err)
}

// withdraw ends a motion about keys, as Client.Withdraw.
func (by *signedBy) withdraw(ctx context.Context, s *session, m *aweighv1.Motion, once *aweighv1.Once) error {
	if len(m.Changes) == 0 || len(m.Id) != len(votes.MotionID{}) {
		return fmt.Errorf("%w: motion %x changes no keys, so no author proposed it", errUsage, m.Id)
	}
	a, x, err := by.author(ctx, s, m.Changes[0].Key)
	if err != nil {
		return err
	}
	return unlisted(a, x, a.Withdraw(ctx, votes.MotionID(m.Id), once))
}

// name changes names, as Client.Name.
func (by *signedBy) name(ctx context.Context, s *session, req *aweighv1.NameRequest) (*aweighv1.NameResponse, error) {
	n, err := api.NamingOf(req)
	if err != nil {
		return nil, err
	}
	key := n.Key
	if len(key) == 0 {
		key = n.To
	}
	a, x, err := by.author(ctx, s, key)
	if err != nil {
		return nil, err
	}
	r, err := a.Name(ctx, n, req.Once)
	return r, unlisted(a, x, err)
}

// act carries out a verb, as Client.Act: scopes above that of the key are asked first, as a node asks them.
func (by *signedBy) act(ctx context.Context, s *session, req *aweighv1.ActRequest) (*aweighv1.ActResponse, error) {
	a, in, err := by.author(ctx, s, req.Key)
	if err != nil {
		return nil, err
	}
	id := a.Key.Public().ID()
	r, err := s.Client.Judge(ctx, &aweighv1.JudgeRequest{Verb: req.Verb, Key: req.Key, Caller: id[:]})
	if err != nil {
		return nil, err
	}
	if len(r.Said) == 0 {
		return nil, fmt.Errorf("%w: the node returned no verdict", errAbsent)
	}
	last := r.Said[len(r.Said)-1]
	for _, x := range r.Said {
		if !x.Allowed && (!x.Decides || x.Class == "") {
			return nil, fmt.Errorf("%w: %s by the policy of %s: %s", client.ErrDenied, req.Verb, show.ScopeName(&aweighv1.Scope{Prefix: x.Prefix}), x.Why)
		}
	}
	class, err := action.ParseClass(last.Class)
	switch {
	case err != nil:
		return nil, err
	case class != action.Write && class != action.Claim:
		return nil, fmt.Errorf("%w: %s is of class %s, which is not signed; leave out --as", errUsage, req.Verb, class)
	case class == action.Write != req.HasValue:
		return nil, fmt.Errorf("%w: %s is of class %s, and a value goes with write alone", errUsage, req.Verb, class)
	}
	x := scope.Action{Verb: req.Verb, Class: class, Key: req.Key, Value: req.Value}
	if req.Uid != "" {
		if x.Object, err = aweigh.ParseUID(req.Uid); err != nil {
			return nil, err
		}
	}
	out, err := a.Act(ctx, x, req.Once)
	return out, unlisted(a, in, err)
}

// remove deletes keys, as Client.Delete.
func (by *signedBy) remove(ctx context.Context, s *session, req *aweighv1.DeleteRequest) (*aweighv1.DeleteResponse, error) {
	r, err := by.txn(ctx, s, scope.Txn{Success: []scope.Op{{Kind: scope.OpDelete, Key: req.Key, End: req.RangeEnd, Prev: req.PrevKv}}}, req.Once)
	if err != nil {
		return nil, err
	}
	out := &aweighv1.DeleteResponse{Header: r.Header, Repeated: r.Repeated}
	if len(r.Responses) > 0 {
		gone := r.Responses[0].GetDelete()
		out.Deleted, out.PrevKvs = gone.GetDeleted(), gone.GetPrevKvs()
	}
	return out, nil
}
