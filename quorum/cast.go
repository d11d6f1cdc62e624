package quorum

import "github.com/aweigh/aweigh"

// Cast returns the votes of one anchor that this engine still holds, by view and kind, including views that are over.
// The anchor must know these votes if its record is complete (P9).
func (e *Engine) Cast(a aweigh.AnchorID) (votes []Vote) {
	seat, ok := e.cfg.Weights.Seat(a)
	if !ok {
		return nil
	}
	for _, v := range e.order {
		r := e.rounds[v]
		for k := Notarize; k <= Finalize; k++ {
			if s := r.held(k, seat); s.View != 0 {
				votes = append(votes, Vote{s, Signature{Anchor: a, Bytes: r.votes[k].casts[seat].signature}})
			}
		}
	}
	return votes
}
