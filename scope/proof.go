package scope

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/votes"
)

// ErrProof is wrapped by errors about proofs that do not show what they claim.
var ErrProof = errors.New("scope: the proof does not hold")

// KeyProof shows that a change of a key is part of the scope's final history: what it wrote, whose mutation asked for
// it, which anchors made that final and with what weight, and, if the policy requires approval, which voters approved.
// A verifier needs only the network's identity. The proof does not show that no later change followed; signed heads
// do.
type KeyProof struct {
	_        struct{}  `cbor:",toarray"`
	Ancestry Ancestry  // to any block after the change
	Change   Listed    // the entry of the change
	Kv       *KeyValue // what it wrote; nil for a deletion
	Origin   Origin    // of the mutation; zero for what was taken over from the parent
	Assent   *Assent   // if Origin opened a motion, which was carried; nil if it applied at once
}

// Report is what a KeyProof shows.
type Report struct {
	Entry    lineage.Entry
	Kv       *KeyValue       // nil for a deletion
	Mutation Mutation        // zero if no mutation asked for the change: Entry.Reason is its cause
	Author   votes.PublicKey // likewise
	Origin   Attestation     // of the block that carried the mutation, or made the change; zero if Taken
	Head     Attestation     // of the block whose lineage includes the entry
	Under    *Epoch          // of Origin: by whose rules and weights it became final
	Approved *Approved       // by whom, if it took a motion
	Taken    *Descent        // of the scope, if it took the key over from its parent, which has the earlier history
}

// NewKeyProof collects the proof for the newest change of a key in s. Origin is
// the block that carried its mutation, and final the finality of that: the block
// that Entry names by its height or, for a motion, the one that opened it, whose
// minutes are needed then. The ancestry's head is that of a later block than the
// change, which s must include or be the parent of. Compaction takes deletions out
// of reach. The error wraps ErrElsewhere for a key that went to another scope.
func NewKeyProof(a Ancestry, s *State, key []byte, origin *Block, final Finality, m *Minutes) (*KeyProof, error) {
	p := &KeyProof{Ancestry: a}
	v, ok, err := s.NewestChange(key)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("%w: %q", ErrKeyNotFound, key)
	}
	if v.Version != 0 {
		p.Kv = &v
	}
	log := s.Lineage()
	if p.Change, err = a.list(log, v.Entry); err != nil {
		return nil, err
	}
	if handed(&p.Change.Entry) {
		return p, nil
	}
	if p.Change.Entry.Class == lineage.HandedOver { // by a decision, which is no motion on the key
		return nil, fmt.Errorf("%w: %q went there", ErrElsewhere, key)
	}
	if p.Change.Entry.Mutation.IsZero() {
		p.Origin = Origin{Final: final}
		return p, nil
	}
	if p.Origin, err = originOf(p.Change.Entry.Mutation, origin, final); err != nil || m == nil {
		return p, err
	}
	p.Assent, err = newAssent(&a, log, m, v.Entry)
	return p, err
}

// Verify checks everything that the proof claims, from the network's identity
// alone. Errors wrap ErrProof.
func (p *KeyProof) Verify(network aweigh.NetworkID) (Report, error) {
	r, err := p.verify(network)
	if err != nil {
		return Report{}, fmt.Errorf("%w: %w", ErrProof, err)
	}
	return r, nil
}

func (p *KeyProof) verify(network aweigh.NetworkID) (Report, error) {
	origin, last, err := p.Ancestry.follow(network, p.Origin.Final.Header.Epoch)
	if err != nil {
		return Report{}, err
	}
	if err := p.Ancestry.lists(&p.Change); err != nil {
		return Report{}, err
	}
	if err := p.Change.wrote(p.Kv); err != nil {
		return Report{}, err
	}
	if g := &p.Ancestry.Genesis; !bytes.HasPrefix(p.Change.Entry.Key, g.Prefix()) || p.Change.Entry.Scope != g.Hash() {
		return Report{}, fmt.Errorf("scope %q decides nothing about %q", g.Prefix(), p.Change.Entry.Key)
	}
	if e := &p.Change.Entry; handed(e) {
		g := &p.Ancestry.Genesis
		if g.Descent == nil || e.Scope != g.Hash() || p.Assent != nil || !bytes.Equal(canon.Encode(p.Origin), canon.Encode(Origin{})) {
			return Report{}, errors.New("a change that was taken over, without a scope that it was taken from, or with an author")
		}
		return Report{Entry: *e, Kv: p.Kv, Head: p.Ancestry.Head.attestation(last), Under: origin, Taken: g.Descent}, nil
	}
	var m Mutation
	if p.Change.Entry.Mutation.IsZero() {
		err = p.Origin.authorless(&p.Change.Entry, origin)
	} else {
		m, err = p.Origin.verify(origin)
	}
	if err != nil {
		return Report{}, err
	}
	r := Report{
		Entry: p.Change.Entry, Kv: p.Kv, Mutation: m, Author: p.Origin.Author,
		Origin: p.Origin.Final.attestation(origin), Head: p.Ancestry.Head.attestation(last), Under: origin,
	}
	e := &p.Change.Entry
	switch {
	case e.Mutation.IsZero() && p.Assent == nil:
	case p.Assent != nil:
		r.Approved, err = p.Assent.verify(&p.Ancestry, &p.Origin, &m, &p.Change, p.Kv, origin)
	case !p.Origin.entered(e, &m):
		err = errors.New("another mutation, author or block than the entry names")
	case m.writes() && origin.Policy.guard(e, m.asksBy()) != nil:
		err = errors.New("the policy asks for approval of the change, and the proof shows none")
	}
	return r, err
}

// guard is the approval that the change of an entry takes, nil if it takes none; verb is that of an action.
func (p *Policy) guard(e *lineage.Entry, verb string) *Approval {
	op := Op{Kind: OpPut, Key: e.Key}
	if e.Class.Clears() {
		op.Kind = OpDelete
	}
	needed, _ := p.covering(&op, verb) // of one key it never fails
	return needed
}

// wrote checks that the entry wrote a content; nil stands for a deletion.
func (l *Listed) wrote(v *KeyValue) error {
	e := &l.Entry
	switch {
	case !e.Class.Shows() && !e.Class.Clears():
		return fmt.Errorf("an entry of class %s changes no key", e.Class)
	case (v == nil) != e.Class.Clears():
		return errors.New("content without need, or need without content")
	case v == nil:
		return nil
	case !bytes.Equal(v.Key, e.Key) || v.UID != e.Object || v.ModRevision != e.Revision && !handed(e) || v.Entry != l.Place.Index:
		return errors.New("content of another change")
	case v.Digest() != e.Posterior:
		return errors.New("content that the entry does not name")
	}
	return nil
}

// MaxProofBytes bounds the encoding of a KeyProof, a MotionProof or a FaultProof. Each epoch since the genesis
// takes some 1.5 KB of it in a small roster.
const MaxProofBytes = 64 << 20

// Encode is the proof's canonical encoding.
func (p *KeyProof) Encode() []byte { return canon.Encode(p) }

// DecodeKeyProof reads what Encode wrote. It verifies nothing. Errors wrap
// ErrProof.
func DecodeKeyProof(data []byte) (*KeyProof, error) { return decodeProof[KeyProof](data) }

// decodeProof reads a proof of any kind within MaxProofBytes. It verifies nothing. Errors wrap ErrProof.
func decodeProof[T any](data []byte) (*T, error) {
	if len(data) > MaxProofBytes {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are taken", ErrProof, len(data), MaxProofBytes)
	}
	p := new(T)
	if err := canon.Decode(data, p); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProof, err)
	}
	return p, nil
}
