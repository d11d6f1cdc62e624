package sim

import (
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/votes"
)

// equivocate sends each half of the others something else: of two blocks that
// members propose in one view, each half gets one, and each gets the coalition's
// votes for its own. In views of others it contradicts its votes as well, except a
// coalition whose role is to be too heavy (Role.Weight "over"): that one stays hidden,
// and keeps to the story once there are two blocks, see tale.
type equivocate struct{ plain }

func (e *equivocate) bend(l *liar, out []packet) []packet {
	if l.tells() {
		return l.equivocateAsLeader(e, out)
	}
	if !l.may() {
		return out
	}
	other := make(map[*frame]*frame) // the frame that the victims get in its place
	return slices.DeleteFunc(out, func(x packet) bool { return e.instead(l, x, other) })
}

// instead sends a victim the contradiction to a frame, and reports whether it did.
func (e *equivocate) instead(l *liar, x packet, other map[*frame]*frame) bool {
	v, lie := e.lie(l, x.frame, other)
	if lie == nil || !l.victim(x.to, v) {
		return false
	}
	l.told("equivocate", "%s hears %s, others %s", x.to, describe(lie), describe(x.frame))
	l.w.send(l.n, x.to, lie, x.wait)
	return true
}

// lie is the contradiction to a frame, nil if there is none.
func (e *equivocate) lie(l *liar, f *frame, made map[*frame]*frame) (aweigh.View, *frame) {
	switch c := f.open().(type) {
	case votes.Ballot:
		if made[f] == nil {
			other := e.contradiction(l, c.Subject)
			if other == c.Subject {
				return 0, nil
			}
			made[f] = &frame{raw: machine.Frame(l.sign(other))}
		}
		return c.Subject.View, made[f]
	case machine.Proposal:
		if made[f] == nil {
			p := c
			p.Header.Time++
			made[f] = &frame{raw: machine.Frame(l.propose(p))}
			l.twoFor[p.Header.View] = [2]aweigh.Hash{c.Header.Hash(), p.Header.Hash()}
		}
		return c.Header.View, made[f]
	}
	return 0, nil
}

// contradiction is what may not be signed beside s.
func (e *equivocate) contradiction(l *liar, s quorum.Subject) quorum.Subject {
	two, ok := l.twoFor[s.View]
	other := two[0]
	if s.Block == two[0] {
		other = two[1]
	}
	switch s.Kind {
	case quorum.Nullify:
		if !ok {
			other = l.w.watch.proposals[place{l.domain().Epoch, s.View}]
		}
		if other.IsZero() {
			return s
		}
		return quorum.Subject{Kind: quorum.Finalize, View: s.View, Block: other}
	case quorum.Finalize:
		if !ok {
			return l.giveUp(s.View)
		}
	case quorum.Notarize:
		if !ok {
			other = aweigh.Sum(s.Block[:])
		}
	}
	return quorum.Subject{Kind: s.Kind, View: s.View, Block: other}
}

// propose signs a proposal as the liar's own.
func (l *liar) propose(p machine.Proposal) machine.Proposal {
	p.Header.Proposer = l.n.anchorID()
	l.w.watch.proposed(p.Header)
	p.Signature = l.sign(quorum.Subject{Kind: l.w.voteKind(p.Header.Epoch), View: p.Header.View, Block: p.Header.Hash()}).Signature
	return p
}

// hear keeps from the machine the signatures made behind its back, which would
// silence it (P9).
func (e *equivocate) hear(l *liar, _ *Node, f *frame) bool {
	if l.tells() && l.behind(f) {
		return false
	}
	b, ok := f.open().(votes.Ballot)
	return !ok || b.Anchor != l.n.anchorID()
}

// fork connects each of the two faces of every member to one half of the
// honest, so that each half sees a coalition that agrees with it.
type fork struct{ plain }

func (*fork) bend(l *liar, out []packet) []packet {
	for _, x := range out {
		if v, ok := viewOf(x.frame); ok && l.sameSide(x.to) && !l.friend(x.to) {
			l.told("fork", "%s hears of view %d from %s alone: %s", x.to, v, l.n, describe(x.frame))
		}
	}
	return slices.DeleteFunc(out, func(x packet) bool { return !l.sameSide(x.to) })
}

func (*fork) hear(l *liar, from *Node, _ *frame) bool { return l.sameSide(from) }

// twins change no frame: they only run twice. A lie is a signature of the second face.
type twins struct{ plain }

func (*twins) bend(l *liar, out []packet) []packet {
	for _, x := range out {
		if _, ok := viewOf(x.frame); ok && l.n.Face == 1 {
			l.told("twins", "%s hears it from the second face: %s", x.to, describe(x.frame))
		}
	}
	return out
}

// sameSide reports whether a node is on the side of this face: that of the
// victims is the second.
func (l *liar) sameSide(n *Node) bool {
	if l.friend(n) {
		return n.Face == l.n.Face
	}
	if len(l.victims) > 0 {
		return l.victim(n, 0) == (l.n.Face == 1)
	}
	return n.number()%2 == l.n.Face
}

// rival proposes, when a member leads, another block on the parent of the last
// proposed one, as if that one had been given up (against P12).
type rival struct {
	plain
	last machine.Proposal // seen
}

func (r *rival) hear(_ *liar, _ *Node, f *frame) bool {
	if p, ok := f.open().(machine.Proposal); ok && p.Header.View > r.last.Header.View {
		r.last = p
	}
	return true
}

func (r *rival) bend(l *liar, out []packet) []packet {
	var mine *frame
	for i := range out {
		p, ok := out[i].frame.open().(machine.Proposal)
		if !ok || r.last.Header.View == 0 || r.last.Header.View >= p.Header.View {
			continue
		}
		if mine == nil && l.may() {
			lie := r.last
			lie.Header.View, lie.Header.Time = p.Header.View, p.Header.Time
			mine = &frame{raw: machine.Frame(l.propose(lie))}
			l.told("rival", "view %d: a rival to the block of view %d", p.Header.View, r.last.Header.View)
		}
		if mine != nil {
			out[i].frame = mine
		}
	}
	return out
}
