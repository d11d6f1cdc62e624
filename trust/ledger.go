package trust

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/quorum"
)

// ErrLedger is wrapped by DecodeLedger for input that no ledger encodes to.
var ErrLedger = errors.New("trust: not a ledger")

// Standing is what a ledger knows of one anchor. A barred anchor has score 0
// and weighs nothing until it is readmitted.
type Standing struct {
	_      struct{} `cbor:",toarray"`
	Anchor aweigh.AnchorID
	Score  Score
	Barred bool
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
// which must be that of the chain. It returns one Change for each piece of
// evidence, in the same order. The receiver stays as it was.
func (l Ledger) ApplyExplained(p Params, evidence ...Evidence) (Ledger, []Change) {
	next := Ledger{slices.Clone(l.standings)}
	changes := make([]Change, len(evidence))
	for i, ev := range evidence {
		changes[i] = next.apply(p, ev)
	}
	return next, changes
}

// apply changes l in place; l must be a fresh copy.
func (l *Ledger) apply(p Params, ev Evidence) Change {
	at, known := l.seat(ev.Anchor)
	var s Standing
	if known {
		s = l.standings[at]
	}
	after, reason := judge(p, s, known, ev)
	change := Change{Epoch: ev.Epoch, Evidence: ev, Before: s.Score, After: after.Score, Reason: reason}
	switch {
	case known:
		l.standings[at] = after
	case !after.Anchor.IsZero():
		l.standings = slices.Insert(l.standings, at, after)
	}
	return change
}

// judge is what one piece of evidence does to one standing, and why. It
// returns s unchanged where the evidence has no effect.
func judge(p Params, s Standing, known bool, ev Evidence) (Standing, string) {
	if ev.Anchor.IsZero() {
		return s, fmt.Sprintf("ignored: %s names no anchor", ev.Kind)
	}
	if !known && ev.Kind != Founded {
		return s, fmt.Sprintf("ignored: %s, but the anchor has no standing in this scope", ev.Kind)
	}
	score := min(ev.Score, MaxScore)
	switch ev.Kind {
	case Founded:
		if known {
			return s, "ignored: founded, but the anchor has a standing already"
		}
		return Standing{Anchor: ev.Anchor, Score: score}, fmt.Sprintf("founded: the genesis gives %d", score)
	case Equivocated:
		if s.Barred {
			return s, "ignored: equivocated, but the anchor is barred already"
		}
		return Standing{Anchor: ev.Anchor, Barred: true},
			fmt.Sprintf("equivocated: two conflicting ballots, proof %s; barred until readmitted", ev.Proof.Short())
	case Attested:
		if s.Barred {
			return s, "ignored: attested, but the anchor is barred"
		}
		return Standing{Anchor: ev.Anchor, Score: score}, fmt.Sprintf("attested: motion %s sets %d", ev.Proof.Short(), score)
	case Readmitted:
		if !s.Barred {
			return s, "ignored: readmitted, but the anchor is not barred"
		}
		initial := min(p.Initial, MaxScore)
		return Standing{Anchor: ev.Anchor, Score: initial},
			fmt.Sprintf("readmitted: motion %s, starting again from %d", ev.Proof.Short(), initial)
	}
	return s, fmt.Sprintf("ignored: %s is not a kind that this program knows", ev.Kind)
}

// Weights are the weights that the scores give under p: Params.Weight for
// every anchor that is not barred. The error wraps ErrParams, or
// quorum.ErrWeights if the sum is too large.
func (l Ledger) Weights(p Params) (quorum.Weights, error) {
	if err := p.Check(); err != nil {
		return quorum.Weights{}, err
	}
	shares := make([]quorum.Share, 0, len(l.standings))
	for _, s := range l.standings {
		if !s.Barred {
			shares = append(shares, quorum.Share{Anchor: s.Anchor, Weight: p.Weight(s.Score)})
		}
	}
	w, err := quorum.NewWeights(shares...)
	if err != nil {
		return w, fmt.Errorf("trust: weights of %d anchors: %w", len(shares), err)
	}
	return w, nil
}

// Standing is what the ledger knows of an anchor, and whether it knows it.
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
		switch {
		case s.Anchor.IsZero():
			return Ledger{}, fmt.Errorf("%w: standing %d names no anchor", ErrLedger, i)
		case i > 0 && bytes.Compare(l.standings[i-1].Anchor[:], s.Anchor[:]) >= 0:
			return Ledger{}, fmt.Errorf("%w: standings %d and %d are not distinct and in order", ErrLedger, i-1, i)
		case s.Score > MaxScore:
			return Ledger{}, fmt.Errorf("%w: score %d is above %d", ErrLedger, s.Score, MaxScore)
		case s.Barred && s.Score != 0:
			return Ledger{}, fmt.Errorf("%w: anchor %s is barred with score %d", ErrLedger, s.Anchor.Short(), s.Score)
		}
	}
	return l, nil
}
