package sim

import (
	"bytes"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// epoch is that of the head of the part, nil if no node is known to be there.
func (b *bent) epoch() *scope.Epoch {
	all, number := b.nodes[b.i].world.epochs, int(b.part.Ancestry.Head.Header.Epoch)
	if number >= len(all) {
		return nil
	}
	return all[number]
}

// certificate is that of the head of the part.
func (b *bent) certificate() *quorum.Certificate { return &b.part.Ancestry.Head.Certificate }

// strip leaves out signatures until the others lack the weight.
func (b *bent) strip() bool {
	e, c := b.epoch(), b.certificate()
	if e == nil {
		return false
	}
	for len(c.Signatures) > 0 {
		var weight uint64
		for i := range c.Signatures {
			weight += e.Roster.Weights.Of(c.Signatures[i].Anchor)
		}
		if !e.Policy.Rules.For(c.Subject.Kind).Met(weight, e.Roster.Weights.Total(), len(c.Signatures)) {
			return true
		}
		at := b.rand.IntN(len(c.Signatures))
		c.Signatures = slices.Delete(c.Signatures, at, at+1)
	}
	return true
}

// repeat has as many signatures as before, of fewer anchors.
func (b *bent) repeat() bool {
	c := b.certificate()
	n := len(c.Signatures)
	if !b.strip() || len(c.Signatures) == 0 {
		return false
	}
	for len(c.Signatures) < n {
		c.Signatures = append(c.Signatures, c.Signatures[0])
	}
	inOrder(c)
	return true
}

func inOrder(c *quorum.Certificate) {
	slices.SortFunc(c.Signatures, func(a, b quorum.Signature) int { return bytes.Compare(a.Anchor[:], b.Anchor[:]) })
}

// mix has the signatures under another final block.
func (b *bent) mix() bool {
	c, n := b.certificate(), b.nodes[b.i]
	history := machine.History{Reader: n.Disk, Scope: n.world.id}
	for at := b.part.Ancestry.Head.Header.Height - 1; at > 0 && at+4 > b.part.Ancestry.Head.Header.Height; at-- {
		if f, err := history.Finality(at); err == nil && f.Certificate.Subject != c.Subject {
			c.Signatures = f.Certificate.Signatures
			return true
		}
	}
	return false
}

// signAgain has signatures of the liar's own in the names of others.
func (b *bent) signAgain() bool {
	c, n := b.certificate(), b.nodes[b.i]
	if n.key == nil {
		return false
	}
	forged := false
	for i := range c.Signatures {
		if s := &c.Signatures[i]; s.Anchor != n.anchorID() {
			s.Bytes, forged = ballotOf(b.part.Ancestry.Head.Header.Domain(), c.Subject, s.Anchor, n.key), true
		}
	}
	return forged
}

// ballotOf signs a ballot in an anchor's name with a key.
func ballotOf(d votes.Domain, s quorum.Subject, name aweigh.AnchorID, key *votes.PrivateKey) []byte {
	b := votes.Ballot{Format: scope.Format, Domain: d, Subject: s, Anchor: name}
	return key.Sign(votes.ContextBallot, b.SigningBytes())
}

// handover gives the anchors of a later epoch other weights.
func (b *bent) handover() bool {
	all := b.part.Ancestry.Handovers
	if len(all) == 0 {
		return false
	}
	weights := all[b.rand.IntN(len(all))].Terms.Weights
	if len(weights) == 0 {
		return false
	}
	weights[b.rand.IntN(len(weights))]++
	return true
}

// neverView is a view that no epoch reaches: what a coalition signs there contradicts nothing else that it signed.
const neverView = 1 << 40

// ownBlock has the header of a block that the coalition made up, and signed alone: it claims another value.
func (b *bent) ownBlock() bool {
	e, kv := b.epoch(), b.kv()
	if e == nil || kv == nil {
		return false
	}
	kv.Value = []byte("made up")
	for i := range b.part.Leaves.Leaves {
		if l := &b.part.Leaves.Leaves[i]; bytes.Equal(l.Key, kv.Key) {
			l.Digest = kv.Digest()
		}
	}
	root, err := b.part.Leaves.Root()
	if err != nil {
		return false
	}
	f := &b.part.Ancestry.Head
	f.Header.Current, f.Header.View, f.Descendants = root, neverView+f.Header.View, nil
	s := quorum.Subject{Kind: quorum.Finalize, View: f.Header.View, Block: f.Header.Hash()}
	f.Certificate = quorum.Certificate{Subject: s}
	for _, m := range b.l.members {
		if m.key != nil && m.Face == 0 && e.Roster.Weights.Of(m.anchorID()) > 0 {
			sig := quorum.Signature{Anchor: m.anchorID(), Bytes: ballotOf(f.Header.Domain(), s, m.anchorID(), m.key)}
			f.Certificate.Signatures = append(f.Certificate.Signatures, sig)
		}
	}
	inOrder(&f.Certificate)
	return true
}
