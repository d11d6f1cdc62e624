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
	left := int64(repeatableUnits)
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

// answerAll tells those who wait what became of the mutations of a final block. What exceeds
// its reserve may have been handed in again since, with more.
func (m *Machine) answerAll(k *candidate) {
	at := 0
	for _, c := range k.block.Bundles {
		for range c.Mutations() {
			outcome := k.result.Outcomes[at]
			at++
			if outcome.Code == scope.Exceeded && m.pool.mine[outcome.Mutation] != c.ID() {
				continue
			}
			if m.pool.answer(outcome.Mutation) {
				m.fx.Reply = append(m.fx.Reply, Reply{Mutation: outcome.Mutation, Outcome: &outcome, Height: k.block.Header.Height})
			}
		}
	}
}
