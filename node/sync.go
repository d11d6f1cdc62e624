package node

import (
	"errors"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// catchUp fetches final blocks that this node lacks, from one peer at a time.
type catchUp struct {
	from Peer           // asked now
	at   aweigh.Instant // when to ask another; 0: nothing is being fetched
	more bool           // an anchor said that it has what is missing
	told aweigh.Height  // the final height that an anchor said it has
	step bool           // no snapshot can be had: fetch all blocks
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
	from := m.chain.state.Height() + 1
	if s.far(m) && !s.step { // a snapshot is on its way
		s.from, s.at = "", m.now.Add(4*retryIn)
		m.note(Behind{From: from})
		return
	}
	s.from, s.at, s.more = peer, m.now.Add(4*retryIn), false
	m.send(peer, tagCatchUp, CatchUp{From: from})
	m.note(Behind{From: from, Peer: peer})
}

// lacking reports whether this node knows of final blocks that it lacks.
func (s *catchUp) lacking(m *Machine) bool {
	return s.more || !m.chain.goal.IsZero() || m.known > m.chain.state.Height()
}

// far reports whether a snapshot is to be preferred to blocks. An anchor that
// exaggerates its height gains nothing: then there is no snapshot to be had.
func (s *catchUp) far(m *Machine) bool {
	most := m.cfg.SnapshotBehind
	return most > 0 && max(m.known, s.told) > m.chain.state.Height()+most
}

// due asks another peer when the one asked does not answer, or gave nothing,
// unless what was missing has come by another way.
func (s *catchUp) due(m *Machine) {
	if s.at == 0 || m.now < s.at {
		return
	}
	s.at = 0
	if s.lacking(m) {
		s.ask(m, m.turn())
	}
}

// maxBlocks bounds the blocks in one answer: their finality is verified one by one.
const maxBlocks = 256

// blockGap is how long a peer waits for more after each block that it is given.
// They are read while consensus waits. A peer that lacks more than some seconds'
// worth of them asks others meanwhile, or takes a snapshot.
const blockGap = time.Millisecond

// serveCatchUp sends final blocks of one epoch from a height on, as many as fit in
// a reply, each with its finalization where it has one. It ends with one that has,
// or with the epoch.
func (m *Machine) serveCatchUp(to Peer, ask CatchUp) {
	history, head := m.history(), m.chain.state.Height()
	msg := Blocks{Height: head}
	if ask.From == 0 {
		return
	}
	if ask.From > head || ask.From < m.retain.below || !m.served.may(to, m.now, m.cfg.Bounds.Helped) { // nothing to give, or not yet: the asker shall not wait for it
		m.send(to, tagBlocks, msg)
		return
	}
	size, whole := 0, 0
	last, err := history.EpochEnd(ask.From)
	if err != nil {
		return
	}
	ends := last != 0 && last <= head
	if !ends {
		last = head
	}
	for at := ask.From; at <= last && len(msg.Blocks) < m.cfg.Bounds.Blocks; at++ {
		raw, err := history.Raw(at)
		if errors.Is(err, ErrNoBlock) && at == ask.From { // it lies before a snapshot: let the asker go on
			m.send(to, tagBlocks, msg)
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
	m.send(to, tagBlocks, msg)
}

// caughtUp takes final blocks from a peer; the Checker verified their finality.
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
			if !b.Header.Next.IsZero() { // what follows the end of an epoch is never applied
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
	} else { // it gave nothing of use: the next in turn, if anything is lacking
		m.sync.at = m.now.Add(patience)
	}
}

// proven keeps the certificate of a block that is about to become final.
func (c *chain) proven(m *Machine, at aweigh.Height, cert quorum.Certificate) {
	if !cert.IsZero() {
		m.write(kv.Set(keyFinality(c.id, at), canon.Encode(cert)))
	}
}

// finalizeChecked makes a block final on the word of a checked Finality, and
// lets the engine know.
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
