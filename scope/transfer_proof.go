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

// TransferProof shows that a scope sent a name to another one, or what that decided, by an entry of its lineage. A
// verifier needs only the network's identity.
type TransferProof struct {
	_        struct{}       `cbor:",toarray"`
	Ancestry Ancestry       // to any block after the entry
	Entry    Listed         // of class Sent, Received or Declined
	Kv       *KeyValue      // of what was sent, and only of that: the object as it was
	To       []byte         // likewise, as in Sent
	Until    aweigh.Instant // likewise
	Number   int64          // likewise
	Asked    *SignedBy      // likewise: that the author asked for it
}

// SignedBy shows that an author signed a mutation.
type SignedBy struct {
	_        struct{} `cbor:",toarray"`
	Mutation []byte   // encoding
	Author   votes.PublicKey
	Bundle   []aweigh.Hash // the identities of all mutations that Author signed with it
	Reserve  int64         // of that bundle
	Bundled  uint32        // its place among them
	Signed   []byte        // Author's signature on the bundle
}

// asked is the part of an Origin that shows that.
func (o *Origin) asked() *SignedBy {
	return &SignedBy{Mutation: o.Mutation, Author: o.Author, Bundle: o.Bundle, Reserve: o.Reserve, Bundled: o.Bundled, Signed: o.Signed}
}

// Carrying brings a TransferProof from one scope to the other.
type Carrying struct {
	_     struct{} `cbor:",toarray"`
	Key   []byte   // under which the name was sent that the proof decides about; empty for a name that is sent
	Proof TransferProof
}

// CheckedCarrying is a Carrying of a proper form. Once it is verified, its proof holds in a network.
type CheckedCarrying struct {
	Carrying
	network aweigh.NetworkID
	bytes   int
}

const (
	// maxSentKey bounds either name of what is sent, in bytes.
	maxSentKey = 4 << 10
	// maxSentReason bounds the reason of an entry about what is sent, in bytes.
	maxSentReason = 1 << 10
)

// NewTransferSent shows what a scope sent, whose state is s. The ancestry's head is that of a later block than the
// entry, which s must include or be the parent of. Origin is the block that carried the mutation, as in NewKeyProof.
func NewTransferSent(a Ancestry, s *State, sent *Sent, origin *Block) (*TransferProof, error) {
	v, ok, err := s.newest(sent.Key)
	if err == nil && !ok {
		err = fmt.Errorf("%w: %q was sent, and is not there", ErrCorrupt, sent.Key)
	}
	if err != nil {
		return nil, err
	}
	v.Key = sent.Key
	p := &TransferProof{Ancestry: a, Kv: &v, To: sent.To, Until: sent.Until, Number: sent.Number}
	if p.Entry, err = a.list(s.Lineage(), sent.Entry); err != nil {
		return nil, err
	}
	o, err := originOf(p.Entry.Entry.Mutation, origin, Finality{})
	p.Asked = o.asked()
	return p, err
}

// NewTransferDecided shows what a scope, whose state is s, decided about a name, by the index of its entry. The
// ancestry is that of NewTransferSent.
func NewTransferDecided(a Ancestry, s *State, entry int64) (*TransferProof, error) {
	l, err := a.list(s.Lineage(), entry)
	return &TransferProof{Ancestry: a, Entry: l}, err
}

// Network is the one in which the proof was verified.
func (c *CheckedCarrying) Network() aweigh.NetworkID { return c.network }

// checkCarrying reads a Carrying. It leaves all that takes work for an author to verify, whose signature comes first.
func checkCarrying(content []byte) (*CheckedCarrying, error) {
	c := &CheckedCarrying{bytes: len(content)}
	if err := canon.Decode(content, &c.Carrying); err != nil {
		return nil, err
	}
	p := &c.Proof
	sent, e := p.Entry.Entry.Class == lineage.Sent, &p.Entry.Entry
	switch class := e.Class; {
	case class != lineage.Sent && class != lineage.Received && class != lineage.Declined:
		return nil, fmt.Errorf("an entry of class %s, which sends nothing and decides about nothing that was sent", class)
	case len(c.Key) > maxSentKey || len(e.Key) > maxSentKey || len(p.To) > maxSentKey || len(e.Reason) > maxSentReason:
		return nil, fmt.Errorf("aliases of more than %d bytes, or a reason of more than %d", maxSentKey, maxSentReason)
	case sent && (len(c.Key) > 0 || p.Kv == nil || p.Asked == nil || len(p.To) == 0):
		return nil, errors.New("what was sent, without the object, or with what it answers")
	case !sent && (len(c.Key) == 0 || p.Kv != nil || len(p.To) > 0 || p.Until != 0 || p.Number != 0 || p.Asked != nil):
		return nil, errors.New("a decision that names no alias, or with an object")
	case sent && (p.Kv.UID.IsZero() || p.Kv.Version < 1 || p.Number < p.Kv.Version || p.Until < 1):
		return nil, errors.New("what was sent as no version of an object")
	}
	return c, nil
}

// verify checks the proof, with the signatures of its certificates.
func (c *CheckedCarrying) verify() error {
	root, _ := c.Proof.Ancestry.Root()
	c.network = root.Hash()
	_, err := c.Proof.verify(c.network)
	return err
}

// Brief returns an error if the proof has more signatures than those of a fold's step may have (Bringing), and so takes
// too long to verify. It verifies nothing.
func (p *TransferProof) Brief(lim Limits) error {
	if n, most := p.Signatures(), maxRejoinSigned+lim.Anchors; n > most {
		return fmt.Errorf("%w: %d signatures, at most %d are taken", ErrProof, n, most)
	}
	return nil
}

// Signatures is how many have to be verified, but for the author's. Each epoch of the scopes on the way since their
// founding has those of a quorum.
func (p *TransferProof) Signatures() (n int) {
	a := &p.Ancestry
	count := func(chain []Handover, head *Finality) {
		for i := range chain {
			n += len(chain[i].Final.Certificate.Signatures)
		}
		n += len(head.Certificate.Signatures)
	}
	count(a.Handovers, &a.Head)
	for i := range a.Above {
		count(a.Above[i].Handovers, &a.Above[i].Head)
	}
	return n
}

// verify checks everything, and gives the epoch of the scope's newest block.
func (p *TransferProof) verify(network aweigh.NetworkID) (last *Epoch, err error) {
	if _, last, err = p.Ancestry.follow(network, p.Ancestry.Head.Header.Epoch); err != nil {
		return nil, err
	}
	return last, p.shows()
}

// shows checks what the proof says of its entry, and that the lineage of its head has that.
func (p *TransferProof) shows() error {
	if err := p.Ancestry.lists(&p.Entry); err != nil {
		return err
	}
	g, e := &p.Ancestry.Genesis, &p.Entry.Entry
	switch {
	case e.Scope != g.Hash() || !bytes.HasPrefix(e.Key, g.Prefix()):
		return fmt.Errorf("scope %q decides nothing about %q", g.Prefix(), e.Key)
	case e.Class != lineage.Sent && e.Class != lineage.Received && e.Class != lineage.Declined:
		return fmt.Errorf("an entry of class %s, which sends nothing and decides about nothing that was sent", e.Class)
	case e.Class != lineage.Sent && (p.Kv != nil || len(p.To) > 0 || p.Until != 0 || p.Number != 0 || p.Asked != nil):
		return errors.New("a decision with an object")
	case e.Class != lineage.Sent:
		return nil
	case p.Kv == nil || p.Asked == nil:
		return errors.New("what was sent, without the object, or without what its author signed")
	case e.Posterior != sentTo(p.To, p.Until, p.Number):
		return errors.New("it was sent to another alias, or until another time")
	case e.Prior != p.Kv.Digest() || !bytes.Equal(e.Key, p.Kv.Key) || p.Kv.Version < 1:
		return errors.New("another object than the one that was sent")
	}
	return p.asked()
}

// asked verifies that the author of the entry asked for it, whatever the scope says.
func (p *TransferProof) asked() error {
	e := &p.Entry.Entry
	o := Origin{
		Mutation: p.Asked.Mutation, Author: p.Asked.Author, Bundle: p.Asked.Bundle, Reserve: p.Asked.Reserve, Bundled: p.Asked.Bundled, Signed: p.Asked.Signed,
	}
	m, err := o.signed(e.Scope)
	if err != nil {
		return err
	}
	var n Naming
	if err := canon.Decode(m.Content, &n); err != nil || m.Class != Name {
		return errors.New("a mutation that sends nothing")
	}
	switch {
	case ID(p.Asked.Mutation) != e.Mutation || m.Author != e.Author || len(m.Grants) > 0 || m.Caller != e.Caller || m.Justification != e.Justification:
		return errors.New("another mutation or author than the entry names")
	case n.Kind != Send || !bytes.Equal(n.Key, e.Key) || !bytes.Equal(n.To, p.To) || n.Until != p.Until || n.Object != p.Kv.UID:
		return errors.New("the author sent something else")
	}
	return nil
}

// By verifies the proof, and gives the roster of the scope that made it, as of its newest block. Errors wrap ErrProof.
func (p *TransferProof) By(network aweigh.NetworkID) (r Roster, err error) {
	last, err := p.verify(network)
	if err != nil {
		return r, fmt.Errorf("%w: %w", ErrProof, err)
	}
	return last.Roster, nil
}

// Verify checks everything that the proof claims, from the network's identity alone. Errors wrap ErrProof.
func (p *TransferProof) Verify(network aweigh.NetworkID) error {
	_, err := p.By(network)
	return err
}

// Encode is the proof's canonical encoding.
func (p *TransferProof) Encode() []byte { return canon.Encode(p) }

// DecodeTransferProof reads what Encode wrote. It verifies nothing. Errors wrap ErrProof.
func DecodeTransferProof(data []byte) (*TransferProof, error) {
	return decodeProof[TransferProof](data)
}

// carryUnits is what a step costs besides its bytes.
const carryUnits = 1500

// work is what it costs to take a proof.
func (c *CheckedCarrying) work() int64 { return carryUnits + int64(c.bytes)/givenBytes }

// cost is what a step may cost at most, by its form: the object is written, too.
func (c *CheckedCarrying) cost() int64 { return c.work() + given(c.bytes) }
