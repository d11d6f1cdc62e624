package trust_test

import (
	"fmt"
	"testing"

	"github.com/aweigh/aweigh/trust"
)

// BenchmarkNext is a turn of epochs, with changes that churn bounds.
func BenchmarkNext(b *testing.B) {
	for _, n := range []int{7, 32, 128} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			h := newHistory(1, n)
			p := h.p
			p.Probation = 0
			l := h.ledger
			for i := range n {
				l = l.Apply(p, attested(named(i), trust.Score(h.r.IntN(1_000_001))))
			}
			for i := range n / 2 {
				l = l.Apply(p, admitted(named(n+i), named(i%3), 0))
			}
			b.ResetTimer()
			for b.Loop() {
				if _, err := l.Next(p, 1, h.weights); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
