package referral

import (
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/scope"
)

// responses holds the answers of anchors to one question.
type responses struct {
	least  int64      // an answer below this revision is not as new as was asked for
	pinned bool       // to a revision that anchors named, and not the asker
	all    *agreement // on whole answers
	bare   *agreement // on receipts alone: an anchor may have lost the responses
	said   []response
}

// response is the answer of one anchor.
type response struct {
	by  aweigh.AnchorID
	sum aweigh.Hash
	Answer
}

func (d *responses) begin(e *scope.Epoch) {
	d.all, d.bare = newAgreement(e.Roster.Weights, e.Policy.Rules.Mode), newAgreement(e.Roster.Weights, e.Policy.Rules.Mode)
	d.said = nil
}

// hear takes an answer, and reports whether enough anchors agree. An answer that is not as new as was asked for does
// not count.
func (d *responses) hear(ask *Question, by *scope.Anchor, a Answer) bool {
	behind := ask.At == 0 && a.Revision < d.least || d.pinned && scope.Failure(a.Failure) == scope.ErrFutureRevision ||
		ask.Pins() && ask.At > 0 && a.Failure == "" && a.Revision != ask.At // honest anchors answer as of that one
	if behind && ask.Kind != AskSubmit {
		return false
	}
	d.take(d.all, by, a)
	if ask.Kind == AskSubmit {
		a.Body = bareReceipts(a.Body)
		d.take(d.bare, by, a)
	}
	_, _, ok := d.all.agreed()
	return ok && !d.wanting()
}

// wanting reports whether enough anchors agree on an answer that none of them gave whole.
func (d *responses) wanting() bool {
	sum, _, ok := d.all.agreed()
	return ok && !slices.ContainsFunc(d.said, func(s response) bool { return s.sum == sum && s.whole() })
}

func (d *responses) take(to *agreement, by *scope.Anchor, a Answer) {
	body, err := a.digest(true) // Inquiry.Hear has refused what was not to be brief
	must.OK(err, "the digest of an answer")
	s := response{by: by.Key.ID(), sum: aweigh.Sum([]byte(a.Failure), []byte{0}, body[:]), Answer: a}
	to.hear(word{anchor: s.by, sum: s.sum, revision: a.Revision})
	d.said = append(d.said, s)
}

// outcome returns the answer that enough anchors gave, and the anchors that gave another one. The revision of the
// answer is one that an anchor named, and not above that of an honest anchor that gave the answer. ok is false if there
// is none, or none of them gave it whole.
func (d *responses) outcome() (a Answer, others []aweigh.AnchorID, ok bool) {
	sum, revision, ok := d.all.agreed()
	if !ok {
		sum, revision, ok = d.bare.agreed()
	}
	if !ok {
		return a, nil, false
	}
	var most uint64
	var whole *Answer
	for i := range d.said {
		s := &d.said[i]
		if s.sum != sum {
			others = append(others, s.by)
		} else if s.whole() {
			whole = &s.Answer
		}
		if s.sum != sum || s.Revision != revision {
			continue
		}
		var weight uint64 // of the anchors that give the same block for it
		for j := range d.said {
			if o := &d.said[j]; o.sum == sum && o.Height == s.Height && o.Time == s.Time {
				weight += d.all.weights.Of(o.by)
			}
		}
		if weight > most || weight == most && s.Height < a.Height {
			a, most = s.Answer, weight
		}
	}
	if whole == nil {
		return Answer{}, nil, false
	}
	a.Body, a.Digest = whole.Body, nil
	return a, others, true
}
