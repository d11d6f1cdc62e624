package referral

import (
	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
)

// agreement collects the answers of one scope's anchors to one question. If the anchors that give the same answer have
// more weight than may lie, at least one of them is honest. The clients of PBFT use the same argument (Castro and
// Liskov, Practical Byzantine Fault Tolerance, OSDI 1999, section 4.1: f + 1 replies with the same result).
type agreement struct {
	weights quorum.Weights
	budget  uint64 // the weight that may lie
	words   []word // at most one of each anchor
}

// word is the answer of one anchor.
type word struct {
	anchor   aweigh.AnchorID
	sum      aweigh.Hash // hash of the answer
	revision int64       // the revision as of which it was given
}

func newAgreement(w quorum.Weights, mode quorum.Mode) *agreement {
	return &agreement{weights: w, budget: mode.FaultBudget(w.Total())}
}

// hear takes the answer of an anchor, unless the anchor has answered before.
func (a *agreement) hear(w word) {
	for i := range a.words {
		if a.words[i].anchor == w.anchor {
			return
		}
	}
	a.words = append(a.words, w)
}

// agreed returns the hash of an answer that anchors with more weight than may lie have given, and the greatest
// revision that anchors with more weight than may lie have reached in that answer. The answer is true as of that
// revision or of a later one, so a reader that continues from the revision misses nothing. Liars that give the same
// answer for a lower revision can lower it. ok is false if there is no such answer.
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

// floor returns the least revision at or below which anchors with more weight than may lie have answered. At least one
// of them is honest, so a state as of that revision shows everything that this honest anchor saw. ok is false if too
// few have answered.
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
