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

// MotionProof shows that a motion is real: its mutation with the author's signature, the final block that ordered it,
// the rule and the voters, and what it found when it opened. A verifier needs only the network's identity, so a voter
// without a network can check it. It does not show whether the motion is still open.
type MotionProof struct {
	_        struct{} `cbor:",toarray"`
	Ancestry Ancestry // to any block after the opening, or to that block itself
	Origin   Origin   // of the mutation: the block that opened the motion
	Motion   Motion   // without its Mutation, which Origin has
	Opened   *Listed  // the entry of the opening; nil if no later block is final yet, which would name it
	Held     []Held   // what keys that it would change held then, as far as that was at hand
}

// Held is content of a key, with the change that wrote it.
type Held struct {
	_      struct{} `cbor:",toarray"`
	Kv     KeyValue
	Change Listed
}

// MotionReport is what a MotionProof shows.
type MotionReport struct {
	Network  aweigh.NetworkID
	Name     string // of the network
	Motion   Motion
	Mutation Mutation
	Txn      Txn       // unless it is a Decision
	Decision *Decision // nil if it is none
	Author   votes.PublicKey
	Origin   Attestation // of the block that opened it
	Head     Attestation // of the block whose lineage includes the opening
	Under    *Epoch      // of Origin
	Effects  []Effect    // of the branch that was chosen; none of a transaction with transactions within
	// Draft means that the proof names no block which opened the motion. The node that exported it states that none
	// had up to Head, and nothing can prove that. The mutation and its author are proven, and who may vote by each
	// approval of the policy of Under. Which approval it takes, which branch, and what it finds depend on when it
	// opens, so there are no Effects.
	Draft bool
	// Bare means that no block after the opening is known. Then the mutation, its author, the block, its anchors and
	// the policy are proven; but which of the policy's approvals it takes, whether its conditions held, and the
	// content that it found are only statements of the node that exported it.
	Bare bool
}

// Effect is one put or deletion of a motion.
type Effect struct {
	Op *Op
	// Copies is the version whose value a put of a change of names has, nil: the put has its own.
	Copies *Parent
	Keys   int64 // how many it found when the motion opened; if this is not so any more, the motion will be void
	// Found is all that it found, with the lease that a put names.
	Found Found
	// Held is their content, by key, or less where it was not available.
	Held []KeyValue
	// Proven means that the one key of the operation held just this, or nothing,
	// when the motion opened. For a range, Held was written at some time, but
	// may have been changed or deleted before the opening.
	Proven bool
}

const (
	maxHeldKeys  = 256     // of one range
	maxHeldBytes = 8 << 20 // of all content that a MotionProof shows
)

// NewMotionProof collects the proof for a motion. Origin is the block that opened
// it, and final its finality; the head of the ancestry is that of a later block,
// which s must include or be the parent of, or of that block, for a proof that is bare.
func NewMotionProof(a Ancestry, s *State, mo *Motion, origin *Block, final Finality) (*MotionProof, error) {
	p := &MotionProof{Ancestry: a, Motion: *mo}
	p.Motion.Mutation = nil
	log := s.Lineage()
	var err error
	if p.Origin, err = originOf(mo.ID(), origin, final); err != nil || a.Head.Header.Height == mo.Height {
		return p, err
	}
	opened, err := a.list(log, mo.Entry)
	if err != nil {
		return nil, err
	}
	p.Opened = &opened
	c, err := mo.content()
	if err != nil || c.Txn == nil {
		return p, err
	}
	all, ok := mo.Effects(c.Txn)
	if !ok {
		return p, nil
	}
	size := 0
	for i := range all {
		kvs, err := s.held(mo, &all[i])
		if err != nil {
			return nil, err
		}
		for _, v := range kvs {
			if size += len(v.Key) + len(v.Value); size > maxHeldBytes {
				return p, nil
			}
			l, err := a.list(log, v.Entry)
			if err != nil {
				return nil, err
			}
			p.Held = append(p.Held, Held{Kv: v, Change: l})
		}
	}
	return p, nil
}

// content is what the motion's mutation asks for: a transaction, which a change of names stands for as well, or a
// decision.
func (m *Motion) content() (c CheckedMutation, err error) {
	if err := c.open(m.Mutation, MostLimits()); err != nil {
		return c, err
	}
	if c.Naming != nil {
		c.Txn = c.Naming.txn()
	}
	if c.Txn == nil && c.Decision == nil {
		return c, fmt.Errorf("a mutation of class %s opens no motion", c.Class)
	}
	return c, nil
}

// Txn is the transaction that the motion is about, or the one that its change of names stands for; nil for one about a
// decision.
func (m *Motion) Txn() (*Txn, error) {
	c, err := m.content()
	return c.Txn, err
}

// Copies is the version whose value a change of names puts, nil if the motion is about something else, or puts nothing.
func (m *Motion) Copies() *Parent {
	c, err := m.content()
	n := c.Naming
	if err != nil || n == nil || n.Kind == Unbind {
		return nil
	}
	if n.Kind == Fork || n.Kind == Rollback {
		return &Parent{Object: n.Object, Key: n.From, Revision: n.Revision, Sub: n.Sub}
	}
	p := &Parent{Object: n.Object, Key: n.Key}
	if len(m.Basis) > 0 {
		p.Revision = m.Basis[0].Newest
	}
	return p
}

// Effects returns the puts and deletions of the branch that was chosen, with what they found. It returns false if there
// are nested transactions, because the branches that those took are not recorded.
func (m *Motion) Effects(t *Txn) (all []Effect, ok bool) {
	ops := t.Success
	if !m.Success {
		ops = t.Failure
	}
	copies := m.Copies()
	for i := range ops {
		switch op := &ops[i]; op.Kind {
		case OpTxn:
			return nil, false
		case OpPut, OpDelete:
			if len(all) == len(m.Basis) {
				return nil, false
			}
			e := Effect{Op: op, Keys: m.Basis[len(all)].Keys, Found: m.Basis[len(all)]}
			if op.Kind == OpPut && !op.IgnoreValue {
				e.Copies = copies
			}
			all = append(all, e)
		}
	}
	return all, len(all) == len(m.Basis)
}

// held is the content of an effect's keys when the motion opened, none if it is no
// longer available.
func (s *State) held(mo *Motion, e *Effect) ([]KeyValue, error) {
	if e.Keys == 0 || e.Keys > maxHeldKeys || mo.Revision < s.head.Compacted {
		return nil, nil
	}
	res, err := s.Range(e.Op.Key, e.Op.End, Range{Revision: mo.Revision})
	return res.Kvs, err
}

// Verify checks everything that the proof claims, from the network's identity
// alone. Errors wrap ErrProof.
func (p *MotionProof) Verify(network aweigh.NetworkID) (MotionReport, error) {
	r, err := p.verify(network)
	if err != nil {
		return MotionReport{}, fmt.Errorf("%w: %w", ErrProof, err)
	}
	return r, nil
}

func (p *MotionProof) verify(network aweigh.NetworkID) (r MotionReport, err error) {
	if p.drafted() {
		return p.verifyDraft(network)
	}
	in, last, err := p.Ancestry.follow(network, p.Origin.Final.Header.Epoch)
	if err != nil {
		return r, err
	}
	m, err := p.Origin.verify(in)
	if err != nil {
		return r, err
	}
	mo, err := p.Origin.opened(p.Motion, &m, &p.Ancestry, p.Opened, in)
	if err != nil {
		return r, err
	}
	r, effective, err := p.report(network, mo, &m, in, last)
	if err != nil {
		return r, err
	}
	r.Origin, r.Bare = p.Origin.Final.attestation(in), p.Opened == nil
	if (!effective || r.Bare) && len(p.Held) > 0 {
		return r, errors.New("content of keys that cannot be told from the motion")
	}
	return r, p.fill(r.Effects, mo)
}

// report is what a proof shows of a motion that is verified; effective means that all its effects are known.
func (p *MotionProof) report(network aweigh.NetworkID, mo *Motion, m *Mutation, in, last *Epoch) (r MotionReport, effective bool, err error) {
	c, err := mo.content()
	if err != nil {
		return r, false, err
	}
	r = MotionReport{
		Network: network, Name: p.Ancestry.Genesis.Name, Motion: *mo, Mutation: *m, Decision: c.Decision, Author: p.Origin.Author,
		Head: p.Ancestry.Head.attestation(last), Under: in,
	}
	if c.Txn != nil {
		r.Txn = *c.Txn
		r.Effects, effective = mo.Effects(c.Txn)
	}
	return r, effective, nil
}

// fill verifies what keys held, and adds it to the effects on them.
func (p *MotionProof) fill(effects []Effect, mo *Motion) error {
	rest := p.Held
	for i := range effects {
		e, f := &effects[i], mo.Basis[i]
		var before []byte
		for len(rest) > 0 && Within(rest[0].Kv.Key, e.Op.Key, e.Op.End) && int64(len(e.Held)) < f.Keys {
			v, l := &rest[0].Kv, &rest[0].Change
			if err := p.Ancestry.lists(l); err != nil {
				return err
			}
			if err := l.wrote(v); err != nil {
				return err
			}
			switch {
			case l.Place.Index >= p.Opened.Place.Index || v.ModRevision > f.Newest || f.Keys == 1 && v.ModRevision != f.Newest:
				return errors.New("content of another time than when the motion opened")
			case before != nil && bytes.Compare(before, v.Key) >= 0:
				return errors.New("content out of order")
			}
			before, rest = v.Key, rest[1:]
			e.Held = append(e.Held, *v)
		}
		e.Proven = len(e.Op.End) == 0 && int64(len(e.Held)) == f.Keys && p.Opened != nil
	}
	if len(rest) > 0 {
		return errors.New("content of keys that the motion does not change")
	}
	return nil
}

// Class is the effect's change of a key, which had content or not.
func (e *Effect) Class() lineage.Class {
	switch {
	case e.Op.Kind == OpDelete:
		return lineage.Delete
	case e.Keys > 0:
		return lineage.Update
	}
	return lineage.Insert
}

// Encode is the proof's canonical encoding.
func (p *MotionProof) Encode() []byte { return canon.Encode(p) }

// DecodeMotionProof reads what Encode wrote. It verifies nothing. Errors wrap
// ErrProof.
func DecodeMotionProof(data []byte) (*MotionProof, error) { return decodeProof[MotionProof](data) }
