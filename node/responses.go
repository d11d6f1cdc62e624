package node

import (
	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

// repeatableUnits bounds what the responses that a block's strangers may ask for again cost to read; a KiB is a unit.
const repeatableUnits = 16 << 10

// repeatable are the mutations of authors that are no anchors whose responses are read although no client waits here,
// since the author may ask this node next. A liar could fill the memory of all nodes with larger ones.
func (c *chain) repeatable(b *scope.Block) map[aweigh.Hash]bool {
	var all map[aweigh.Hash]bool
	left := int64(c.bounds.Repeatable)
	for _, x := range b.Bundles {
		if c.pool.told.anchors.has(x.Mutations()[0].Author) || x.Looks() > left {
			continue
		}
		left -= x.Looks()
		if all == nil {
			all = make(map[aweigh.Hash]bool)
		}
		for i := range x.Mutations() {
			all[x.Mutations()[i].ID] = true
		}
	}
	return all
}

// answerAll tells those who wait what became of the mutations of a final block. Where a bundle exceeds
// its reserve, another one may carry the mutation, and who waits for that one waits on.
func (m *Machine) answerAll(k *candidate) {
	at := 0
	for _, c := range k.block.Bundles {
		for range c.Mutations() {
			outcome := k.result.Outcomes[at]
			at++
			if carrier, awaited := m.pool.mine[outcome.Mutation]; awaited {
				m.fx.Reply = append(m.fx.Reply, replyIn(c.ID(), k.block.Header.Height, k.block.Header.Epoch, &outcome))
				if outcome.Code != scope.Exceeded || carrier == c.ID() {
					delete(m.pool.mine, outcome.Mutation)
				}
			}
		}
	}
}

// replyIn is the reply on a mutation as a bundle carried it.
func replyIn(bundle aweigh.Hash, at aweigh.Height, in aweigh.Epoch, outcome *scope.Outcome) Reply {
	r := Reply{Mutation: outcome.Mutation, Outcome: outcome, Height: at, Epoch: in}
	if outcome.Code == scope.Exceeded {
		r.Bundle = bundle
	}
	return r
}
