package node

import (
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

// patience is how long a content that is on its way may take before it is
// asked for: bundles reach everyone directly, often just after a proposal.
const patience = 5 * time.Millisecond

// wants are contents that this node lacks: blocks by hash, and proposals of
// which bundles are missing.
type wants struct {
	blocks []*wanted
	parts  []*part
}

type wanted struct {
	hash aweigh.Hash
	from Peer // to ask first
	at   aweigh.Instant
	turn int
}

// part is a proposal whose block cannot be assembled yet.
type part struct {
	proposalIn
	from Peer
	hash aweigh.Hash
	at   aweigh.Instant
	turn int
}

// maxWanted bounds both lists; beyond it the oldest is forgotten.
const maxWanted = 256

// wantBlock asks for a block's content, of from first, then of all anchors in turn.
func (m *Machine) wantBlock(h aweigh.Hash, from Peer) {
	for _, w := range m.wants.blocks {
		if w.hash == h {
			return
		}
	}
	if len(m.wants.blocks) >= maxWanted {
		m.wants.blocks = slices.Delete(m.wants.blocks, 0, 1)
	}
	m.wants.blocks = append(m.wants.blocks, &wanted{hash: h, from: from, at: m.now.Add(patience)})
}

// assemble puts the block of a proposal together, or keeps the proposal until
// its bundles are there.
func (w *wants) assemble(m *Machine, p proposalIn, from Peer) {
	q := &part{proposalIn: p, from: from, hash: p.ballot.Vote().Block, at: m.now.Add(patience)}
	if !q.try(m) {
		if len(w.parts) >= maxWanted {
			w.parts = slices.Delete(w.parts, 0, 1)
		}
		w.parts = append(w.parts, q)
	}
}

// missing are the bundles that the pool lacks.
func (q *part) missing(m *Machine) (ids []aweigh.Hash) {
	for _, id := range q.Bundles {
		if m.pool.get(id) == nil && len(ids) < maxNames {
			ids = append(ids, id)
		}
	}
	return ids
}

// try assembles the block; true if there is nothing left to wait for.
func (q *part) try(m *Machine) bool {
	bundles := make([]*scope.CheckedBundle, len(q.Bundles))
	for i, id := range q.Bundles {
		if bundles[i] = m.pool.get(id); bundles[i] == nil {
			return false
		}
	}
	b, err := scope.Assemble(q.Header, bundles, q.Proofs)
	if err != nil {
		m.note(Dropped{From: q.from, Why: err.Error()})
		return true
	}
	m.chain.add(b)
	return true
}

// got reports whether a content was wanted. A bundle may complete proposals,
// which due looks at.
func (w *wants) got(h aweigh.Hash) bool {
	n := len(w.blocks)
	w.blocks = slices.DeleteFunc(w.blocks, func(x *wanted) bool { return x.hash == h })
	if len(w.blocks) < n {
		return true
	}
	for _, q := range w.parts {
		if q.hash == h {
			return true
		}
	}
	return false
}

// due assembles what can be, and asks for what has been missing for too long.
func (w *wants) due(m *Machine) {
	w.parts = slices.DeleteFunc(w.parts, func(q *part) bool {
		if q.Header.Height <= m.chain.state.Head().Height || m.chain.candidates[q.hash] != nil || q.try(m) {
			return true
		}
		if m.now >= q.at {
			m.ask(q.from, q.turn, Want{Blocks: []aweigh.Hash{q.hash}, Bundles: q.missing(m)})
			q.at, q.turn = m.now.Add(retryIn), q.turn+1
		}
		return false
	})
	w.blocks = slices.DeleteFunc(w.blocks, func(x *wanted) bool {
		if m.chain.candidates[x.hash] != nil || x.turn > 4*len(m.peers) {
			return true
		}
		if m.now >= x.at {
			m.ask(x.from, x.turn, Want{Blocks: []aweigh.Hash{x.hash}})
			x.at, x.turn = m.now.Add(retryIn), x.turn+1
		}
		return false
	})
}

// ask sends to one peer first, then to the anchors in turn.
func (m *Machine) ask(first Peer, turn int, want Want) {
	if turn > 0 || first == "" || m.away[first] {
		first = m.turn()
	}
	if first != "" {
		m.send(first, tagWant, want)
	}
}

func (w *wants) next() (at aweigh.Instant) {
	for _, q := range w.parts {
		at = aweigh.Earliest(at, q.at)
	}
	for _, x := range w.blocks {
		at = aweigh.Earliest(at, x.at)
	}
	return at
}

// serveWant answers with all that is held here, within one frame's worth.
func (m *Machine) serveWant(to Peer, want Want) {
	room := maxReply
	reply := func(tag byte, raw []byte) {
		if room -= len(raw); room >= 0 {
			m.fx.Send = append(m.fx.Send, Packet{To: to, Frame: rawFrame(tag, raw)})
		}
	}
	held := len(want.Bundles) > 0
	for _, id := range want.Bundles {
		if b := m.pool.get(id); b != nil {
			reply(tagBundle, b.Raw())
		} else {
			held = false
		}
	}
	if held {
		return // with its bundles, the asker can assemble the block
	}
	for _, h := range want.Blocks {
		if k := m.chain.candidates[h]; k != nil {
			reply(tagBlock, k.block.Encode())
		} else if raw, ok, err := m.recent.Get(keyBlock(m.id, h)); err == nil && ok {
			reply(tagBlock, raw)
		}
	}
}

// maxReply bounds the bytes that one question can make this node send.
const maxReply = 6 << 20
