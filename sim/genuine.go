package sim

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/forge"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// signatures are all that the keys of a world made. A signature holds if it is among them: this is known without the
// code that verifies signatures and certificates.
type signatures struct {
	made  map[ed25519]signed
	held  map[vouched]bool // votes that were looked up before
	doubt error            // one that was made, and does not verify
}

// someVerified is of how many signatures that keys made one is verified: the nodes' verifier remembers that they made
// them.
const someVerified = 512

type ed25519 [64]byte

type signed struct {
	by      aweigh.Hash
	ctx     votes.Context
	message []byte
}

// statement is the content that an anchor signs, in the encoding of package canon, which package votes does not
// use for it.
type statement struct {
	_       struct{} `cbor:",toarray"`
	Format  uint16
	Domain  votes.Domain
	Subject quorum.Subject
	Anchor  aweigh.AnchorID
}

// vouched is a vote with its signature.
type vouched struct {
	domain    votes.Domain
	subject   quorum.Subject
	anchor    aweigh.AnchorID
	signature ed25519
}

func newSignatures() signatures {
	return signatures{made: make(map[ed25519]signed), held: make(map[vouched]bool)}
}

// add notes a signature that a key made.
func (s *signatures) add(key votes.PublicKey, ctx votes.Context, message, signature []byte) {
	s.made[ed25519(signature)] = signed{key.ID(), ctx, message}
	if len(s.made)%someVerified == 1 && s.doubt == nil {
		s.doubt = votes.Verify(key, ctx, message, signature)
	}
}

// hold reports whether a key made a signature on a message in a context.
func (s *signatures) hold(by aweigh.Hash, ctx votes.Context, message, signature []byte) bool {
	if len(signature) != len(ed25519{}) {
		return false
	}
	m, ok := s.made[ed25519(signature)]
	return ok && m.by == by && m.ctx == ctx && bytes.Equal(m.message, message)
}

// vote reports what is wrong with a vote, nil if the anchor signed it.
func (s *signatures) vote(d votes.Domain, about quorum.Subject, sig quorum.Signature) error {
	forged := fmt.Errorf("%s did not sign %v of epoch %d", sig.Anchor.Short(), about, d.Epoch)
	if len(sig.Bytes) != len(ed25519{}) {
		return forged
	}
	v := vouched{d, about, sig.Anchor, ed25519(sig.Bytes)}
	if !s.held[v] {
		if !s.hold(sig.Anchor, votes.ContextBallot, canon.Encode(statement{Format: scope.Format, Domain: d, Subject: about, Anchor: sig.Anchor}), sig.Bytes) {
			return forged
		}
		s.held[v] = true
	}
	return nil
}

func (s *signatures) ballot(b votes.Ballot) error {
	return s.vote(b.Domain, b.Subject, quorum.Signature{Anchor: b.Anchor, Bytes: b.Signature})
}

// motionBallot reports what is wrong with the encoding of a ballot on a motion.
func (s *signatures) motionBallot(raw []byte) error {
	b, err := votes.DecodeMotionBallot(raw)
	if err == nil && !s.hold(b.Voter, votes.ContextCOSE, b.SigningBytes(), b.Signature) {
		err = fmt.Errorf("%s did not sign that it would %s", b.Voter.Short(), b.Choice)
	}
	return err
}

// bundle reports what is wrong with the encoding of a bundle: its author signed it, and each anchor that it
// admits consents, and the signers of its grants signed them.
func (s *signatures) bundle(raw []byte) error {
	b, err := forge.OpenBundle(raw)
	if err != nil {
		return err
	}
	author := b.Author.ID()
	parts := [][]byte{[]byte("aweigh/bundle/2"), author[:], binary.BigEndian.AppendUint64(nil, uint64(b.Reserve))}
	for _, raw := range b.Mutations {
		id := aweigh.Sum([]byte("aweigh/mutation/1"), raw)
		parts = append(parts, id[:])
	}
	if id := aweigh.Sum(parts...); !s.hold(author, votes.ContextBundle, id[:], b.Signature) {
		return fmt.Errorf("%s did not sign the bundle", author.Short())
	}
	for _, raw := range b.Mutations {
		m, err := scope.OpenMutation(raw)
		switch d := m.Decision; {
		case err != nil:
			return err
		case m.Author != author:
			return fmt.Errorf("a mutation of %s in a bundle of %s", m.Author.Short(), author.Short())
		case d != nil && d.Kind == scope.Admit &&
			!s.hold(d.Subject, votes.ContextConsent, scope.ConsentBytes(m.Scope, *d.Anchor, d.Sponsor), d.Consent):
			return fmt.Errorf("%s did not consent to be admitted", d.Subject.Short())
		}
		for _, raw := range m.Grants {
			if err := s.grant(raw); err != nil {
				return err
			}
		}
	}
	return nil
}

// grant reports what is wrong with the encoding of a grant: its signer signed it.
func (s *signatures) grant(raw []byte) error {
	var g scope.Grant
	if err := canon.Decode(raw, &g); err != nil {
		return err
	}
	signature := g.Signature
	g.Signature = nil
	if !s.hold(g.By.ID(), votes.ContextGrant, g.Encode(), signature) {
		return fmt.Errorf("%s did not sign the grant %q", g.By.ID().Short(), g.Name)
	}
	return nil
}

// fault reports what is wrong with a proof of fault.
func (s *signatures) fault(f votes.Equivocation) error {
	x, y := f.First, f.Second
	if x.Anchor != y.Anchor || x.Domain != y.Domain || !x.Subject.Conflicts(y.Subject) {
		return fmt.Errorf("%v by %s and %v by %s are no contradiction", x.Subject, x.Anchor.Short(), y.Subject, y.Anchor.Short())
	}
	if err := s.ballot(x); err != nil {
		return err
	}
	return s.ballot(y)
}

// certificate reports what is wrong with a certificate of an epoch: counted again, its signers meet the
// rule.
func (w *World) certificate(d votes.Domain, c quorum.Certificate) error {
	if int(d.Epoch) >= len(w.epochs) { // no node knows it yet
		return nil
	}
	e := w.epochs[d.Epoch]
	if d != e.Domain() {
		return fmt.Errorf("a certificate of an epoch %d that is not this scope's", d.Epoch)
	}
	rule, ok := map[quorum.Kind]quorum.Rule{
		quorum.Notarize: e.Policy.Rules.Notarize, quorum.Nullify: e.Policy.Rules.Nullify, quorum.Finalize: e.Policy.Rules.Finalize,
	}[c.Subject.Kind]
	if !ok {
		return fmt.Errorf("a certificate of %v", c.Subject)
	}
	var weight, total uint64
	for seat := range e.Roster.Weights.All() {
		total += seat.Weight
		for _, s := range c.Signatures {
			if s.Anchor == seat.Anchor {
				weight += seat.Weight
				break
			}
		}
	}
	for i, s := range c.Signatures {
		for _, o := range c.Signatures[:i] {
			if o.Anchor == s.Anchor {
				return fmt.Errorf("%s signs a certificate twice", s.Anchor.Short())
			}
		}
		if err := w.made.vote(d, c.Subject, s); err != nil {
			return err
		}
	}
	wh, wl := bits.Mul64(weight, rule.Den)
	th, tl := bits.Mul64(total, rule.Num)
	if over := wh > th || wh == th && wl > tl; !over && weight < total || len(c.Signatures) < int(rule.MinAnchors) {
		return fmt.Errorf("%d anchors of weight %d of %d certify %v, where it takes %s", len(c.Signatures), weight, total, c.Subject, rule)
	}
	return nil
}

// finality reports what is wrong with a Finality.
func (w *World) finality(f scope.Finality) error {
	last := f.Header
	for _, h := range f.Descendants {
		if h.Parent != last.Hash() || h.Height != last.Height+1 || h.Domain() != last.Domain() {
			return fmt.Errorf("height %d does not follow on height %d", h.Height, last.Height)
		}
		last = h
	}
	return w.certifies(w.decider(last, f.Certificate), last, f.Certificate)
}

// certifies reports what is wrong with a certificate of a kind for the block of a header.
func (w *World) certifies(kind quorum.Kind, h scope.Header, c quorum.Certificate) error {
	if want := (quorum.Subject{Kind: kind, View: h.View, Block: canon.Hash("aweigh/header/1", h)}); c.Subject != want {
		return fmt.Errorf("a certificate of %v under %v", c.Subject, want)
	}
	return w.certificate(h.Domain(), c)
}

// evidence reports what is wrong with a block's Evidence; votes to finalize are left out.
func (s *signatures) evidence(e scope.Evidence) error {
	for _, f := range e.Proofs {
		if err := s.fault(f); err != nil {
			return err
		}
	}
	for _, raw := range e.Ballots {
		if err := s.motionBallot(raw); err != nil {
			return err
		}
	}
	return nil
}
