package reconcile

import (
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
)

// Limits bound one session, for either direction alone. Zero values stand for
// those of DefaultLimits. What one side may send the other must take, so both
// should have the same.
type Limits struct {
	Message int   // bytes of one message, at least MinMessage
	Item    int   // bytes of one member
	Items   int   // members received
	Bytes   int64 // of all messages received, and of all sent
	Rounds  int   // messages received
}

// defaultLimits are enough for an empty box that meets a full one.
var defaultLimits = Limits{Message: 1 << 20, Item: 8 << 10, Items: 1 << 20, Bytes: 1 << 30, Rounds: 4096}

// MinMessage is the least limit of a message beyond that of an item.
const MinMessage = 1024

func (l Limits) orDefault() Limits {
	d := defaultLimits
	if l.Message != 0 {
		d.Message = l.Message
	}
	if l.Item != 0 {
		d.Item = l.Item
	}
	if l.Items != 0 {
		d.Items = l.Items
	}
	if l.Bytes != 0 {
		d.Bytes = l.Bytes
	}
	if l.Rounds != 0 {
		d.Rounds = l.Rounds
	}
	d.Message = max(d.Message, d.Item+MinMessage)
	return d
}

// Side describes a session's own side.
type Side struct {
	Topic aweigh.Hash // both sides' must be the same
	Set   Set
	// Load is the member of a name of Set. One that is gone since is left out.
	Load   func(id aweigh.Hash) (item []byte, ok bool, err error)
	Limits Limits
}

// Session is one side of a reconciliation: a state machine that takes the
// peer's messages and gives its own, in turn. It reads its Side and nothing
// else, so any transport serves. What a peer can make it do is bounded by the
// limits and by the size of its own set, whatever is sent. Not safe for
// concurrent use.
type Session struct {
	side   Side
	salt   Salt
	begun  bool              // the hello has passed
	open   map[Prefix]uint16 // ranges whose split was sent: kids that the peer has not answered
	listed map[Prefix]bool   // ranges whose list was sent and that may be asked for
	root   bool              // the peer may answer about the whole

	tell   []Prefix // ranges to describe next
	answer []answer // what to send of ranges, after that
	over   bool
	stats  Stats
	err    error
}

// Stats are the costs of a session so far.
type Stats struct {
	Rounds        int // messages received
	BytesReceived int64
	BytesSent     int64
	Items         int // members received
	ItemsSent     int
}

// Initiate begins a session. The message goes to the peer.
func Initiate(side Side, salt Salt) (*Session, []byte) {
	s := newSession(side)
	s.salt, s.begun, s.root = salt, true, true
	root := salt.sum(side.Set.Fingerprint())
	out := canon.Encode(message{Format: format, Hello: []hello{{Topic: side.Topic, Salt: salt[:], Sum: root[:]}}})
	s.stats.BytesSent += int64(len(out))
	return s, out
}

// Respond waits for the message of a peer that initiates.
func Respond(side Side) *Session { return newSession(side) }

func newSession(side Side) *Session {
	side.Limits = side.Limits.orDefault()
	return &Session{side: side, open: make(map[Prefix]uint16), listed: make(map[Prefix]bool)}
}

// Step takes the peer's message, and gives the answer, if there is one, and the
// members that came with the message, which are unchecked: they may be any
// bytes, at most Limits.Item. With done, the two sides have sent everything,
// and the session is over once out is sent. The error wraps ErrProtocol,
// ErrTopic, ErrLimit or that of Load, and comes again when called again.
func (s *Session) Step(in []byte) (out []byte, items [][]byte, done bool, err error) {
	if s.err == nil && s.over {
		s.err = fmt.Errorf("%w: a message after the last", ErrProtocol)
	}
	if s.err != nil {
		return nil, nil, true, s.err
	}
	if out, items, done, s.err = s.step(in); s.err != nil {
		return nil, nil, true, s.err
	}
	return out, items, done, nil
}

// Stats returns the costs of the session so far.
func (s *Session) Stats() Stats { return s.stats }

func (s *Session) step(in []byte) (out []byte, items [][]byte, done bool, err error) {
	l := &s.side.Limits
	s.stats.Rounds++
	s.stats.BytesReceived += int64(len(in))
	if s.stats.Rounds > l.Rounds || s.stats.BytesReceived > l.Bytes {
		return nil, nil, false, fmt.Errorf("%w: more than %d messages or %d bytes came", ErrLimit, l.Rounds, l.Bytes)
	}
	m, err := decode(in, l.Message)
	if err != nil {
		return nil, nil, false, err
	}
	if err := s.take(&m); err != nil {
		return nil, nil, false, err
	}
	reply, err := s.reply()
	if err != nil {
		return nil, nil, false, err
	}
	done = reply.empty() && !m.More
	s.over = done
	if done && m.empty() { // the peer is done too, and knows
		return nil, m.Items, true, nil
	}
	out = canon.Encode(reply)
	if s.stats.BytesSent += int64(len(out)); s.stats.BytesSent > l.Bytes {
		return nil, nil, false, fmt.Errorf("%w: more than %d bytes to send", ErrLimit, l.Bytes)
	}
	return out, m.Items, done, nil
}

// take reads the peer's message, and notes the answers.
func (s *Session) take(m *message) error {
	if err := s.hello(m); err != nil {
		return err
	}
	for i := range m.Splits {
		p, sums, err := m.Splits[i].read()
		if err != nil {
			return err
		}
		if err := s.expected(p); err != nil {
			return err
		}
		s.compare(p, sums)
	}
	for i := range m.Lists {
		p, names, err := m.Lists[i].read()
		if err != nil {
			return err
		}
		if err := s.expected(p); err != nil {
			return err
		}
		s.answer = append(s.answer, answer{prefix: p, names: names})
	}
	for i := range m.Wants {
		p, names, err := m.Wants[i].read()
		if err != nil {
			return err
		}
		if !s.listed[p] || len(names) == 0 {
			return fmt.Errorf("%w: asks for names of %s, which were not listed", ErrProtocol, p)
		}
		delete(s.listed, p)
		s.answer = append(s.answer, answer{prefix: p, names: names, wanted: true})
	}
	for _, item := range m.Items {
		if len(item) == 0 || len(item) > s.side.Limits.Item {
			return fmt.Errorf("%w: a member of %d bytes, 1 to %d are taken", ErrProtocol, len(item), s.side.Limits.Item)
		}
	}
	if s.stats.Items += len(m.Items); s.stats.Items > s.side.Limits.Items {
		return fmt.Errorf("%w: more than %d members came", ErrLimit, s.side.Limits.Items)
	}
	return nil
}

// hello begins the session of the responding side.
func (s *Session) hello(m *message) error {
	switch {
	case s.begun && len(m.Hello) == 0:
		return nil
	case s.begun || len(m.Hello) != 1 || len(m.Splits)+len(m.Lists)+len(m.Wants)+len(m.Items) > 0 || m.More:
		return fmt.Errorf("%w: one hello, alone, begins a session", ErrProtocol)
	case m.Hello[0].Topic != s.side.Topic:
		return fmt.Errorf("%w: %s, this is %s", ErrTopic, m.Hello[0].Topic.Short(), s.side.Topic.Short())
	}
	salt, root, err := m.Hello[0].read()
	if err != nil {
		return err
	}
	s.salt, s.begun = salt, true
	switch root {
	case s.salt.sum(s.side.Set.Fingerprint()):
	case sum{}: // they have nothing, so they need all
		s.answer = append(s.answer, answer{})
	default:
		s.tell = append(s.tell, Prefix{})
	}
	return nil
}

// expected takes note that the peer answers about a range, as it may once for
// each kid of a range whose split it got.
func (s *Session) expected(p Prefix) error {
	if p.n == 0 {
		if !s.root {
			return fmt.Errorf("%w: the whole was not asked for", ErrProtocol)
		}
		s.root = false
		return nil
	}
	parent, digit := p.parent()
	left := s.open[parent]
	if left>>digit&1 == 0 {
		return fmt.Errorf("%w: %s was not asked for", ErrProtocol, p)
	}
	if left &^= 1 << digit; left == 0 {
		delete(s.open, parent)
	} else {
		s.open[parent] = left
	}
	return nil
}

// compare notes what to do about the kids of a range that differ.
func (s *Session) compare(p Prefix, sums [fanout]sum) {
	for d, theirs := range sums {
		kid := p.kid(d)
		v := s.side.Set.at(kid)
		mine := s.salt.sum(v.hash())
		switch {
		case mine == theirs:
		case theirs == sum{}: // they have nothing, so they need all
			s.answer = append(s.answer, answer{prefix: kid})
		default:
			s.tell = append(s.tell, kid)
		}
	}
}
