package votes

import (
	"bytes"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/quorum"
)

// Keyring checks the ballots and certificates of the anchors of one Domain. It holds their keys, weights and rules, is
// immutable, and is safe for concurrent use.
type Keyring struct {
	domain  Domain
	rules   quorum.Rules
	weights quorum.Weights
	fast    quorum.FastBounds
	keys    members
	prefix  []byte   // what all signed messages begin with: context, format, domain
	verify  Verifier // nil: directly, with the parsed keys
	earlier bool     // the domain is of an earlier epoch, in whatever mode
}

// NewKeyring returns the keyring of a domain. It does not check the domain's Roster and Policy against its other
// arguments. The keys must be distinct, and may be in any order. Every anchor with weight must have its key (ErrKey);
// a key without weight belongs to an anchor on probation, whose ballots are checked but do not count. The rules must
// be safe for the weights (quorum.ErrUnsafe); otherwise certificates would prove nothing.
func NewKeyring(d Domain, rules quorum.Rules, w quorum.Weights, keys ...PublicKey) (*Keyring, error) {
	all := newMembers(len(keys))
	for _, key := range keys {
		fresh, err := all.add(key)
		if err == nil && !fresh {
			err = fmt.Errorf("%w: %s stands twice", ErrKey, key)
		}
		if err != nil {
			return nil, err
		}
	}
	return KeySet{all}.Keyring(d, rules, w)
}

// Keyring is NewKeyring with the keys of the set, which are shared and not copied.
func (s KeySet) Keyring(d Domain, rules quorum.Rules, w quorum.Weights) (*Keyring, error) {
	if _, err := rules.Check(w); err != nil {
		return nil, fmt.Errorf("votes: keyring of %s: %w", d, err)
	}
	k := &Keyring{domain: d, rules: rules, weights: w, fast: rules.FastBounds(w), keys: s.keys, prefix: domainPrefix(&d)}
	for s := range w.All() {
		if k.keys.get(s.Anchor) == nil {
			return nil, fmt.Errorf("%w: none for anchor %s of weight %d", ErrKey, s.Anchor.Short(), s.Weight)
		}
	}
	return k, nil
}

// domainPrefix returns the prefix of all signed messages of a domain.
func domainPrefix(d *Domain) []byte {
	b := canon.AppendHead(ContextBallot.wrap(nil), canon.MajorArray, 4)
	return appendDomain(canon.AppendHead(b, canon.MajorUint, Format), d)
}

// With returns the same keyring with another verifier, such as that of a Memory. With nil it verifies directly, which
// is fastest: every key is parsed only once.
func (k *Keyring) With(v Verifier) *Keyring {
	c := *k
	c.verify = v
	return &c
}

// Under returns a keyring with the same keys, and more, for ballots of another domain, to check ballots of an earlier
// epoch, of whatever mode that was. It cannot check certificates.
func (k *Keyring) Under(d Domain, more ...PublicKey) *Keyring {
	c := *k
	c.keys = k.keys.with(more)
	c.domain = d
	c.prefix = domainPrefix(&d)
	c.earlier = true
	return &c
}

// Domain returns the domain of the keyring's ballots.
func (k *Keyring) Domain() Domain { return k.domain }

// Rules returns the rules that certificates must meet.
func (k *Keyring) Rules() quorum.Rules { return k.rules }

// FastBounds returns the bounds of mode fast for the weights; they are zero in other modes.
func (k *Keyring) FastBounds() quorum.FastBounds { return k.fast }

// Weights returns the weights of the anchors.
func (k *Keyring) Weights() quorum.Weights { return k.weights }

// Key returns the key of an anchor; ok is false if it is not in the roster.
func (k *Keyring) Key(a aweigh.AnchorID) (PublicKey, bool) { return k.keys.key(a) }

// Check verifies a ballot. The error wraps ErrMalformed, ErrForeign,
// ErrOtherScope, ErrStale, ErrAhead, ErrNotInRoster or ErrForged.
func (k *Keyring) Check(b Ballot) (Checked, error) {
	if err := b.valid(); err != nil {
		return Checked{}, err
	}
	if err := k.domain.Admits(b.Domain); err != nil {
		return Checked{}, err
	}
	if err := k.CheckVote(b.Vote()); err != nil {
		return Checked{}, err
	}
	return Checked{b}, nil
}

// Ballot returns the ballot from which a vote of this domain was taken.
func (k *Keyring) Ballot(v quorum.Vote) Ballot {
	return Ballot{Format: Format, Domain: k.domain, Subject: v.Subject, Anchor: v.Anchor, Signature: v.Bytes}
}

// CheckVote verifies a vote as a ballot of this domain. The error wraps
// ErrMalformed, ErrNotInRoster or ErrForged.
func (k *Keyring) CheckVote(v quorum.Vote) error {
	if allowed := k.rules.Allows(v.Subject) || k.earlier && v.Subject.Valid(); !allowed {
		return fmt.Errorf("%w: subject %v", ErrMalformed, v.Subject)
	}
	return k.signed(k.statement(&v.Subject), &v.Signature)
}

// statement returns what all anchors sign for a subject, up to their own name, with room for that.
func (k *Keyring) statement(s *quorum.Subject) []byte {
	b := make([]byte, 0, len(k.prefix)+96)
	return appendSubject(append(b, k.prefix...), s)
}

// signed verifies one anchor's signature on a statement.
func (k *Keyring) signed(statement []byte, s *quorum.Signature) error {
	m := k.keys.get(s.Anchor)
	if m == nil {
		return fmt.Errorf("%w: %s", ErrNotInRoster, s.Anchor.Short())
	}
	wrapped := appendHash(statement, &s.Anchor)
	var err error
	if k.verify == nil {
		err = verify(m.parsed, wrapped, s.Bytes)
	} else {
		err = k.verify(m.key, ContextBallot, wrapped[len(ContextBallot)+1:], s.Bytes)
	}
	if err != nil {
		return fmt.Errorf("anchor %s: %w", s.Anchor.Short(), err)
	}
	return nil
}

// before orders anchors by their identities.
func before(a, b *aweigh.AnchorID) bool { return bytes.Compare(a[:], b[:]) < 0 }
