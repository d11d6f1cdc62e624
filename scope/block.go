package scope

import (
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/votes"
)

// Format is the version of everything encoded in blocks and ballots.
const Format = 1

// Header is the subject of ballots: a block is named by its header's hash (P20).
type Header struct {
	_         struct{} `cbor:",toarray"`
	Format    uint16
	Network   aweigh.NetworkID
	Scope     aweigh.ScopeID
	Epoch     aweigh.Epoch
	View      aweigh.View
	Height    aweigh.Height
	Parent    aweigh.Hash
	Time      aweigh.Instant
	Proposer  aweigh.AnchorID
	Roster    aweigh.Hash
	Policy    aweigh.Hash
	Mutations aweigh.Hash // mutationsRoot of the content
	Evidence  aweigh.Hash // hash of the block's Evidence and of the reserves of its bundles, zero if there are none
	Next      aweigh.Hash // Terms.Hash of the next epoch if the block ends this one (P24), otherwise zero

	// As of the parent, that is before this block is executed:
	LineageSize int64       // entries in the log
	LineageRoot aweigh.Hash // RFC 6962 root of the log
	State       aweigh.Hash // digest of the state
	Current     aweigh.Hash // root of the tree of what the keys hold (P61)
}

// Hash names the block.
func (h Header) Hash() aweigh.Hash { return canon.Hash("aweigh/header/1", h) }

// Proof is the evidence of one fault that a block carries (P36).
type Proof = votes.Equivocation

// Evidence is the content of a block beside mutations: statements that others signed.
type Evidence struct {
	_        struct{} `cbor:",toarray"`
	Proofs   []Proof
	Attended []Attended
	Ballots  [][]byte // on motions (P31): encodings of votes.MotionBallot, by motion, voter and choice
	// Revocation is an order of the scope above that this block obeys, nil if it obeys none.
	Revocation *Revocation
}

// Empty reports whether there is none.
func (e *Evidence) Empty() bool {
	return len(e.Proofs)+len(e.Attended)+len(e.Ballots) == 0 && e.Revocation == nil
}

// Block is a header with the content that it names.
type Block struct {
	Header  Header
	Bundles []*CheckedBundle
	Evidence
	hash aweigh.Hash
}

// wireBlock is a Block's encoding.
type wireBlock struct {
	_        struct{} `cbor:",toarray"`
	Header   Header
	Bundles  [][]byte
	Evidence Evidence
}

// NewBlock fills the header's Mutations and Evidence from the content.
func NewBlock(h Header, bundles []*CheckedBundle, e Evidence) *Block {
	h.Mutations, h.Evidence = mutationsRoot(bundles), e.with(bundles)
	return &Block{Header: h, Bundles: bundles, Evidence: e, hash: h.Hash()}
}

// Assemble puts together a block that was announced by its header and the
// names of its bundles. It fails if the content is not what the header names;
// limits are left to Check.
func Assemble(h Header, bundles []*CheckedBundle, e Evidence) (*Block, error) {
	b := NewBlock(h, bundles, e)
	if b.Header != h {
		return nil, fmt.Errorf("%w: the block's content is not what its header names", ErrInvalid)
	}
	return b, nil
}

// Hash names the block.
func (b *Block) Hash() aweigh.Hash { return b.hash }

// Len is the number of mutations in the block.
func (b *Block) Len() (n int) {
	for _, c := range b.Bundles {
		n += len(c.mutations)
	}
	return n
}

// Encode is the block's canonical encoding, content included.
func (b *Block) Encode() []byte {
	w := wireBlock{Header: b.Header, Evidence: b.Evidence}
	for _, c := range b.Bundles {
		w.Bundles = append(w.Bundles, c.raw)
	}
	return canon.Encode(w)
}

// DecodeBlock reads and checks the canonical encoding of a block: every bundle
// in it is verified, unless verify is nil because the block comes from this
// node's own store. Errors wrap ErrInvalid. The evidence is left to CheckProofs,
// State.CheckAttended, State.CheckBallots and State.CheckRevocation.
func DecodeBlock(raw []byte, lim Limits, verify votes.Verifier) (*Block, error) {
	var w wireBlock
	if most := lim.BlockBytes + overhead; len(raw) > most {
		return nil, fmt.Errorf("%w: a block of %d bytes, at most %d are taken", ErrInvalid, len(raw), most)
	}
	if err := canon.Decode(raw, &w); err != nil {
		return nil, fmt.Errorf("%w: block: %w", ErrInvalid, err)
	}
	if verify == nil {
		verify = func(votes.PublicKey, votes.Context, []byte, []byte) error { return nil }
	}
	bundles := make([]*CheckedBundle, len(w.Bundles))
	for i, raw := range w.Bundles {
		c, err := CheckBundle(raw, lim, verify)
		if err != nil {
			return nil, err
		}
		bundles[i] = c
	}
	b, err := Assemble(w.Header, bundles, w.Evidence)
	if err != nil {
		return nil, err
	}
	return b, b.Check(lim)
}

// MaxProofs is how many proofs of fault a block may carry.
const MaxProofs = 64

// overhead is how much longer than its bundles a block's encoding may be: room
// for the header, for MaxProofs proofs under the largest signatures, and for
// ballots and a revocation.
const overhead = 1<<20 + 2*MaxAttendedBytes + 2*MaxBallotBytes + maxRevocation

// Check reports whether the block's content is within limits, and all of it for
// the scope that the header names. Errors wrap ErrInvalid.
func (b *Block) Check(lim Limits) error {
	size, cost := 0, int64(0)
	for _, c := range b.Bundles {
		size += len(c.raw)
		cost += c.cost
		if c.Scope() != b.Header.Scope {
			return fmt.Errorf("%w: a bundle for scope %s in a block of scope %s", ErrInvalid, c.Scope().Short(), b.Header.Scope.Short())
		}
	}
	switch {
	case size > lim.BlockBytes:
		return fmt.Errorf("%w: bundles of %d bytes, at most %d are taken", ErrInvalid, size, lim.BlockBytes)
	case cost > lim.BlockCost:
		return fmt.Errorf("%w: bundles that cost up to %d units, at most %d are taken", ErrInvalid, cost, lim.BlockCost)
	case b.Len() > lim.BlockMutations:
		return fmt.Errorf("%w: %d mutations, at most %d are taken", ErrInvalid, b.Len(), lim.BlockMutations)
	case len(b.Proofs) > MaxProofs:
		return fmt.Errorf("%w: %d proofs of fault, at most %d are taken", ErrInvalid, len(b.Proofs), MaxProofs)
	}
	return nil
}

// CheckProofs verifies the proofs of fault that the block carries, of its epoch or the one before,
// with the epoch's keyring. Errors wrap ErrInvalid and the reason, an error of package votes.
func (b *Block) CheckProofs(k *votes.Keyring, e *Epoch) error {
	for i := range b.Proofs {
		k := k
		if b.Proofs[i].First.Domain == e.Before {
			k = k.Under(e.Before, e.Gone...)
		}
		if err := b.Proofs[i].Check(k); err != nil {
			return fmt.Errorf("%w: proof %d: %w", ErrInvalid, i, err)
		}
	}
	return nil
}

// mutationsRoot names all mutations of a block in order: the zero Hash for none,
// otherwise a hash over their number and the RFC 6962 root over their
// identities. A root alone would not fix the number.
func mutationsRoot(bundles []*CheckedBundle) aweigh.Hash {
	leaves := mutationLeaves(bundles)
	if len(leaves) == 0 {
		return aweigh.Hash{}
	}
	return mutationsHash(lineage.Head{Size: int64(len(leaves)), Root: merkleRoot(leaves)})
}

func mutationsHash(h lineage.Head) aweigh.Hash {
	return canon.Hash("aweigh/mutations/1", h)
}

func mutationLeaves(bundles []*CheckedBundle) (leaves []tlog.Hash) {
	for _, c := range bundles {
		for i := range c.mutations {
			leaves = append(leaves, tlog.RecordHash(c.mutations[i].ID[:]))
		}
	}
	return leaves
}

// merkleRoot is the Merkle tree hash of RFC 6962, section 2.1, of at least one leaf.
func merkleRoot(leaves []tlog.Hash) aweigh.Hash {
	if len(leaves) == 1 {
		return aweigh.Hash(leaves[0])
	}
	k := split(len(leaves))
	return aweigh.Hash(tlog.NodeHash(tlog.Hash(merkleRoot(leaves[:k])), tlog.Hash(merkleRoot(leaves[k:]))))
}

// split is the largest power of two below n: how many leaves go to the left.
func split(n int) int {
	k := 1
	for k*2 < n {
		k *= 2
	}
	return k
}

// Hash names the evidence, zero if there is none.
func (e Evidence) Hash() aweigh.Hash {
	if e.Empty() {
		return aweigh.Hash{}
	}
	return canon.Hash("aweigh/evidence/1", e)
}

// with names the evidence together with the reserves of the bundles beside it, on which execution
// depends; without any reserve it is Hash. mutationsRoot names the mutations alone.
func (e Evidence) with(bundles []*CheckedBundle) aweigh.Hash {
	var reserves []reserve
	at := int64(0)
	for _, c := range bundles {
		if c.reserve != 0 {
			reserves = append(reserves, reserve{First: at, Mutations: int64(len(c.mutations)), Units: c.reserve})
		}
		at += int64(len(c.mutations))
	}
	if len(reserves) == 0 {
		return e.Hash()
	}
	return canon.Hash("aweigh/reserves/1", struct {
		_        struct{} `cbor:",toarray"`
		Evidence aweigh.Hash
		Reserves []reserve
	}{Evidence: e.Hash(), Reserves: reserves})
}

// reserve is that of a bundle in a block.
type reserve struct {
	_         struct{} `cbor:",toarray"`
	First     int64    // place of its first mutation among those of the block
	Mutations int64    // that it is for
	Units     int64
}

// Domain is what the ballots on blocks under this header are bound to (P5).
func (h Header) Domain() votes.Domain {
	return votes.Domain{Network: h.Network, Scope: h.Scope, Epoch: h.Epoch, Roster: h.Roster, Policy: h.Policy}
}

// Opens reports whether a mutation of the block is the one that a motion is about.
func (b *Block) Opens(id votes.MotionID) bool {
	for _, c := range b.Bundles {
		for i := range c.mutations {
			if votes.MotionID(c.mutations[i].ID) == id {
				return true
			}
		}
	}
	return false
}
