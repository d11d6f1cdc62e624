package referral

import (
	"bytes"
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

// Scope is what a node that does not hold a scope knows of it from asking its anchors: the scope's government, proven
// by its own handovers; its delegations; and recent answers of its anchors (docs/scopes.md). None of this depends on
// trust in a single node, neither in the scope's parent nor in the anchor that answers.
//
// Like Machine, it does no I/O except through the store that it is given, and is not safe for concurrent use. Its
// times are those of a clock of the caller that never goes back.
type Scope struct {
	genesis scope.Genesis
	id      aweigh.ScopeID

	epoch  *scope.Epoch                // the newest that is proven
	given  []scope.Delegation          // the delegations that the scope has referred to, in order
	last   Answer                      // position of the latest answer that counted, without its body
	newest int64                       // highest revision named by more weight than may lie
	seen   map[aweigh.AnchorID]Conduct // how each anchor answers
	cache  map[aweigh.Hash]cached
}

// NewScope returns a Scope with the genesis to which the parent scope refers, or with that of the root. Its epoch is
// the latest that the handovers in the store prove.
func NewScope(g scope.Genesis, s store.Store) (*Scope, error) {
	first, err := g.Epoch()
	if err != nil {
		return nil, err
	}
	f := &Scope{genesis: g, id: g.Hash(), seen: make(map[aweigh.AnchorID]Conduct), cache: make(map[aweigh.Hash]cached)}
	f.epoch, err = Follow(s, f.id, first, Farthest, nil)
	return f, err
}

// ID returns the identity of the scope.
func (f *Scope) ID() aweigh.ScopeID { return f.id }

// Genesis returns the genesis of the scope. The caller must not modify it.
func (f *Scope) Genesis() *scope.Genesis { return &f.genesis }

// Epoch returns the newest epoch that is proven.
func (f *Scope) Epoch() *scope.Epoch { return f.epoch }

// Enter makes a proven epoch the newest, if it is later than the present one.
func (f *Scope) Enter(e *scope.Epoch) {
	if e.Number > f.epoch.Number {
		f.epoch = e
		clear(f.cache)
		maps.DeleteFunc(f.seen, func(id aweigh.AnchorID, _ Conduct) bool { return e.Roster.Weights.Of(id) == 0 })
	}
}

// Follow returns epoch to of the scope, proven from epoch from. See the function Follow.
func (f *Scope) Follow(s store.Store, from *scope.Epoch, to aweigh.Epoch, ask func(above aweigh.Height) ([]byte, error)) (*scope.Epoch, error) {
	return Follow(s, f.id, from, to, ask)
}

// Check verifies referrals for some keys and returns their delegations. e is the newest epoch that is proven; each
// referral is verified in the epoch of its head. Check changes nothing in f and needs no lock. Errors of bad referrals
// wrap scope.ErrProof.
func (f *Scope) Check(s store.Store, e *scope.Epoch, all []scope.Referral, keys *RangeList) (given []scope.Delegation, err error) {
	past := map[aweigh.Epoch]*scope.Epoch{e.Number: e}
	for i := range all {
		r := &all[i]
		at := r.Head.Header.Epoch
		if past[at] == nil && at < e.Number {
			first, err := f.genesis.Epoch()
			if err == nil {
				past[at], err = Follow(s, f.id, first, at, nil)
			}
			if err != nil {
				return nil, err
			}
		}
		in := past[at]
		if in == nil { // r.Check fails, and says why
			in = e
		}
		d, err := r.Check(&f.genesis, in)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(keys.Ranges, func(x KeyRange) bool { return len(scope.Touching([]scope.Delegation{d}, x.Key, x.End)) > 0 }) {
			return nil, fmt.Errorf("%w: a referral to %q, which was not asked for", scope.ErrProof, d.Prefix)
		}
		given = append(given, d)
	}
	return given, nil
}

// Learn notes a delegation of the scope.
func (f *Scope) Learn(d scope.Delegation) {
	at, known := slices.BinarySearchFunc(f.given, d.Prefix, func(x scope.Delegation, prefix []byte) int { return bytes.Compare(x.Prefix, prefix) })
	switch {
	case !known:
		f.given = slices.Insert(slices.Clone(f.given), at, d)
	case f.given[at].Revision < d.Revision: // it came home in between, and went again
		f.given = slices.Clone(f.given)
		f.given[at] = d
	}
}

// Undelegate drops a delegation, because the child has closed. If the scope has the keys again, it answers for them.
func (f *Scope) Undelegate(child aweigh.ScopeID) {
	f.given = slices.DeleteFunc(slices.Clone(f.given), func(d scope.Delegation) bool { return d.Child == child })
}

// Delegations returns the delegations that the scope has referred to, in order.
func (f *Scope) Delegations() []scope.Delegation { return f.given }

// ErrNone means that a scope refers to no other for some keys: it decides about them itself, as of its answer.
var ErrNone = fmt.Errorf("%w: no referrals", scope.ErrProof)

// DecodeReferrals returns the referrals in an answer. The error wraps ErrNone if there are none, and scope.ErrProof if
// there are too many.
func DecodeReferrals(body []byte) (all []scope.Referral, err error) {
	if err := canon.Decode(body, &all); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, ErrNone
	}
	if len(all) > maxReferrals {
		return nil, fmt.Errorf("%w: %d referrals", scope.ErrProof, len(all))
	}
	return all, nil
}

// maxReferrals bounds the referrals in one answer. If a range touches more, the asker asks again.
const maxReferrals = 64

// Head returns what an answer shows of the scope's head.
func (f *Scope) Head(a *Answer) scope.Head {
	must.Hold(f.genesis.Descent != nil, "the root scope is foreign")
	return scope.Head{
		Network: f.genesis.Network(), Scope: f.id, Prefix: canon.Bytes(f.genesis.Prefix()), Epoch: a.Epoch, Height: a.Height,
		Time: a.Time, Revision: a.Revision, Clocked: true, Started: f.genesis.Descent.Started,
	}
}

// least returns the revision with which the scope begins.
func (f *Scope) least() int64 {
	if d := f.genesis.Descent; d != nil {
		return d.Revision
	}
	return 0
}

// Conduct is how an anchor answers.
type Conduct struct {
	took  time.Duration // smoothed
	fails int           // in a row
}

// Reasons why an answer does not count. Callers of Inquiry.Hear pass ErrOutrun if an anchor had not answered when the
// inquiry ended.
var (
	ErrOutrun = errors.New("node: others answered first")
	errDiffer = errors.New("their answers differ")
)

// errGone is the answer of a node without a seat: it does not count, but the node can prove a later epoch.
var errGone = errors.New("node: no anchor of the scope any more")

// Unseated returns the answer of a node that was an anchor of the scope, but is none in epoch in, the newest that it
// knows.
func Unseated(in aweigh.Epoch) Answer {
	return Answer{Epoch: in, Failure: errGone.Error()}
}

// noReader is the failure of a refused answer.
var noReader = scope.FailureIn(scope.ErrNoReader)

// Refused returns the answer to a peer that the policy does not let ask. It says nothing else of the scope.
func Refused() Answer { return Answer{Failure: noReader} }

// refused reports whether an answer is Refused: it names no epoch and no revision.
func (a *Answer) refused() bool { return a.Failure == noReader }

// denial is why the policy does not permit what was asked for, nil if the answer says something else.
func (a *Answer) denial() error {
	if why := scope.Failure(a.Failure); errors.Is(why, scope.ErrDenied) {
		return why
	}
	return nil
}

// met notes how an anchor answered.
func (f *Scope) met(id aweigh.AnchorID, took time.Duration, err error) {
	m := f.seen[id]
	switch {
	case errors.Is(err, ErrOutrun):
		if took < HedgeAfter {
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
