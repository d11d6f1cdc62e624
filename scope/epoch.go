package scope

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/votes"
)

// Epoch is all that stays as it is from one block that ends an epoch to the next
// (P24), and where it begins. An immutable value.
type Epoch struct {
	Scope      aweigh.ScopeID
	Network    aweigh.NetworkID
	Number     aweigh.Epoch
	Root       aweigh.Hash    // the block that it starts from; the scope's ID in epoch 0
	Start      aweigh.Height  // of Root
	Time       aweigh.Instant // of Root
	Policy     Policy
	Roster     Roster
	NonLeading []bool            // by place in the roster: whether that anchor does not lead in this epoch
	Before     votes.Domain      // of the epoch before, whose faults can still be proven; zero in epoch 0
	Gone       []votes.PublicKey // of the anchors that had a seat under Before and have none now
	Home       *Home             // of the last epoch of a scope: what it held goes back to the scope above; otherwise nil
	Quiet      bool              // the scope was quiet for long when the epoch began, and can go back to the one above (P66)
	domain     votes.Domain
	leaders    *quorum.Weights // nil: all anchors with weight
	voters     votes.KeySet
	unfit      error       // why there are no voters: a key that is none
	record     aweigh.Hash // epochDigest of Encode
	rules      *action.Rules
	seats      map[aweigh.Hash]int // by the keys that anchors act with
	keys       []aweigh.Hash       // of the policy's authors that are one key, by place
	meters     [measures]bool      // what the policy's authors have quotas of
}

// settled computes once what callers need often.
func (e Epoch) settled() *Epoch {
	e.domain = votes.Domain{Network: e.Network, Scope: e.Scope, Epoch: e.Number, Roster: e.Roster.Hash(), Policy: e.Policy.Hash()}
	e.voters, e.unfit = e.electors()
	if slices.Contains(e.NonLeading, true) {
		lead := slices.Collect(e.Roster.Weights.All())
		lead = slices.DeleteFunc(lead, func(s quorum.Share) bool {
			seat, _ := e.Roster.Seat(s.Anchor)
			return e.NonLeading[seat]
		})
		w, err := quorum.NewWeights(lead...)
		must.OK(err, "weighing the leaders")
		e.leaders = &w
	}
	e.record = epochDigest(e.Encode())
	e.rules = action.Prepare(e.Policy.Actions)
	e.seats = seated(e.Roster.Anchors)
	e.keys = make([]aweigh.Hash, len(e.Policy.Authors))
	for i := range e.Policy.Authors {
		if a := &e.Policy.Authors[i]; a.Who == OneKey {
			e.keys[i] = a.Key.ID()
		}
		for what := range e.meters {
			e.meters[what] = e.meters[what] || e.Policy.Authors[i].Quota.most(measure(what)) > 0
		}
	}
	return &e
}

// Electors returns the keys of the voters on motions that open in the epoch. It returns an error if one of the keys is
// not valid.
func (e *Epoch) Electors() (votes.KeySet, error) { return e.voters, e.unfit }

func (e *Epoch) electors() (votes.KeySet, error) {
	all := (&Approval{}).voters(e.Roster, nil, nil)
	for i := range e.Policy.Approvals {
		for _, p := range e.Policy.Approvals[i].Approvers {
			all = append(all, Elector{Key: p.Key})
		}
	}
	return keysOf(all)
}

// Leaders are the weights in proportion to which anchors lead views: those of the
// roster, without the non-leading anchors.
func (e *Epoch) Leaders() quorum.Weights {
	if e.leaders != nil {
		return *e.leaders
	}
	return e.Roster.Weights
}

// wireEpoch is an Epoch's encoding.
type wireEpoch struct {
	_       struct{} `cbor:",toarray"`
	Network aweigh.NetworkID
	Scope   aweigh.ScopeID
	Number  aweigh.Epoch
	Root    aweigh.Hash
	Start   aweigh.Height
	Time    aweigh.Instant
	Terms   Terms
	Before  votes.Domain
	Gone    []votes.PublicKey
}

// Terms is what an epoch decides by: the part of an Epoch that is named by the block that ends the epoch before. All
// nodes compute it from the chain.
type Terms struct {
	_          struct{} `cbor:",toarray"`
	Policy     Policy
	Anchors    []Anchor // ordered by the IDs of their keys
	Weights    []uint64 // of each; 0 on probation, when ballots count for trust alone
	NonLeading []bool   // of each: it leads no views, because those that it led gave no blocks
	Home       *Home    // set if the scope is closed: the epoch has no blocks, and none follows
	Quiet      bool     // the scope was quiet for long, and can go back to the one above (P66)
}

// Hash names the terms under which an epoch decides; Header.Next is one.
func (t Terms) Hash(number aweigh.Epoch) aweigh.Hash {
	return aweigh.Sum([]byte("aweigh/epoch/1"), binary.BigEndian.AppendUint64(nil, uint64(number)), canon.Encode(t))
}

// roster checks the terms' form and gives the roster.
func (t *Terms) roster() (Roster, error) {
	if len(t.Anchors) != len(t.Weights) || len(t.Anchors) != len(t.NonLeading) {
		return Roster{}, fmt.Errorf("%w: %d anchors with %d weights, and %d that tell which of them do not lead", ErrInvalid, len(t.Anchors), len(t.Weights), len(t.NonLeading))
	}
	leads := false
	shares := make([]quorum.Share, 0, len(t.Anchors))
	for i, a := range t.Anchors {
		if i > 0 && compareIDs(t.Anchors[i-1], a) >= 0 {
			return Roster{}, fmt.Errorf("%w: anchors of a roster are not distinct and in order", ErrInvalid)
		}
		if t.Weights[i] > 0 {
			leads = leads || !t.NonLeading[i]
			shares = append(shares, quorum.Share{Anchor: a.Key.ID(), Weight: t.Weights[i]})
		}
	}
	w, err := quorum.NewWeights(shares...)
	if err == nil && !leads {
		err = errors.New("no anchor leads")
	}
	if err != nil {
		return Roster{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return newRoster(t.Anchors, w), nil
}

// Terms are those of the epoch.
func (e *Epoch) Terms() Terms {
	t := e.Roster.terms(e.Policy)
	copy(t.NonLeading, e.NonLeading)
	t.Home, t.Quiet = e.Home, e.Quiet
	return t
}

func (r Roster) terms(p Policy) Terms {
	t := Terms{Policy: p, Anchors: r.Anchors, Weights: make([]uint64, len(r.Anchors)), NonLeading: make([]bool, len(r.Anchors))}
	for i, a := range r.Anchors {
		t.Weights[i] = r.Weights.Of(a.Key.ID())
	}
	return t
}

// Domain returns what the ballots of the epoch are bound to (P5).
func (e *Epoch) Domain() votes.Domain { return e.domain }

// Seed returns the seed that determines the order in which the anchors lead. It can be predicted, but no node can
// choose it.
func (e *Epoch) Seed() aweigh.Hash {
	return aweigh.Sum([]byte("aweigh/seed/1"), e.Scope[:], binary.BigEndian.AppendUint64(nil, uint64(e.Number)))
}

// Keyring returns the keyring that checks the ballots of the epoch.
func (e *Epoch) Keyring() (*votes.Keyring, error) {
	// All voters are anchors with weight.
	if n := len(e.Roster.Anchors); e.unfit == nil && n == e.Roster.Weights.Len() && n == e.voters.Len() {
		return e.voters.Keyring(e.Domain(), e.Policy.Rules, e.Roster.Weights)
	}
	keys := make([]votes.PublicKey, len(e.Roster.Anchors))
	for i, a := range e.Roster.Anchors {
		keys[i] = a.Key
	}
	return votes.NewKeyring(e.Domain(), e.Policy.Rules, e.Roster.Weights, keys...)
}

// Seat is the place of an anchor in the roster of an Epoch.
func (r Roster) Seat(a aweigh.AnchorID) (int, bool) {
	if r.seats == nil {
		return r.Weights.Seat(a)
	}
	seat, ok := r.seats[a]
	return seat, ok
}

func compareIDs(a, b Anchor) int {
	x, y := a.Key.ID(), b.Key.ID()
	return bytes.Compare(x[:], y[:])
}

// Encode is the canonical encoding.
func (e *Epoch) Encode() []byte {
	return canon.Encode(wireEpoch{
		Network: e.Network, Scope: e.Scope, Number: e.Number, Root: e.Root, Start: e.Start, Time: e.Time,
		Terms: e.Terms(), Before: e.Before, Gone: e.Gone,
	})
}

// decodeEpoch reads what Encode wrote. Errors wrap ErrInvalid.
func decodeEpoch(data []byte) (*Epoch, error) {
	var w wireEpoch
	if err := canon.Decode(data, &w); err != nil {
		return nil, fmt.Errorf("%w: epoch: %w", ErrInvalid, err)
	}
	r, err := w.Terms.roster()
	if err != nil {
		return nil, err
	}
	return Epoch{
		Network: w.Network, Scope: w.Scope, Number: w.Number, Root: w.Root, Start: w.Start, Time: w.Time,
		Policy: w.Terms.Policy, Roster: r, NonLeading: w.Terms.NonLeading, Before: w.Before, Gone: w.Gone,
		Home: w.Terms.Home, Quiet: w.Terms.Quiet,
	}.settled(), nil
}

// epochDigest names an encoded epoch in the state.
func epochDigest(encoded []byte) aweigh.Hash {
	return aweigh.Sum([]byte("aweigh/epoch-record/1"), encoded)
}

// after is the epoch that begins with a block that ends e, under the terms that
// its header names.
func (e *Epoch) after(h Header, t Terms) (*Epoch, error) {
	r, err := t.roster()
	if err != nil {
		return nil, err
	}
	var gone []votes.PublicKey
	for _, a := range e.Roster.Anchors {
		if _, stays := r.Seat(a.Key.ID()); !stays {
			gone = append(gone, a.Key)
		}
	}
	return Epoch{
		Network: e.Network, Scope: e.Scope, Number: e.Number + 1, Root: h.Hash(), Start: h.Height, Time: h.Time,
		Policy: t.Policy, Roster: r, NonLeading: t.NonLeading, Before: e.Domain(), Gone: gone,
		Home: t.Home, Quiet: t.Quiet,
	}.settled(), nil
}

// Handover proves the next epoch to a verifier that knows the one before (P26).
type Handover struct {
	_     struct{} `cbor:",toarray"`
	Final Finality // of the block that ends the epoch before
	Terms Terms    // that its header names
}

// Follow verifies a handover and gives the epoch that it begins. Errors wrap
// ErrInvalid, and the one of package votes if the certificate does not hold.
func (e *Epoch) Follow(h Handover) (*Epoch, error) { return e.follow(h, votes.Verify) }

// follow is Follow with a verifier of signatures.
func (e *Epoch) follow(h Handover, verify votes.Verifier) (*Epoch, error) {
	keyring, err := e.Keyring()
	if err != nil {
		return nil, err
	}
	keyring = keyring.With(verify)
	if err := h.Final.Check(keyring); err != nil {
		return nil, err
	}
	if next := h.Final.Header.Next; next.IsZero() || next != h.Terms.Hash(e.Number+1) {
		return nil, fmt.Errorf("%w: block %d hands over to other terms than those given for epoch %d", ErrInvalid, h.Final.Header.Height, e.Number+1)
	}
	return e.after(h.Final.Header, h.Terms)
}

// followAll verifies handovers one after another.
func (e *Epoch) followAll(chain []Handover) (*Epoch, error) {
	for i := range chain {
		next, err := e.Follow(chain[i])
		if err != nil {
			return nil, err
		}
		e = next
	}
	return e, nil
}
