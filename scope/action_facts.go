package scope

import (
	"bytes"
	"fmt"
	"time"

	"github.com/mr-tron/base58"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/votes"
)

// call is a request for an action: the caller, the verb and its subject, as far as a mutation or a request states
// them.
type call struct {
	verb   string
	caller aweigh.Hash // votes.PublicKey.ID
	now    aweigh.Instant
	height aweigh.Height // of the block
}

// facts are what rules may look at. v is what the key names, if ok.
func (e *Epoch) facts(q call, prefix string, key []byte, v *KeyValue, ok bool) *action.Facts {
	f := &action.Facts{
		Verb: q.verb, Now: int64(q.now / aweigh.Instant(time.Second)),
		Caller: action.Caller{ID: q.caller.String()},
		Scope: action.Scope{
			Prefix: prefix, Mode: e.Policy.Rules.Mode.String(), Epoch: int64(e.Number), Height: int64(q.height),
		},
		Object: action.Object{Key: string(key)},
	}
	if seat, sits := e.seats[q.caller]; sits {
		a := &e.Roster.Anchors[seat]
		f.Caller.Anchor, f.Caller.Weight = a.Name, int64(e.Roster.Weights.Of(a.Key.ID()))
	}
	if ok {
		f.Object.Exists, f.Object.UID, f.Object.Version, f.Object.Value = true, v.UID.String(), v.Version, v.Value
	}
	return f
}

// seated are the seats of the anchors in a roster by the keys that they act with: their
// own, and those of their nodes.
func seated(anchors []Anchor) map[aweigh.Hash]int {
	seats := make(map[aweigh.Hash]int, 2*len(anchors))
	for i := range anchors {
		if key, ok := PeerKey(anchors[i].Peer); ok {
			seats[key.ID()] = i
		}
	}
	for i := range anchors { // an anchor's own key is certain; the key of its node is only the anchor's statement
		seats[anchors[i].Key.ID()] = i
	}
	return seats
}

// PeerKey is the key in a libp2p peer ID in its usual form: the base58 of an identity
// multihash of the protobuf of an Ed25519 key. ok is false for a key that
// votes.PublicKey.Check refuses.
func PeerKey(peer string) (k votes.PublicKey, ok bool) {
	const head = "\x00\x24\x08\x01\x12\x20"
	if len(peer) > 64 {
		return k, false
	}
	raw, err := base58.Decode(peer)
	if err != nil || len(raw) != len(head)+32 || string(raw[:len(head)]) != head {
		return k, false
	}
	k = votes.PublicKey{Scheme: votes.Ed25519, Bytes: raw[len(head):]}
	return k, k.Check() == nil
}

// checkPeer refuses an anchor whose peer ID has a key that votes.PublicKey.Check refuses.
func (a *Anchor) checkPeer() error {
	if k, ok := PeerKey(a.Peer); !ok && len(k.Bytes) > 0 {
		return fmt.Errorf("the peer ID of anchor %q: %w", a.Name, k.Check())
	}
	return nil
}

// Question asks what a scope says to a verb.
type Question struct {
	Verb   string
	Key    []byte
	Caller aweigh.Hash // votes.PublicKey.ID
	Now    aweigh.Instant
	Pass   bool          // the scope is on the way to the one that decides about the key
	Rules  *action.Rules // instead of those in force; nil: those
}

// Verdict is what the scope would say in the next block: of a verb that writes or claims, under every alias of the
// object.
func (s *State) Verdict(q Question) (action.Verdict, error) {
	e, err := s.Epoch()
	if err != nil {
		return action.Verdict{}, err
	}
	rules := q.Rules
	if rules == nil {
		rules = e.rules
	}
	if q.Pass && !rules.Has(q.Verb) {
		return action.Verdict{Allowed: true}, nil
	}
	asked := call{q.Verb, q.Caller, max(q.Now, s.head.Time), s.head.Height + 1}
	if q.Pass {
		return rules.Pass(e.facts(asked, string(s.head.Prefix), q.Key, &KeyValue{}, false)), nil
	}
	v, ok, err := s.newest(q.Key)
	if err != nil {
		return action.Verdict{}, err
	}
	said := rules.Judge(e.facts(asked, string(s.head.Prefix), q.Key, &v, ok))
	if !ok || !said.Allowed || said.Class != action.Write && said.Class != action.Claim {
		return said, nil
	}
	a, err := s.aliasesWith(v.UID, &v)
	for i := 0; i < len(a.Keys) && said.Allowed && err == nil; i++ {
		if bytes.Equal(a.Keys[i], q.Key) {
			continue
		}
		if v, ok, err = s.newest(a.Keys[i]); err == nil {
			said = rules.Judge(e.facts(asked, string(s.head.Prefix), a.Keys[i], &v, ok))
		}
	}
	return said, err
}
