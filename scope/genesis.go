package scope

import (
	"bytes"
	"fmt"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/plain"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/trust"
	"github.com/aweigh/aweigh/votes"
)

// Policy is what a scope demands of its anchors and its mutations.
type Policy struct {
	_           struct{} `cbor:",toarray"`
	Rules       quorum.Rules
	Trust       trust.Params
	EpochBlocks uint64        // after so many blocks, an epoch ends
	EpochTime   time.Duration // after so long by the blocks' time, one that holds Bounds.clockBlocks of them ends too; 0: never
	Limits      Limits
	Approvals   []Approval   // what takes more than a quorum's vote (P28)
	Children    Bound        // what binds the scopes below
	Actions     action.Table // what verbs do, and which callers may use them
	Authors     []Author     // whose mutations may change what
	Partitions  []Partition  // on which keys anchors without a quorum decide provisionally
	Topology    Topology     // what the scope does about busy prefixes
	Transfers   bool         // names move to other scopes, and come from there, with their objects (P67)
}

// DefaultPolicy is the policy of a scope that names nothing but its mode. Only its anchors and their nodes change keys.
func DefaultPolicy(m quorum.Mode) Policy {
	return Policy{
		Rules:       quorum.DefaultRules(m),
		Trust:       trust.DefaultParams(),
		EpochBlocks: 10_000,
		EpochTime:   time.Hour,
		Limits:      DefaultLimits(),
		Authors:     DefaultAuthors(),
		Topology:    DefaultTopology(),
	}
}

// OpenPolicy is DefaultPolicy, but anyone may change everything.
func OpenPolicy(m quorum.Mode) Policy {
	p := DefaultPolicy(m)
	p.Authors = []Author{{Name: Anyone.String(), Who: Anyone}}
	return p
}

// Hash names the policy.
func (p Policy) Hash() aweigh.Hash { return canon.Hash("aweigh/policy/1", p) }

// Anchor is a member of a scope as its roster names it.
type Anchor struct {
	_     struct{}        `cbor:",toarray"`
	Name  string          // for people
	Key   votes.PublicKey // signs ballots
	Peer  string          // libp2p peer ID of the node
	Score trust.Score     // trust at the start of the epoch
}

// Genesis is everything that a scope starts from. Its hash names the scope, and everything that follows can be checked
// from it. The hash of the root scope's genesis names the network. Other scopes descend from a scope that delegated a
// prefix to them.
type Genesis struct {
	_       struct{} `cbor:",toarray"`
	Format  uint16
	Name    string // for people
	Time    aweigh.Instant
	Policy  Policy
	Anchors []Anchor // ordered by the IDs of their keys
	Descent *Descent // nil for the root scope of a network
}

// Hash returns the scope's identity.
func (g Genesis) Hash() aweigh.Hash { return GenesisHash(canon.Encode(g)) }

// GenesisHash is the identity of the scope whose genesis has an encoding.
func GenesisHash(encoded []byte) aweigh.Hash {
	return aweigh.Sum([]byte("aweigh/genesis/1"), encoded)
}

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
	Anchors []Anchor // ordered by the IDs of their keys, those on probation included
	Weights quorum.Weights
	seats   map[aweigh.AnchorID]int // places in Anchors; nil if they are those in Weights
}

func newRoster(anchors []Anchor, w quorum.Weights) Roster {
	seats, same := make(map[aweigh.AnchorID]int, len(anchors)), len(anchors) == w.Len()
	for i := range anchors {
		id := anchors[i].Key.ID()
		seats[id] = i
		same = same && id == w.At(i).Anchor
	}
	if same { // all have weight
		seats = nil
	}
	return Roster{Anchors: anchors, Weights: w, seats: seats}
}

// Hash names the roster, keys and weights.
func (r Roster) Hash() aweigh.Hash {
	w := r.Weights.Hash()
	return aweigh.Sum([]byte("aweigh/roster/1"), canon.Encode(r.Anchors), w[:])
}

// Epoch is epoch 0: the genesis anchors with the weights that their scores give.
func (g Genesis) Epoch() (*Epoch, error) {
	ledger, err := g.Ledger()
	if err != nil {
		return nil, err
	}
	w, err := ledger.Next(g.Policy.Trust, 0, quorum.Weights{})
	if err != nil {
		return nil, err
	}
	id := g.Hash()
	return Epoch{
		Network: g.Network(), Scope: id, Root: id, Time: g.Time, Policy: g.Policy,
		Roster: newRoster(g.Anchors, w),
	}.settled(), nil
}

// Ledger is the trust ledger at the start.
func (g Genesis) Ledger() (trust.Ledger, error) {
	founded := make([]trust.Evidence, len(g.Anchors))
	for i, a := range g.Anchors {
		founded[i] = trust.Evidence{Anchor: a.Key.ID(), Kind: trust.Founded, Score: a.Score}
	}
	ledger, _ := trust.Ledger{}.Apply(g.Policy.Trust, founded...).Regroup(g.Policy.Trust, trust.Turn{Mode: g.Policy.Rules.Mode})
	return ledger, nil
}

// Keyring checks the ballots of epoch 0.
func (g Genesis) Keyring() (*votes.Keyring, error) {
	e, err := g.Epoch()
	if err != nil {
		return nil, err
	}
	return e.Keyring()
}

// Check reports whether a scope can have this policy, whatever its roster. That of an island it refuses. Errors wrap
// ErrInvalid.
func (p Policy) Check() error {
	if err := p.form(); err != nil {
		return err
	}
	return p.checkPredicates()
}

// form is Check without the predicates of rules.
func (p *Policy) form() error {
	if err := p.checkPartitions(); err != nil {
		return err
	}
	return p.check()
}

// checkPredicates reads the predicates of rules.
func (p *Policy) checkPredicates() error {
	if err := p.Actions.Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return nil
}

// check is form without the partitions.
func (p *Policy) check() error {
	if err := p.Limits.check(); err != nil {
		return err
	}
	if p.EpochBlocks == 0 {
		return fmt.Errorf("%w: epochs of no blocks", ErrInvalid)
	}
	if p.EpochTime > mostEpoch {
		return fmt.Errorf("%w: epochs of %v; %v is the most", ErrInvalid, p.EpochTime, mostEpoch)
	}
	if p.EpochTime < 0 || p.EpochTime > 0 && p.EpochTime < leastEpoch {
		return fmt.Errorf("%w: epochs of %v; 0 means that the clock ends none, otherwise %v is the least", ErrInvalid, p.EpochTime, leastEpoch)
	}
	if err := p.Topology.check(); err != nil {
		return err
	}
	if err := p.Limits.outlasts("epochs of", p.EpochTime); err != nil {
		return err
	}
	if err := p.checkApprovals(); err != nil {
		return err
	}
	if err := p.Trust.Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if err := p.checkGroup(); err != nil {
		return err
	}
	if err := p.Actions.CheckForm(); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if err := p.checkAuthors(); err != nil {
		return err
	}
	return p.Children.check()
}

// leastEpoch refuses policies under which a scope would do nothing but change epochs.
const leastEpoch = time.Second

// mostEpoch keeps instants from overflowing.
const mostEpoch = 366 * 24 * time.Hour

// checkPolicy is form for the policy, which must be one of such a scope.
func (g *Genesis) checkPolicy() error {
	if !g.IsIsland() {
		return g.Policy.form()
	}
	if !g.Policy.IsIsland() || !bytes.Equal(g.Policy.Partitions[0].Prefix, g.Descent.Prefix) {
		return fmt.Errorf("%w: an island with the policy of another scope", ErrInvalid)
	}
	return g.Policy.check()
}

// Check reports whether a network can start from g. stoppable means that it
// can, but the weight that may fail could stop it (P3). Errors wrap
// ErrInvalid, or are those of the packages whose rules are broken.
func (g Genesis) Check() (stoppable bool, err error) {
	if stoppable, err = g.form(); err == nil {
		err = g.Policy.checkPredicates()
	}
	return stoppable && err == nil, err
}

// form is Check without the predicates of rules. Proofs depend on no predicate: no node starts from a genesis with one
// that is none, and a verifier needs no language to read the others.
func (g *Genesis) form() (stoppable bool, err error) {
	if g.Format != Format {
		return false, fmt.Errorf("%w: genesis format %d, this program knows %d", ErrInvalid, g.Format, Format)
	}
	if err := g.checkPolicy(); err != nil {
		return false, err
	}
	if g.Descent != nil {
		if err := g.Descent.check(g); err != nil {
			return false, err
		}
	}
	if err := plain.Name(g.Name); err != nil {
		return false, fmt.Errorf("%w: the network or scope: %w", ErrInvalid, err)
	}
	most := g.Policy.Limits.Anchors
	switch {
	case g.Time <= 0:
		return false, fmt.Errorf("%w: genesis time %d", ErrInvalid, g.Time)
	case len(g.Anchors) == 0 || len(g.Anchors) > most:
		return false, fmt.Errorf("%w: %d genesis anchors, between 1 and %d are taken", ErrInvalid, len(g.Anchors), most)
	}
	for i := 1; i < len(g.Anchors); i++ {
		if compareIDs(g.Anchors[i-1], g.Anchors[i]) >= 0 {
			return false, fmt.Errorf("%w: genesis anchors are not distinct and in order", ErrInvalid)
		}
	}
	for _, a := range g.Anchors {
		if a.Score > trust.MaxScore {
			return false, fmt.Errorf("%w: anchor %q starts with a score of %d, above %d", ErrInvalid, a.Name, a.Score, trust.MaxScore)
		}
		if err := plain.Name(a.Name); err != nil {
			return false, fmt.Errorf("%w: an anchor: %w", ErrInvalid, err)
		}
		if err := a.checkPeer(); err != nil {
			return false, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	k, err := g.Keyring()
	if err != nil {
		return false, err
	}
	return k.Rules().Check(k.Weights())
}
