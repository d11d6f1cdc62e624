package scope

import (
	"bytes"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/trust"
	"github.com/aweigh/aweigh/votes"
)

// Policy is what a scope demands of its anchors and its mutations.
type Policy struct {
	_           struct{} `cbor:",toarray"`
	Rules       quorum.Rules
	Trust       trust.Params
	EpochBlocks uint64 // blocks in an epoch
	Limits      Limits
}

// DefaultPolicy is the policy of a scope that names nothing but its mode.
func DefaultPolicy(m quorum.Mode) Policy {
	return Policy{
		Rules:       quorum.DefaultRules(m),
		Trust:       trust.DefaultParams(),
		EpochBlocks: 1 << 62, // epochs do not end yet
		Limits:      DefaultLimits(),
	}
}

// Hash names the policy.
func (p Policy) Hash() aweigh.Hash { return aweigh.Sum([]byte("aweigh/policy/1"), canon.Encode(p)) }

// Anchor is a member of a scope as its genesis names it.
type Anchor struct {
	_     struct{}        `cbor:",toarray"`
	Name  string          // for people
	Key   votes.PublicKey // signs ballots
	Peer  string          // libp2p peer ID of the node
	Score trust.Score     // trust at the start
}

// Genesis is all that a network starts from. Its hash names the network and
// its root scope; whoever holds it can check everything that follows.
type Genesis struct {
	_       struct{} `cbor:",toarray"`
	Format  uint16
	Name    string // for people
	Time    aweigh.Instant
	Policy  Policy
	Anchors []Anchor // ordered by the IDs of their keys
}

// Hash is the network's identity.
func (g Genesis) Hash() aweigh.Hash { return aweigh.Sum([]byte("aweigh/genesis/1"), canon.Encode(g)) }

// Encode is the genesis's canonical encoding.
func (g Genesis) Encode() []byte { return canon.Encode(g) }

// DecodeGenesis reads what Encode wrote, and checks it (Check).
func DecodeGenesis(data []byte) (Genesis, error) {
	var g Genesis
	if err := canon.Decode(data, &g); err != nil {
		return Genesis{}, fmt.Errorf("%w: genesis: %w", ErrInvalid, err)
	}
	if _, err := g.Check(); err != nil {
		return Genesis{}, err
	}
	return g, nil
}

// Roster is the anchors of one epoch with their weights (P24).
type Roster struct {
	Anchors []Anchor
	Weights quorum.Weights
}

// Hash names the roster, keys and weights.
func (r Roster) Hash() aweigh.Hash {
	w := r.Weights.Hash()
	return aweigh.Sum([]byte("aweigh/roster/1"), canon.Encode(r.Anchors), w[:])
}

// Roster is the roster of epoch 0: the genesis anchors with the weights that
// their scores give.
func (g Genesis) Roster() (Roster, error) {
	ledger, err := g.Ledger()
	if err != nil {
		return Roster{}, err
	}
	w, err := ledger.Next(g.Policy.Trust, 0, quorum.Weights{})
	if err != nil {
		return Roster{}, err
	}
	return Roster{Anchors: g.Anchors, Weights: w}, nil
}

// Ledger is the trust ledger at the start.
func (g Genesis) Ledger() (trust.Ledger, error) {
	founded := make([]trust.Evidence, len(g.Anchors))
	for i, a := range g.Anchors {
		founded[i] = trust.Evidence{Anchor: a.Key.ID(), Kind: trust.Founded, Score: a.Score}
	}
	return trust.Ledger{}.Apply(g.Policy.Trust, founded...), nil
}

// Keyring checks the ballots of epoch 0.
func (g Genesis) Keyring() (*votes.Keyring, error) {
	r, err := g.Roster()
	if err != nil {
		return nil, err
	}
	h := g.Hash()
	keys := make([]votes.PublicKey, len(r.Anchors))
	for i, a := range r.Anchors {
		keys[i] = a.Key
	}
	return votes.NewKeyring(votes.Domain{Network: h, Scope: h, Roster: r.Hash(), Policy: g.Policy.Hash()},
		g.Policy.Rules, r.Weights, keys...)
}

// Check says whether a network can start from g. For one that can, stoppable
// says that the weight which may fail could stop it (P3). Errors wrap
// ErrInvalid, or are those of the packages whose rules are broken.
func (g Genesis) Check() (stoppable bool, err error) {
	if g.Format != Format {
		return false, fmt.Errorf("%w: genesis format %d, this program knows %d", ErrInvalid, g.Format, Format)
	}
	if err := g.Policy.Limits.Check(); err != nil {
		return false, err
	}
	most := g.Policy.Limits.Anchors
	switch {
	case g.Time <= 0:
		return false, fmt.Errorf("%w: genesis time %d", ErrInvalid, g.Time)
	case len(g.Anchors) == 0 || len(g.Anchors) > most:
		return false, fmt.Errorf("%w: %d genesis anchors, between 1 and %d are taken", ErrInvalid, len(g.Anchors), most)
	case g.Policy.EpochBlocks == 0:
		return false, fmt.Errorf("%w: epochs of no blocks", ErrInvalid)
	}
	for i := 1; i < len(g.Anchors); i++ {
		a, b := g.Anchors[i-1].Key.ID(), g.Anchors[i].Key.ID()
		if bytes.Compare(a[:], b[:]) >= 0 {
			return false, fmt.Errorf("%w: genesis anchors are not distinct and in order", ErrInvalid)
		}
	}
	for _, a := range g.Anchors {
		if a.Score > trust.MaxScore {
			return false, fmt.Errorf("%w: anchor %q starts with a score of %d, above %d", ErrInvalid, a.Name, a.Score, trust.MaxScore)
		}
	}
	if err := g.Policy.Trust.Check(); err != nil {
		return false, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	k, err := g.Keyring()
	if err != nil {
		return false, err
	}
	return k.Rules().Check(k.Weights())
}
