package trust

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
)

// ErrLedger is wrapped by DecodeLedger for input that no ledger encodes to.
var ErrLedger = errors.New("trust: not a ledger")

// Standing is a ledger's record of one anchor. A barred anchor has score 0,
// no seat and no weight until it is readmitted.
type Standing struct {
	_      struct{} `cbor:",toarray"`
	Anchor aweigh.AnchorID
	Score  Score
	Barred bool
	Blame  Score // of its ballots on motions, 0 to MaxScore; see Params.claim

	Seated  bool            // in the roster of the next epoch, be it on probation
	Since   aweigh.Epoch    // of its last admission; 0 for founders
	Sponsor aweigh.AnchorID // that brought it in; zero for founders
	Weighs  aweigh.Epoch    // first epoch in which it can weigh; 0 for founders
	Missed  uint32          // epochs in a row without a ballot of it, up to the last one that counted
	Faulty  aweigh.Epoch    // before it, the last lie that it was proven while it weighed lets a group grow; 0: never
	Standby bool            // has a seat, and weighs 0 until a place is free; see Group
}

// Ledger is the standing of every anchor of one scope: an immutable value,
// ordered by anchor. The zero value is the empty ledger.
type Ledger struct{ standings []Standing }

// Apply is ApplyExplained without the explanation.
func (l Ledger) Apply(p Params, evidence ...Evidence) Ledger {
	next, _ := l.ApplyExplained(p, evidence...)
	return next
}

// ApplyExplained is the ledger after the evidence, applied in the order given,
// which must be that of the chain, under Params that pass Check. It returns one
// Change for each piece of evidence, in the same order; the Change of an
// Equivocated on which a surety was called is followed by that of the sponsor,
// of kind Surety, so there can be more changes than evidence. The receiver stays
// as it was.
func (l Ledger) ApplyExplained(p Params, evidence ...Evidence) (Ledger, []Change) {
	next := Ledger{slices.Clone(l.standings)}
	changes := make([]Change, 0, len(evidence))
	for _, ev := range evidence {
		changes = next.apply(p, ev, changes)
	}
	return next, changes
}

// apply changes l in place, which must be a fresh copy, and appends the changes.
func (l *Ledger) apply(p Params, ev Evidence, changes []Change) []Change {
	at, known := l.seat(ev.Anchor)
	var s Standing
	if known {
		s = l.standings[at]
	}
	after, reason := l.applyEvidence(p, s, known, ev)
	changes = append(changes, Change{Epoch: ev.Epoch, Evidence: ev, Before: s.Score, After: after.Score, Reason: reason})
	switch {
	case known:
		l.standings[at] = after
	case !after.Anchor.IsZero():
		l.standings = slices.Insert(l.standings, at, after)
	}
	if after.Barred && !s.Barred {
		if c, ok := l.surety(p, after, ev); ok {
			changes = append(changes, c)
		}
	}
	return changes
}

// Standing returns the record of an anchor, and whether there is one.
func (l Ledger) Standing(a aweigh.AnchorID) (Standing, bool) {
	if i, ok := l.seat(a); ok {
		return l.standings[i], true
	}
	return Standing{}, false
}

// Len is the number of anchors with a standing, barred ones included.
func (l Ledger) Len() int { return len(l.standings) }

// All ranges over the standings in the order of anchors.
func (l Ledger) All() iter.Seq[Standing] { return slices.Values(l.standings) }

// Seated ranges over the standings of those in the roster, probation included,
// in the order of anchors.
func (l Ledger) Seated() iter.Seq[Standing] {
	return func(yield func(Standing) bool) {
		for _, s := range l.standings {
			if s.Seated && !yield(s) {
				return
			}
		}
	}
}

func (l Ledger) seat(a aweigh.AnchorID) (int, bool) {
	return slices.BinarySearchFunc(l.standings, a, func(s Standing, a aweigh.AnchorID) int {
		return bytes.Compare(s.Anchor[:], a[:])
	})
}

// Digest names the ledger: equal ledgers have equal digests.
func (l Ledger) Digest() aweigh.Hash { return aweigh.Sum([]byte("aweigh/ledger/1"), l.Encode()) }

// Encode is the ledger's canonical encoding.
func (l Ledger) Encode() []byte { return canon.Encode(l.standings) }

// DecodeLedger reads what Encode wrote; its errors wrap ErrLedger.
func DecodeLedger(data []byte) (Ledger, error) {
	var l Ledger
	if err := canon.Decode(data, &l.standings); err != nil {
		return Ledger{}, fmt.Errorf("%w: %w", ErrLedger, err)
	}
	for i, s := range l.standings {
		if i > 0 && bytes.Compare(l.standings[i-1].Anchor[:], s.Anchor[:]) >= 0 {
			return Ledger{}, fmt.Errorf("%w: standings %d and %d are not distinct and in order", ErrLedger, i-1, i)
		}
	}
	for i, s := range l.standings {
		if err := l.check(s); err != nil {
			return Ledger{}, fmt.Errorf("%w: standing %d, of %s: %w", ErrLedger, i, s.Anchor.Short(), err)
		}
	}
	return l, nil
}

// check reports why no evidence leads to s in a ledger that is in order.
func (l Ledger) check(s Standing) error {
	switch {
	case s.Anchor.IsZero():
		return errors.New("it names no anchor")
	case s.Score > MaxScore:
		return fmt.Errorf("score %d is above %d", s.Score, MaxScore)
	case s.Blame > MaxScore:
		return fmt.Errorf("blame %d is above %d", s.Blame, MaxScore)
	case s.Standby && !s.Seated:
		return errors.New("it is on standby, without a seat")
	case s.Barred && (s.Score != 0 || s.Seated):
		return fmt.Errorf("it is barred, but has score %d or a seat", s.Score)
	case s.Sponsor.IsZero() && s.Since != 0:
		return fmt.Errorf("it was admitted in epoch %d, without a sponsor", s.Since)
	case s.Sponsor.IsZero():
		return nil
	case s.Sponsor == s.Anchor:
		return errors.New("it is its own sponsor")
	case s.Weighs <= s.Since && s.Since != math.MaxUint64:
		return fmt.Errorf("it was admitted in epoch %d, but weighs from epoch %d on", s.Since, s.Weighs)
	}
	if _, ok := l.seat(s.Sponsor); !ok {
		return fmt.Errorf("its sponsor %s has no standing", s.Sponsor.Short())
	}
	return nil
}
