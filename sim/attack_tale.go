package sim

import (
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/votes"
)

// tells reports whether the coalition weighs more than the fault budget by its role,
// and so tries to fork the chain.
func (p *plan) tells() bool { return p.role.Weight == "over" }

// equivocateAsLeader lies about the views alone in which a member proposes: the victims get the
// second block, every vote on it, and nothing that shows the first; a view that fails
// is nullified before all.
func (l *liar) equivocateAsLeader(e *equivocate, out []packet) []packet {
	may := l.may()
	other := make(map[*frame]*frame) // what the victims get in its place
	for i := range out {
		out[i].frame = l.discreet(out[i])
	}
	return slices.DeleteFunc(out, func(x packet) bool {
		switch c := x.frame.open().(type) {
		case machine.Proposal:
			_, two := l.twoFor[c.Header.View]
			return (may || two) && e.instead(l, x, other)
		case votes.Ballot:
			_, two := l.twoFor[c.Subject.View]
			return two && c.Subject.Kind != quorum.Nullify && e.instead(l, x, other)
		case machine.Announce:
			return l.first(x.to, c.Certificate.Subject)
		}
		return false
	})
}

// first reports whether a subject is about the block of two that victims do not get,
// and a node is one of them.
func (p *plan) first(n *Node, s quorum.Subject) bool {
	two, ok := p.twoFor[s.View]
	return ok && s.Block == two[0] && p.victim(n, s.View)
}

// discreet is an offer without what its receiver must not learn. Other frames are as they were.
func (l *liar) discreet(x packet) *frame {
	o, ok := x.frame.open().(machine.Offer)
	if !ok {
		return x.frame
	}
	kept := o
	kept.Votes = slices.DeleteFunc(slices.Clone(o.Votes), func(v machine.OfferedVote) bool { return l.first(x.to, v.Subject) })
	kept.Certificates = slices.DeleteFunc(slices.Clone(o.Certificates), func(c quorum.Certificate) bool { return l.first(x.to, c.Subject) })
	if len(kept.Votes) == len(o.Votes) && len(kept.Certificates) == len(o.Certificates) {
		return x.frame
	}
	return &frame{raw: machine.Frame(kept)}
}

// behind reports whether a frame shows the member's own machine a signature made
// behind its back, or the story told to the victims.
func (l *liar) behind(f *frame) bool {
	shows := func(by aweigh.AnchorID, s quorum.Subject) bool {
		two, ok := l.twoFor[s.View]
		return by == l.n.anchorID() || ok && s.Block == two[1]
	}
	switch c := f.open().(type) {
	case votes.Ballot:
		return shows(c.Anchor, c.Subject)
	case machine.Offer:
		return slices.ContainsFunc(c.Votes, func(v machine.OfferedVote) bool { return shows(v.Signature.Anchor, v.Subject) })
	}
	return false
}
