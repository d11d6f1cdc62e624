package machine

import (
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

// patience is how long content that is on its way may take before this node asks for it: bundles reach all anchors
// directly, often just after a proposal.
const patience = 5 * time.Millisecond

// wants holds the contents that this node lacks: blocks by hash, and proposals with missing bundles.
type wants struct {
	blocks []*wanted
	parts  []*part
}

type wanted struct {
	hash aweigh.Hash
	from Peer // the peer to ask first
	at   aweigh.Instant
	turn int
}

// part is a proposal whose block cannot be assembled yet.
type part struct {
	ProposalIn
	from  Peer // the leader
	hash  aweigh.Hash
	lacks map[aweigh.Hash]bool // bundles that the pool lacks
	asked int                  // how many of them the last question named
	left  int                  // how many were missing then
	at    aweigh.Instant
	turn  int
}

// maxWanted bounds both lists. When a list is full, its oldest entry is dropped.
const maxWanted = 256

// wantBlock asks for a block's content: first from, then all anchors in turn.
func (m *Machine) wantBlock(h aweigh.Hash, from Peer) {
	if slices.ContainsFunc(m.wants.blocks, func(w *wanted) bool { return w.hash == h }) {
		return
	}
	if len(m.wants.blocks) >= m.cfg.Bounds.Wanted {
		m.wants.blocks = slices.Delete(m.wants.blocks, 0, 1)
	}
	m.wants.blocks = append(m.wants.blocks, &wanted{hash: h, from: from, at: m.now.Add(patience)})
}

// assemble assembles the block of a proposal, or keeps the proposal until its bundles have arrived.
func (w *wants) assemble(m *Machine, p ProposalIn, from Peer) {
	q := &part{ProposalIn: p, from: from, hash: p.ballot.Vote().Block, at: m.now.Add(patience)}
	if q.try(m) {
		return
	}
	if len(w.parts) >= m.cfg.Bounds.Wanted {
		w.parts = slices.Delete(w.parts, 0, 1)
	}
	w.parts = append(w.parts, q)
}

// try assembles the block. It returns true if there is nothing left to wait for.
func (q *part) try(m *Machine) bool {
	bundles := make([]*scope.CheckedBundle, len(q.Bundles))
	q.lacks = make(map[aweigh.Hash]bool)
	for i, id := range q.Bundles {
		if bundles[i] = m.pool.get(id); bundles[i] == nil {
			q.lacks[id] = true
		}
	}
	if len(q.lacks) > 0 {
		return false
	}
	b, err := scope.Assemble(q.Header, bundles, q.Evidence)
	if err != nil {
		m.note(DroppedFrame(q.from, err))
		return true
	}
	m.chain.add(b)
	return true
}

// want asks for the block and for as many of its bundles as one question may name.
func (q *part) want(m *Machine) {
	most := m.cfg.Bounds.Names - 1
	ids := make([]aweigh.Hash, 0, min(len(q.lacks), most))
	for _, id := range q.Bundles {
		if q.lacks[id] && len(ids) < most {
			ids = append(ids, id)
		}
	}
	q.asked, q.left = len(ids), len(q.lacks)
	m.ask(q.from, q.turn, Want{Blocks: []aweigh.Hash{q.hash}, Bundles: ids})
	q.at, q.turn = m.now.Add(retryIn), q.turn+1
}

// lacks reports whether a proposal waits for a bundle.
func (w *wants) lacks(id aweigh.Hash) bool {
	return slices.ContainsFunc(w.parts, func(q *part) bool { return q.lacks[id] })
}

// arrived notes that the pool holds a bundle.
func (w *wants) arrived(id aweigh.Hash) {
	for _, q := range w.parts {
		delete(q.lacks, id)
	}
}

// got reports whether this node wanted the content of a block, and stops asking for that block.
func (w *wants) got(h aweigh.Hash) bool {
	n := len(w.blocks)
	w.blocks = slices.DeleteFunc(w.blocks, func(x *wanted) bool { return x.hash == h })
	return len(w.blocks) < n || slices.ContainsFunc(w.parts, func(q *part) bool { return q.hash == h })
}

// due assembles the blocks that are complete, and asks for content that has been missing for too long.
func (w *wants) due(m *Machine) {
	w.parts = slices.DeleteFunc(w.parts, func(q *part) bool {
		if !m.chain.plausible(q.Header) || m.chain.candidates[q.hash] != nil || len(q.lacks) == 0 && q.try(m) {
			return true
		}
		// If everything that was asked for last has come, ask on at once.
		if m.now >= q.at || q.asked > 0 && q.left-len(q.lacks) >= q.asked {
			q.want(m)
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

// ask sends a Want to first; from the second turn on, to the anchors in turn.
func (m *Machine) ask(first Peer, turn int, want Want) {
	if turn > 0 || first == "" || m.away[first] {
		first = m.turn()
	}
	if first != "" {
		m.send(first, TagWant, want)
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

// maxReply bounds the bytes that one question makes this node send.
const maxReply = 6 << 20

// serveWant sends what this node holds of a Want: the first item in any case, further ones within Bounds.Reply. Peers
// that are no anchors get no answer; they need blocks only when they catch up.
func (m *Machine) serveWant(to Peer, want Want) {
	if m.anchors[to] == (aweigh.AnchorID{}) {
		return
	}
	room := m.cfg.Bounds.Reply
	given := make(map[aweigh.Hash]bool)
	reply := func(tag byte, name aweigh.Hash, raw []byte) {
		if room -= len(raw); room >= 0 || len(given) == 0 { // a single block may be longer than its bundles may be
			given[name] = true
			m.fx.Send = append(m.fx.Send, Packet{To: to, Frame: RawFrame(tag, raw)})
		}
	}
	held := len(want.Bundles) > 0
	for _, id := range want.Bundles {
		if b := m.pool.get(id); b == nil {
			held = false
		} else if room > 0 && !given[id] {
			reply(TagBundle, id, b.Raw())
		}
	}
	if held {
		return // the asker can assemble the block from its bundles
	}
	for _, h := range want.Blocks {
		if room <= 0 || given[h] {
			continue
		}
		if k := m.chain.candidates[h]; k != nil {
			reply(TagBlock, h, k.block.Encode())
		} else if raw, ok, err := m.recent.Get(KeyBlock(m.id, h)); err == nil && ok {
			reply(TagBlock, h, raw)
		}
	}
}

// retryIn is how long the machine waits for an answer before it asks another peer.
const retryIn = 500 * time.Millisecond
