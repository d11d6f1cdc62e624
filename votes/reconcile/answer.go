package reconcile

import (
	"fmt"
	"slices"

	"github.com/aweigh/aweigh"
)

// answer is the rest of a range that is to be sent: all names that the peer did
// not list, or those that it wants. It keeps its place from message to message.
type answer struct {
	prefix Prefix
	names  []name
	wanted bool // names are those to send, not those to leave out
	next   aweigh.Hash
	loaded []byte // the member at next, which did not fit
}

// reply puts together as many of the pending answers as fit.
func (s *Session) reply() (*message, error) {
	m := &message{Format: format}
	room := s.side.Limits.Message - sizeEmpty
	told := 0
	for ; told < len(s.tell) && room >= max(sizeSplit, sizeList); told++ {
		room -= s.describe(m, s.tell[told])
	}
	s.tell = slices.Delete(s.tell, 0, told)
	done := 0
	for ; done < len(s.answer) && room >= sizeList; done++ {
		finished, err := s.send(m, &s.answer[done], &room)
		if err != nil {
			return nil, err
		}
		if !finished {
			break
		}
	}
	s.answer = slices.Delete(s.answer, 0, done)
	m.More = len(s.tell)+len(s.answer) > 0
	return m, nil
}

// describe reports what this side has of a range.
func (s *Session) describe(m *message, p Prefix) (size int) {
	v := s.side.Set.at(p)
	if v.len() <= leafSize {
		l := list{Prefix: p.append(nil)}
		v.all(p, aweigh.Hash{}, func(id aweigh.Hash) bool {
			n := s.salt.name(id)
			l.Names = append(l.Names, n[:]...)
			return true
		})
		if len(l.Names) > 0 {
			s.listed[p] = true
		}
		m.Lists = append(m.Lists, l)
		return sizeHeads + len(l.Prefix) + len(l.Names)
	}
	sp := split{Prefix: p.append(nil)}
	for d, kid := range v.node.kids {
		if kid != nil {
			n := s.salt.sum(kid.sum())
			sp.Mask |= 1 << d
			sp.Sums = append(sp.Sums, n[:]...)
		}
	}
	s.open[p] = 1<<fanout - 1
	m.Splits = append(m.Splits, sp)
	return sizeHeads + len(sp.Prefix) + len(sp.Sums)
}

// send sends what fits of an answer, and reports whether that was all.
func (s *Session) send(m *message, a *answer, room *int) (finished bool, err error) {
	finished = true
	v := s.side.Set.at(a.prefix)
	v.all(a.prefix, a.next, func(id aweigh.Hash) bool {
		a.next = id
		at := -1
		if len(a.names) > 0 {
			at = slices.Index(a.names, s.salt.name(id))
		}
		if at >= 0 && !a.wanted { // both have it
			a.names = slices.Delete(a.names, at, at+1)
			return true
		}
		if at < 0 && a.wanted {
			return true
		}
		item, ok := a.loaded, a.loaded != nil
		if !ok {
			if item, ok, err = s.side.Load(id); err != nil {
				return false
			}
		}
		if len(item) > s.side.Limits.Item {
			err = fmt.Errorf("%w: a member of %d bytes to send, at most %d may be", ErrLimit, len(item), s.side.Limits.Item)
			return false
		}
		if ok && sizeItem(item)+sizeList > *room { // there must be room for the wanted list, too
			a.loaded = item
			finished = false
			return false
		}
		a.loaded = nil
		if ok {
			*room -= sizeItem(item)
			m.Items = append(m.Items, item)
			s.stats.ItemsSent++
		}
		return true
	})
	if err != nil || !finished {
		return false, err
	}
	if !a.wanted && len(a.names) > 0 { // those that this side does not have
		l := list{Prefix: a.prefix.append(nil)}
		for _, n := range a.names {
			l.Names = append(l.Names, n[:]...)
		}
		m.Wants = append(m.Wants, l)
		*room -= sizeHeads + len(l.Prefix) + len(l.Names)
	}
	return true, nil
}
