package trust

import (
	"fmt"

	"github.com/aweigh/aweigh"
)

// MaxReversal bounds Params.Reversal.
const MaxReversal = 64

// Reversed is a motion that a later one reversed: it restored all that the first one had changed.
type Reversed struct {
	Motion aweigh.Hash // that was carried first
	By     aweigh.Hash // the motion that reversed it
	Warned []Warner    // with credit for their ballots against Motion
}

// Warner is an anchor with a ballot against a contested motion that was carried.
type Warner struct {
	_      struct{} `cbor:",toarray"`
	Anchor aweigh.AnchorID
	Cost   Score // see Params.Cost; 0 before the epoch of the motion ends
}

// Cost is the most that one ballot against an outcome adds to the blame of an anchor, in an epoch whose contested
// motions judge it so many times:
//
//	MaxScore / max(motions, Judged) / p.Against
func (p Params) Cost(motions uint64) Score {
	return Score(uint64(MaxScore) / max(motions, uint64(p.Judged)) / uint64(p.Against))
}

// Credits are the evidence that reversals give in an epoch, in their order. Each gives an anchor back what its ballot
// had cost it, as long as all of them together take no more blame than one epoch of errors adds. So a warning that
// proves right costs nothing in the end. It earns no trust of its own, because an anchor without blame has none to
// lose; and pairs of motions that some make only to reverse them gain no more than that.
func (p Params) Credits(all []Reversed, e aweigh.Epoch, at aweigh.Height) (evidence []Evidence) {
	given := make(map[aweigh.AnchorID]Score)
	for _, r := range all {
		for _, w := range r.Warned {
			if given[w.Anchor]+w.Cost > MaxScore/Score(p.Against) {
				continue
			}
			given[w.Anchor] += w.Cost
			evidence = append(evidence, Evidence{Anchor: w.Anchor, Kind: Warned, Score: w.Cost, Epoch: e, Height: at, Proof: r.Motion, By: r.By})
		}
	}
	return evidence
}

// credited is the effect of one Warned on a standing.
func credited(s Standing, ev Evidence) (Standing, string) {
	before, less := s.Blame, min(s.Blame, ev.Score)
	s.Blame -= less
	return s, fmt.Sprintf("warned: of motion %s, which motion %s reversed; blame %d -> %d: -%d",
		ev.Proof.Short(), ev.By.Short(), before, s.Blame, less)
}
