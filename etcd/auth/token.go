package auth

import (
	"context"
	"encoding/base64"
	"errors"
	"sync"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/authn"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/votes"
)

// token names the user that a node has recognized. The node signs it, and it is good at that node. Clients of etcd send
// their requests to several nodes in turn, so a token is good at other nodes as well if two more things hold: the node
// has a seat in the root scope's roster, and a key signed the token that is derived from the user's password. So a node
// that never had the password makes no token that others accept.
type token struct {
	_         struct{} `cbor:",toarray"`
	Network   aweigh.NetworkID
	User      string
	Revision  int64 // of the users and roles
	Until     aweigh.Instant
	Node      votes.PublicKey
	Signature []byte // of Node, over all before
	Proof     []byte // of the user's key, over the same; empty: the user has none

	id aweigh.Hash // of Node, which verified sets
}

// tokenFor is how long a token is good. Clients get another by themselves.
const tokenFor = 5 * time.Minute

// clocksApart is by how much the clocks of two nodes may differ.
const clocksApart = time.Minute

var errToken = errors.New("auth: not a token of this network's")

func (t *token) signed() []byte {
	bare := *t
	bare.Signature, bare.Proof = nil, nil
	return canon.Encode(bare)
}

// Issue makes a token for a user, with the key that Passwords.Check returned.
func (g *Guard) Issue(user string, revision int64, key votes.PrivateKey) string {
	t := token{
		Network: g.node.Root().Genesis().Hash(), User: user, Revision: revision, Until: g.now().Add(tokenFor), Node: g.identity.Public(),
	}
	t.Signature = g.identity.Sign(votes.ContextToken, t.signed())
	if !key.IsZero() {
		t.Proof = key.Sign(votes.ContextToken, t.signed())
	}
	return base64.RawURLEncoding.EncodeToString(canon.Encode(t))
}

// now is the time by the node's clock or, where that is behind it, the time of the newest final block.
func (g *Guard) now() aweigh.Instant {
	return max(aweigh.InstantOf(g.node.Clock()), g.node.Root().LastHead().Time)
}

// tokens holds the tokens that were verified.
type tokens struct {
	mu  sync.Mutex
	all map[string]*token
}

const maxTokens = 4096

// bearer returns the content of a token, if it is good now.
func (g *Guard) bearer(ctx context.Context, text string) (*token, error) {
	t, err := g.content(ctx, text)
	if err != nil {
		return nil, err
	}
	if !g.vouches(t.id) {
		return nil, errToken
	}
	if err := t.lasts(g.now()); err != nil {
		return nil, err
	}
	return t, nil
}

// lasts reports why a token is not good at a time by this node's clock: it ended, or it would be good for longer than
// any that is made now.
func (t *token) lasts(now aweigh.Instant) error {
	until := t.Until.Time().UTC().Format(time.RFC3339)
	switch {
	case t.Until < now:
		return &authn.Refusal{Kind: authn.User, Reason: authn.Expired, Text: "the token ended at " + until +
			": authenticate again; if a new token is refused as well, check the clocks of this node and of the node that made it"}
	case t.Until > now.Add(tokenFor+clocksApart):
		return &authn.Refusal{Kind: authn.User, Reason: authn.Early, Text: "the token is good until " + until +
			", longer than any that is made now: the clock of the node that made it is ahead, or this node's is behind; " +
			"synchronize the clocks (NTP) and authenticate again"}
	}
	return nil
}

// content returns the content of a token that was good at some time.
func (g *Guard) content(ctx context.Context, text string) (*token, error) {
	g.tokens.mu.Lock()
	t := g.tokens.all[text]
	g.tokens.mu.Unlock()
	if t == nil {
		var err error
		if t, err = g.verified(ctx, text); err != nil {
			return nil, err
		}
		g.tokens.mu.Lock()
		if g.tokens.all == nil || len(g.tokens.all) >= maxTokens {
			g.tokens.all = make(map[string]*token)
		}
		g.tokens.all[text] = t
		g.tokens.mu.Unlock()
	}
	return t, nil
}

func (g *Guard) verified(ctx context.Context, text string) (*token, error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) > 4096 {
		return nil, errToken
	}
	t := new(token)
	if canon.Decode(raw, t) != nil {
		return nil, errToken
	}
	t.id = t.Node.ID()
	if t.Network != g.node.Root().Genesis().Hash() || !g.vouches(t.id) ||
		votes.Verify(t.Node, votes.ContextToken, t.signed(), t.Signature) != nil {
		return nil, errToken
	}
	if t.id != g.self {
		return t, g.proven(ctx, t)
	}
	return t, nil
}

// proven returns an error unless another node made a token with the user's password.
func (g *Guard) proven(ctx context.Context, t *token) error {
	if t.Revision > g.Revision() { // the other node knew of a change first
		if err := g.Await(ctx, t.Revision); err != nil {
			return err
		}
	}
	a, err := g.known(ctx)
	if err != nil {
		return err
	}
	if a == nil {
		return errToken
	}
	u := a.User(t.User)
	if u == nil || t.Revision < u.Since || len(u.Key) == 0 {
		return errToken
	}
	return votes.Verify(votes.PublicKey{Scheme: votes.Ed25519, Bytes: u.Key}, votes.ContextToken, t.signed(), t.Proof)
}

// vouches reports whether the tokens of a node may be good here.
func (g *Guard) vouches(id aweigh.Hash) bool {
	if id == g.self {
		return true
	}
	for _, a := range g.node.Root().LastStatus().Roster.Anchors {
		if machine.AuthorOf(machine.Peer(a.Peer)) == id {
			return true
		}
	}
	return false
}
