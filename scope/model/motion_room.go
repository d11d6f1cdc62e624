package model

import (
	"fmt"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

// knows reports whether an author is an anchor, an anchor's node, or one whose key the policy lists.
func (m *Model) knows(author aweigh.Hash) bool {
	if _, ok := m.seat(author); ok {
		return true
	}
	writes := func(a scope.Author) bool {
		return a.Who == scope.OneKey && a.Key.ID() == author && !slices.Equal(a.Verbs, []string{"read"})
	}
	return slices.ContainsFunc(m.block.policy.Authors, writes) || slices.ContainsFunc(m.block.policy.Approvals, func(a scope.Approval) bool {
		return slices.ContainsFunc(a.Approvers, func(p scope.Approver) bool { return p.Key.ID() == author })
	})
}

// share is how many motions are open, and their bytes.
type share struct{ motions, bytes int64 }

func shareOf(all []*motion, counts func(p *motion) bool) (s share) {
	for _, p := range all {
		if counts(p) {
			s.motions, s.bytes = s.motions+1, s.bytes+p.bytes
		}
	}
	return s
}

func (s share) above(motions, bytes int64) bool { return s.motions > motions || s.bytes > bytes }

// makeRoom closes motions on keys that give way to a new one, and says whether some did, or why there is no room.
func (m *Model) makeRoom(p *motion) (gave bool, failure error) {
	if failure := m.spend(int64(len(m.docket.open())) / 8); failure != nil {
		return false, failure
	}
	open := slices.DeleteFunc(m.docket.open(), func(o *motion) bool { return !o.decision.IsZero() })
	var ways []*motion
	for {
		way, failure := m.givesWay(open, p)
		if failure != nil {
			return false, failure
		}
		if way == nil {
			break
		}
		ways = append(ways, way)
		open = slices.DeleteFunc(open, func(o *motion) bool { return o == way })
	}
	for _, way := range ways {
		m.closeForRoom(way)
		gave = true
	}
	for {
		all := m.docket.closed()
		if len(all) == 0 || m.docket.sum().Bytes+p.bytes <= m.bounds.MotionBytes {
			return gave, nil
		}
		delete(m.docket.motions, all[0].mut.ID)
	}
}

// closeForRoom closes an open motion so that there is room for another.
func (m *Model) closeForRoom(p *motion) {
	mut := m.block.mutation
	m.block.mutation = p.mut
	m.close(p, scope.Ending{Fate: scope.MotionExpired, Reason: "it gave way to others, as there was no room for more open motions; propose it again"})
	m.block.mutation = mut
}

// givesWay is the motion, of those that are open, that gives way to a new one, nil if there is room.
func (m *Model) givesWay(open []*motion, p *motion) (way *motion, failure error) {
	b := &m.bounds
	withNew := append(slices.Clone(open), p)
	unlisted := func(o *motion) bool { return !m.knows(principal(o.mut)) }
	of := func(author aweigh.Hash) share {
		return shareOf(withNew, func(o *motion) bool { return principal(o.mut) == author })
	}
	var first *motion // an unlisted author's
	for _, o := range open {
		if first == nil && unlisted(o) && o.due == 0 {
			first = o
		}
	}
	all := shareOf(withNew, func(*motion) bool { return true })
	if unlisted(p) {
		if s, there := shareOf(withNew, unlisted), shareOf(open, unlisted); s.above(b.MotionsOfOne, b.MotionBytesOne) {
			switch {
			case there.motions == 0:
				return nil, fmt.Errorf("scope: a motion of %d bytes; those of authors that the scope does not know may have %d together", p.bytes, b.MotionBytesOne)
			case first == nil || m.block.Header.Time.Sub(first.Opened) < b.UnlistedMotionStay:
				return nil, fmt.Errorf("scope: %d motions of authors that the scope does not know, of %d bytes, are open already; at most %d, of %d bytes, may be. Try again later, or write through an anchor's node, or by a key that the policy lists",
					there.motions, there.bytes, b.MotionsOfOne, b.MotionBytesOne)
			}
			return first, nil
		}
	} else if s := of(principal(p.mut)); s.above(b.MotionsOfOne, b.MotionBytesOne) {
		if way = largestCaller(open, p, s, b); way != nil {
			return way, nil
		}
		return nil, fmt.Errorf("scope: %d motions of this author, of %d bytes, are open already; at most %d, of %d bytes, may be",
			s.motions-1, s.bytes-p.bytes, b.MotionsOfOne, b.MotionBytesOne)
	}
	if !all.above(b.MotionsOpen, b.MotionBytes) {
		return nil, nil
	}
	if unlisted(p) {
		return nil, fmt.Errorf("scope: %d motions, of %d bytes, are open already; some must close first", len(open), all.bytes-p.bytes)
	}
	if first != nil {
		return first, nil
	}
	most := of(principal(p.mut))
	for _, o := range open {
		s := shareOf(open, func(q *motion) bool { return principal(q.mut) == principal(o.mut) })
		if o.due == 0 && (all.bytes > b.MotionBytes && s.bytes > most.bytes || all.motions > b.MotionsOpen && s.motions > most.motions) {
			way, most = o, s
		}
	}
	if way == nil {
		return nil, fmt.Errorf("scope: %d motions, of %d bytes, are open already; some must close first", len(open), all.bytes-p.bytes)
	}
	return way, nil
}

// largestCaller is the first open motion of the caller with the most of those that one signer proposed for an author,
// whose share is s with a new motion; nil if no caller has more than that of the new one.
func largestCaller(open []*motion, p *motion, s share, b *scope.Bounds) (way *motion) {
	mine := func(o *motion) bool { return principal(o.mut) == principal(p.mut) && o.mut.Author == p.mut.Author }
	of := func(all []*motion, caller string) share {
		return shareOf(all, func(o *motion) bool { return mine(o) && o.mut.Caller == caller })
	}
	all := append(slices.Clone(open), p)
	most := of(all, p.mut.Caller)
	for _, o := range open {
		if h := of(all, o.mut.Caller); mine(o) && o.due == 0 &&
			(s.bytes > b.MotionBytesOne && h.bytes > most.bytes || s.motions > b.MotionsOfOne && h.motions > most.motions) {
			way, most = o, h
		}
	}
	return way
}
