package node

import (
	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

// catchUp fetches final blocks that this node lacks, from one peer at a time.
type catchUp struct {
	from Peer           // asked now
	at   aweigh.Instant // when to ask another; 0: nothing is being fetched
	more bool           // the peer asked has what is missing, and did not give it yet
}

// want begins to fetch, of peer first.
func (s *catchUp) want(m *Machine, peer Peer) {
	if s.at != 0 {
		return
	}
	if peer == "" || m.away[peer] {
		peer = m.turn()
	}
	s.ask(m, peer)
}

func (s *catchUp) ask(m *Machine, peer Peer) {
	if peer == "" { // nobody is in reach
		s.from, s.at = "", m.now.Add(retryIn)
		return
	}
	s.from, s.at, s.more = peer, m.now.Add(4*retryIn), false
	from := m.chain.state.Head().Height + 1
	m.send(peer, tagCatchUp, CatchUp{From: from})
	m.note(Behind{From: from, Peer: peer})
}

// due asks another peer when the one asked does not answer, unless what was
// missing has come by another way.
func (s *catchUp) due(m *Machine) {
	if s.at == 0 || m.now < s.at {
		return
	}
	s.at = 0
	if s.more || !m.chain.goal.IsZero() || m.known > m.chain.state.Head().Height {
		s.ask(m, m.turn())
	}
}

// serveCatchUp sends final blocks from a height on, as many as fit in a reply,
// ending with one that can be proven final.
func (m *Machine) serveCatchUp(to Peer, ask CatchUp) {
	history, head := m.history(), m.chain.state.Head().Height
	msg := blocksMsg{Height: head}
	if ask.From == 0 {
		return
	}
	if ask.From > head || !m.served.may(to, m.now) { // nothing to give, or not yet: the asker shall not wait for it
		m.send(to, tagBlocks, msg)
		return
	}
	size := 0
	for at := ask.From; at <= head && len(msg.Blocks) < maxNames; at++ {
		raw, err := history.Raw(at)
		if err != nil {
			return
		}
		if size += len(raw); size > maxReply && len(msg.Blocks) > 0 {
			break
		}
		msg.Blocks = append(msg.Blocks, raw)
	}
	var err error
	if msg.Finality, err = history.Finality(ask.From + aweigh.Height(len(msg.Blocks)) - 1); err != nil {
		return
	}
	m.send(to, tagBlocks, msg)
}

// caughtUp takes final blocks from a peer; the Checker verified their finality.
func (m *Machine) caughtUp(from Peer, in blocksIn) {
	if from != m.sync.from || m.sync.at == 0 {
		return
	}
	if len(in.blocks) == 0 {
		m.sync.at, m.sync.more = m.now.Add(patience), in.height > m.chain.state.Head().Height
		return
	}
	m.sync.at = 0
	last := in.blocks[len(in.blocks)-1]
	if last.Header.Height > m.chain.state.Head().Height {
		for _, b := range in.blocks {
			if b.Header.Height > m.chain.state.Head().Height {
				m.chain.add(b)
			}
		}
		m.chain.finalizeChecked(m, last.Hash(), in.finality)
	}
	if head := m.chain.state.Head().Height; head < in.height || !m.chain.goal.IsZero() {
		m.sync.ask(m, from)
	}
}

// finalizeChecked makes a block final on the word of a checked Finality.
func (c *chain) finalizeChecked(m *Machine, h aweigh.Hash, f scope.Finality) {
	if len(f.Descendants) == 0 {
		m.certificate(f.Certificate) // the engine shall know of it, too
		c.finalize(m, f.Certificate)
		return
	}
	c.makeFinal(m, h)
	m.certificate(f.Certificate)
}
