package sim

import (
	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/votes"
)

// evidence is every subject that honest nodes together saw signed, by anchor and
// view. It is gathered once the faulty weigh more than the budget, to see
// whether the anchors that broke agreement can be named (P36).
type evidence map[testimony][]quorum.Subject

type testimony struct {
	anchor aweigh.AnchorID
	epoch  aweigh.Epoch
	view   aweigh.View
}

// add takes in what a verified frame shows. Leaders propose by their vote of a kind.
func (e evidence) add(f *frame, vouch func(aweigh.Epoch) quorum.Kind) {
	cert := func(at aweigh.Epoch, c quorum.Certificate) {
		for _, s := range c.Signatures {
			e.sign(at, s.Anchor, c.Subject)
		}
	}
	switch c := f.open().(type) {
	case votes.Ballot:
		e.sign(c.Domain.Epoch, c.Anchor, c.Subject)
	case machine.Proposal:
		e.sign(c.Header.Epoch, c.Header.Proposer, quorum.Subject{Kind: vouch(c.Header.Epoch), View: c.Header.View, Block: c.Header.Hash()})
	case machine.Offer:
		for _, v := range c.Votes {
			e.sign(c.Domain.Epoch, v.Signature.Anchor, v.Subject)
		}
	case machine.Blocks:
		cert(c.Finality.Header.Epoch, c.Finality.Certificate)
	case machine.Announce:
		cert(c.Header.Epoch, c.Certificate)
	}
}

func (e evidence) sign(at aweigh.Epoch, a aweigh.AnchorID, s quorum.Subject) {
	k := testimony{a, at, s.View}
	for _, old := range e[k] {
		if old == s {
			return
		}
	}
	e[k] = append(e[k], s)
}

// guilty is the anchors that contradicted themselves, by epoch.
func (e evidence) guilty() map[aweigh.Epoch]map[aweigh.AnchorID]bool {
	guilty := make(map[aweigh.Epoch]map[aweigh.AnchorID]bool)
	for k, subjects := range e {
		for i, s := range subjects {
			for _, o := range subjects[:i] {
				if s.Conflicts(o) {
					if guilty[k.epoch] == nil {
						guilty[k.epoch] = make(map[aweigh.AnchorID]bool)
					}
					guilty[k.epoch][k.anchor] = true
				}
			}
		}
	}
	return guilty
}
