package sim

import (
	"cmp"
	"slices"
	"time"
)

// Mark is one moment for a space-time diagram.
type Mark struct {
	At    time.Duration
	Scope int // 0: the root; else one more than its place in Result.Scopes
	Node  int
	From  int           // the sender of a message that arrives here, or -1
	Sent  time.Duration // if From is not -1
	Kind  string        // message, final, nullified, crash, up, cut, joined, lie, proof, broken, write, done, stopped
	Text  string
}

// marks keeps what happened to nodes, from the start, and the newest messages:
// a run ends where an invariant broke, and what led to it is wanted.
type marks struct {
	most     int // of each
	events   []Mark
	messages []Mark // a ring once it is full
	next     int
}

func (m *marks) add(x Mark) {
	switch {
	case x.From < 0:
		if len(m.events) < m.most {
			m.events = append(m.events, x)
		}
	case len(m.messages) < m.most:
		m.messages = append(m.messages, x)
	default:
		m.messages[m.next] = x
		m.next = (m.next + 1) % m.most
	}
}

// marked is everything kept of all scopes, in the order of time.
func (s *stage) marked() (all []Mark) {
	for _, w := range s.scopes {
		m := &w.marks
		all = slices.Concat(all, m.events, m.messages[m.next:], m.messages[:m.next])
	}
	slices.SortStableFunc(all, func(a, b Mark) int { return cmp.Compare(a.At, b.At) })
	return all
}

// mark keeps a mark of now, if the options ask for marks.
func (w *World) mark(m Mark) {
	if w.marks.most > 0 {
		m.At, m.Scope = w.Now(), w.number
		w.marks.add(m)
	}
}
