package node

import (
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
)

// listening keeps an anchor, after each start, from signing until it has heard
// what others hold (P9). Its store may be older than what it signed, or empty,
// and only they can tell: by a ballot of its own that it does not know.
//
// It asks for no more than deciding does, so nothing is decided later for it: a
// quorum, itself included, and for a short while everyone. Offers are answered
// without signing, so anchors that start together do not wait for each other.
type listening struct {
	over   bool
	times  int              // how often it was over before: in how many epochs of this life
	since  aweigh.View      // nothing new is signed below; set when over
	heard  []heard          // in the order in which they told what they hold
	told   []bool           // by seat, who did
	asOf   aweigh.Height    // this node's height when weight and count were summed up
	weight uint64           // of those heard who hold no more final blocks than this node
	count  int              // and their number
	wanted bool             // there is something to sign, or to answer
	held   []quorum.Subject // to sign when over
	first  aweigh.Instant   // when others were asked first, 0: never
	at     aweigh.Instant   // when to ask again, 0: no need
}

// everyone is how long an anchor waits for those that it could do without: any
// of them may be the one that remembers.
const everyone = 2 * retryIn

// hear notes that an anchor told what it holds.
func (l *listening) hear(m *Machine, a aweigh.AnchorID, height aweigh.Height) {
	if l.over {
		return
	}
	seat, ok := m.roster.Seat(a)
	if !ok {
		return
	}
	if l.told == nil {
		l.told = make([]bool, len(m.roster.Anchors))
	}
	if !l.told[seat] {
		l.told[seat] = true
		l.heard = append(l.heard, heard{a, height})
		l.sum(m, a, height)
	}
}

// heard is an anchor that told what it holds.
type heard struct {
	anchor aweigh.AnchorID
	height aweigh.Height // final
}

// enough reports whether this anchor may begin to sign: it holds the final
// blocks that a quorum says are there, and it has waited for the others.
func (l *listening) enough(m *Machine) bool {
	if now := m.chain.state.Height(); l.asOf != now {
		l.asOf, l.weight, l.count = now, 0, 0
		for _, h := range l.heard {
			l.sum(m, h.anchor, h.height)
		}
	}
	weight, anchors := l.weight+m.roster.Weights.Of(m.self), l.count+1
	rules, total := m.keyring.Rules(), m.roster.Weights.Total()
	if !rules.Notarize.Met(weight, total, anchors) || !rules.Finalize.Met(weight, total, anchors) {
		return false
	}
	if l.first != 0 && m.now >= l.first.Add(everyone) {
		return true
	}
	away := 0
	for _, is := range m.away { // order-free: a count
		if is {
			away++
		}
	}
	// A roster of a thousand is not gone through for each of them.
	return len(l.heard)+away >= len(m.peers) && len(l.missing(m)) == 0
}

// sum adds an anchor that was heard, unless it claims more than this node holds:
// a liar may claim any.
func (l *listening) sum(m *Machine, a aweigh.AnchorID, height aweigh.Height) {
	if height <= l.asOf {
		l.weight += m.roster.Weights.Of(a)
		l.count++
	}
}

// missing is the anchors in reach that said nothing yet.
func (l *listening) missing(m *Machine) (peers []Peer) {
	for _, p := range m.peers {
		seat, ok := m.roster.Seat(m.anchors[p])
		if ok && (l.told == nil || !l.told[seat]) && !m.away[p] {
			peers = append(peers, p)
		}
	}
	return peers
}

// asked notes that others were asked for what they hold.
func (l *listening) asked(now aweigh.Instant) {
	if l.first == 0 {
		l.first = now
	}
}

// unheard is for how long others have been asked in vain, while there is something
// to sign. Without, nobody waits, and nobody is asked again.
func (l *listening) unheard(now aweigh.Instant) time.Duration {
	if l.over || !l.wanted || l.first == 0 {
		return 0
	}
	return now.Sub(l.first)
}

// Listens reports whether this anchor signs nothing yet (P9).
func (m *Machine) Listens() bool { return m.guard != nil && !m.listen.over && !m.guard.Lost() }

// due asks, and asks again, while there is something to sign.
func (l *listening) due(m *Machine) {
	if m.guard != nil && m.guard.Lost() { // whatever they say, it signs nothing
		l.at = 0
		return
	}
	if l.over || !l.wanted || m.now < l.at {
		return
	}
	l.asked(m.now)
	l.at = m.now.Add(retryIn)
	f := m.framed(m.offer(m.engine.Holdings(), false))
	for _, p := range l.missing(m) {
		m.fx.Send = append(m.fx.Send, Packet{To: p, Frame: f})
	}
}

// end begins to sign if enough was heard, with what waited for it. The engine
// must know all that came.
func (l *listening) end(m *Machine) bool {
	if l.over || !l.enough(m) {
		return false
	}
	l.over, l.at, l.since, l.times = true, 0, m.engine.View(), l.times+1
	if !m.guard.Lost() {
		m.note(Listened{View: l.since})
	}
	held := l.held
	l.held, l.heard, l.told = nil, nil, nil
	for _, s := range held {
		if s.Kind == quorum.Nullify || m.chain.candidates[s.Block] != nil {
			m.sign(s)
		}
	}
	if len(m.reads.asked) > 0 {
		m.reads.repeat(m)
	}
	return true
}

// hold keeps a subject until the listening is over.
func (l *listening) hold(s quorum.Subject, most int) {
	l.wanted = true
	if l.held = append(l.held, s); len(l.held) > most {
		l.held = l.held[1:] // its view is long over
	}
}

// maxHeld bounds the subjects held. Two or three are of the current view; where one
// round decides, there is one for each view that was left without a vote.
const maxHeld = 1024

// speaks reports whether this anchor signs, and answers reads for what it signed.
// An anchor that is asked to, and does not yet, begins to listen.
func (m *Machine) speaks() bool {
	if m.guard == nil || m.guard.Lost() {
		return false
	}
	m.listen.wanted = true
	return m.listen.over
}
