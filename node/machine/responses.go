package machine

import (
	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

// repeatableUnits bounds the cost of reading the responses for authors of a block that are no anchors and may ask for
// them again. A unit is a KiB.
const repeatableUnits = 16 << 10

// repeatable returns the mutations whose responses are read although no client waits here: those of authors that are
// no anchors, since the author may ask this node next. Bundles with larger responses are left out: a liar could fill
// the memory of all nodes with them.
func (c *chain) repeatable(b *scope.Block) map[aweigh.Hash]bool {
	var all map[aweigh.Hash]bool
	left := int64(c.bounds.Repeatable)
	for _, x := range b.Bundles {
		if c.pool.outcomes.anchors.has(x.Mutations()[0].Author) || x.Looks() > left {
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

// answerAll answers the requests that wait for mutations of a final block. If a bundle exceeds its reserve, another
// bundle may carry the same mutation; a request that waits for that one goes on waiting.
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

// replyIn returns the reply to a mutation that a bundle carried.
func replyIn(bundle aweigh.Hash, at aweigh.Height, in aweigh.Epoch, outcome *scope.Outcome) Reply {
	r := Reply{Mutation: outcome.Mutation, Outcome: outcome, Height: at, Epoch: in}
	if outcome.Code == scope.Exceeded {
		r.Bundle = bundle
	}
	return r
}
