package scope

import (
	"bytes"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/votes"
)

// ErrProof is wrapped by errors about proofs that do not show what they claim.
var ErrProof = errors.New("scope: the proof does not hold")

// KeyProof shows, to whoever knows the network's identity and nothing else, that
// a change of a key stands in the scope's final history: what it wrote, whose
// mutation asked for it, which anchors made that final and with what weight. It
// does not show that no later change followed; that is the business of signed
// heads.
type KeyProof struct {
	_         struct{} `cbor:",toarray"`
	Genesis   Genesis
	Entry     lineage.Entry
	Inclusion lineage.Inclusion // of Entry in the lineage that Head names
	Head      Finality          // of any block after Origin
	Kv        *KeyValue         // what Entry wrote; nil for a deletion
	Handovers []Handover        // from epoch 0 to that of Head, which is not before Origin's

	Origin    Finality          // of the block that carried the mutation
	Mutations lineage.Head      // what that block's header names by Mutations
	Mutation  []byte            // the mutation's encoding
	Place     lineage.Inclusion // of the mutation in Mutations
	Author    votes.PublicKey
	Bundle    []aweigh.Hash // the identities of all mutations that Author signed with it
	Bundled   uint32        // its place among them
	Signed    []byte        // Author's signature on the bundle
}

// Report is what a KeyProof shows.
type Report struct {
	Entry    lineage.Entry
	Kv       *KeyValue // nil for a deletion
	Mutation Mutation
	Author   votes.PublicKey
	Origin   Attestation // of the block that carried the mutation
	Head     Attestation // of the block whose lineage includes the entry
	Under    *Epoch      // of Origin: by whose rules and weights it became final
}

// NewKeyProof collects the proof for the newest change of a key in s. Origin is
// the block that carried it, which Entry names by its height; final is its
// finality, and head that of a later block, which s must include or be the
// parent of. The handovers lead to the epoch of head. Compaction takes deletions
// out of reach.
func NewKeyProof(g Genesis, handovers []Handover, s *State, key []byte, origin *Block, final, head Finality) (*KeyProof, error) {
	p := &KeyProof{Genesis: g, Handovers: handovers, Head: head, Origin: final}
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
	if p.Entry, ok, err = log.Entry(v.Entry); err == nil && !ok {
		err = fmt.Errorf("%w: no entry %d in the lineage", ErrCorrupt, v.Entry)
	}
	if err != nil {
		return nil, err
	}
	if p.Inclusion, err = log.Prove(v.Entry, head.Header.LineageSize); err != nil {
		return nil, err
	}
	if !p.place(origin) {
		return nil, fmt.Errorf("%w: block %d does not carry the mutation", ErrProof, origin.Header.Height)
	}
	return p, nil
}

// place finds the entry's mutation in the block that carried it.
func (p *KeyProof) place(origin *Block) bool {
	leaves := mutationLeaves(origin.Bundles)
	at := 0
	for _, c := range origin.Bundles {
		for i := range c.mutations {
			if m := &c.mutations[i]; m.ID == p.Entry.Mutation {
				p.Mutation, p.Author, p.Signed, p.Bundled = m.raw, c.author, c.signature, uint32(i)
				for j := range c.mutations {
					p.Bundle = append(p.Bundle, c.mutations[j].ID)
				}
				p.Mutations = lineage.Head{Size: int64(len(leaves)), Root: merkleRoot(leaves)}
				p.Place = lineage.Inclusion{Index: int64(at), Size: p.Mutations.Size, Path: auditPath(leaves, at)}
				return true
			}
			at++
		}
	}
	return false
}

// auditPath is the Merkle audit path of RFC 6962, section 2.1.1.
func auditPath(leaves []tlog.Hash, at int) []aweigh.Hash {
	if len(leaves) == 1 {
		return nil
	}
	k := split(len(leaves))
	if at < k {
		return append(auditPath(leaves[:k], at), merkleRoot(leaves[k:]))
	}
	return append(auditPath(leaves[k:], at-k), merkleRoot(leaves[:k]))
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
	if p.Genesis.Hash() != network {
		return Report{}, errors.New("it starts from the genesis of another network")
	}
	if _, err := p.Genesis.Check(); err != nil {
		return Report{}, err
	}
	origin, err := p.Genesis.Epoch()
	if err != nil {
		return Report{}, err
	}
	n := p.Origin.Header.Epoch
	if n > aweigh.Epoch(len(p.Handovers)) || p.Head.Header.Epoch != aweigh.Epoch(len(p.Handovers)) {
		return Report{}, fmt.Errorf("%d handovers for blocks of epochs %d and %d", len(p.Handovers), n, p.Head.Header.Epoch)
	}
	if origin, err = origin.FollowAll(p.Handovers[:n]); err != nil {
		return Report{}, err
	}
	if err := p.Origin.CheckIn(origin); err != nil {
		return Report{}, err
	}
	last, err := origin.FollowAll(p.Handovers[n:])
	if err != nil {
		return Report{}, err
	}
	if err := p.Head.CheckIn(last); err != nil {
		return Report{}, err
	}
	h := &p.Head.Header
	if err := p.Inclusion.Verify(p.Entry.Hash(), lineage.Head{Size: h.LineageSize, Root: h.LineageRoot}); err != nil {
		return Report{}, err
	}
	if err := p.verifyContent(); err != nil {
		return Report{}, err
	}
	m, err := p.verifyMutation()
	if err != nil {
		return Report{}, err
	}
	return Report{
		Entry: p.Entry, Kv: p.Kv, Mutation: m, Author: p.Author,
		Origin: p.Origin.attestation(origin.Roster), Head: p.Head.attestation(last.Roster), Under: origin,
	}, nil
}

// verifyContent checks that Kv is what Entry wrote.
func (p *KeyProof) verifyContent() error {
	e, v := &p.Entry, p.Kv
	switch {
	case !e.Class.Shows() && !e.Class.Clears():
		return fmt.Errorf("an entry of class %s changes no key", e.Class)
	case (v == nil) != e.Class.Clears():
		return errors.New("content without need, or need without content")
	case v == nil:
		return nil
	case !bytes.Equal(v.Key, e.Key) || v.UID != e.Object || v.ModRevision != e.Revision || v.Entry != p.Inclusion.Index:
		return errors.New("content of another change")
	case v.Digest() != e.Posterior:
		return errors.New("content that the entry does not name")
	}
	return nil
}

// verifyMutation checks that Author signed the mutation that Entry names, and
// that Origin carried it.
func (p *KeyProof) verifyMutation() (m Mutation, err error) {
	e, h := &p.Entry, &p.Origin.Header
	id := ID(p.Mutation)
	if err := canon.Decode(p.Mutation, &m); err != nil {
		return m, err
	}
	switch author := p.Author.ID(); {
	case id != e.Mutation:
		return m, errors.New("another mutation than the entry names")
	case m.Scope != h.Scope || e.Scope != h.Scope || e.Height != h.Height || e.Policy != h.Policy || e.Roster != h.Roster:
		return m, errors.New("another block than the entry names")
	case m.Author != author || e.Author != author:
		return m, errors.New("another author than the entry names")
	case int(p.Bundled) >= len(p.Bundle) || p.Bundle[p.Bundled] != id:
		return m, errors.New("the author's bundle does not hold the mutation")
	}
	bundle := bundleID(m.Author, p.Bundle)
	if err := votes.Verify(p.Author, votes.ContextBundle, bundle[:], p.Signed); err != nil {
		return m, err
	}
	if mutationsHash(p.Mutations) != h.Mutations {
		return m, errors.New("mutations that the block does not name")
	}
	return m, p.Place.Verify(aweigh.Hash(tlog.RecordHash(id[:])), p.Mutations)
}

// MaxProofBytes bounds the encoding of a KeyProof. Each epoch since the genesis
// takes some 1.5 KB of it in a small roster.
const MaxProofBytes = 64 << 20

// Encode is the proof's canonical encoding.
func (p *KeyProof) Encode() []byte { return canon.Encode(p) }

// DecodeKeyProof reads what Encode wrote. It verifies nothing. Errors wrap
// ErrProof.
func DecodeKeyProof(data []byte) (*KeyProof, error) {
	if len(data) > MaxProofBytes {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are taken", ErrProof, len(data), MaxProofBytes)
	}
	p := new(KeyProof)
	if err := canon.Decode(data, p); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProof, err)
	}
	return p, nil
}
