package auth

import (
	"encoding/base64"
	"errors"
	"sync"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/votes"
)

// token names the user that a node has recognized. The node signs it. It is good at that node, and at all nodes of the
// network for as long as the node has a seat in the root scope's roster, so clients may change from one to another.
type token struct {
	_         struct{} `cbor:",toarray"`
	Network   aweigh.NetworkID
	User      string
	Revision  int64 // of the users and roles
	Until     aweigh.Instant
	Node      votes.PublicKey
	Signature []byte // over all before

	id aweigh.Hash // of Node, which verified sets
}

// tokenFor is how long a token is good. Clients get another by themselves.
const tokenFor = 5 * time.Minute

// clocksApart is by how much the clocks of two nodes may differ.
const clocksApart = time.Minute

var errToken = errors.New("auth: not a token of this network's")

func (t *token) signed() []byte {
	bare := *t
	bare.Signature = nil
	return canon.Encode(bare)
}

// Issue makes a token for a user.
func (g *Guard) Issue(user string, revision int64) string {
	t := token{
		Network: g.node.Root().Genesis().Hash(), User: user, Revision: revision, Until: aweigh.InstantOf(time.Now().Add(tokenFor)), Node: g.identity.Public(),
	}
	t.Signature = g.identity.Sign(votes.ContextToken, t.signed())
	return base64.RawURLEncoding.EncodeToString(canon.Encode(t))
}

// tokens holds the tokens that were verified.
type tokens struct {
	mu  sync.Mutex
	all map[string]*token
}

const maxTokens = 4096

// bearer returns the content of a token, if it is good now.
func (g *Guard) bearer(text string) (*token, error) {
	t, err := g.content(text)
	if err != nil {
		return nil, err
	}
	now := aweigh.InstantOf(time.Now())
	if t.Until < now || t.Until > now.Add(tokenFor+clocksApart) || !g.vouches(t.id) {
		return nil, errToken
	}
	return t, nil
}

// content returns the content of a token that was good at some time.
func (g *Guard) content(text string) (*token, error) {
	g.tokens.mu.Lock()
	t := g.tokens.all[text]
	g.tokens.mu.Unlock()
	if t == nil {
		var err error
		if t, err = g.verified(text); err != nil {
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

func (g *Guard) verified(text string) (*token, error) {
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
	return t, nil
}

// vouches reports whether the tokens of a node are good here.
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
