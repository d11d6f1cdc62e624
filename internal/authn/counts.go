package authn

import (
	"iter"
	"sync/atomic"
)

// Counts count requests by the kind of their credentials and by reason. The zero Counts are ready for use, by several
// rows at once.
type Counts struct {
	n [Kinds][Reasons]atomic.Uint64
}

// Count is a Row's Count.
func (c *Counts) Count(k Kind, r Reason) {
	if k < Kinds && r < Reasons {
		c.n[k][r].Add(1)
	}
}

// Outcome is what Counts count.
type Outcome struct {
	Kind   Kind
	Reason Reason
}

// All returns the counts that are not zero, in the order of kinds and reasons.
func (c *Counts) All() iter.Seq2[Outcome, uint64] {
	return func(yield func(Outcome, uint64) bool) {
		for k := range Kinds {
			for r := range Reasons {
				if n := c.n[k][r].Load(); n > 0 && !yield(Outcome{k, r}, n) {
					return
				}
			}
		}
	}
}
