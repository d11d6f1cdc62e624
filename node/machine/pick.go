package machine

import (
	"cmp"
	"maps"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

// One part in nonMembersShare of a block is reserved for authors that are no anchors. While bundles of both wait,
// anchors leave that part to them, and they take no more than it.
const nonMembersShare = 4

// room is the space that is left in a block.
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

// less returns the room without a part of it.
func (r room) less(part room) room {
	return room{r.bytes - part.bytes, r.mutations - part.mutations, r.bundles - part.bundles, r.cost - part.cost}
}

func (r room) part(one int) room {
	return room{r.bytes / one, r.mutations / one, r.bundles / one, r.cost / int64(one)}
}

// authorQueue holds the bundles of one author that wait, oldest first. The author is zero for the bundles of this
// node's clients.
type authorQueue struct {
	author  aweigh.Hash
	entries []*pooled
}

// lastFirst records for each seat's line the last of this node's blocks in which that line came first. Without it, a
// bundle that needs a whole block would wait forever behind smaller ones, which always find room.
type lastFirst struct {
	blocks uint64
	last   map[aweigh.Hash]uint64
}

// next returns the line whose last turn to come first is longest ago; of several such lines, the first.
func (t *lastFirst) next(lines []*authorQueue) *authorQueue {
	return slices.MinFunc(lines, func(a, b *authorQueue) int { return cmp.Compare(t.last[a.author], t.last[b.author]) })
}

// had notes that a line came first, and forgets authors that no longer have a seat.
func (t *lastFirst) had(l *authorQueue, m *Machine) {
	if len(t.last) > 2*len(m.roster.Anchors) { // an anchor's key, its node's, and this node's clients
		maps.DeleteFunc(t.last, func(author aweigh.Hash, _ uint64) bool { return !author.IsZero() && !m.isAnchorNode(author) })
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

// pick chooses the bundles for a block on top of path. Authors take turns of one bundle each: first this node's own
// clients, so that no other author can keep them out, then anchors, then all other authors, which have a reserved
// part. A bundle that does not fit waits. Before all turns, one bundle of this node's clients or of an anchor may use
// the room of the whole block; with each block it is another author's bundle.
//
// A block has at most MaxNames-1 bundles, so that an anchor that has none of them can ask for all in one Want. Bundles
// that expire before the time of the block are left out, and so are those whose expiry is too far after it.
func (m *Machine) pick(path []*candidate, at aweigh.Instant) []*scope.CheckedBundle {
	inside := make(map[aweigh.Hash]bool)
	for _, k := range path {
		for _, c := range k.block.Bundles {
			inside[c.ID()] = true
		}
	}
	seats, nonMembers := m.lines(inside, at)
	lim := m.chain.policy.Limits
	p := picking{m: m, room: room{lim.BlockBytes, lim.BlockMutations, MaxNames - 1, lim.BlockCost}}
	share := p.room.part(nonMembersShare)
	p.first(seats)
	if len(nonMembers) == 0 {
		p.fill(seats, p.room)
		return p.bundles
	}
	seats = p.fill(seats, p.room.less(share))
	if len(seats) > 0 {
		p.fill(nonMembers, share)
	} else {
		p.fill(nonMembers, p.room)
	}
	p.fill(seats, p.room)
	return p.bundles
}

// lines returns the bundles that may go into a block, by author, in the order of each author's oldest bundle. The line
// of this node's clients is the first of the seats.
func (m *Machine) lines(inside map[aweigh.Hash]bool, at aweigh.Instant) (seats, nonMembers []*authorQueue) {
	var local authorQueue
	by := make(map[aweigh.Hash]*authorQueue)
	lim := &m.chain.policy.Limits
	for _, e := range m.pool.order {
		if e.gone || inside[e.bundle.ID()] || e.bundle.ValidUntil() < at {
			continue
		}
		if e.bundle.ValidUntil() > at.Add(lim.Patience(e.bundle.Patient())) {
			continue
		}
		if e.local {
			local.entries = append(local.entries, e)
			continue
		}
		first := &e.bundle.Mutations()[0]
		author := first.Author
		if by := first.Principal(); by != author { // it can grant to any number of keys, none of which has a seat
			author = aweigh.Sum([]byte("aweigh/holders"), by[:])
		}
		l := by[author]
		if l == nil {
			l = &authorQueue{author: author}
			by[author] = l
			if m.isAnchorNode(author) {
				seats = append(seats, l)
			} else {
				nonMembers = append(nonMembers, l)
			}
		}
		l.entries = append(l.entries, e)
	}
	if len(local.entries) > 0 {
		seats = append([]*authorQueue{&local}, seats...)
	}
	return seats, nonMembers
}

// isAnchorNode reports whether an author is an anchor, or an anchor's node.
func (m *Machine) isAnchorNode(author aweigh.Hash) bool {
	_, anchor := m.roster.Seat(aweigh.AnchorID(author))
	return anchor || m.pool.outcomes.anchors.has(author)
}

// first takes the oldest bundle of the line whose turn it is to come first.
func (p *picking) first(lines []*authorQueue) {
	if len(lines) == 0 {
		return
	}
	firsts := &p.m.pool.firsts
	if l := firsts.next(lines); p.next(l, &p.room) {
		firsts.had(l, p.m)
	}
}

// fill takes one bundle of each line in turn while there is room, both in the block and in the part that these lines
// may use. It returns the lines that have bundles left.
func (p *picking) fill(lines []*authorQueue, room room) (left []*authorQueue) {
	for len(lines) > 0 {
		var again []*authorQueue
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

// next takes the next bundle of a line. It returns false if there is none or no room for it; then the line stops,
// because a later bundle of the line would only delay this one.
func (p *picking) next(l *authorQueue, room *room) bool {
	for len(l.entries) > 0 {
		e := l.entries[0]
		if e.gone || p.m.applied(e.bundle) { // applied in another bundle: no anchor that knows will ask for this one
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
