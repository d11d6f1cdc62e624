package scope

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/internal/refusal"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/trust"
)

// Revocation is the order of a scope that one to which it delegated a prefix shall be
// governed by others, after the notice that it was founded with (Bound.Notice). The child
// obeys it with a block of its own (Evidence), and keeps keys, history and identity.
type Revocation struct {
	_      struct{}       `cbor:",toarray"`
	Child  Child          // its prefix, and its new anchors and policy
	Height aweigh.Height  // of the block that gave the order, in the scope that gave it
	Time   aweigh.Instant // of that block
	Entry  int64          // in the lineage of the scope that gave it
}

// Hash names the revocation, in the lineages of both scopes.
func (r *Revocation) Hash() aweigh.Hash {
	return canon.Hash("aweigh/revocation/1", *r)
}

// Equal reports whether two revocations are the same. One may be nil.
func (r *Revocation) Equal(o *Revocation) bool {
	return r == o || r != nil && o != nil && r.Entry == o.Entry && r.Hash() == o.Hash()
}

// maxRevocation bounds the encoding of a revocation: it has to fit beside all else into a block.
const maxRevocation = 128 << 10

// Notice is after what notice the scope above may give the scope another government; 0 is
// never.
func (g *Genesis) Notice() time.Duration { return g.bound().Notice }

// ErrUnheard is wrapped by CheckRevocation where a block obeys an order that this node
// does not have.
var ErrUnheard = errors.New("scope: an order of the scope above that is not known here")

// ErrSuperseded is wrapped by CheckRevocation, beside ErrInvalid, where a block obeys an order and a newer one is known
// here. The block's proposer may not know the newer one yet.
var ErrSuperseded = refusal.New(refusal.Stale, "a newer order of the scope above is known")

// Awaits reports whether the state is to obey a revocation that its parent has ordered, and
// from when on by a block's time.
func (s *State) Awaits(r *Revocation) (from aweigh.Instant, awaits bool, err error) {
	if r == nil || r.Entry < s.head.Obeyed {
		return 0, false, nil
	}
	g, err := s.Genesis()
	if err != nil {
		return 0, false, err
	}
	return r.Time.Add(g.Notice()), s.revocable(&g, r) == nil, nil
}

// obeyable returns why a block of a time may not carry out an order on top of the state, whichever scope gave the
// order.
func (s *State) obeyable(r *Revocation, at aweigh.Instant) (failure, err error) {
	g, err := s.Genesis()
	if err != nil {
		return nil, err
	}
	if failure := s.revocable(&g, r); failure != nil {
		return failure, nil
	}
	if past := at.Sub(r.Time); past < g.Notice() {
		return fmt.Errorf("it is obeyed %v before the notice ends", g.Notice()-past), nil
	}
	if r.Folds() {
		return s.TooMuch()
	}
	return nil, nil
}

// revocable reports why a revocation is none of the scope.
func (s *State) revocable(g *Genesis, r *Revocation) error {
	switch {
	case g.Notice() == 0:
		return errors.New("the scope was founded for good")
	case r.Entry < 0 || r.Entry == math.MaxInt64 || r.Time <= 0 || r.Time > math.MaxInt64-aweigh.Instant(mostNotice):
		return errors.New("it was ordered nowhere, or at no time")
	case r.Entry < s.head.Obeyed:
		return errors.New("it was ordered before the one that was obeyed already")
	case !bytes.Equal(r.Child.Prefix, g.Prefix()):
		return fmt.Errorf("it is about %q", r.Child.Prefix)
	case len(canon.Encode(*r)) > maxRevocation:
		return fmt.Errorf("it has more than %d bytes", maxRevocation)
	}
	if r.Folds() {
		return errors.Join(r.Child.checkFold(), s.foldable())
	}
	if err := r.Child.Check(); err != nil {
		return err
	}
	return g.Descent.Bound.admits(&r.Child.Policy)
}

// CheckRevocation reports whether the block may obey the order that it carries, given the one that is
// known here. Errors wrap ErrInvalid (and ErrSuperseded), or ErrUnheard if that may change, or are
// those of the store.
func (s *State) CheckRevocation(b *Block, known *Revocation) error {
	r := b.Revocation
	if r == nil {
		return nil
	}
	failure, err := s.obeyable(r, b.Header.Time)
	switch {
	case err != nil:
		return err
	case failure != nil:
		return fmt.Errorf("%w: a revocation: %w", ErrInvalid, failure)
	case known != nil && r.Entry < known.Entry:
		return fmt.Errorf("%w: a revocation: %w", ErrInvalid, ErrSuperseded)
	case known != nil && r.Entry == known.Entry && !r.Equal(known):
		return fmt.Errorf("%w: a revocation that was never ordered", ErrInvalid)
	case !r.Equal(known):
		return ErrUnheard
	}
	return nil
}

// applyRevocation puts the block's order on the agenda: the next epoch has another government. An order that no honest
// anchor may vote for changes nothing: a scope with more liars than it tolerates cannot give itself what no order
// could.
func (x *execution) applyRevocation(s *State, r *Revocation) error {
	if r == nil {
		return nil
	}
	id := r.Hash()
	x.begin(&CheckedMutation{ID: id, Mutation: Mutation{Class: Govern}})
	if failure, err := s.obeyable(r, x.block.Header.Time); failure != nil || err != nil {
		if err == nil {
			x.enter(lineage.Entry{Class: lineage.Failed, Reason: reason(failure)})
		}
		return err
	}
	if err := x.loadAgenda(); err != nil {
		return err
	}
	x.next.head.Obeyed = r.Entry + 1
	d := decided{Decision: Decision{Kind: Yield, Child: &r.Child}, Opened: r.Time}
	if r.Folds() {
		d.By = id
	}
	x.decide(d)
	x.enter(lineage.Entry{Class: lineage.Yielded, Key: r.Child.Prefix, Posterior: id})
	return nil
}

// yielding is the newest order that is on the agenda, nil if there is none.
func (a agenda) yielding() (d *decided) {
	for i := range a {
		if a[i].Decision.Kind == Yield {
			d = &a[i]
		}
	}
	return d
}

// yield is the succession of another government, which begins as one that founds a scope
// does. What the old one had decided is void.
func (s *State) yield(e *Epoch, c *Child, carried agenda, ledger trust.Ledger, attended []trust.Evidence) (*succession, error) {
	by := canon.Hash("aweigh/yield/1", *c)
	leave := attended
	for st := range ledger.Seated() {
		leave = append(leave, trust.Evidence{Anchor: st.Anchor, Kind: trust.Evicted, Epoch: e.Number, Height: s.head.Height, Proof: by})
	}
	_, left := ledger.ApplyExplained(e.Policy.Trust, leave...)
	begin := make([]trust.Evidence, len(c.Anchors))
	for i, a := range c.Anchors {
		begin[i] = trust.Evidence{Anchor: a.Key.ID(), Kind: trust.Founded, Score: a.Score, Epoch: e.Number, Height: s.head.Height, Proof: by}
	}
	u := &succession{yields: true}
	for i := range carried {
		switch carried[i].Decision.Kind {
		case Yield:
		case Return: // what came home is there, under any government
			u.gives = append(u.gives, carried[i])
		default:
			u.dropped = append(u.dropped, dropped{carried[i], errors.New("the scope above has ordered that others govern")})
		}
	}
	var came []trust.Change
	u.ledger, came = trust.Ledger{}.ApplyExplained(c.Policy.Trust, begin...)
	var rest []trust.Change
	u.ledger, rest = u.ledger.Regroup(c.Policy.Trust, trust.Turn{Epoch: e.Number + 1, Height: s.head.Height, Mode: c.Policy.Rules.Mode})
	u.trust = append(append(left, came...), rest...)
	w, err := u.ledger.Next(c.Policy.Trust, e.Number+1, quorum.Weights{})
	if err != nil {
		return nil, err
	}
	u.terms = newRoster(c.Anchors, w).terms(c.Policy)
	return u, nil
}

// mayRevoke reports why a scope to which a prefix was delegated cannot be given
// another government: as things stand, or because of what is decided already.
func (x *execution) mayRevoke(c *Child) (failure, err error) {
	if failure := x.undecided(c); failure != nil {
		return failure, nil
	}
	_, failure, err = x.revoked(c)
	return failure, err
}

// revoked is the order that a decision to revoke gives; failure is the reason why it cannot
// be given.
func (x *execution) revoked(c *Child) (r *Revocation, failure, err error) {
	d, g, ok, err := x.next.Delegated(c.Prefix)
	switch {
	case err != nil:
		return nil, nil, err
	case !ok || !bytes.Equal(d.Prefix, c.Prefix):
		return nil, fmt.Errorf("%w: %q is no scope that this one delegated to", ErrElsewhere, c.Prefix), nil
	case g.Notice() == 0:
		return nil, fmt.Errorf("the scope %q was founded for good: the policy had no children.notice then", c.Prefix), nil
	}
	if was := d.Revocation; was != nil && was.Folds() {
		return nil, fmt.Errorf("it is ordered already to take %q back", c.Prefix), nil
	}
	if !c.folds() {
		if failure := g.Descent.Bound.admits(&c.Policy); failure != nil {
			return nil, failure, nil
		}
	}
	if was := d.Revocation; was != nil && x.block.Header.Time < was.Time.Add(g.Notice()) && bytes.Equal(canon.Encode(was.Child), canon.Encode(*c)) {
		return nil, errors.New("this is ordered already, and its notice is not over"), nil // as by an approval that came after it was carried
	}
	r = &Revocation{Child: *c, Height: x.block.Header.Height, Time: x.block.Header.Time, Entry: x.nextEntry()}
	if n := len(canon.Encode(*r)); n > maxRevocation {
		return nil, fmt.Errorf("an order of %d bytes, and at most %d are taken", n, maxRevocation), nil
	}
	return r, nil, nil
}

// revoke orders that a scope below shall be governed by others, or records why it cannot be
// done any more.
func (x *execution) revoke(d *decided) error {
	c := d.Decision.Child
	x.begin(&CheckedMutation{ID: aweigh.Hash(d.Motion), Mutation: Mutation{Author: d.By, Class: Govern}})
	r, failure, err := x.revoked(c)
	if err != nil {
		return err
	}
	if failure != nil {
		return x.dismiss(d, c.Prefix, failure)
	}
	k := x.space.at(atDelegated, c.Prefix...)
	var rec delegated
	ok, err := x.view.record(k, &rec)
	if err != nil {
		return err
	}
	must.Hold(ok, "the delegation of %q is gone", c.Prefix)
	rec.Revocation = r
	x.enter(lineage.Entry{Class: lineage.Revoked, Key: c.Prefix, Posterior: r.Hash(), Reason: d.Decision.Reason})
	x.next.own = x.next.own.with(r)
	return x.replace(k, rec)
}
