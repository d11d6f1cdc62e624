package scope

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/votes"
)

// Grant lets another key act with a part of its signer's rights, without a decision of the anchors: a certificate of
// delegation (RFC 2693, section 6), which the command line calls a token. Grants form chains: the key that holds one
// may sign another for a part of it. The first of a chain is signed by an author that the policy permits, and no grant
// of a chain permits more than the one before (P45).
type Grant struct {
	_         struct{} `cbor:",toarray"`
	Scope     aweigh.ScopeID
	By        votes.PublicKey // that signs it
	To        votes.PublicKey // that may use it
	Name      string          // for people
	Prefixes  [][]byte        // as Author.Prefixes
	Verbs     []string        // as Author.Verbs
	NotAfter  aweigh.Instant  // by the blocks' time; it permits nothing afterwards, and no mutation is valid for longer
	Record    []byte          // a key that must name Object, or the grant permits nothing; none: no such condition
	Object    aweigh.UID      // zero if Record is empty
	Signature []byte          // of By, over all other fields
}

// Bounds of grants.
const (
	// MaxGrants bounds the grants of a chain.
	MaxGrants = 4
	// grantUnits is what a grant costs by its form: its signature is verified, and a record of a few KiB is looked at.
	grantUnits = 64
)

// Check returns why no key can sign a grant, apart from its signer; nil if one can. The error wraps ErrInvalid.
func (g Grant) Check() error {
	if err := g.check(MostLimits().KeyBytes); err != nil {
		return fmt.Errorf("%w: grant %q: %w", ErrInvalid, g.Name, err)
	}
	return nil
}

// SignGrant signs a grant with the key that it then names as its signer. Errors wrap ErrInvalid, or are those of the
// signer.
func SignGrant(key votes.Signer, g Grant) (_ Grant, err error) {
	g.By = key.Public()
	if err := g.Check(); err != nil {
		return Grant{}, err
	}
	if g.Signature, err = votes.SignWith(key, votes.ContextGrant, g.signingBytes()); err != nil {
		return Grant{}, fmt.Errorf("scope: sign grant %q: %w", g.Name, err)
	}
	return g, nil
}

// Encode is the canonical encoding.
func (g Grant) Encode() []byte { return canon.Encode(g) }

func (g Grant) signingBytes() []byte {
	g.Signature = nil
	return canon.Encode(g)
}

// bounds is an entry with the prefixes and verbs of the grant.
func (g *Grant) bounds() *Author {
	return &Author{Name: g.Name, Who: OneKey, Key: g.To, Prefixes: g.Prefixes, Verbs: g.Verbs}
}

// Permits reports whether a grant permits a verb, in the sense of Author.Permits.
func (g *Grant) Permits(verb string, key []byte) bool { return g.bounds().Permits(verb, key) }

// names reports whether one of the prefixes of a grant is a key, or begins with it.
func (g *Grant) names(key []byte) bool {
	return slices.ContainsFunc(g.Prefixes, func(prefix []byte) bool { return bytes.HasPrefix(prefix, key) })
}

func (g *Grant) check(keyBytes int) error {
	switch {
	case g.By.Check() != nil:
		return g.By.Check()
	case g.NotAfter <= 0:
		return errors.New("it has no end")
	case len(g.Record) > keyBytes:
		return fmt.Errorf("its record is a key of %d bytes, at most %d are taken", len(g.Record), keyBytes)
	case (len(g.Record) > 0) == g.Object.IsZero():
		return errors.New("a record and its object go together")
	}
	return g.bounds().check(keyBytes)
}

// OpenGrants decodes a chain of grants in a scope, verifies the signatures, and checks that it leads from the author
// that signed the first to a key. Errors wrap ErrInvalid.
func OpenGrants(raw [][]byte, in aweigh.ScopeID, to aweigh.Hash, verify votes.Verifier) ([]Grant, error) {
	all, err := openGrants(raw, in, to, MostLimits().KeyBytes)
	if err == nil {
		err = verifyGrants(all, verify)
	}
	return all, err
}

func openGrants(raw [][]byte, in aweigh.ScopeID, to aweigh.Hash, keyBytes int) ([]Grant, error) {
	if len(raw) > MaxGrants {
		return nil, fmt.Errorf("%w: a chain of %d grants, at most %d are taken", ErrInvalid, len(raw), MaxGrants)
	}
	all := make([]Grant, len(raw))
	for i := range raw {
		g := &all[i]
		err := canon.Decode(raw[i], g)
		if err == nil {
			err = g.check(keyBytes)
		}
		switch {
		case err != nil:
		case g.Scope != in:
			err = errors.New("it is for another scope")
		case i > 0 && g.By.ID() != all[i-1].To.ID():
			err = errors.New("its signer is not the holder of the grant before")
		case i == len(raw)-1 && g.To.ID() != to:
			err = errors.New("it is for another author")
		}
		if err != nil {
			return nil, fmt.Errorf("%w: grant %d: %w", ErrInvalid, i+1, err)
		}
	}
	return all, nil
}

func verifyGrants(all []Grant, verify votes.Verifier) error {
	for i := range all {
		g := &all[i]
		if err := verify(g.By, votes.ContextGrant, g.signingBytes(), g.Signature); err != nil {
			return fmt.Errorf("%w: grant %d: %w", ErrInvalid, i+1, err)
		}
	}
	return nil
}

// readGrants decodes the grants of a mutation, or takes those of the first of its bundle.
func (m *CheckedMutation) readGrants(first *CheckedMutation, lim Limits) (err error) {
	switch {
	case first != nil && !slices.EqualFunc(m.Grants, first.Grants, bytes.Equal):
		return errors.New("it has other grants than the first of its bundle")
	case len(m.Grants) == 0:
		return nil
	case !m.Class.needsAuthor():
		return fmt.Errorf("a mutation of class %s has grants, which it does not need", m.Class)
	case first != nil:
		m.grants = first.grants
	default:
		if m.grants, err = openGrants(m.Grants, m.Scope, m.Author, lim.KeyBytes); err != nil {
			return err
		}
	}
	for i := range m.grants {
		if g := &m.grants[i]; m.ValidUntil > g.NotAfter {
			return fmt.Errorf("it is valid for longer than the grant %q", g.Name)
		}
	}
	return nil
}

// Principal is the author whose rights a mutation uses: its own author, or the one that signed the first grant.
func (m *CheckedMutation) Principal() aweigh.Hash {
	if len(m.grants) > 0 {
		return m.grants[0].By.ID()
	}
	return m.Author
}

// granted is Principal for a lineage entry, nil without grants; also of a mutation of which no grant was decoded.
func (m *CheckedMutation) granted() []byte {
	if len(m.grants) > 0 {
		p := m.Principal()
		return p[:]
	}
	return m.Mutation.Granted()
}

// Granted is the principal that the grants of a mutation name, as lineage entries have it; nil without grants, or if
// the first cannot be decoded.
func (m *Mutation) Granted() []byte {
	if len(m.Grants) == 0 {
		return nil
	}
	var g Grant
	if canon.Decode(m.Grants[0], &g) != nil {
		return nil
	}
	p := g.By.ID()
	return p[:]
}

// grantsHold returns why the grants of a mutation do not hold when it executes. Only a motion can outlive them.
func (x *execution) grantsHold(m *CheckedMutation) (failure, err error) {
	for i := range m.grants {
		g := &m.grants[i]
		if x.block.Header.Time > g.NotAfter {
			return fmt.Errorf("%w: the grant %q has expired", ErrDenied, g.Name), nil
		}
		if len(g.Record) == 0 {
			continue
		}
		v, there, err := x.newest(g.Record)
		if err != nil {
			return nil, err
		}
		if failure := x.spend(lookCost(len(v.Key) + len(v.Value))); failure != nil {
			return failure, nil
		}
		if there && v.Lease != 0 { // or a holder who may keep leases alive would keep its own rights
			return fmt.Errorf("%w: the record of the grant %q has a lease; put it without one", ErrDenied, g.Name), nil
		}
		if !there || v.UID != g.Object {
			return fmt.Errorf("%w: the grant %q is revoked", ErrDenied, g.Name), nil
		}
	}
	return nil, nil
}
