package scope

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/aweigh/aweigh"
)

// RangeReader judges the answers that a reader gets from nodes which it does not believe. It remembers the newest block
// of each scope that claimed what keys hold, and takes no answer behind what it had seen when it asked (P61). It is not
// safe for concurrent use.
type RangeReader struct {
	network aweigh.NetworkID
	atMost  time.Duration
	seen    map[aweigh.ScopeID]Attestation
}

// NewRangeReader returns a reader of a network. It refuses what was the newest longer ago than atMost; 0 permits any
// age.
func NewRangeReader(network aweigh.NetworkID, atMost time.Duration) *RangeReader {
	return &RangeReader{network: network, atMost: atMost, seen: make(map[aweigh.ScopeID]Attestation)}
}

// RangeQuestion is what a reader asks a node, with the blocks that it had seen by then.
type RangeQuestion struct {
	Key, End []byte // in the sense of Op

	// At is the height of an earlier block, as of which the answer is to be, of any age; 0 is the newest. It is of the
	// scope with the prefix or the ID that begins as In says; "" is the root scope.
	At aweigh.Height
	In string

	network aweigh.NetworkID
	atMost  time.Duration
	before  map[aweigh.ScopeID]Attestation
}

// Ask returns the question what the keys [key, end) hold. Answers to later questions are no measure for its answer.
func (r *RangeReader) Ask(key, end []byte) *RangeQuestion {
	return &RangeQuestion{Key: key, End: end, network: r.network, atMost: r.atMost, before: maps.Clone(r.seen)}
}

// is reports whether a scope has a name: its prefix, or how its ID begins, with four digits or more. The root scope
// has the name "" too.
func (v *RangeVisit) is(name string) bool {
	return name == string(v.Prefix) || len(name) >= 4 && strings.HasPrefix(v.Scope.String(), name)
}

// Open verifies an answer by itself, at a time: that it is about the range, holds, and is not too old, or as of the
// block that was asked for. It uses nothing of the reader. Errors wrap ErrProof, and ErrAged if the proof is only too
// old.
func (q *RangeQuestion) Open(raw []byte, now aweigh.Instant) (*RangeProof, RangeReport, error) {
	p, err := DecodeRangeProof(raw)
	if err == nil && (!bytes.Equal(p.Key, q.Key) || !bytes.Equal(p.End, q.End)) {
		err = fmt.Errorf("%w: it is about another range", ErrProof)
	}
	if err != nil {
		return nil, RangeReport{}, err
	}
	r, err := p.Verify(q.network)
	switch {
	case err != nil:
	case q.At == 0:
		err = r.Fresh(now, q.atMost)
	case len(r.Parts) != 1 || r.Parts[0].Height != q.At || !r.Parts[0].is(q.In):
		err = fmt.Errorf("%w: it is as of another block than %d, or of another scope", ErrProof, q.At)
	}
	if err != nil {
		return nil, r, err
	}
	return p, r, nil
}

// Take takes an answer that was opened, and remembers its blocks. It refuses an answer of blocks before those that were
// seen when the question was asked, or of others at a height that was seen. Errors wrap ErrProof.
func (r *RangeReader) Take(q *RangeQuestion, a *RangeReport) error {
	for i := range a.Parts {
		id, head := a.Parts[i].Scope, &a.Parts[i].Head
		newest := r.seen[id]
		if least := q.before[id].Height; q.At == 0 && head.Height < least {
			return fmt.Errorf("%w: it is of block %d of scope %s, and an earlier answer was of block %d", ErrProof,
				head.Height, id.Short(), least)
		}
		if head.Height == newest.Height && head.Block != newest.Block {
			return fmt.Errorf("%w: block %d of scope %s is %s, and was %s in an earlier answer: anchors signed both", ErrProof,
				head.Height, id.Short(), head.Block.Short(), newest.Block.Short())
		}
	}
	for i := range a.Parts {
		if head := a.Parts[i].Head; head.Height > r.seen[a.Parts[i].Scope].Height {
			r.seen[a.Parts[i].Scope] = head
		}
	}
	return nil
}

// ErrAged means that a proof holds, of what was the newest too long ago.
var ErrAged = errors.New("scope: the proof is too old")

// aged wraps ErrAged, and says what the error does.
type aged struct{ error }

// Is implements what errors.Is asks for.
func (aged) Is(target error) bool { return target == ErrAged }

// Unwrap gives the error.
func (a aged) Unwrap() error { return a.error }
