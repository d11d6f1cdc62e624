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

// Ancestry leads from a network's root, and from a scope's genesis, to a final block,
// whose header names the lineage before it.
type Ancestry struct {
	_         struct{} `cbor:",toarray"`
	Genesis   Genesis
	Handovers []Handover // from epoch 0 to that of Head
	Head      Finality
	Above     []Step // from the root scope to the parent of Genesis' scope; none for the root scope
}

// follow verifies the way from the network's identity to the final block, and gives
// the epochs of an earlier block and of that one.
func (a *Ancestry) follow(network aweigh.NetworkID, earlier aweigh.Epoch) (then, last *Epoch, err error) {
	if err := a.Genesis.descends(network, a.Above); err != nil {
		return nil, nil, err
	}
	return a.epochs(earlier)
}

// epochs verifies the way from the genesis to the final block.
func (a *Ancestry) epochs(earlier aweigh.Epoch) (then, last *Epoch, err error) {
	if then, err = a.Genesis.Epoch(); err != nil {
		return nil, nil, err
	}
	if earlier > aweigh.Epoch(len(a.Handovers)) || a.Head.Header.Epoch != aweigh.Epoch(len(a.Handovers)) {
		return nil, nil, fmt.Errorf("%d handovers for blocks of epochs %d and %d", len(a.Handovers), earlier, a.Head.Header.Epoch)
	}
	if then, err = then.followAll(a.Handovers[:earlier]); err != nil {
		return nil, nil, err
	}
	if last, err = then.followAll(a.Handovers[earlier:]); err != nil {
		return nil, nil, err
	}
	return then, last, a.Head.CheckIn(last)
}

// Listed is an entry with its place in the lineage that an Ancestry's head names.
type Listed struct {
	_     struct{} `cbor:",toarray"`
	Entry lineage.Entry
	Place lineage.Inclusion
}

// list finds an entry.
func (a *Ancestry) list(log *lineage.Log, index int64) (l Listed, err error) {
	var ok bool
	if l.Entry, ok, err = log.Entry(index); err == nil && !ok {
		err = fmt.Errorf("%w: no entry %d in the lineage", ErrCorrupt, index)
	}
	if err == nil {
		l.Place, err = log.Prove(index, a.Head.Header.LineageSize)
	}
	return l, err
}

// lists verifies that an entry stands in the lineage.
func (a *Ancestry) lists(l *Listed) error {
	h := &a.Head.Header
	return l.Place.Verify(l.Entry.Hash(), lineage.Head{Size: h.LineageSize, Root: h.LineageRoot})
}

// Origin shows that a block carried a mutation, and that its author signed it.
type Origin struct {
	_         struct{} `cbor:",toarray"`
	Final     Finality
	Mutations lineage.Head      // what the block's header names by Mutations
	Mutation  []byte            // encoding
	Place     lineage.Inclusion // of the mutation in Mutations
	Author    votes.PublicKey
	Bundle    []aweigh.Hash // the identities of all mutations that Author signed with it
	Reserve   int64         // of that bundle
	Bundled   uint32        // its place among them
	Signed    []byte        // Author's signature on the bundle
}

// originIn is the part of an Origin that a bundle shows of its nth mutation.
func originIn(c *CheckedBundle, nth int) Origin {
	o := Origin{Mutation: c.mutations[nth].raw, Author: c.author, Signed: c.signature, Reserve: c.reserve, Bundled: uint32(nth)}
	for i := range c.mutations {
		o.Bundle = append(o.Bundle, c.mutations[i].ID)
	}
	return o
}

// originOf finds a mutation in the block that carried it.
func originOf(id aweigh.Hash, b *Block, final Finality) (Origin, error) {
	leaves := mutationLeaves(b.Bundles)
	at := 0
	for _, c := range b.Bundles {
		for i := range c.mutations {
			if m := &c.mutations[i]; m.ID == id {
				o := originIn(c, i)
				o.Final = final
				o.Mutations = lineage.Head{Size: int64(len(leaves)), Root: merkleRoot(leaves)}
				o.Place = lineage.Inclusion{Index: int64(at), Size: o.Mutations.Size, Path: auditPath(leaves, at)}
				return o, nil
			}
			at++
		}
	}
	return Origin{}, fmt.Errorf("%w: block %d does not carry the mutation", ErrProof, b.Header.Height)
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

// verify checks everything within the block of an epoch.
func (o *Origin) verify(in *Epoch) (m Mutation, err error) {
	if err := o.Final.CheckIn(in); err != nil {
		return m, err
	}
	h, id := &o.Final.Header, ID(o.Mutation)
	if m, err = o.signed(h.Scope); err != nil {
		return m, err
	}
	if mutationsHash(o.Mutations) != h.Mutations {
		return m, errors.New("mutations that the block does not name")
	}
	return m, o.Place.Verify(aweigh.Hash(tlog.RecordHash(id[:])), o.Mutations)
}

// signed verifies that the author signed the mutation, for a scope.
func (o *Origin) signed(id aweigh.ScopeID) (m Mutation, err error) {
	if err := canon.Decode(o.Mutation, &m); err != nil {
		return m, err
	}
	switch {
	case m.Scope != id:
		return m, errors.New("a mutation of another scope than the block's")
	case m.Author != o.Author.ID():
		return m, errors.New("another author than the mutation names")
	case int(o.Bundled) >= len(o.Bundle) || o.Bundle[o.Bundled] != ID(o.Mutation):
		return m, errors.New("the author's bundle does not hold the mutation")
	}
	bundle := bundleID(m.Author, o.Reserve, o.Bundle)
	return m, votes.Verify(o.Author, votes.ContextBundle, bundle[:], o.Signed)
}

// authorless checks the proof of a change that no mutation asked for: the block's time caused it, and it has no author.
func (o *Origin) authorless(e *lineage.Entry, in *Epoch) error {
	if err := o.Final.CheckIn(in); err != nil {
		return err
	}
	h := &o.Final.Header
	switch {
	case e.Scope != h.Scope || e.Height != h.Height || e.Policy != h.Policy || e.Roster != h.Roster:
		return errors.New("another block than the entry names")
	case !byTime(e.Class) || !e.Author.IsZero() || len(e.Principal) > 0 || e.Reason == "":
		return errors.New("a change that no mutation asked for, of a wrong class, with an author or without a reason")
	case len(o.Mutation)+len(o.Author.Bytes)+len(o.Author.Scheme)+len(o.Bundle)+len(o.Signed)+len(o.Place.Path) > 0,
		o.Bundled != 0, o.Reserve != 0, o.Mutations != lineage.Head{}, o.Place.Index != 0, o.Place.Size != 0:
		return errors.New("an author of a change that no mutation asked for")
	}
	return nil
}

// byTime reports whether an entry of a class may be of no mutation: a lease ended, or a scope came home.
func byTime(c lineage.Class) bool {
	return c.Clears() && c != lineage.Left || c == lineage.Update || c == lineage.CameHome || c == lineage.AliasFollow
}

// about reports whether an entry is about the mutation.
func (o *Origin) about(e *lineage.Entry, m *Mutation) bool {
	return e.Mutation == ID(o.Mutation) && e.Author == m.Author && bytes.Equal(e.Principal, m.Granted()) && e.Scope == m.Scope &&
		e.Justification == m.Justification && e.Caller == m.Caller
}

// entered reports whether an entry is about the mutation and made by its block.
func (o *Origin) entered(e *lineage.Entry, m *Mutation) bool {
	h := &o.Final.Header
	return o.about(e, m) && e.Height == h.Height && e.Policy == h.Policy && e.Roster == h.Roster
}
