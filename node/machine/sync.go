package machine

import (
	"errors"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// catchUp fetches final blocks that this node lacks, from one peer at a time.
type catchUp struct {
	from Peer           // the peer that was asked
	at   aweigh.Instant // when to ask another peer; 0: nothing is being fetched
	more bool           // an anchor said that it has the missing blocks
	told aweigh.Height  // the final height that an anchor said it has
	step bool           // no snapshot is available: fetch all blocks
	over bool           // an epoch ended by what was fetched, and what peers said before is forgotten
}

// want begins to fetch, from peer if it is within reach, unless a fetch is under way.
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
	if peer == "" { // no anchor is within reach
		s.from, s.at = "", m.now.Add(retryIn)
		return
	}
	from := m.chain.state.Height() + 1
	if s.far(m) && !s.step { // a snapshot is on its way
		s.from, s.at = "", m.now.Add(4*retryIn)
		m.note(Behind{From: from})
		return
	}
	s.from, s.at, s.more = peer, m.now.Add(4*retryIn), false
	m.send(peer, TagCatchUp, CatchUp{From: from})
	m.note(Behind{From: from, Peer: peer})
}

// lacking reports whether this node knows of final blocks that it lacks.
func (s *catchUp) lacking(m *Machine) bool {
	return s.more || !m.chain.goal.IsZero() || m.known > m.chain.state.Height()
}

// far reports whether a snapshot is preferable to blocks. An anchor gains nothing by exaggerating its height: then no
// snapshot is available.
func (s *catchUp) far(m *Machine) bool {
	most := m.cfg.SnapshotBehind
	return most > 0 && max(m.known, s.told) > m.chain.state.Height()+most
}

// due asks another peer when the last one did not answer or had nothing, unless the missing blocks have come in
// another way.
func (s *catchUp) due(m *Machine) {
	if s.at == 0 || m.now < s.at {
		return
	}
	s.at = 0
	if s.lacking(m) {
		s.ask(m, m.turn())
	} else {
		s.end(m)
	}
}

// MaxBlocks bounds the blocks in one answer: their finality is verified one by one.
const MaxBlocks = 256

// blockGap is how long a peer waits for more, per block that it was given: blocks are read while consensus waits. A
// peer that lacks more than a few seconds' worth of blocks asks other peers meanwhile, or takes a snapshot.
const blockGap = time.Millisecond

// serveCatchUp sends final blocks of one epoch from a height on, as many as fit in a reply, each with its finalization
// if it has one. The last block has one, or ends the epoch.
func (m *Machine) serveCatchUp(to Peer, ask CatchUp) {
	history, head := m.history(), m.chain.state.Height()
	msg := Blocks{Height: head}
	if ask.From == 0 {
		return
	}
	// There is nothing to give, or not yet. An empty answer spares the asker the wait.
	if ask.From > head || ask.From < m.retain.below || !m.served.may(to, m.now, m.cfg.Bounds.Helped) {
		m.send(to, TagBlocks, msg)
		return
	}
	size, whole := 0, 0
	last, err := history.epochEnd(ask.From)
	if err != nil {
		return
	}
	ends := last != 0 && last <= head
	if !ends {
		last = head
	}
	for at := ask.From; at <= last && len(msg.Blocks) < m.cfg.Bounds.Blocks; at++ {
		raw, err := history.Raw(at)
		if errors.Is(err, ErrNoBlock) && at == ask.From { // it is before a snapshot: the asker may go on
			m.send(to, TagBlocks, msg)
			return
		}
		if err != nil {
			return
		}
		if size += len(raw); size > m.cfg.Bounds.Reply && len(msg.Blocks) > 0 {
			break
		}
		cert, err := history.Certificate(at)
		if err != nil {
			return
		}
		msg.Blocks, msg.Certificates = append(msg.Blocks, raw), append(msg.Certificates, cert)
		if !cert.IsZero() {
			whole = len(msg.Blocks)
		}
	}
	if whole > 0 && !(ends && ask.From+aweigh.Height(len(msg.Blocks)) > last) {
		msg.Blocks, msg.Certificates = msg.Blocks[:whole], msg.Certificates[:whole]
	}
	if msg.Finality, err = history.Finality(ask.From + aweigh.Height(len(msg.Blocks)) - 1); err != nil {
		return
	}
	m.served[to] = m.now.Add(max(helpGap, time.Duration(len(msg.Blocks))*blockGap))
	m.send(to, TagBlocks, msg)
}

// caughtUp takes final blocks from a peer. The Checker has verified their finality.
func (m *Machine) caughtUp(from Peer, in blocksIn) {
	if from != m.sync.from || m.sync.at == 0 {
		return
	}
	before := m.chain.state.Height()
	if n := len(in.blocks); n > 0 && in.finality.Header.Domain() == m.keyring.Domain() && in.blocks[n-1].Header.Height > before {
		for i, b := range in.blocks {
			if b.Header.Height > before {
				m.witness(in.certs[i])
				m.chain.add(b)
				m.chain.proven(m, b.Header.Height, in.certs[i])
			}
			if !b.Header.Next.IsZero() { // blocks above the end of an epoch are never applied
				break
			}
		}
		m.witness(in.finality.Certificate)
		m.fetched = true
		m.chain.finalizeChecked(m, in.finality)
		m.fetched = false
	}
	head := m.chain.state.Height()
	_, anchor := m.anchors[from]
	m.sync.more = anchor && in.height > head
	if anchor {
		m.sync.told = in.height
	}
	if head > before && (m.sync.more || m.sync.lacking(m)) {
		m.sync.ask(m, from)
	} else { // the answer was of no use: ask the next peer, if anything is lacking
		m.sync.at = m.now.Add(patience)
		m.sync.end(m)
	}
}

// end asks all anchors of the epoch what they hold, after a fetch that went on into it and ends. The peer that gave the
// last blocks may have just fetched them itself, and in a scope at rest no other speaks.
func (s *catchUp) end(m *Machine) {
	if !s.over || s.lacking(m) {
		return
	}
	s.over = false
	for _, p := range m.peers {
		if !m.away[p] && !slices.Contains(m.met, p) {
			m.met = append(m.met, p)
		}
	}
}

// proven stores the certificate of a block that is about to become final.
func (c *chain) proven(m *Machine, at aweigh.Height, cert quorum.Certificate) {
	if !cert.IsZero() {
		m.write(kv.Set(KeyFinality(c.id, at), canon.Encode(cert)))
	}
}

// finalizeChecked makes the block of a checked Finality final, and passes the certificate to the engine.
func (c *chain) finalizeChecked(m *Machine, f scope.Finality) {
	if len(f.Descendants) == 0 {
		c.finalize(m, f.Certificate)
	} else {
		c.makeFinal(m, f.Header.Hash(), f.Certificate, f.Descendants...)
	}
	if f.Header.Epoch == c.epoch {
		m.certificate(f.Certificate)
	}
}
