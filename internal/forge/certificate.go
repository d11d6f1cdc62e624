package forge

import (
	"bytes"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

func certificate(s *Site) *quorum.Certificate {
	return s.Value.Addr().Interface().(*quorum.Certificate)
}

// shorten leaves out as many signatures of a certificate as it takes to miss its rule.
func (k *Kit) shorten(c *quorum.Certificate) {
	c.Signatures = slices.Clone(c.Signatures)
	rule := k.Rules.For(c.Subject.Kind)
	for len(c.Signatures) > 0 {
		var weight uint64
		for _, s := range c.Signatures {
			weight += k.Weights.Of(s.Anchor)
		}
		if !rule.Met(weight, k.Weights.Total(), len(c.Signatures)) {
			return
		}
		at := k.Rand.IntN(len(c.Signatures))
		c.Signatures = slices.Delete(c.Signatures, at, at+1)
	}
}

// fill adds a signature of each anchor that is missing.
func (k *Kit) fill(c *quorum.Certificate, with func(aweigh.AnchorID) []byte) {
	for seat := range k.Weights.All() {
		if signed := func(s quorum.Signature) bool { return s.Anchor == seat.Anchor }; !slices.ContainsFunc(c.Signatures, signed) {
			if b := with(seat.Anchor); b != nil {
				c.Signatures = append(c.Signatures, quorum.Signature{Anchor: seat.Anchor, Bytes: b})
			}
		}
	}
	inOrder(c)
}

func inOrder(c *quorum.Certificate) {
	slices.SortFunc(c.Signatures, func(a, b quorum.Signature) int { return bytes.Compare(a.Anchor[:], b.Anchor[:]) })
}

func light(k *Kit, s *Site) bool {
	k.shorten(certificate(s))
	return true
}

// repeated has as many signatures as before, of fewer anchors.
func repeated(k *Kit, s *Site) bool {
	c := certificate(s)
	n := len(c.Signatures)
	if k.shorten(c); len(c.Signatures) == 0 {
		return false
	}
	for len(c.Signatures) < n {
		c.Signatures = append(c.Signatures, c.Signatures[k.Rand.IntN(len(c.Signatures))])
	}
	inOrder(c)
	return true
}

// stuffed has the names of all, and what the coalition signed under those that did not.
func stuffed(k *Kit, s *Site) bool {
	c := certificate(s)
	k.shorten(c)
	k.fill(c, func(a aweigh.AnchorID) []byte { return k.Pretend(s.claim.domain, c.Subject, a) })
	return true
}

// mixed has signatures of the missing anchors on another subject.
func mixed(k *Kit, s *Site) bool {
	c := certificate(s)
	there := s.Value
	for range 4 {
		other, ok := k.another(Certificate, there)
		if !ok {
			continue
		}
		from := other.Interface().(quorum.Certificate)
		if from.Subject == c.Subject {
			continue
		}
		k.shorten(c)
		k.fill(c, func(a aweigh.AnchorID) []byte {
			for _, s := range from.Signatures {
				if s.Anchor == a {
					return s.Bytes
				}
			}
			return nil
		})
		return true
	}
	return false
}

// strange has the genuine signature of a key that has no seat in the roster, in place of one that has.
func strange(k *Kit, s *Site) bool {
	c := certificate(s)
	if k.Outside == nil {
		return false
	}
	k.shorten(c)
	id := k.Outside.Public().ID()
	b := votes.Ballot{Format: scope.Format, Domain: s.claim.domain, Subject: c.Subject, Anchor: id}
	c.Signatures = append(c.Signatures, quorum.Signature{Anchor: id, Bytes: k.Outside.Sign(votes.ContextBallot, b.SigningBytes())})
	inOrder(c)
	return true
}

// alone has the signatures of the coalition, which are genuine, now and then on a subject that the others did not sign:
// that may prove that they lie.
func alone(k *Kit, s *Site) bool {
	c := certificate(s)
	if k.Rand.IntN(4) > 0 {
		return false
	}
	if k.Rand.IntN(4) == 0 {
		c.Subject = k.otherSubject(c.Subject)
	}
	c.Signatures = nil
	for _, key := range k.Keys {
		id := key.Public().ID()
		b := votes.Ballot{Format: scope.Format, Domain: s.claim.domain, Subject: c.Subject, Anchor: id}
		c.Signatures = append(c.Signatures, quorum.Signature{Anchor: id, Bytes: key.Sign(votes.ContextBallot, b.SigningBytes())})
	}
	inOrder(c)
	return true
}

// Pretend is a signature of the coalition under a subject and an anchor's name, which does not hold: in a member's own
// name it is on something else, so that it proves nothing against it.
func (k *Kit) Pretend(d votes.Domain, s quorum.Subject, name aweigh.AnchorID) []byte {
	b := votes.Ballot{Format: scope.Format, Domain: d, Subject: s, Anchor: name}
	key, own := k.key(name)
	message := b.SigningBytes()
	if own {
		message = append(message, 0)
	}
	return key.Sign(votes.ContextBallot, message)
}
