package node

import (
	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
)

// agreement is what anchors of one scope said to one question. What more of their weight
// says than may lie, an honest one says too, as the clients of PBFT conclude (Castro and
// Liskov, Practical Byzantine Fault Tolerance, OSDI 1999, section 4.1: f + 1 replies with
// the same result).
type agreement struct {
	weights quorum.Weights
	budget  uint64 // of weight that may lie
	words   []word // one of each anchor
}

// word is what one anchor said.
type word struct {
	anchor   aweigh.AnchorID
	sum      aweigh.Hash // of what it said
	revision int64       // as of which
}

func newAgreement(w quorum.Weights, mode quorum.Mode) *agreement {
	return &agreement{weights: w, budget: mode.FaultBudget(w.Total())}
}

// hear takes the first word of an anchor.
func (a *agreement) hear(w word) {
	for i := range a.words {
		if a.words[i].anchor == w.anchor {
			return
		}
	}
	a.words = append(a.words, w)
}

// agreed is what enough anchors said, and the greatest revision that as much of their
// weight has reached as cannot all lie: what was said is true as of that or a later one, so
// that who goes on from there misses nothing. Liars that say the same as of less can make it
// less.
func (a *agreement) agreed() (sum aweigh.Hash, revision int64, ok bool) {
	for i := range a.words {
		weight, at := uint64(0), a.words[i].revision
		for j := range a.words {
			if a.words[j].sum == a.words[i].sum && a.words[j].revision >= at {
				weight += a.weights.Of(a.words[j].anchor)
			}
		}
		if weight > a.budget && (!ok || at > revision) {
			sum, revision, ok = a.words[i].sum, at, true
		}
	}
	return sum, revision, ok
}

// floor is the least revision that an honest anchor's word is as of, or an earlier one's,
// so that a state as of it shows all that the honest one saw: the least as of which, or
// of earlier ones, more spoke than may lie.
func (a *agreement) floor() (least int64, ok bool) {
	for i := range a.words {
		at, weight := a.words[i].revision, uint64(0)
		for j := range a.words {
			if a.words[j].revision <= at {
				weight += a.weights.Of(a.words[j].anchor)
			}
		}
		if weight > a.budget && (!ok || at < least) {
			least, ok = at, true
		}
	}
	return least, ok
}
