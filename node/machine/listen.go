package machine

import (
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
)

// startupBarrier keeps an anchor from signing after each start until it has heard what other anchors hold (P9). The
// store of this anchor may be older than what it signed, or empty; only the other anchors can show that, by a ballot
// of this anchor that it does not know.
//
// The barrier needs no more anchors than a decision needs, so it delays no decision: a quorum that includes this
// anchor, and for a short while all anchors. Anchors answer offers without signing, so anchors that start together do
// not wait for each other.
type startupBarrier struct {
	over   bool
	times  int              // how often it was over before: in how many epochs of this life
	since  aweigh.View      // below this view, nothing new is signed; set when over
	heard  []heard          // anchors that said what they hold, in order of arrival
	told   []bool           // by seat: whether that anchor said what it holds
	asOf   aweigh.Height    // this node's height when weight and count were summed up
	weight uint64           // of the anchors in heard that have no more final blocks than this node
	count  int              // and their number
	wanted bool             // there is something to sign, or to answer
	held   []quorum.Subject // to sign when over
	first  aweigh.Instant   // when the other anchors were first asked, 0: never
	at     aweigh.Instant   // when to ask again, 0: no need
}

// everyone is how long an anchor waits for anchors that a quorum does not need: any of them may be the one that has a
// ballot of this anchor.
const everyone = 2 * retryIn

// hear notes that an anchor said what it holds.
func (l *startupBarrier) hear(m *Machine, a aweigh.AnchorID, height aweigh.Height) {
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

// heard is an anchor that said what it holds.
type heard struct {
	anchor aweigh.AnchorID
	height aweigh.Height // final
}

// enough reports whether this anchor may begin to sign: it holds the final blocks that a quorum reported, and it has
// waited for the other anchors.
func (l *startupBarrier) enough(m *Machine) bool {
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
	// The first condition is cheap: a large roster is not searched for each answer.
	return len(l.heard)+away >= len(m.peers) && len(l.missing(m)) == 0
}

// sum adds an anchor that was heard, unless it claims more final blocks than this node holds: a liar may claim any
// height.
func (l *startupBarrier) sum(m *Machine, a aweigh.AnchorID, height aweigh.Height) {
	if height <= l.asOf {
		l.weight += m.roster.Weights.Of(a)
		l.count++
	}
}

// missing returns the anchors within reach that have not said what they hold.
func (l *startupBarrier) missing(m *Machine) (peers []Peer) {
	for _, p := range m.peers {
		seat, ok := m.roster.Seat(m.anchors[p])
		if ok && (l.told == nil || !l.told[seat]) && !m.away[p] {
			peers = append(peers, p)
		}
	}
	return peers
}

// asked notes that the other anchors were asked what they hold.
func (l *startupBarrier) asked(now aweigh.Instant) {
	if l.first == 0 {
		l.first = now
	}
}

// unheard returns for how long the other anchors have been asked in vain while there is something to sign. It returns
// 0 if there is nothing to sign: then this anchor does not repeat its question.
func (l *startupBarrier) unheard(now aweigh.Instant) time.Duration {
	if l.over || !l.wanted || l.first == 0 {
		return 0
	}
	return now.Sub(l.first)
}

// Listens reports whether this anchor signs nothing yet (P9).
func (m *Machine) Listens() bool { return m.guard != nil && !m.listen.over && !m.guard.Lost() }

// due asks the other anchors, and repeats the question, while there is something to sign.
func (l *startupBarrier) due(m *Machine) {
	if m.guard != nil && m.guard.Lost() { // whatever the others answer, this anchor signs nothing
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

// wake returns when to ask again, or when to go on without the anchors that have not answered; 0: no need.
func (l *startupBarrier) wake(now aweigh.Instant) aweigh.Instant {
	if end := l.first.Add(everyone); !l.over && l.wanted && l.first != 0 && end > now {
		return aweigh.Earliest(l.at, end)
	}
	return l.at
}

// end ends the barrier if enough was heard, signs the subjects that were held, and reports whether it did. The engine
// must have taken all input that has arrived.
func (l *startupBarrier) end(m *Machine) bool {
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

// hold keeps a subject until the barrier is over. At most most subjects are kept, those of the highest views: an engine
// asks for each once, and may ask to finalize blocks of views that it left long ago.
func (l *startupBarrier) hold(s quorum.Subject, most int) {
	l.wanted = true
	if l.held = append(l.held, s); len(l.held) <= most {
		return
	}
	lowest := 0
	for i, h := range l.held {
		if h.View < l.held[lowest].View {
			lowest = i
		}
	}
	l.held = slices.Delete(l.held, lowest, lowest+1)
}

// maxHeld bounds the subjects that are held. Two or three belong to the current view; where one round decides, there
// is one more for each view that was left without a vote.
const maxHeld = 1024

// speaks reports whether this anchor signs, and answers reads about what it signed. If the anchor listens, the call
// records that there is something to answer, so that the anchor begins to ask the others.
func (m *Machine) speaks() bool {
	if m.guard == nil || m.guard.Lost() {
		return false
	}
	m.listen.wanted = true
	return m.listen.over
}
