package etcd

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

// token says that a node knows who its bearer is. It is signed by the node, and good at
// all nodes of the network for as long as the node that signed it has a seat in the root
// scope's roster, or at that node alone: so clients may go from one to another.
type token struct {
	_         struct{} `cbor:",toarray"`
	Network   aweigh.NetworkID
	User      string
	Revision  int64 // of the users and roles
	Until     aweigh.Instant
	Node      votes.PublicKey
	Signature []byte // over all before
}

// tokenFor is how long a token is good. Clients get another by themselves.
const tokenFor = 5 * time.Minute

// clocksApart is by how much the clocks of two nodes may differ.
const clocksApart = time.Minute

var errToken = errors.New("etcd: not a token of this network's")

func (t *token) signed() []byte {
	bare := *t
	bare.Signature = nil
	return canon.Encode(bare)
}

// issue makes a token for a user.
func (s *service) issue(user string, revision int64) string {
	t := token{
		Network: s.node.Root().Genesis().Hash(), User: user, Revision: revision, Until: aweigh.InstantOf(time.Now().Add(tokenFor)), Node: s.identity.Public(),
	}
	t.Signature = s.identity.Sign(votes.ContextToken, t.signed())
	return base64.RawURLEncoding.EncodeToString(canon.Encode(t))
}

// tokens are those that were verified.
type tokens struct {
	mu  sync.Mutex
	all map[string]*token
}

const maxTokens = 4096

// bearer is what a token says, if it is good.
func (s *service) bearer(text string) (*token, error) {
	s.tokens.mu.Lock()
	t := s.tokens.all[text]
	s.tokens.mu.Unlock()
	if t == nil {
		var err error
		if t, err = s.verified(text); err != nil {
			return nil, err
		}
		s.tokens.mu.Lock()
		if s.tokens.all == nil || len(s.tokens.all) >= maxTokens {
			s.tokens.all = make(map[string]*token)
		}
		s.tokens.all[text] = t
		s.tokens.mu.Unlock()
	}
	now := aweigh.InstantOf(time.Now())
	if t.Until < now || t.Until > now.Add(tokenFor+clocksApart) || !s.vouches(t.Node.ID()) {
		return nil, errToken
	}
	return t, nil
}

func (s *service) verified(text string) (*token, error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) > 4096 {
		return nil, errToken
	}
	t := new(token)
	if canon.Decode(raw, t) != nil || t.Network != s.node.Root().Genesis().Hash() || !s.vouches(t.Node.ID()) ||
		votes.Verify(t.Node, votes.ContextToken, t.signed(), t.Signature) != nil {
		return nil, errToken
	}
	return t, nil
}

// vouches reports whether the tokens of a node are good here.
func (s *service) vouches(id aweigh.Hash) bool {
	if id == s.identity.Public().ID() {
		return true
	}
	for _, a := range s.node.Root().LastStatus().Roster.Anchors {
		if machine.AuthorOf(machine.Peer(a.Peer)) == id {
			return true
		}
	}
	return false
}
