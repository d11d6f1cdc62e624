package scope

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/votes"
)

// Bundle is mutations that one author signed together, so that the cost of a
// signature is shared by all that were waiting at the same time. It is the unit
// in which mutations travel and stand in blocks.
type Bundle struct {
	_         struct{} `cbor:",toarray"`
	Author    votes.PublicKey
	Mutations [][]byte // canonical encodings of Mutation
	Reserve   int64    // units of cost that the mutations may take together beyond what the form of each allows; see CheckedBundle.Cost
	Signature []byte   // over the bundle's identity
}

// CheckedBundle is a Bundle known to be well-formed, within limits and signed
// by its author. Only Sign and Check make one, so that nothing unverified can
// reach a block.
type CheckedBundle struct {
	id        aweigh.Hash
	raw       []byte
	mutations []CheckedMutation
	author    votes.PublicKey
	signature []byte
	until     aweigh.Instant
	reserve   int64
	cost      int64
	looks     int64
	limits    Limits // that it is within
}

// CheckedMutation is one mutation of a CheckedBundle with its content decoded.
type CheckedMutation struct {
	Mutation
	ID       aweigh.Hash
	Txn      *Txn           // for Write, and for an Act of class write
	Comp     *Compaction    // for Compact
	Decision *Decision      // for Govern
	Lease    *LeaseRequest  // for Lease
	Naming   *Naming        // for Name
	Action   *Action        // for Act
	Motion   votes.MotionID // for Withdraw
	Access   *Access        // for Permit
	Rejoins  *CheckedRejoining
	Brings   *CheckedBringing
	Carries  *CheckedCarrying
	raw      []byte
	grants   []Grant
	allowed  int64 // units of cost, by its form
}

// ID names the bundle: the hash over its author, its reserve and its mutations.
func (c *CheckedBundle) ID() aweigh.Hash { return c.id }

// Raw is the bundle's canonical encoding.
func (c *CheckedBundle) Raw() []byte { return c.raw }

// Scope is the one that all its mutations name.
func (c *CheckedBundle) Scope() aweigh.ScopeID { return c.mutations[0].Scope }

// Author is the key that signed it.
func (c *CheckedBundle) Author() votes.PublicKey { return c.author }

// Mutations are the bundle's mutations, in order.
func (c *CheckedBundle) Mutations() []CheckedMutation { return c.mutations }

// ValidUntil is the last instant at which any of its mutations may apply.
func (c *CheckedBundle) ValidUntil() aweigh.Instant { return c.until }

// Patient reports whether the one mutation of the bundle is patient.
func (c *CheckedBundle) Patient() bool { return c.mutations[0].Patient }

// Reserve is what its author declares that the mutations may cost beyond what their form allows.
func (c *CheckedBundle) Reserve() int64 { return c.reserve }

// CheckedWithin reports whether the bundle was checked under these limits.
func (c *CheckedBundle) CheckedWithin(lim Limits) bool { return c.limits == lim }

// Cost is the most units of work that executing the bundle may take: what the form of its mutations
// allows, and its reserve. A unit is about a microsecond of one processor; see budget.go.
func (c *CheckedBundle) Cost() int64 { return c.cost }

// Looks is the part of the cost that is not for puts, and so is not in proportion to the bundle's
// bytes.
func (c *CheckedBundle) Looks() int64 { return c.looks }

func bundleID(author aweigh.Hash, reserve int64, ids []aweigh.Hash) aweigh.Hash {
	parts := make([][]byte, 0, len(ids)+3)
	parts = append(parts, []byte("aweigh/bundle/2"), author[:], binary.BigEndian.AppendUint64(nil, uint64(reserve)))
	for i := range ids {
		parts = append(parts, ids[i][:])
	}
	return aweigh.Sum(parts...)
}

// Sign makes a bundle of mutations, whose Author is set to the signer's, without a reserve.
func Sign(key votes.PrivateKey, lim Limits, mutations ...Mutation) (*CheckedBundle, error) {
	return SignReserving(0, key, lim, mutations...)
}

// SignReserving is Sign with a reserve, as State.Price names it.
func SignReserving(reserve int64, key votes.PrivateKey, lim Limits, mutations ...Mutation) (*CheckedBundle, error) {
	return SignBy(key.Signer(), reserve, lim, mutations...)
}

// SignBy is SignReserving with a signer, which makes one signature. Errors wrap ErrInvalid, or are those of the signer.
func SignBy(key votes.Signer, reserve int64, lim Limits, mutations ...Mutation) (*CheckedBundle, error) {
	b, c, err := unsigned(key.Public(), reserve, lim, mutations)
	if err != nil {
		return nil, err
	}
	if _, err := c.proof(); err != nil {
		return nil, err
	}
	if err := c.within(votes.Verify); err != nil {
		return nil, err
	}
	if b.Signature, err = votes.SignWith(key, votes.ContextBundle, c.id[:]); err != nil {
		return nil, fmt.Errorf("scope: sign a bundle: %w", err)
	}
	c.signature = b.Signature
	c.raw = canon.Encode(b)
	if len(c.raw) > lim.BundleBytes {
		return nil, fmt.Errorf("%w: a bundle of %d bytes, at most %d are taken", ErrInvalid, len(c.raw), lim.BundleBytes)
	}
	return c, nil
}

// FormCost is CheckedBundle.Cost of a bundle of mutations without a reserve, which needs no signature. Errors wrap
// ErrInvalid.
func FormCost(author votes.PublicKey, lim Limits, mutations ...Mutation) (int64, error) {
	_, c, err := unsigned(author, 0, lim, mutations)
	if err != nil {
		return 0, err
	}
	return c.cost, nil
}

// unsigned is a bundle without its signature, and what was checked of it.
func unsigned(author votes.PublicKey, reserve int64, lim Limits, mutations []Mutation) (b Bundle, c *CheckedBundle, err error) {
	b = Bundle{Author: author, Reserve: reserve}
	id := author.ID()
	for _, m := range mutations {
		m.Author = id
		b.Mutations = append(b.Mutations, m.Encode())
	}
	c, err = b.open(lim)
	return b, c, err
}

// Proving is asked before a proof within a bundle is verified, which takes as long as so many signatures. The author
// has signed the bundle. Its error refuses the bundle.
type Proving func(author votes.PublicKey, signatures int) error

// Proves returns an error, which wraps ErrDenied, unless an author may bring in what another scope decided: its proof
// takes long to verify, and is verified for the nodes of anchors only.
func (e *Epoch) Proves(author votes.PublicKey) error {
	if _, acts := e.seats[author.ID()]; !acts {
		return denial{errNoAnchorsNode}
	}
	return nil
}

// BundleScope is the scope that the encoding of a bundle is for, of which nothing is verified. Errors wrap ErrInvalid.
func BundleScope(raw []byte) (aweigh.ScopeID, error) {
	var m Mutation
	if most := MostLimits().BundleBytes; len(raw) > most {
		return m.Scope, fmt.Errorf("%w: a bundle of %d bytes, at most %d are taken", ErrInvalid, len(raw), most)
	}
	b, err := decodeBundle(raw)
	if err == nil && len(b.Mutations) == 0 {
		err = errors.New("it has no mutations")
	}
	if err == nil {
		err = m.decode(b.Mutations[0])
	}
	if err != nil {
		return m.Scope, fmt.Errorf("%w: bundle: %w", ErrInvalid, err)
	}
	return m.Scope, nil
}

// CheckBundle decodes and verifies the canonical encoding of a Bundle, which
// must not be changed afterwards. Every error wraps ErrInvalid.
func CheckBundle(raw []byte, lim Limits, verify votes.Verifier) (*CheckedBundle, error) {
	return CheckBundleIf(raw, lim, verify, func(votes.PublicKey, int) error { return nil })
}

// CheckBundleIf is CheckBundle for a bundle of a stranger. Errors wrap ErrInvalid, or are those of may.
func CheckBundleIf(raw []byte, lim Limits, verify votes.Verifier, may Proving) (*CheckedBundle, error) {
	if len(raw) > lim.BundleBytes {
		return nil, fmt.Errorf("%w: a bundle of %d bytes, at most %d are taken", ErrInvalid, len(raw), lim.BundleBytes)
	}
	b, err := decodeBundle(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: bundle: %w", ErrInvalid, err)
	}
	c, err := b.open(lim)
	if err != nil {
		return nil, err
	}
	if err := verify(b.Author, votes.ContextBundle, c.id[:], b.Signature); err != nil {
		return nil, fmt.Errorf("%w: bundle: %w", ErrInvalid, err)
	}
	signatures, err := c.proof()
	if err == nil && c.mutations[0].Class.alone() {
		err = may(b.Author, signatures)
	}
	if err != nil {
		return nil, err
	}
	if err := c.within(verify); err != nil {
		return nil, err
	}
	c.raw = raw
	return c, nil
}

// maxDecisions bounds the decisions of one bundle: their consents are verified
// one by one.
const maxDecisions = 8

// proof is how many signatures the proof in the bundle has, which is of its only mutation then. It verifies nothing,
// and returns an error if they are more than a block can wait for.
func (c *CheckedBundle) proof() (signatures int, err error) {
	switch m := &c.mutations[0]; {
	case m.Rejoins != nil:
		signatures = m.Rejoins.signatures()
	case m.Brings != nil:
		signatures = m.Brings.signatures()
	case m.Carries != nil:
		signatures = m.Carries.Proof.Signatures()
	}
	if most := maxRejoinSigned + c.limits.Anchors; signatures > most {
		err = fmt.Errorf("%w: a proof of %d signatures, at most %d are taken", ErrInvalid, signatures, most)
	}
	return signatures, err
}

// within verifies the signatures within a bundle: of its grants, of the consents to its decisions, and of an island.
func (c *CheckedBundle) within(verify votes.Verifier) error {
	if err := verifyGrants(c.mutations[0].grants, verify); err != nil {
		return err
	}
	n := 0
	for i := range c.mutations {
		if r := c.mutations[i].Rejoins; r != nil {
			if err := r.verify(verify); err != nil {
				return fmt.Errorf("%w: an island: %w", ErrInvalid, err)
			}
		}
		if g := c.mutations[i].Brings; g != nil {
			if err := g.verify(verify); err != nil {
				return fmt.Errorf("%w: a scope that comes home: %w", ErrInvalid, err)
			}
		}
		if t := c.mutations[i].Carries; t != nil {
			if err := t.verify(); err != nil {
				return fmt.Errorf("%w: a name that moves between scopes: %w", ErrInvalid, err)
			}
		}
		d := c.mutations[i].Decision
		if d == nil {
			continue
		}
		if n++; n > maxDecisions {
			return fmt.Errorf("%w: a bundle of more than %d decisions", ErrInvalid, maxDecisions)
		}
		if err := d.consent(c.mutations[i].Scope, verify); err != nil {
			return err
		}
	}
	return nil
}

// open decodes the mutations and checks them against the limits.
func (b Bundle) open(lim Limits) (*CheckedBundle, error) {
	if len(b.Mutations) == 0 || len(b.Mutations) > lim.BlockMutations {
		return nil, fmt.Errorf("%w: a bundle of %d mutations, between 1 and %d are taken", ErrInvalid, len(b.Mutations), lim.BlockMutations)
	}
	author := b.Author.ID()
	c := &CheckedBundle{
		author: b.Author, signature: b.Signature, mutations: make([]CheckedMutation, len(b.Mutations)), limits: lim,
	}
	if b.Reserve < 0 || b.Reserve > lim.BlockCost {
		return nil, fmt.Errorf("%w: a bundle that reserves %d units of cost, at most %d are taken", ErrInvalid, b.Reserve, lim.BlockCost)
	}
	c.reserve, c.cost, c.looks = b.Reserve, b.Reserve, b.Reserve
	ids := make([]aweigh.Hash, len(b.Mutations))
	for i, raw := range b.Mutations {
		m := &c.mutations[i]
		var first *CheckedMutation
		if i > 0 {
			first = &c.mutations[0]
		}
		if err := m.openAfter(first, raw, lim); err != nil && len(b.Mutations) == 1 {
			return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		} else if err != nil {
			return nil, fmt.Errorf("%w: mutation %d: %w", ErrInvalid, i, err)
		}
		if m.Author != author {
			return nil, fmt.Errorf("%w: mutation %d names another author than its bundle", ErrInvalid, i)
		}
		if m.Scope != c.mutations[0].Scope {
			return nil, fmt.Errorf("%w: mutation %d names another scope than the first", ErrInvalid, i)
		}
		if m.Class.alone() && len(b.Mutations) > 1 {
			return nil, fmt.Errorf("%w: mutation %d is to %s, and not alone in its bundle", ErrInvalid, i, m.Class)
		}
		if m.Patient && len(b.Mutations) > 1 {
			return nil, fmt.Errorf("%w: mutation %d is patient, and not alone in its bundle", ErrInvalid, i)
		}
		ids[i] = m.ID
		c.until = max(c.until, m.ValidUntil)
		c.cost += m.allowed
		c.looks += m.allowed - m.plain()
	}
	if c.cost > lim.BlockCost {
		return nil, fmt.Errorf("%w: a bundle that costs up to %d units, at most %d are taken", ErrInvalid, c.cost, lim.BlockCost)
	}
	c.id = bundleID(author, b.Reserve, ids)
	return c, nil
}

// OpenMutation reads a mutation with its content, and checks it within the widest limits
// that a policy may have.
func OpenMutation(raw []byte) (m CheckedMutation, err error) {
	err = m.open(raw, MostLimits())
	return m, err
}

func (m *CheckedMutation) open(raw []byte, lim Limits) error { return m.openAfter(nil, raw, lim) }

// openAfter is open within a bundle. All its mutations have the grants of the first, so these are read once.
func (m *CheckedMutation) openAfter(first *CheckedMutation, raw []byte, lim Limits) error {
	err := m.read(raw, lim)
	if err == nil && m.Patient && m.Txn == nil && m.Naming == nil {
		err = errors.New("patient, and no change of keys, so it opens no motion on them")
	}
	if err == nil {
		err = m.readGrants(first, lim)
	}
	if err == nil {
		m.allowed = m.allowance()
	}
	return err
}

func (m *CheckedMutation) read(raw []byte, lim Limits) error {
	if len(raw) > lim.MutationBytes {
		return fmt.Errorf("%d bytes, at most %d are taken", len(raw), lim.MutationBytes)
	}
	if err := m.Mutation.decode(raw); err != nil {
		return err
	}
	m.ID = ID(raw)
	m.raw = raw
	if n := len(m.Nonce); n < 8 || n > 32 {
		return fmt.Errorf("a nonce of %d bytes, 8 to 32 are taken", n)
	}
	if len(m.Justification) > lim.JustificationBytes {
		return fmt.Errorf("a justification of %d bytes, at most %d are taken", len(m.Justification), lim.JustificationBytes)
	}
	if err := checkCaller(m.Caller); err != nil {
		return err
	}
	switch m.Class {
	case Write:
		m.Txn = new(Txn)
		if err := m.Txn.decode(m.Content); err != nil {
			return err
		}
		return m.Txn.Check(lim)
	case Compact:
		m.Comp = new(Compaction)
		return canon.Decode(m.Content, m.Comp)
	case Govern:
		m.Decision = new(Decision)
		if err := canon.Decode(m.Content, m.Decision); err != nil {
			return err
		}
		return m.Decision.Check()
	case Name:
		m.Naming = new(Naming)
		if err := canon.Decode(m.Content, m.Naming); err != nil {
			return err
		}
		return m.Naming.check(lim)
	case Act:
		m.Action = new(Action)
		if err := canon.Decode(m.Content, m.Action); err != nil {
			return err
		}
		m.Txn = m.Action.txn()
		return m.Action.check(lim)
	case Permit:
		var err error
		m.Access, err = decodeAccess(m.Content)
		return err
	case Rejoin:
		var err error
		m.Rejoins, err = checkRejoining(m.Content)
		return err
	case Bring:
		var err error
		m.Brings, err = checkBringing(m.Content)
		return err
	case Carry:
		var err error
		m.Carries, err = checkCarrying(m.Content)
		return err
	case Withdraw:
		var w Withdrawal
		err := canon.Decode(m.Content, &w)
		m.Motion = w.Motion
		return err
	case Lease:
		m.Lease = new(LeaseRequest)
		if err := canon.Decode(m.Content, m.Lease); err != nil {
			return err
		}
		if m.Lease.Asked > m.ValidUntil {
			return fmt.Errorf("a lease that was asked for after the request is void")
		}
		return m.Lease.Check()
	}
	return fmt.Errorf("unknown class %d", uint8(m.Class))
}
