package quorum_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
)

// BenchmarkView is the happy path of one view at one anchor: a proposal, its
// verdict, and the two votes of all anchors, each in a Step of its own.
func BenchmarkView(b *testing.B) {
	for _, anchors := range []int{4, 100, 1000} {
		b.Run(fmt.Sprintf("anchors=%d", anchors), func(b *testing.B) {
			shares := make([]quorum.Share, anchors)
			for i := range shares {
				shares[i] = quorum.Share{Anchor: anchor(i + 1), Weight: 1}
			}
			w, err := quorum.NewWeights(shares...)
			if err != nil {
				b.Fatal(err)
			}
			e := quorum.NewEngine(quorum.Config{Self: anchor(1), Weights: w, Rules: quorum.DefaultRules(quorum.BFT)})
			now, parent := start, aweigh.Hash{}
			sig := make([]byte, 64)
			vote := func(s quorum.Subject, by aweigh.AnchorID) quorum.Vote {
				return quorum.Vote{Subject: s, Signature: quorum.Signature{Anchor: by, Bytes: sig}}
			}
			b.ReportAllocs()
			for v := aweigh.View(1); b.Loop(); v++ {
				now = now.Add(time.Millisecond)
				block := aweigh.Hash{0: 1, 1: byte(v), 2: byte(v >> 8), 3: byte(v >> 16), 4: byte(v >> 24)}
				s := quorum.Subject{Kind: quorum.Notarize, View: v, Block: block}
				e.Step(now, quorum.Proposal{Vote: vote(s, e.Leader(v)), Parent: parent, ParentView: v - 1})
				e.Step(now, quorum.Verdict{View: v, Block: block, Valid: true})
				for _, s.Kind = range []quorum.Kind{quorum.Notarize, quorum.Finalize} {
					for _, x := range shares {
						e.Step(now, vote(s, x.Anchor))
					}
				}
				if e.Final() != v {
					b.Fatalf("view %d is not final", v)
				}
				parent = block
			}
		})
	}
}
