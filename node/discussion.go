package node

import (
	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

// discussion is what anchors say to one question.
type discussion struct {
	least  int64      // a revision below which an answer is not as new as was asked for
	pinned bool       // to a revision that anchors named, and not the one who asks
	all    *agreement // of what they say
	bare   *agreement // of receipts alone: an anchor may have lost the responses
	said   []spoken
}

// spoken is what one anchor said.
type spoken struct {
	by  aweigh.AnchorID
	sum aweigh.Hash
	ForeignAnswer
}

func (d *discussion) begin(e *scope.Epoch) {
	d.all, d.bare = newAgreement(e.Roster.Weights, e.Policy.Rules.Mode), newAgreement(e.Roster.Weights, e.Policy.Rules.Mode)
	d.said = nil
}

// hear takes an answer, and reports whether enough say so. One that is not as new as was
// asked for does not count.
func (d *discussion) hear(ask *ForeignAsk, by *scope.Anchor, a ForeignAnswer) bool {
	behind := ask.At == 0 && a.Revision < d.least || d.pinned && scope.Failure(a.Failure) == scope.ErrFutureRevision ||
		ask.pins() && ask.At > 0 && a.Failure == "" && a.Revision != ask.At // honest anchors are as far as they were asked to be
	if behind && ask.Kind != ForeignSubmit {
		return false
	}
	d.take(d.all, by, a)
	if ask.Kind == ForeignSubmit {
		a.Body = bareReceipts(a.Body)
		d.take(d.bare, by, a)
	}
	_, _, ok := d.all.agreed()
	return ok
}

func (d *discussion) take(to *agreement, by *scope.Anchor, a ForeignAnswer) {
	s := spoken{by: by.Key.ID(), sum: aweigh.Sum([]byte(a.Failure), []byte{0}, a.Body), ForeignAnswer: a}
	to.hear(word{anchor: s.by, sum: s.sum, revision: a.Revision})
	d.said = append(d.said, s)
}

// outcome is what enough of them said, as of a moment that one of them named and no later
// than that of an honest one; and who said something else.
func (d *discussion) outcome() (a ForeignAnswer, others []aweigh.AnchorID, ok bool) {
	sum, revision, ok := d.all.agreed()
	if !ok {
		sum, revision, ok = d.bare.agreed()
	}
	if !ok {
		return a, nil, false
	}
	var most uint64
	for i := range d.said {
		s := &d.said[i]
		if s.sum != sum {
			others = append(others, s.by)
		}
		if s.sum != sum || s.Revision != revision {
			continue
		}
		var weight uint64 // of those who say that it was so in the same block
		for j := range d.said {
			if o := &d.said[j]; o.sum == sum && o.Height == s.Height && o.Time == s.Time {
				weight += d.all.weights.Of(o.by)
			}
		}
		if weight > most || weight == most && s.Height < a.Height {
			a, most = s.ForeignAnswer, weight
		}
	}
	return a, others, true
}
