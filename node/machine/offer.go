package machine

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// announceGap is the least time between two announcements of final blocks.
const announceGap = 20 * time.Millisecond

// helpGap is the least time between two long answers to one peer.
const helpGap = 10 * time.Millisecond

func (m *Machine) offer(o quorum.Offer, answer bool) Offer {
	msg := Offer{
		Domain: m.keyring.Domain(), View: o.View, Final: o.Final,
		Height: m.chain.state.Height(), Certificates: o.Certificates, Answer: answer,
		Silent: m.guard == nil || m.guard.Lost(),
	}
	if m.guard != nil && !m.listen.over && !answer {
		msg.View = 0 // so that every peer answers
	}
	most := maxOffered * m.chain.policy.Limits.Anchors
	if len(o.Votes) > most {
		o.Votes = o.Votes[len(o.Votes)-most:] // of the newest views
	}
	switch all := msg.Certificates; {
	case len(all) <= most:
	case m.keyring.Rules().Mode.OneRound(): // the final one, and the newest: each ends all views before it
		msg.Certificates = append(all[:1:1], all[len(all)-most+1:]...)
	default:
		msg.Certificates = all[:most] // of the oldest: from there the receiver asks for more
	}
	for _, v := range o.Votes {
		msg.Votes = append(msg.Votes, OfferedVote{Subject: v.Subject, Signature: v.Signature})
	}
	return msg
}

// Holdings returns what the machine holds of open views, as it would offer it now.
func (m *Machine) Holdings() Offer { return m.offer(m.engine.Holdings(), false) }

// framedOffer is the last offer and its frame. When many peers ask at one time, for example when a network starts,
// most of them get the same frame.
type framedOffer struct {
	offer Offer
	frame []byte
}

func (f *framedOffer) of(o Offer) []byte {
	if f.frame == nil || !f.offer.equal(&o) {
		f.offer, f.frame = o, Tagged(TagOffer, o)
	}
	return f.frame
}

func (m *Machine) framed(o Offer) []byte {
	if m.lastOffer == nil {
		m.lastOffer = new(framedOffer)
	}
	return m.lastOffer.of(o)
}

func (o *Offer) equal(p *Offer) bool {
	signature := func(a, b quorum.Signature) bool { return a.Anchor == b.Anchor && bytes.Equal(a.Bytes, b.Bytes) }
	return o.Domain == p.Domain && o.View == p.View && o.Final == p.Final && o.Height == p.Height &&
		o.Answer == p.Answer && o.Silent == p.Silent &&
		slices.EqualFunc(o.Votes, p.Votes, func(a, b OfferedVote) bool {
			return a.Subject == b.Subject && signature(a.Signature, b.Signature)
		}) &&
		slices.EqualFunc(o.Certificates, p.Certificates, func(a, b quorum.Certificate) bool {
			return a.Subject == b.Subject && slices.EqualFunc(a.Signatures, b.Signatures, signature)
		})
}

// greet sends what this node holds to the peers that it met in this step. All of them get one frame, because whole
// networks start at once.
func (m *Machine) greet() {
	if len(m.met) == 0 {
		return
	}
	m.listen.asked(m.now)
	f := m.framed(m.offer(m.engine.Holdings(), false))
	for _, p := range m.met {
		m.fx.Send = append(m.fx.Send, Packet{To: p, Frame: f})
	}
	m.met = m.met[:0]
}

// someAtATime is how many peers get a frame that is repeated to some peers in turn. So the cost of repetition grows
// with the square of the roster and not with its cube.
const someAtATime = 8

// sendAround sends a frame to the next peers in turn; *last is the index of the peer that had the last turn.
func (m *Machine) sendAround(f []byte, last *int) {
	for range min(len(m.peers), m.cfg.Bounds.SomeAtATime) {
		*last = (*last + 1) % len(m.peers)
		m.fx.Send = append(m.fx.Send, Packet{To: m.peers[*last], Frame: f})
	}
}

// offered takes what a peer holds of its open views. If that is less than what this node holds, the peer gets an
// answer; if it is more, this node asks for final blocks.
func (m *Machine) offered(from Peer, o offerIn) {
	a, anchor := m.anchors[from]
	if anchor && m.silent[a] != o.Silent {
		if m.silent == nil {
			m.silent = make(map[aweigh.AnchorID]bool)
		}
		m.silent[a] = o.Silent
		m.linked(from, true)
	}
	here := m.keyring.Domain()
	if o.early != nil {
		if m.tooEarly(from, o.early); o.Domain.Epoch <= here.Epoch {
			return // it was heard in full
		}
	}
	height := m.chain.state.Height()
	same := o.Domain == here
	if same {
		m.certificates(from, o.Certificates)
		for i := range o.votes {
			m.ballot(&o.votes[i])
		}
	}
	behind := o.Domain.Epoch < here.Epoch || same && (o.View < m.engine.View() || o.Final < m.engine.Final() || o.Height < height)
	if behind && !o.Answer && m.helped.may(from, m.now, m.cfg.Bounds.Helped) {
		holds := m.engine.Holdings()
		if o.View == 0 { // the peer listens: it needs above all what it signed itself
			holds.Votes = append(holds.Votes, m.engine.Cast(a)...)
		}
		m.fx.Send = append(m.fx.Send, Packet{To: from, Frame: m.framed(m.offer(holds, true))})
	}
	if anchor && o.Answer && same { // a greeting need not hold what this anchor signed
		m.listen.hear(m, a, o.Height)
	}
	if anchor && o.Height > height {
		m.sync.more = true
		m.sync.want(m, from)
	}
}

// nextHelp holds the instants from which each peer may get a long answer again.
type nextHelp map[Peer]aweigh.Instant

// may reports whether a peer may get an answer now, and if so notes that it does. Each kind of answer has its own
// nextHelp: a peer that learns from one answer that it is behind asks for blocks at once.
func (l *nextHelp) may(p Peer, now aweigh.Instant, most int) bool {
	if now < (*l)[p] {
		return false
	}
	if *l == nil || len(*l) >= most {
		*l = make(nextHelp)
	}
	(*l)[p] = now.Add(helpGap)
	return true
}

// MaxHelped bounds the peers in a nextHelp.
const MaxHelped = 4096

// announceSoon announces the final block, at once or when the gap is over.
func (m *Machine) announceSoon() {
	if m.guard == nil || m.announceAt != 0 {
		return
	}
	at := m.announced.Add(announceGap)
	if m.chain.head.Proposer != m.self { // the proposer announces first; the others only if it does not
		at = max(at, m.now).Add(retryIn)
	}
	m.announceAt = max(at, m.now)
	if m.announceAt == m.now {
		m.announce()
	}
}

func (m *Machine) announce() {
	m.announceAt = 0
	if m.guard == nil || m.finality.IsZero() || m.chain.head.Height <= m.known {
		return
	}
	m.announced, m.known = m.now, m.chain.head.Height
	m.fx.Gossip = append(m.fx.Gossip, Tagged(TagAnnounce, Announce{Header: m.chain.head, Certificate: m.finality}))
}

// announceEnd announces that a block ended an epoch, in the terms of that epoch: a peer that follows the scope may
// receive nothing else in that epoch, and cannot verify messages of the next one.
func (m *Machine) announceEnd(f scope.Finality) {
	last := f.Header
	if n := len(f.Descendants); n > 0 {
		last = f.Descendants[n-1]
	}
	if m.guard != nil && !m.fetched && (f.Header.Proposer == m.self || last.Proposer == m.self) { // others ask
		m.fx.Gossip = append(m.fx.Gossip, Tagged(TagAnnounce, Announce{Header: last, Certificate: f.Certificate}))
	}
}

// Check verifies an announcement.
func (a Announce) Check(k *votes.Keyring) error {
	h := a.Header
	if err := k.Domain().Admits(h.Domain()); err != nil {
		return fmt.Errorf("an announcement: %w", err)
	}
	if s := a.Certificate.Subject; s.View != h.View || s.Block != h.Hash() {
		return fmt.Errorf("%w: an announcement whose certificate names another block", ErrFrame)
	}
	return k.CheckFinal(a.Certificate, h.View, h.Hash())
}

// heardOf takes an announcement of a final block that Check has verified.
func (m *Machine) heardOf(from Peer, a Announce) {
	if a.Header.Height <= m.known {
		return
	}
	m.known = a.Header.Height
	if m.known > m.chain.state.Height() {
		if a.Header.Domain() == m.keyring.Domain() {
			m.inputs = append(m.inputs, a.Certificate)
		}
		m.sync.want(m, from)
	}
}

// PollEvery is how often an observer asks an anchor for news that gossip may have failed to bring.
const PollEvery = 10 * time.Second

// hinted notes that other nodes seem to be in a later epoch. This node cannot verify that before it has their blocks,
// so it asks an anchor, at most once a second.
func (m *Machine) hinted() {
	if m.sync.at == 0 && m.now >= m.hintedAt.Add(time.Second) {
		m.hintedAt = m.now
		m.poll()
	}
}

// poll asks one anchor for news. An observer asks again after Bounds.PollEvery.
func (m *Machine) poll() {
	if m.guard == nil {
		m.pollAt = m.now.Add(m.cfg.Bounds.PollEvery)
	}
	if p := m.turn(); p != "" {
		m.send(p, TagOffer, m.offer(m.engine.Holdings(), false))
	}
}

// faulted keeps and reports the proof that an anchor broke the rules (P36).
func (m *Machine) faulted(f quorum.Fault) {
	m.proofs.add(m, m.keyring.Ballot(f.First), m.keyring.Ballot(f.Second))
}
