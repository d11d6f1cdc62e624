package sim

import (
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// proposed keeps the header of a block that was proposed, by whatever rules.
func (x *watch) proposed(h scope.Header) {
	if x.headers == nil {
		x.headers = make(map[aweigh.Hash]scope.Header)
	}
	x.headers[h.Hash()] = h
}

// vouched holds an anchor's vote for a block to the rules of views (P10, P12): the
// block is of the view's leader, its parent is certified, and all views between are
// nullified, by the raw ballots that were signed until now.
func (x *watch) vouched(n *Node, epoch aweigh.Epoch, s quorum.Subject) {
	e, h := x.w.epochs[epoch], x.headers[s.Block]
	if x.lost || s.Kind != quorum.Notarize || h.Format == 0 || h.Epoch != epoch {
		return
	}
	why := ""
	if leader := leads(e.Leaders(), e.Seed(), s.View); h.Proposer != leader || h.View != s.View {
		why = fmt.Sprintf("is of %s and view %d, where %s leads", h.Proposer.Short(), h.View, leader.Short())
	}
	parent, from := x.headers[h.Parent], aweigh.View(0)
	if h.Parent != e.Root {
		from = parent.View
		if parent.Format == 0 || parent.Epoch != epoch || !x.may(e, quorum.Subject{Kind: quorum.Notarize, View: from, Block: h.Parent}) {
			why = "stands on a block that is not certified"
		}
	}
	for v := from + 1; v < s.View && why == ""; v++ {
		if !x.may(e, quorum.Subject{Kind: quorum.Nullify, View: v}) {
			why = fmt.Sprintf("passes over view %d, which is not nullified", v)
		}
	}
	x.w.holds(Ballots, n, why == "", "votes in view %d for a block that %s", s.View, why)
}

// may reports whether there can be a certificate: the ballots of the honest, with
// all the weight of the others, are enough.
func (x *watch) may(e *scope.Epoch, s quorum.Subject) bool {
	weights := e.Roster.Weights
	honest, known := x.weighs[e.Number]
	if !known {
		for _, n := range x.w.Nodes {
			if n.key != nil && n.Face == 0 && n.honest() {
				honest += weights.Of(n.key.Public().ID())
			}
		}
		if x.weighs == nil {
			x.weighs = make(map[aweigh.Epoch]uint64)
		}
		x.weighs[e.Number] = honest
	}
	weight := weights.Total() - honest
	if t := x.ballots[said{e.Number, s}]; t != nil {
		weight += t.honest
	}
	return weight >= e.Policy.Rules.For(s.Kind).Threshold(weights.Total())
}
