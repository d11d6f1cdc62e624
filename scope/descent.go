package scope

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/lthash"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/quorum"
)

// Descent is where a scope comes from that another one has delegated a prefix to.
type Descent struct {
	_        struct{} `cbor:",toarray"`
	Network  aweigh.NetworkID
	Started  aweigh.Instant // of the network
	Parent   aweigh.ScopeID
	Depth    uint32        // 1 for a child of the root scope
	Prefix   []byte        // of all its keys
	Height   aweigh.Height // of the parent's block that delegated it, and ended an epoch
	Block    aweigh.Hash   // that block
	Entry    int64         // index in the parent's lineage of the entry that names this genesis; of an island: ofIsland
	Revision int64         // of the parent's key space, at which the keys were handed over
	Keys     int64         // that were handed over
	Handed   aweigh.Hash   // digest of what was: keys with their content, leases, aliases and redirects
	Bound    Bound         // what the parent demanded of it, for good
}

// Bound is what a scope's policy demands of all scopes below it, in the first
// place of those that it delegates to from then on.
type Bound struct {
	_        struct{}    `cbor:",toarray"`
	Depth    uint32      // levels of scopes that there may be, those that are bound first; 0: any number
	BFT      bool        // none of them may have mode crash
	Finalize quorum.Rule // they finalize by no less than this; zero: as they like
	// Notice is after what notice the scope that delegated to one of them can give it another
	// government (Revocation); 0: never. It is that scope's alone: it does not bind those further down.
	Notice time.Duration
}

// ErrBound is wrapped where a policy does not meet what a scope above demands.
var ErrBound = errors.New("scope: a scope above demands more")

// check reports whether a policy can demand it.
func (b *Bound) check() error {
	f := b.Finalize
	if f.Den == 0 && f.Num != 0 || f.Num > f.Den || f.Den > quorum.MaxDen {
		return fmt.Errorf("%w: scopes below shall finalize by %d/%d", ErrInvalid, f.Num, f.Den)
	}
	if b.Notice != 0 && (b.Notice < leastNotice || b.Notice > mostNotice) {
		return fmt.Errorf("%w: a notice of %v; 0 means that what is delegated is so for good, otherwise %v is the least and %v the most",
			ErrInvalid, b.Notice, leastNotice, mostNotice)
	}
	return nil
}

// The notice that scopes below can have.
const (
	leastNotice = time.Second
	mostNotice  = 10 * 365 * 24 * time.Hour
)

// with is what both bounds demand together. The notice is that of o.
func (b Bound) with(o Bound) Bound {
	if b.Depth == 0 || o.Depth != 0 && o.Depth < b.Depth {
		b.Depth = o.Depth
	}
	b.BFT = b.BFT || o.BFT
	f, g := &b.Finalize, o.Finalize
	f.MinAnchors = max(f.MinAnchors, g.MinAnchors)
	if less(*f, g) {
		f.Num, f.Den = g.Num, g.Den
	}
	b.Notice = o.Notice
	return b
}

// less reports whether a asks for a smaller share than b. The terms are bounded by
// quorum.MaxDen.
func less(a, b quorum.Rule) bool {
	switch {
	case b.Den == 0:
		return false
	case a.Den == 0:
		return true
	}
	return a.Num*b.Den < b.Num*a.Den
}

// admits reports why a scope below may not have a policy.
func (b *Bound) admits(p *Policy) error {
	f := p.Rules.Finalize
	switch {
	case b.BFT && !p.Rules.Mode.Byzantine():
		return fmt.Errorf("%w: mode bft, and not %s", ErrBound, p.Rules.Mode)
	case less(f, b.Finalize):
		return fmt.Errorf("%w: more than %d/%d of the weight to finalize, and not %d/%d", ErrBound, b.Finalize.Num, b.Finalize.Den, f.Num, f.Den)
	case f.MinAnchors < b.Finalize.MinAnchors:
		return fmt.Errorf("%w: at least %s to finalize, and not %d", ErrBound, counted(b.Finalize.MinAnchors, "anchor"), f.MinAnchors)
	}
	return p.Limits.outlasts("a notice of", b.Notice)
}

// below is the bound on the children of a bound scope: one level less.
func (b Bound) below() (Bound, error) {
	if b.Depth == 1 {
		return b, fmt.Errorf("%w: no further level of scopes", ErrBound)
	}
	if b.Depth > 1 {
		b.Depth--
	}
	b.Notice = 0
	return b, nil
}

// Network is the identity of the network that the scope is part of.
func (g *Genesis) Network() aweigh.NetworkID {
	if g.Descent != nil {
		return g.Descent.Network
	}
	return g.Hash()
}

// Prefix is that of all keys of the scope, empty for the root scope. The keys that
// it has delegated are not among them.
func (g *Genesis) Prefix() []byte {
	if g.Descent != nil {
		return g.Descent.Prefix
	}
	return nil
}

// started is when the network did.
func (g *Genesis) started() aweigh.Instant {
	if g.Descent != nil {
		return g.Descent.Started
	}
	return g.Time
}

// firstRevision is that of the key space before the first block.
func (g *Genesis) firstRevision() int64 {
	if g.Descent != nil {
		return g.Descent.Revision + 1 // what is earlier is the parent's history
	}
	return 1
}

// bound is what scopes above demand.
func (g *Genesis) bound() Bound {
	if g.Descent != nil {
		return g.Descent.Bound
	}
	return Bound{}
}

// Empty reports whether nothing was handed over.
func (d *Descent) Empty() bool { return d.Keys == 0 && d.Handed == new(takeover).digest() }

// takeover sums up the content that a child takes over: the records of its first
// state, and their lineage entries.
type takeover struct {
	sum     lthash.Hash
	entries hash.Hash // nil before the first
}

// enter takes the next entry. Its scope, policy and roster follow from the genesis,
// which names the digest.
func (h *takeover) enter(e lineage.Entry) {
	if h.entries == nil {
		h.entries = sha256.New()
	}
	e.Scope, e.Policy, e.Roster = aweigh.ScopeID{}, aweigh.Hash{}, aweigh.Hash{}
	_, _ = h.entries.Write(e.Encode())
}

func (h *takeover) digest() aweigh.Hash {
	var told []byte
	if h.entries != nil {
		told = h.entries.Sum(nil)
	}
	return aweigh.Sum([]byte("aweigh/handed/2"), h.sum.Bytes(), told)
}

// check reports whether a scope can descend so.
func (d *Descent) check(g *Genesis) error {
	switch {
	case d.Network.IsZero() || d.Parent.IsZero() || d.Depth == 0 || d.Height == 0:
		return fmt.Errorf("%w: a scope of no network, or without a parent", ErrInvalid)
	case len(d.Prefix) == 0 || len(d.Prefix) > maxPrefix:
		return fmt.Errorf("%w: a prefix of %d bytes, between 1 and %d are taken", ErrInvalid, len(d.Prefix), maxPrefix)
	case d.Revision < 1 || d.Keys < 0 || d.Entry < 0 && d.Entry != ofIsland || d.Started > g.Time:
		return fmt.Errorf("%w: a scope that descends from no state of its parent", ErrInvalid)
	}
	if err := d.Bound.check(); err != nil {
		return err
	}
	return d.Bound.admits(&g.Policy)
}

// maxPrefix bounds the prefix of a scope.
const maxPrefix = 512

// PrefixEnd is the end of the range of all keys that begin with a prefix, in the
// sense of Op.
func PrefixEnd(prefix []byte) []byte {
	if end := kv.PrefixEnd(prefix); end != nil {
		return end
	}
	return []byte{0}
}

// Covers reports whether all keys of [key, end), in the sense of Op, begin with a
// prefix.
func Covers(prefix, key, end []byte) bool {
	switch {
	case !bytes.HasPrefix(key, prefix):
		return false
	case len(end) == 0 || len(prefix) == 0:
		return true
	}
	last := PrefixEnd(prefix)
	return ToEnd(last) || !ToEnd(end) && bytes.Compare(end, last) <= 0
}
