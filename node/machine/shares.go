package machine

import (
	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

// Of the pool, bundles that other nodes sent leave one part in ownShare to the clients of this node. Those of authors
// that are no anchors together take one part in strangersShare, those of one such author one in strangerOfOne, and
// those of one anchor or its node one in memberOfOne. An author that has no bundle in the pool may have one, however
// small its part is.
const (
	ownShare       = 8
	strangersShare = 4
	strangerOfOne  = 16
	memberOfOne    = 4
)

// shares counts the bytes of bundles that other nodes sent.
type shares struct {
	all, strangers int
	by             map[aweigh.Hash]int // by the author that they act for
}

// shareRoom returns ErrBusy if the pool has no room for a bundle in the part of its author.
func (m *Machine) shareRoom(b *scope.CheckedBundle, from Peer) error {
	p, author, n := &m.pool, b.Mutations()[0].Principal(), len(b.Raw())
	if from == "" || p.entries[b.ID()] != nil {
		return nil
	}
	s, one := &p.shares, memberOfOne
	if !m.isAnchorNode(author) {
		if one = strangerOfOne; s.strangers+n > p.limit/strangersShare {
			return ErrBusy
		}
	}
	if had := s.by[author]; had > 0 && had+n > p.limit/one || s.all+n > p.limit-p.limit/ownShare {
		return ErrBusy
	}
	return nil
}

// count adds the bytes of an entry, or takes them away, by is 1 or -1. Those submitted here do not count.
func (s *shares) count(e *pooled, by int) {
	if e.local {
		return
	}
	author, n := e.bundle.Mutations()[0].Principal(), by*len(e.bundle.Raw())
	if s.all += n; e.stranger {
		s.strangers += n
	}
	if s.by == nil {
		s.by = make(map[aweigh.Hash]int)
	}
	if s.by[author] += n; s.by[author] == 0 {
		delete(s.by, author)
	}
}
