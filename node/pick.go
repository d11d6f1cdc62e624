package node

import (
	"cmp"
	"maps"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

// strangersShare of a block is for authors that are no anchors, and as much of it is kept
// for them: others leave it to them, and they take no more, while both wait.
const strangersShare = 4 // one in

// room is what may still be put into a block.
type room struct {
	bytes, mutations, bundles int
	cost                      int64
}

func (r *room) fits(b *scope.CheckedBundle) bool {
	return len(b.Raw()) <= r.bytes && len(b.Mutations()) <= r.mutations && r.bundles > 0 && b.Cost() <= r.cost
}

func (r *room) take(b *scope.CheckedBundle) {
	r.bytes -= len(b.Raw())
	r.mutations -= len(b.Mutations())
	r.cost -= b.Cost()
	r.bundles--
}

// less is what is left of the room when a part of a block is kept.
func (r room) less(part room) room {
	return room{r.bytes - part.bytes, r.mutations - part.mutations, r.bundles - part.bundles, r.cost - part.cost}
}

func (r room) part(one int) room {
	return room{r.bytes / one, r.mutations / one, r.bundles / one, r.cost / int64(one)}
}

// line is what waits of one author, oldest first; the author is zero for what this node's clients handed in.
type line struct {
	author  aweigh.Hash
	entries []*pooled
}

// firsts say in which of this node's blocks the line of each seat came first last. A bundle
// that needs a whole block would wait for ever behind others that always find room.
type firsts struct {
	blocks uint64
	last   map[aweigh.Hash]uint64
}

// next is the line that came first least lately, and of several such the first one.
func (t *firsts) next(lines []*line) *line {
	return slices.MinFunc(lines, func(a, b *line) int { return cmp.Compare(t.last[a.author], t.last[b.author]) })
}

// had notes that a line came first; others are forgotten that have no seat any more.
func (t *firsts) had(l *line, m *Machine) {
	if len(t.last) > 2*len(m.roster.Anchors) { // an anchor's key, its node's, and this node's clients
		maps.DeleteFunc(t.last, func(author aweigh.Hash, _ uint64) bool { return !author.IsZero() && !m.sits(author) })
	}
	if t.last == nil {
		t.last = make(map[aweigh.Hash]uint64)
	}
	t.blocks++
	t.last[l.author] = t.blocks
}

// picking fills a block.
type picking struct {
	m       *Machine
	room    room // of the block
	bundles []*scope.CheckedBundle
}

// pick chooses bundles for a block on top of path. Authors have turns, of one bundle each:
// this node's own clients first, so that nobody else can keep them out, then those of
// anchors, then all others, who have a share of their own. What does not fit waits. Before all that,
// a bundle of one of them has all room: of another one with each block.
// There are no more than others can ask for with one question, should they have none.
// Those whose time is over by the time of the block are left out, and wait while it is too far ahead.
func (m *Machine) pick(path []*candidate, at aweigh.Instant) []*scope.CheckedBundle {
	inside := make(map[aweigh.Hash]bool)
	for _, k := range path {
		for _, c := range k.block.Bundles {
			inside[c.ID()] = true
		}
	}
	seats, strangers := m.lines(inside, at)
	lim := m.chain.policy.Limits
	p := picking{m: m, room: room{lim.BlockBytes, lim.BlockMutations, maxNames - 1, lim.BlockCost}}
	share := p.room.part(strangersShare)
	p.first(seats)
	if len(strangers) == 0 {
		p.fill(seats, p.room)
		return p.bundles
	}
	seats = p.fill(seats, p.room.less(share))
	if len(seats) > 0 {
		p.fill(strangers, share)
	} else {
		p.fill(strangers, p.room)
	}
	p.fill(seats, p.room)
	return p.bundles
}

// lines are the bundles that may go into a block, by author in the order of the oldest.
// What this node's clients handed in is the first line of the seats.
func (m *Machine) lines(inside map[aweigh.Hash]bool, at aweigh.Instant) (seats, strangers []*line) {
	var local line
	by := make(map[aweigh.Hash]*line)
	latest := at.Add(m.chain.policy.Limits.ValidFor)
	for _, e := range m.pool.order {
		if e.gone || inside[e.bundle.ID()] || e.bundle.ValidUntil() < at || e.bundle.ValidUntil() > latest {
			continue
		}
		if e.local {
			local.entries = append(local.entries, e)
			continue
		}
		author := e.bundle.Mutations()[0].Author
		l := by[author]
		if l == nil {
			l = &line{author: author}
			by[author] = l
			if m.sits(author) {
				seats = append(seats, l)
			} else {
				strangers = append(strangers, l)
			}
		}
		l.entries = append(l.entries, e)
	}
	if len(local.entries) > 0 {
		seats = append([]*line{&local}, seats...)
	}
	return seats, strangers
}

// sits reports whether an author is an anchor, or its node.
func (m *Machine) sits(author aweigh.Hash) bool {
	_, anchor := m.roster.Seat(aweigh.AnchorID(author))
	return anchor || m.pool.told.anchors.has(author)
}

// first takes the oldest bundle of the line whose turn it is.
func (p *picking) first(lines []*line) {
	if len(lines) == 0 {
		return
	}
	firsts := &p.m.pool.firsts
	if l := firsts.next(lines); p.next(l, &p.room) {
		firsts.had(l, p.m)
	}
}

// fill takes a bundle of each line in turn while there is room, of the block and of what
// these lines may take of it, and returns the lines in which some are left.
func (p *picking) fill(lines []*line, room room) (left []*line) {
	for len(lines) > 0 {
		var again []*line
		for _, l := range lines {
			if p.next(l, &room) {
				again = append(again, l)
			} else if len(l.entries) > 0 {
				left = append(left, l)
			}
		}
		lines = again
	}
	return left
}

// next takes the next bundle of a line; false if there is none, or no room for it: what
// comes after it would only put it off.
func (p *picking) next(l *line, room *room) bool {
	for len(l.entries) > 0 {
		e := l.entries[0]
		if e.gone || p.m.applied(e.bundle) { // by another bundle: those who know will not ask for this one
			if !e.gone {
				p.m.pool.drop(e)
			}
			l.entries = l.entries[1:]
			continue
		}
		if !room.fits(e.bundle) || !p.room.fits(e.bundle) {
			return false
		}
		b := e.bundle
		l.entries = l.entries[1:]
		if room.take(b); room != &p.room {
			p.room.take(b)
		}
		p.bundles = append(p.bundles, b)
		return true
	}
	return false
}
