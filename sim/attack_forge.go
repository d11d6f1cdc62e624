package sim

import (
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// garbage proposes invalid blocks, and sends unreadable frames.
type garbage struct{ plain }

func (g *garbage) bend(l *liar, out []packet) []packet {
	if !l.may() {
		return out
	}
	bad := make(map[*frame]*frame)
	for i := range out {
		c, ok := out[i].frame.open().(machine.Proposal)
		if !ok {
			continue
		}
		if bad[out[i].frame] == nil {
			p, what := g.spoil(l, c)
			bad[out[i].frame] = &frame{raw: machine.Frame(p)}
			l.told("garbage", "view %d: a block with %s", c.Header.View, what)
		}
		out[i].frame = bad[out[i].frame]
	}
	return out
}

// spoil makes a proposal invalid, under a valid signature.
func (g *garbage) spoil(l *liar, p machine.Proposal) (machine.Proposal, string) {
	h := &p.Header
	some := aweigh.Sum(h.State[:])
	var what string
	switch l.rand.IntN(11) {
	case 0:
		h.State, what = some, "a false state"
	case 1:
		h.LineageRoot, what = some, "a false lineage"
	case 2:
		h.LineageSize, what = h.LineageSize+1, "a lineage that is too long"
	case 3:
		h.Height, what = h.Height+1, "a height that skips one"
	case 4:
		h.Parent, what = some, "a parent that is not there"
	case 5:
		h.Time, what = h.Time.Add(3600e9), "a time an hour ahead"
	case 6:
		h.Time, what = 1, "a time long ago"
	case 7:
		h.Mutations, what = some, "other mutations than it names"
	case 8:
		p.Bundles, what = append(slices.Clone(p.Bundles), some), "a bundle that is not there"
	case 9:
		p.Bundles, what = append(slices.Clone(p.Bundles), p.Bundles...), "everything twice"
	case 10:
		h.Current, what = some, "keys that are not there"
	}
	return l.propose(p), what
}

func (g *garbage) tick(l *liar) {
	for _, to := range l.others() {
		if !l.may() {
			continue
		}
		raw := machine.Frame(machine.Want{Blocks: []aweigh.Hash{aweigh.Sum([]byte{byte(l.rand.IntN(256))})}})
		if l.n.last != nil {
			raw = slices.Clone(l.n.last.raw)
		}
		switch l.rand.IntN(4) {
		case 0:
			raw = raw[:1+l.rand.IntN(len(raw))]
		case 1:
			raw[l.rand.IntN(len(raw))] ^= 1 << l.rand.IntN(8)
		case 2:
			raw = append(raw, 0)
		case 3:
			raw[0] = byte(l.rand.IntN(256))
		}
		l.told("garbage", "%s gets a broken frame", to)
		l.sendFrame(to, &frame{raw: raw})
	}
}

// replay sends again frames that any node ever sent.
type replay struct {
	plain
	seen []*frame
}

// kept bounds what a replay remembers.
const kept = 256

func (r *replay) hear(l *liar, _ *Node, f *frame) bool {
	if len(r.seen) < kept {
		r.seen = append(r.seen, f)
	} else {
		r.seen[l.rand.IntN(kept)] = f
	}
	return true
}

func (r *replay) tick(l *liar) {
	for range 8 {
		if len(r.seen) > 0 && l.may() {
			f, to := r.seen[l.rand.IntN(len(r.seen))], l.someone()
			if all := l.w.scopes; len(all) > 1 && l.rand.IntN(4) == 0 { // as if it were another scope's
				to = all[l.rand.IntN(len(all))].Nodes[to.Index]
				l.n.crosses = true
			}
			l.told("replay", "%s gets %s again", to, describe(f))
			l.sendFrame(to, &frame{raw: f.raw}) // checked anew: it comes from another peer
		}
	}
}

// slander signs in the names of others, and makes up proofs and certificates.
type slander struct{ plain }

func (s *slander) bend(l *liar, out []packet) []packet {
	if !l.may() {
		return out
	}
	bad := make(map[*frame]*frame)
	for i := range out {
		c, ok := out[i].frame.open().(machine.Proposal)
		if !ok {
			continue
		}
		if bad[out[i].frame] == nil {
			x, y := s.forged(l), s.forged(l)
			y.Anchor = x.Anchor
			x.Subject = quorum.Subject{Kind: quorum.Nullify, View: c.Header.View}
			y.Subject = quorum.Subject{Kind: quorum.Finalize, View: c.Header.View, Block: c.Header.Parent}
			proof, err := votes.NewEquivocation(x, y)
			if err != nil {
				continue
			}
			c.Evidence.Proofs = []scope.Proof{proof}
			c.Header.Evidence = c.Evidence.Hash()
			bad[out[i].frame] = &frame{raw: machine.Frame(l.propose(c))}
			l.told("slander", "a block with a made-up proof against %s", l.w.Nodes[l.w.anchors[x.Anchor]])
		}
		out[i].frame = bad[out[i].frame]
	}
	return out
}

// forged is a ballot in another's name, under the liar's own signature.
func (s *slander) forged(l *liar) votes.Ballot {
	anchors := slices.DeleteFunc(slices.Clone(l.others()), func(n *Node) bool { return n.key == nil })
	if len(anchors) == 0 { // only observers are no friends
		anchors = l.members
	}
	victim := anchors[l.rand.IntN(len(anchors))]
	v := l.view()
	b := votes.Ballot{
		Format: scope.Format, Domain: l.domain(), Anchor: victim.anchorID(),
		Subject: quorum.Subject{Kind: l.w.voteKind(l.domain().Epoch), View: v, Block: l.w.watch.proposals[place{l.domain().Epoch, v}]},
	}
	if b.Subject.Block.IsZero() {
		b.Subject = l.giveUp(v)
	}
	b.Signature = l.n.key.Sign(votes.ContextBallot, b.SigningBytes())
	return b
}

func (s *slander) tick(l *liar) {
	if !l.may() {
		return
	}
	to, b := l.someone(), s.forged(l)
	switch l.rand.IntN(3) {
	case 0:
		l.told("slander", "%s gets a ballot in the name of n%d", to, l.w.anchors[b.Anchor])
		l.send(to, b)
	case 1:
		l.told("slander", "%s gets an offer with a ballot in the name of n%d", to, l.w.anchors[b.Anchor])
		l.send(to, machine.Offer{Domain: b.Domain, View: b.Subject.View, Votes: []machine.OfferedVote{{
			Subject: b.Subject, Signature: quorum.Signature{Anchor: b.Anchor, Bytes: b.Signature},
		}}})
	case 2:
		c := l.certificate(l.giveUp(b.Subject.View), to)
		l.told("slander", "%s gets a certificate of %d signatures", to, len(c.Signatures))
		l.send(to, machine.Offer{Domain: b.Domain, View: b.Subject.View + 1, Certificates: []quorum.Certificate{c}})
	}
}

// certificate puts together what the coalition's own keys allow, and now and
// then the name of an anchor that did not sign.
func (l *liar) certificate(s quorum.Subject, victim *Node) quorum.Certificate {
	c := quorum.Certificate{Subject: s}
	for _, m := range l.members {
		if m.Face == 0 {
			b := m.liar.sign(s)
			c.Signatures = append(c.Signatures, quorum.Signature{Anchor: b.Anchor, Bytes: b.Signature})
		}
	}
	if victim.key != nil && l.may() {
		c.Signatures = append(c.Signatures, quorum.Signature{Anchor: victim.anchorID(), Bytes: c.Signatures[0].Bytes})
	}
	slices.SortFunc(c.Signatures, func(a, b quorum.Signature) int { return slices.Compare(a.Anchor[:], b.Anchor[:]) })
	return c
}
