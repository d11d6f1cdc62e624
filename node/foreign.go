package node

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
)

// ForeignScope is a scope whose state is not held, as far as one knows it who asks its anchors:
// who governs it, by its own handovers; to whom it delegated keys; and what its anchors said lately
// (docs/scopes.md). Nobody's word is taken for any of it: not the scope's above, and not that of
// whoever answers.
//
// Like Machine it does no I/O but through the store that it is given, and is not safe for concurrent
// use. Its times are on a clock of the caller's that never goes back.
type ForeignScope struct {
	genesis scope.Genesis
	id      aweigh.ScopeID

	epoch  *scope.Epoch               // the newest that is proven
	given  []scope.Delegation         // those of its delegations that it referred to, in order
	last   ForeignAnswer              // the latest that counted, without what it says
	newest int64                      // highest revision that more spoke of than may lie
	seen   map[aweigh.AnchorID]manner // how its anchors answer
	cache  map[aweigh.Hash]cached
}

// NewForeignScope is a scope with a genesis that the scope above refers to, or that of the root.
// What the store has of its handovers counts.
func NewForeignScope(g scope.Genesis, s store.Store) (*ForeignScope, error) {
	first, err := g.Epoch()
	if err != nil {
		return nil, err
	}
	f := &ForeignScope{genesis: g, id: g.Hash(), seen: make(map[aweigh.AnchorID]manner), cache: make(map[aweigh.Hash]cached)}
	f.epoch, err = follow(s, f.id, first, farthest, nil)
	return f, err
}

// ID is the scope's.
func (f *ForeignScope) ID() aweigh.ScopeID { return f.id }

// Genesis is the scope's. It must not be changed.
func (f *ForeignScope) Genesis() *scope.Genesis { return &f.genesis }

// Epoch is the newest that is proven.
func (f *ForeignScope) Epoch() *scope.Epoch { return f.epoch }

// Enter goes on to an epoch that was proven, if it is a later one.
func (f *ForeignScope) Enter(e *scope.Epoch) {
	if e.Number > f.epoch.Number {
		f.epoch = e
		clear(f.cache)
		maps.DeleteFunc(f.seen, func(id aweigh.AnchorID, _ manner) bool { return e.Roster.Weights.Of(id) == 0 })
	}
}

// Follow is a later epoch of the scope than from, proven by the handovers that the store has
// or that ask gives, for those above a height; without ask, as late as the store shows. The
// store keeps what is proven.
func (f *ForeignScope) Follow(s store.Store, from *scope.Epoch, to aweigh.Epoch, ask func(above aweigh.Height) ([]byte, error)) (*scope.Epoch, error) {
	return follow(s, f.id, from, to, ask)
}

// Check verifies referrals for some keys, when e is the newest epoch that is proven, and gives the
// delegations. Each is held to the epoch of its head. It changes nothing, and needs no guard.
// Errors wrap scope.ErrProof.
func (f *ForeignScope) Check(s store.Store, e *scope.Epoch, all []scope.Referral, keys *ForeignKeys) (given []scope.Delegation, err error) {
	past := map[aweigh.Epoch]*scope.Epoch{e.Number: e}
	for i := range all {
		r := &all[i]
		at := r.Head.Header.Epoch
		if past[at] == nil && at < e.Number {
			first, err := f.genesis.Epoch()
			if err == nil {
				past[at], err = follow(s, f.id, first, at, nil)
			}
			if err != nil {
				return nil, err
			}
		}
		in := past[at]
		if in == nil { // it fails there, and says why
			in = e
		}
		d, err := r.Check(&f.genesis, in)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(keys.Ranges, func(x ForeignRange) bool { return len(scope.Touching([]scope.Delegation{d}, x.Key, x.End)) > 0 }) {
			return nil, fmt.Errorf("%w: a referral to %q, which was not asked for", scope.ErrProof, d.Prefix)
		}
		given = append(given, d)
	}
	return given, nil
}

// Learn notes a delegation of the scope.
func (f *ForeignScope) Learn(d scope.Delegation) {
	at, known := slices.BinarySearchFunc(f.given, d.Prefix, func(x scope.Delegation, prefix []byte) int { return bytes.Compare(x.Prefix, prefix) })
	if !known {
		f.given = slices.Insert(slices.Clone(f.given), at, d)
	}
}

// Delegations are those that the scope referred to, in order.
func (f *ForeignScope) Delegations() []scope.Delegation { return f.given }

// DecodeReferrals are those in an answer.
func DecodeReferrals(body []byte) (all []scope.Referral, err error) {
	if err := canon.Decode(body, &all); err != nil {
		return nil, err
	}
	if len(all) == 0 || len(all) > foreignReferrals {
		return nil, fmt.Errorf("%w: %d referrals", scope.ErrProof, len(all))
	}
	return all, nil
}

// foreignReferrals bounds the referrals in one answer. A range over more is asked for again.
const foreignReferrals = 64

// head is what is known of where the scope stands from an answer.
func (f *ForeignScope) head(a *ForeignAnswer) scope.Head {
	must.Hold(f.genesis.Descent != nil, "the root scope is foreign")
	return scope.Head{
		Network: f.genesis.Network(), Scope: f.id, Prefix: canon.Bytes(f.genesis.Prefix()), Epoch: a.Epoch, Height: a.Height,
		Time: a.Time, Revision: a.Revision, Clocked: true, Started: f.genesis.Descent.Started,
	}
}

// least is the revision that the scope begins with.
func (f *ForeignScope) least() int64 {
	if d := f.genesis.Descent; d != nil {
		return d.Revision
	}
	return 0
}

// manner is how an anchor answers.
type manner struct {
	took  time.Duration // smoothed
	fails int           // in a row
}

// Why an anchor's answer does not count. Callers of Inquiry.Hear say ErrOutrun where nothing came
// while others answered.
var (
	ErrOutrun = errors.New("node: others answered first")
	errDiffer = errors.New("they say different things")
)

// errGone is what one without a seat answers: no word of its counts, and it can prove a later epoch.
var errGone = errors.New("node: no anchor of the scope any more")

// Unseated is the answer of a node that was an anchor of the scope, and is none in the epoch in which it
// knows it to be.
func Unseated(in aweigh.Epoch) ForeignAnswer {
	return ForeignAnswer{Epoch: in, Failure: errGone.Error()}
}

// met notes how an anchor answered.
func (f *ForeignScope) met(id aweigh.AnchorID, took time.Duration, err error) {
	m := f.seen[id]
	switch {
	case errors.Is(err, ErrOutrun):
		if took < ForeignHedge {
			return // the others were faster
		}
		m.took = max(m.took, took) // it may be dead
	case err != nil:
		m.fails++
	case m.fails > 0 || m.took == 0:
		m.fails, m.took = 0, took
	default:
		m.took += (took - m.took) / 8
	}
	f.seen[id] = m
}

// order is whom to ask first: those with weight that failed least and answered fastest,
// those never asked before the slow ones.
func (f *ForeignScope) order() (all []*scope.Anchor) {
	for i := range f.epoch.Roster.Anchors {
		if a := &f.epoch.Roster.Anchors[i]; f.epoch.Roster.Weights.Of(a.Key.ID()) > 0 {
			all = append(all, a)
		}
	}
	rank := func(a *scope.Anchor) time.Duration {
		m := f.seen[a.Key.ID()]
		return m.took + time.Duration(min(m.fails, 16))*time.Second
	}
	slices.SortStableFunc(all, func(a, b *scope.Anchor) int { return cmp.Compare(rank(a), rank(b)) })
	return all
}
