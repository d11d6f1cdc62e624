// Package replay computes a scope's history again from its blocks alone, and
// compares all that a node holds of it: every roster, every score, the state.
package replay

import (
	"errors"
	"fmt"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
	"github.com/aweigh/aweigh/trust"
	"github.com/aweigh/aweigh/votes"
)

// ErrMismatch is wrapped by errors about a history that does not add up.
var ErrMismatch = errors.New("replay: the history does not add up")

// Report is the computed history, which was found to be the same.
type Report struct {
	Genesis      scope.Genesis
	Head         scope.Head
	Epoch        *scope.Epoch // that the next block belongs to
	Mutations    int
	Certificates int           // of ends of epochs, and of the newest block that has one
	Changes      int           // of trust
	Proven       aweigh.Height // of the newest block whose finality is on record
}

// Run computes the history of a store again, in another that is empty, from the
// genesis on. Signatures of mutations, proofs, ballots and certificates are
// verified. progress, if not nil, gets the progress, and ends the run by an
// error. Errors wrap ErrMismatch, or machine.ErrNoBlock where blocks are missing.
func Run(from kv.Reader, into store.Store, progress func(done, all aweigh.Height) error) (r Report, err error) {
	defer func() {
		if p := recover(); p != nil {
			v, ok := p.(must.Violation)
			if !ok {
				panic(p)
			}
			err = fmt.Errorf("%w: %w", ErrMismatch, v)
		}
	}()
	g, ok, err := machine.StoredGenesis(from)
	if err == nil && !ok {
		err = errors.New("replay: the store is empty; start the node once")
	}
	if err != nil {
		return r, err
	}
	id := g.Hash()
	stored, err := scope.Open(from, id)
	if err != nil {
		return r, err
	}
	p := player{history: machine.History{Reader: from, Scope: id}, into: into, trust: make(map[aweigh.AnchorID][]trust.Change)}
	ops, err := machine.Bootstrap(g)
	if err != nil {
		return r, err
	}
	if err := into.Commit(ops, false); err != nil {
		return r, err
	}
	if p.state, err = scope.Open(into, id); err != nil {
		return r, err
	}
	p.report.Genesis = g
	for at := aweigh.Height(1); at <= stored.Height(); at++ {
		if err := p.block(at); err != nil {
			return p.report, fmt.Errorf("block %d: %w", at, err)
		}
		if progress != nil {
			if err := progress(at, stored.Height()); err != nil {
				return p.report, err
			}
		}
	}
	return p.report, p.compare(stored)
}

// player plays one history.
type player struct {
	history machine.History
	into    store.Store
	state   *scope.State
	epoch   *scope.Epoch
	keyring *votes.Keyring // of epoch
	trust   map[aweigh.AnchorID][]trust.Change
	report  Report
}

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrMismatch, fmt.Errorf(format, args...))
}

// block checks and executes the block at a height.
func (p *player) block(at aweigh.Height) error {
	raw, err := p.history.Raw(at)
	if err != nil {
		return err
	}
	e, err := p.state.Epoch()
	if err != nil {
		return err
	}
	if e != p.epoch {
		if p.keyring, err = e.Keyring(); err != nil {
			return err
		}
		p.epoch = e
	}
	b, err := scope.DecodeBlock(raw, e.Policy.Limits, votes.Verify)
	if err != nil {
		return wrong("%w", err)
	}
	if err := p.state.CheckHeader(b.Header); err != nil {
		return wrong("%w", err)
	}
	if err := b.CheckProofs(p.keyring, e); err != nil {
		return wrong("%w", err)
	}
	if err := p.state.CheckBallots(b, func(votes.MotionBallot) bool { return false }); err != nil {
		return wrong("%w", err)
	}
	if err := p.state.CheckAttended(b, p.keyring, func(quorum.Vote) bool { return false }); err != nil {
		return wrong("%w", err)
	}
	result, err := p.state.Execute(b)
	if err != nil {
		return err
	}
	if err := p.into.Commit(result.Ops, false); err != nil {
		return err
	}
	if p.state, err = result.State(p.into).Begin(); err != nil {
		return err
	}
	p.report.Mutations += b.Len()
	for _, c := range result.Trust {
		a := c.Evidence.Anchor
		p.trust[a] = append(p.trust[a], c)
		p.report.Changes++
	}
	if result.Next == nil {
		return nil
	}
	return p.handover(e, b, result.Next)
}

// handover checks that what ended the epoch is final by its own roster, and that
// the node began the same next one.
func (p *player) handover(e *scope.Epoch, b *scope.Block, computed *scope.Epoch) error {
	hand, err := p.history.Handover(b.Header.Height)
	if err != nil {
		return err
	}
	if hand.Final.Header != b.Header {
		return wrong("the end of epoch %d is on record as another block", e.Number)
	}
	next, err := e.Follow(hand)
	if err != nil {
		return wrong("the end of epoch %d: %w", e.Number, err)
	}
	if !slices.Equal(next.Encode(), computed.Encode()) {
		return wrong("the roster of epoch %d is on record as another than follows from the chain", next.Number)
	}
	p.report.Certificates++
	return nil
}

// compare compares the result with the node's state.
func (p *player) compare(stored *scope.State) error {
	r := &p.report
	r.Head = p.state.Head()
	var err error
	if r.Epoch, err = p.state.Epoch(); err != nil {
		return err
	}
	if have := stored.Head(); have != r.Head {
		return wrong("the state of block %d is %s, and the node holds %s", r.Head.Height, r.Head.Digest.Short(), have.Digest.Short())
	}
	computed, err := p.state.Ledger()
	if err != nil {
		return err
	}
	held, err := stored.Ledger()
	if err != nil {
		return err
	}
	if held.Digest() != computed.Digest() || held.Digest() != r.Head.Ledger {
		return wrong("the trust ledger of block %d", r.Head.Height)
	}
	for st := range computed.All() {
		if err := p.changes(st.Anchor); err != nil {
			return err
		}
	}
	return p.final()
}

// changes compares the record of an anchor's trust.
func (p *player) changes(a aweigh.AnchorID) error {
	want := p.trust[a]
	i := len(want)
	same := true
	err := p.history.ChangesBack(a, func(c trust.Change) bool {
		i--
		same = i >= 0 && slices.Equal(canon.Encode(c), canon.Encode(want[i]))
		return same
	})
	if err == nil && (!same || i != 0) {
		err = wrong("the changes of the trust of %s on record are others than the %d that follow from the chain", a.Short(), len(want))
	}
	return err
}

// final checks the certificate of the newest block that has one. Everything below
// is final with it.
func (p *player) final() error {
	r := &p.report
	for at := r.Head.Height; at > r.Epoch.Start; at-- {
		f, err := p.history.Finality(at)
		if errors.Is(err, machine.ErrNoBlock) {
			continue // the certificate of a descendant that is not on record yet
		}
		if err != nil {
			return err
		}
		k, err := r.Epoch.Keyring()
		if err != nil {
			return err
		}
		if err := f.Check(k); err != nil {
			return wrong("the finality of block %d: %w", at, err)
		}
		r.Proven = at
		r.Certificates++
		return nil
	}
	r.Proven = r.Epoch.Start
	return nil
}
