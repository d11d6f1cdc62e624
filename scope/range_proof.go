package scope

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/keytree"
	"github.com/aweigh/aweigh/kv"
)

// RangeProof shows what the keys of a range hold, or that a key is absent, as of a final block of each scope that
// governs some of them (P61): the list is complete, and each version was the newest then. A verifier needs only the
// network's identity. The proof does not show that no block followed: its time says how old it is.
type RangeProof struct {
	Key   []byte      // first key of the range
	End   []byte      // in the sense of Op
	Parts []RangePart // of the scope that governs the range, and then of those below it, in the order of their prefixes
}

// RangePart is the part of a RangeProof about the keys that one scope governs.
type RangePart struct {
	Ancestry Ancestry      // to the block whose header claims what the keys hold
	Leaves   keytree.Proof // of the tree that the header names
	Kvs      []KeyValue    // of the leaves within the range that are keys
}

// MaxRangeLeaves bounds the leaves of a RangePart.
const MaxRangeLeaves = 10_000

// ErrLongRange refuses a proof of keys that are too many, or hold too much.
var ErrLongRange = errors.New("scope: too many keys for one proof; ask for parts of the range")

// RangeReport is what a RangeProof shows.
type RangeReport struct {
	Kvs   []KeyValue // in order
	Parts []RangeVisit
}

// RangeVisit is one scope of a RangeReport.
type RangeVisit struct {
	Prefix []byte
	Scope  aweigh.ScopeID
	Height aweigh.Height // of the newest block that is included
	// Head is of the block after it, whose header claims what the keys hold: they did so until its time.
	Head Attestation
}

// Age is how long before a time the oldest of the blocks was made up to which the proof shows what the keys held.
func (r *RangeReport) Age(now aweigh.Instant) (age time.Duration) {
	for i := range r.Parts {
		age = max(age, now.Sub(r.Parts[i].Head.Time))
	}
	return age
}

// Fresh returns an error that wraps ErrProof and ErrAged if the Age is more than atMost; 0 permits any.
func (r *RangeReport) Fresh(now aweigh.Instant, atMost time.Duration) error {
	if age := r.Age(now); atMost > 0 && age > atMost {
		return aged{fmt.Errorf("%w: it shows what held %s ago, and at most %s is permitted", ErrProof, age.Round(time.Millisecond), atMost)}
	}
	return nil
}

// NewRangePart shows what the keys of [key, end), in the sense of Op, hold in s. The header to which the ancestry leads
// claims that: it is of the block that follows s, or of one that changed no key. The error wraps ErrLongRange if these
// are more than MaxRangeLeaves, or hold more bytes than most, and ErrElsewhere
// for keys that are not below the prefix of the scope.
func NewRangePart(a Ancestry, s *State, key, end []byte, most int) (p RangePart, err error) {
	if !Covers([]byte(s.head.Prefix), key, end) {
		return p, fmt.Errorf("%w: %q to %q", ErrElsewhere, key, end)
	}
	tree, err := s.Current()
	if err != nil {
		return p, err
	}
	if h := &a.Head.Header; h.Scope != s.head.Scope || h.Current != tree.Root() {
		return p, fmt.Errorf("%w: block %d does not claim what the keys hold after block %d", ErrInvalid, h.Height, s.head.Height)
	}
	return newRangePart(a, tree, s.newest, key, end, most)
}

// NewOlderRangePart is NewRangePart as of an older block of s, which the header to which the ancestry leads claims:
// the one before it. It makes the tree of that block from the records, which passes over all versions of all keys. It
// calls stop from time to time, unless that is nil, and ends with its error. The error also wraps ErrCompacted if the
// state has not kept what the keys held then, and ErrCorrupt if the records show something else.
func NewOlderRangePart(a Ancestry, s *State, key, end []byte, most int, stop func() error) (p RangePart, err error) {
	h := &a.Head.Header
	switch {
	case !Covers([]byte(s.head.Prefix), key, end):
		return p, fmt.Errorf("%w: %q to %q", ErrElsewhere, key, end)
	case h.Scope != s.head.Scope || h.Height > s.head.Height+1:
		return p, fmt.Errorf("%w: block %d does not claim what the keys held before block %d", ErrInvalid, h.Height, s.head.Height)
	}
	rev, err := s.revisionOf(h)
	if err != nil {
		return p, err
	}
	if rev < s.head.Compacted {
		return p, fmt.Errorf("%w: block %d, of revision %d", ErrCompacted, h.Height-1, rev)
	}
	tree, err := s.treeAsOf(rev, h.Height-1, stop)
	if err != nil {
		return p, err
	}
	if tree.Root() != h.Current {
		return p, fmt.Errorf("%w: the records show other content of keys after block %d than the header of the next names", ErrCorrupt, h.Height-1)
	}
	return newRangePart(a, tree, func(key []byte) (KeyValue, bool, error) {
		v, ok, err := s.asOf(key, rev)
		v.Key = key
		return v, ok, err
	}, key, end, most)
}

// revisionOf is the revision of the key space after the block before a header: of the newest entry then, or of a newer
// delegation.
func (s *State) revisionOf(h *Header) (int64, error) {
	g, err := s.Genesis()
	if err != nil {
		return 0, err
	}
	rev := g.firstRevision()
	if h.LineageSize > 0 {
		e, ok, err := s.Lineage().Entry(h.LineageSize - 1)
		if err == nil && !ok {
			err = fmt.Errorf("%w: entry %d of the lineage is missing", ErrCorrupt, h.LineageSize-1)
		}
		if err != nil {
			return 0, err
		}
		rev = max(rev, e.Revision)
	}
	given, err := s.Delegations()
	for i := range given {
		if given[i].Height < h.Height {
			rev = max(rev, given[i].Revision)
		}
	}
	return rev, err
}

// newRangePart shows what the keys hold in a tree, of which content gives what each key holds.
func newRangePart(
	a Ancestry, tree keytree.Tree, content func(key []byte) (KeyValue, bool, error), key, end []byte, most int,
) (p RangePart, err error) {
	from, to := bounds(key, end)
	leaves, err := tree.Prove(from, to, MaxRangeLeaves)
	if errors.Is(err, keytree.ErrMany) {
		err = fmt.Errorf("%w: there are more than %d", ErrLongRange, MaxRangeLeaves)
	}
	if err != nil {
		return p, err
	}
	p = RangePart{Ancestry: a, Leaves: *leaves}
	size := most
	for _, l := range leaves.Shown(from, to) {
		if l.Kind != HoldsVersion {
			continue
		}
		v, ok, err := content(l.Key)
		if err == nil && !ok {
			err = fmt.Errorf("%w: %q is in the tree alone", ErrCorrupt, l.Key)
		}
		if err != nil {
			return p, err
		}
		if most -= len(v.Key) + len(v.Value); most < 0 {
			return p, fmt.Errorf("%w: they hold more than %d bytes", ErrLongRange, size)
		}
		p.Kvs = append(p.Kvs, v)
	}
	return p, nil
}

// Below are the scopes that govern some keys of the range, by the leaves of the part: their prefixes, and their IDs.
func (p *RangePart) Below(key, end []byte) []keytree.Leaf { return p.below(bounds(key, end)) }

func (p *RangePart) below(from, to []byte) (below []keytree.Leaf) {
	for _, l := range p.Leaves.Leaves {
		if l.Kind == HoldsScope && isBefore(from, kv.PrefixEnd(l.Key)) && isBefore(l.Key, to) {
			below = append(below, l)
		}
	}
	return below
}

// isBefore reports whether a key comes before an end; nil is the end of all keys.
func isBefore(key, end []byte) bool { return end == nil || bytes.Compare(key, end) < 0 }

// bounds is a range in the sense of Op as from <= key < to; a nil to means "to the end".
func bounds(key, end []byte) (from, to []byte) {
	switch {
	case len(end) == 0:
		return key, append(bytes.Clone(key), 0)
	case ToEnd(end):
		return key, nil
	}
	return key, end
}

// Verify checks everything that the proof claims, from the network's identity alone. Errors wrap ErrProof.
func (p *RangeProof) Verify(network aweigh.NetworkID) (r RangeReport, err error) {
	from, to := bounds(p.Key, p.End)
	rest := p.Parts
	if len(p.Key) == 0 || !isBefore(from, to) {
		err = errors.New("a range without keys")
	} else if err = r.follow(network, &rest, nil, from, to); err == nil && len(rest) > 0 {
		err = errors.New("parts about other keys than those of the range")
	}
	if err != nil {
		return RangeReport{}, fmt.Errorf("%w: %w", ErrProof, err)
	}
	return r, nil
}

// follow verifies the first of the parts, which must show the keys with from <= key < to as those of a scope, or of
// any scope that governs them all if it is nil, and the parts of scopes below it.
func (r *RangeReport) follow(network aweigh.NetworkID, parts *[]RangePart, want *aweigh.ScopeID, from, to []byte) error {
	if len(*parts) == 0 {
		return fmt.Errorf("it does not show what holds from %q on", from)
	}
	p := &(*parts)[0]
	*parts = (*parts)[1:]
	if g := &p.Ancestry.Genesis; want != nil && g.Hash() != *want {
		return fmt.Errorf("scope %q is another one than the scope that governs it", g.Prefix())
	}
	visit, err := p.verify(network, from, to)
	if err != nil {
		return err
	}
	r.Parts = append(r.Parts, visit)
	kvs := p.Kvs
	for _, l := range p.below(from, to) {
		for len(kvs) > 0 && bytes.Compare(kvs[0].Key, l.Key) < 0 {
			r.Kvs, kvs = append(r.Kvs, kvs[0]), kvs[1:]
		}
		id, begin, end := aweigh.ScopeID(l.Digest), l.Key, kv.PrefixEnd(l.Key)
		if bytes.Compare(begin, from) < 0 {
			begin = from
		}
		if end == nil || !isBefore(end, to) {
			end = to
		}
		if err := r.follow(network, parts, &id, begin, end); err != nil {
			return err
		}
	}
	r.Kvs = append(r.Kvs, kvs...)
	return nil
}

// Verify checks the part alone, from the network's identity: that its scope governed [key, end), in the sense of Op,
// but for what it gave to scopes below it. Errors wrap ErrProof.
func (p *RangePart) Verify(network aweigh.NetworkID, key, end []byte) (v RangeVisit, err error) {
	from, to := bounds(key, end)
	if v, err = p.verify(network, from, to); err != nil {
		err = fmt.Errorf("%w: %w", ErrProof, err)
	}
	return v, err
}

func (p *RangePart) verify(network aweigh.NetworkID, from, to []byte) (v RangeVisit, err error) {
	g, h := &p.Ancestry.Genesis, &p.Ancestry.Head.Header
	prefix := g.Prefix()
	if end := kv.PrefixEnd(prefix); !bytes.HasPrefix(from, prefix) || end != nil && (to == nil || bytes.Compare(to, end) > 0) {
		return v, fmt.Errorf("scope %q governs only a part of what is shown as its keys", prefix)
	}
	last, _, err := p.Ancestry.follow(network, h.Epoch)
	if err != nil {
		return v, err
	}
	v = RangeVisit{Prefix: prefix, Scope: g.Hash(), Height: h.Height - 1, Head: p.Ancestry.Head.attestation(last)}
	return v, p.holds(from, to)
}

// holds verifies that the tree which the header names holds the part's keys, and no others with from <= key < to.
func (p *RangePart) holds(from, to []byte) error {
	switch root, err := p.Leaves.Root(); {
	case err != nil:
		return err
	case root != p.Ancestry.Head.Header.Current:
		return errors.New("other keys, or other content of keys, than the block's header names")
	case !p.Leaves.Covers(from, to):
		return errors.New("keys of the range may be missing")
	}
	kvs := p.Kvs
	for _, l := range p.Leaves.Shown(from, to) {
		switch l.Kind {
		case HoldsScope:
		case HoldsVersion:
			if len(kvs) == 0 || !bytes.Equal(kvs[0].Key, l.Key) || kvs[0].Version == 0 || kvs[0].Digest() != l.Digest {
				return fmt.Errorf("other content than what %q holds", l.Key)
			}
			kvs = kvs[1:]
		default:
			return fmt.Errorf("a leaf of kind %d", l.Kind)
		}
	}
	if len(kvs) > 0 {
		return errors.New("content of keys that are not shown")
	}
	return nil
}
