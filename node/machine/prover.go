package machine

import (
	"errors"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// Prover makes proofs from a state and the final blocks that led to it.
type Prover struct {
	Genesis scope.Genesis
	State   *scope.State
	History History
	// Above returns the steps by which the scope descends from the root scope. It is not called for the root scope.
	Above func(*scope.Descent) ([]scope.Step, error)
}

// ErrUncovered means that no final block above a change can be proven yet.
var ErrUncovered = errors.New("node: no block covers the change yet")

// ErrNoHandovers means that this node cannot prove the epochs up to its newest block.
var ErrNoHandovers = errors.New("node: this node does not hold the handovers of all epochs; ask another node")

// Key proves the change of a key that an entry of the lineage records. The entry must be the newest of that key.
// Errors wrap ErrUncovered, ErrNoBlock or ErrNoHandovers, or are those of scope.NewKeyProof.
func (p *Prover) Key(key []byte, entry int64) (*scope.KeyProof, error) {
	e, ok, err := p.State.Lineage().Entry(entry)
	if err != nil || !ok {
		return nil, errors.Join(err, fmt.Errorf("node: entry %d of the lineage is missing", entry))
	}
	if e.Height == 0 { // the scope took the key over from the one above
		a, err := p.Ancestry(0)
		if err != nil {
			return nil, err
		}
		return scope.NewKeyProof(a, p.State, key, nil, scope.Finality{}, nil)
	}
	// If a motion carried the change, its mutation is in an earlier block.
	at := e.Height
	m, err := p.minutes(votes.MotionID(e.Mutation))
	if err != nil {
		return nil, err
	}
	if m != nil {
		at = m.Motion.Height
	}
	a, err := p.Ancestry(e.Height)
	if err != nil {
		return nil, err
	}
	origin, final, err := p.origin(at)
	if err != nil {
		return nil, err
	}
	return scope.NewKeyProof(a, p.State, key, origin, final, m)
}

// ErrNoMotion is wrapped by errors about a motion that is not on record here.
var ErrNoMotion = errors.New("node: no such motion is on record; \"aweigh motion ls --all\" lists those that are; those of a scope that this node does not hold are known to nodes that do")

// Motion proves a motion by a final block that is above the motion's own height minus below. The error wraps
// ErrNoMotion if the motion is not known; other errors are those of Key.
func (p *Prover) Motion(id votes.MotionID, below aweigh.Height) (*scope.MotionProof, error) {
	m, err := p.minutes(id)
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, fmt.Errorf("%w: %s", ErrNoMotion, id.Short())
	}
	a, err := p.Ancestry(m.Motion.Height - below)
	if err != nil {
		return nil, err
	}
	origin, final, err := p.origin(m.Motion.Height)
	if err != nil {
		return nil, err
	}
	return scope.NewMotionProof(a, p.State, &m.Motion, origin, final)
}

// Draft proves, up to the newest final block, the motion that the nth mutation of a bundle would open by the state.
// Errors wrap ErrUncovered if there is no such block, or ErrNoHandovers.
func (p *Prover) Draft(b *scope.CheckedBundle, nth int, mo *scope.Motion) (*scope.MotionProof, error) {
	a, err := p.ancestry(0, mo.Epoch)
	if err != nil {
		return nil, err
	}
	return scope.NewDraftProof(a, b, nth, mo), nil
}

// minutes returns the minutes of a motion, whether the state has it or has forgotten it; nil if there is no such
// motion.
func (p *Prover) minutes(id votes.MotionID) (*scope.Minutes, error) {
	m, err := p.State.Minutes(id)
	if m != nil || err != nil {
		return m, err
	}
	return p.History.Minutes(id)
}

// Sent proves that a name is on its way to another scope. Errors are those of Key.
func (p *Prover) Sent(sent *scope.Sent) (*scope.TransferProof, error) {
	a, e, err := p.ancestryOf(sent.Entry)
	if err != nil {
		return nil, err
	}
	at := e.Height
	m, err := p.minutes(votes.MotionID(e.Mutation))
	if err != nil {
		return nil, err
	}
	if m != nil {
		at = m.Motion.Height
	}
	b, _, err := p.origin(at)
	if err != nil {
		return nil, err
	}
	return scope.NewTransferSent(a, p.State, sent, b)
}

// Decided proves what an entry of the lineage tells about a name that another scope sent. Errors are those of Key.
func (p *Prover) Decided(entry int64) (*scope.TransferProof, error) {
	a, _, err := p.ancestryOf(entry)
	if err != nil {
		return nil, err
	}
	return scope.NewTransferDecided(a, p.State, entry)
}

// ancestryOf returns an entry, and the ancestry of a block above the one that made it.
func (p *Prover) ancestryOf(entry int64) (a scope.Ancestry, e lineage.Entry, err error) {
	e, ok, err := p.State.Lineage().Entry(entry)
	if err != nil || !ok {
		return a, e, errors.Join(err, fmt.Errorf("node: entry %d of the lineage is missing", entry))
	}
	a, err = p.Ancestry(e.Height)
	return a, e, err
}

// Ancestry returns the ancestry of the newest final block above a height that can be proven. Errors wrap ErrUncovered
// if there is none, or ErrNoHandovers.
func (p *Prover) Ancestry(above aweigh.Height) (a scope.Ancestry, err error) {
	return p.ancestry(above, 0)
}

// Claim returns the ancestry of a final block whose header claims what the keys hold in the state (P61): the block that
// follows the state, or the newest block of the state if that changed no key and is no older than since. Errors wrap
// ErrUncovered if there is none, or ErrNoHandovers.
func (p *Prover) Claim(since aweigh.Instant) (a scope.Ancestry, err error) {
	h := p.State.Head()
	a.Head, err = p.History.Finality(h.Height + 1)
	if errors.Is(err, ErrNoBlock) && h.Height > 0 && h.Time >= since {
		if a.Head, err = p.History.Finality(h.Height); err == nil && a.Head.Header.Current != h.Current {
			err = ErrUncovered
		}
	}
	if errors.Is(err, ErrNoBlock) {
		err = fmt.Errorf("%w: %w", ErrUncovered, err)
	}
	if err != nil {
		return a, err
	}
	return p.lead(a, 0)
}

// ClaimAfter returns the ancestry of the final block after a height, whose header claims what the keys held after the
// block at that height. Errors wrap ErrUncovered if there is none here, or ErrNoHandovers.
func (p *Prover) ClaimAfter(at aweigh.Height) (a scope.Ancestry, err error) {
	if a.Head, err = p.History.Finality(at + 1); err != nil {
		if errors.Is(err, ErrNoBlock) {
			err = fmt.Errorf("%w: %w", ErrUncovered, err)
		}
		return a, err
	}
	return p.lead(a, 0)
}

// ancestry is Ancestry, with the handovers up to a later epoch than that of the block, if that has begun.
func (p *Prover) ancestry(above aweigh.Height, later aweigh.Epoch) (a scope.Ancestry, err error) {
	if a.Head, err = p.History.Cover(p.State.Height(), above); err != nil {
		return a, err
	}
	return p.lead(a, later)
}

// lead returns an ancestry with what leads to its head.
func (p *Prover) lead(a scope.Ancestry, later aweigh.Epoch) (_ scope.Ancestry, err error) {
	a.Genesis = p.Genesis
	if d := a.Genesis.Descent; d != nil {
		if a.Above, err = p.Above(d); err != nil {
			return a, err
		}
	}
	epoch := int(max(a.Head.Header.Epoch, later))
	if a.Handovers, err = p.History.Handovers(0, epoch); err == nil && len(a.Handovers) < epoch {
		err = fmt.Errorf("%w: %d of %d", ErrNoHandovers, len(a.Handovers), epoch)
	}
	return a, err
}

// origin returns the final block at a height, and its finality.
func (p *Prover) origin(at aweigh.Height) (*scope.Block, scope.Finality, error) {
	b, err := p.History.Block(at)
	if err != nil {
		return nil, scope.Finality{}, err
	}
	final, err := p.History.Finality(at)
	return b, final, err
}
