package machine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// Record returns the key of a record of the node. Besides these, the store has the records of scope ('s') and guard
// ('g'). All keys start with 'n', the scope, and a letter:
//
//	b<block>         content of a block, final or notarized by this anchor
//	h<height>        BlockStub of the final block at a height
//	f<height>        finalization certificate of that block, if it has its own
//	v<height>        scope.Finality of that block, if it is cited and the blocks above it were dropped
//	d                height from which on no block was dropped
//	o                height from which on this node holds all blocks, if it caught up by a snapshot
//	c<view><kind>    certificate of a view of this epoch that is not final yet
//	e<height>        scope.Handover of the block at a height, which ends an epoch
//	l<ballot>        a ballot on a motion that closed before a block had it
//	m<motion>        scope.Minutes of a motion that the state has forgotten
//	p<bundle>        a bundle of this node's clients that waits for a quorum
//	w<island>        scope.Genesis of an island that this node's anchor is a member of
//	W<island><mutation>  a motion was opened about a mutation of an island that the scope set aside
//	x<island>        IslandRest of an island that rests
//	u                Vouched: by what the newest state can be checked
//	t<anchor><height><n>  trust.Change of an anchor that the block at a height made
func Record(id aweigh.ScopeID, letter byte, rest ...byte) []byte {
	k := make([]byte, 0, 1+len(id)+1+len(rest))
	k = append(k, 'n')
	k = append(k, id[:]...)
	k = append(k, letter)
	return append(k, rest...)
}

func KeyGenesis() []byte { return []byte("G") }

func KeyBlock(id aweigh.ScopeID, h aweigh.Hash) []byte { return Record(id, 'b', h[:]...) }

func KeyHeight(id aweigh.ScopeID, h aweigh.Height) []byte {
	return Record(id, 'h', binary.BigEndian.AppendUint64(nil, uint64(h))...)
}

func KeyFinality(id aweigh.ScopeID, h aweigh.Height) []byte {
	return Record(id, 'f', binary.BigEndian.AppendUint64(nil, uint64(h))...)
}

// KeyCited returns the key of the finality of a block whose neighbours were dropped.
func KeyCited(id aweigh.ScopeID, h aweigh.Height) []byte {
	return Record(id, 'v', binary.BigEndian.AppendUint64(nil, uint64(h))...)
}

// KeyOldest returns the key of the height from which on this node holds all blocks, if it caught up by a snapshot.
func KeyOldest(id aweigh.ScopeID) []byte { return Record(id, 'o') }

// KeyJob returns the key of the snapshot that is being fetched.
func KeyJob(id aweigh.ScopeID) []byte { return Record(id, 'O') }

// KeyInstalling returns the key that marks a scope whose state is being replaced.
func KeyInstalling(id aweigh.ScopeID) []byte { return Record(id, 'I') }

// KeyVacant returns the key that marks a scope of which this node has no state yet.
func KeyVacant(id aweigh.ScopeID) []byte { return Record(id, 'V') }

func KeyDropped(id aweigh.ScopeID) []byte { return Record(id, 'd') }

func KeyCertificate(id aweigh.ScopeID, s quorum.Subject) []byte {
	return Record(id, 'c', append(binary.BigEndian.AppendUint64(nil, uint64(s.View)), byte(s.Kind))...)
}

// GroundOf returns the view of which a record of open views holds nullify ballots, as OfferedVotes. In mode fast these
// are where other modes have the nullification.
func GroundOf(id aweigh.ScopeID, mode quorum.Mode, key []byte) (v aweigh.View, ok bool) {
	rest, of := bytes.CutPrefix(key, Record(id, 'c'))
	if !of || len(rest) != 9 || rest[8] != byte(quorum.Nullify) || mode != quorum.Fast {
		return 0, false
	}
	return aweigh.View(binary.BigEndian.Uint64(rest)), true
}

func keyPending(id aweigh.ScopeID, bundle aweigh.Hash) []byte { return Record(id, 'p', bundle[:]...) }
func KeyLate(id aweigh.ScopeID, ballot aweigh.Hash) []byte    { return Record(id, 'l', ballot[:]...) }

func KeyHandover(id aweigh.ScopeID, h aweigh.Height) []byte {
	return Record(id, 'e', binary.BigEndian.AppendUint64(nil, uint64(h))...)
}

// KeyIsland returns the key of the genesis of an island of a scope, of which this node's anchor is a member.
func KeyIsland(of, island aweigh.ScopeID) []byte { return Record(of, 'w', island[:]...) }

// KeyAside returns the key that marks that a motion was opened about a mutation of an island.
func KeyAside(of, island aweigh.ScopeID, mutation aweigh.Hash) []byte {
	return append(Record(of, 'W', island[:]...), mutation[:]...)
}

// IslandRest is the record of an island that rests: its outcome is final in its scope, and no machine is opened for it.
type IslandRest struct {
	_        struct{}       `cbor:",toarray"`
	Since    aweigh.Instant // by the node's clock
	Height   aweigh.Height  // of the island's newest block
	Revision int64          // of the island
	Refused  string         // why the scope took no more of it; empty if it took all
	Dropped  bool           // its records are being deleted
}

// KeyIslandRest returns the key of the IslandRest of an island of a scope.
func KeyIslandRest(of, island aweigh.ScopeID) []byte { return Record(of, 'x', island[:]...) }

// StoredRest returns the IslandRest of an island of a scope; ok is false if the island does not rest.
func StoredRest(r kv.Reader, of, island aweigh.ScopeID) (rest IslandRest, ok bool, err error) {
	raw, ok, err := r.Get(KeyIslandRest(of, island))
	if err != nil || !ok {
		return rest, false, err
	}
	return rest, true, canon.Decode(raw, &rest)
}

// RecordsOf returns the prefixes of all records of an island: of its state, of the node, and of what the node's anchor
// signed there.
func RecordsOf(island aweigh.ScopeID) [][]byte {
	state, _, _ := scope.Clear(island)
	return [][]byte{state, Record(island, 0)[:1+len(island)], votes.RecordsOf(island)}
}

// StoredIslands returns the geneses of the islands of a scope that are in a store. Errors wrap scope.ErrInvalid where
// one is none.
func StoredIslands(r kv.Reader, of aweigh.ScopeID) (all []scope.Genesis, err error) {
	var bad error
	prefix := Record(of, 'w')
	err = r.Scan(prefix, kv.PrefixEnd(prefix), false, func(k, raw []byte) bool {
		var g scope.Genesis
		if g, bad = scope.DecodeGenesis(raw); bad == nil && (!g.IsIsland() || g.Descent.Parent != of || !bytes.Equal(k, KeyIsland(of, g.Hash()))) {
			bad = fmt.Errorf("%w: the genesis of an island under another key", scope.ErrInvalid)
		}
		all = append(all, g)
		return bad == nil
	})
	return all, errors.Join(err, bad)
}

// History reads the final blocks of one scope from a store.
type History struct {
	Reader kv.Reader
	Scope  aweigh.ScopeID
}

// ErrNoBlock is wrapped by errors about a height that has no final block here.
var ErrNoBlock = fmt.Errorf("node: no such final block")

// Stub returns what stays of the final block at a height. The error wraps ErrNoBlock if there is none.
func (h History) Stub(at aweigh.Height) (p BlockStub, err error) {
	raw, ok, err := h.Reader.Get(KeyHeight(h.Scope, at))
	if err != nil {
		return p, err
	}
	if ok {
		return p, canon.Decode(raw, &p)
	}
	if oldest, err := h.Mark(KeyOldest(h.Scope)); err == nil && at < oldest {
		return p, fmt.Errorf("%w: height %d; this node caught up by a snapshot and holds all blocks from height %d on: ask another node", ErrNoBlock, at, oldest)
	}
	return p, fmt.Errorf("%w: height %d", ErrNoBlock, at)
}

// Mark returns the height that is stored under a key, 0 if there is none.
func (h History) Mark(key []byte) (aweigh.Height, error) {
	raw, ok, err := h.Reader.Get(key)
	if err != nil || !ok || len(raw) != 8 {
		return 0, err
	}
	return aweigh.Height(binary.BigEndian.Uint64(raw)), nil
}

// dropped returns the height from which on no block was dropped.
func (h History) dropped() (aweigh.Height, error) { return h.Mark(KeyDropped(h.Scope)) }

// Raw returns the encoding of the final block at a height. The error wraps ErrNoBlock if it is not here.
func (h History) Raw(at aweigh.Height) ([]byte, error) {
	p, err := h.Stub(at)
	if err != nil {
		return nil, err
	}
	raw, ok, err := h.Reader.Get(KeyBlock(h.Scope, p.Block))
	if err != nil || ok {
		return raw, err
	}
	if kept, err := h.dropped(); err == nil && at < kept {
		return nil, fmt.Errorf("%w: height %d; this node dropped what was compacted and holds all blocks from height %d on: ask a node that runs without --prune", ErrNoBlock, at, kept)
	}
	return nil, fmt.Errorf("%w: the content of height %d is missing", ErrNoBlock, at)
}

// Block returns the final block at a height. The error wraps ErrNoBlock if it is not here.
func (h History) Block(at aweigh.Height) (*scope.Block, error) {
	raw, err := h.Raw(at)
	if err != nil {
		return nil, err
	}
	return scope.DecodeBlock(raw, scope.MostLimits(), nil)
}

// Certificate returns the finalization of the block at a height, zero if it has none of its own.
func (h History) Certificate(at aweigh.Height) (c quorum.Certificate, err error) {
	raw, ok, err := h.Reader.Get(KeyFinality(h.Scope, at))
	if err != nil || !ok {
		return c, err
	}
	return c, canon.Decode(raw, &c)
}

// Finality returns the proof that the block at a height is final: its own certificate, or that of its nearest
// descendant that has one. The error wraps ErrNoBlock if a block that it needs is not here.
func (h History) Finality(at aweigh.Height) (f scope.Finality, err error) {
	if f, err = h.finality(at); !errors.Is(err, ErrNoBlock) {
		return f, err
	}
	raw, ok, got := h.Reader.Get(KeyCited(h.Scope, at))
	if got != nil || !ok {
		return f, errors.Join(err, got)
	}
	f = scope.Finality{}
	return f, canon.Decode(raw, &f)
}

func (h History) finality(at aweigh.Height) (f scope.Finality, err error) {
	for ; ; at++ {
		b, err := h.Block(at)
		if err != nil {
			return f, err
		}
		if f.Header.Format == 0 {
			f.Header = b.Header
		} else {
			f.Descendants = append(f.Descendants, b.Header)
		}
		if !b.Header.Next.IsZero() { // the blocks above are of another epoch
			hand, err := h.Handover(at)
			f.Descendants = append(f.Descendants, hand.Final.Descendants...)
			f.Certificate = hand.Final.Certificate
			return f, err
		}
		if f.Certificate, err = h.Certificate(at); err != nil || !f.Certificate.IsZero() {
			return f, err
		}
	}
}

// Cover returns the finality of the newest block that is above the height above, not above the height newest, and can
// be proven final. It returns ErrUncovered if there is none.
func (h History) Cover(newest, above aweigh.Height) (scope.Finality, error) {
	for at := newest; at > above; at-- {
		f, err := h.Finality(at)
		if !errors.Is(err, ErrNoBlock) {
			return f, err
		}
	}
	return scope.Finality{}, ErrUncovered
}

// Handover returns the handover of the block at a height, which ends an epoch. The error wraps ErrNoBlock if this node
// has no handover at that height.
func (h History) Handover(at aweigh.Height) (hand scope.Handover, err error) {
	raw, ok, err := h.Reader.Get(KeyHandover(h.Scope, at))
	if err == nil && !ok {
		err = fmt.Errorf("%w: the end of an epoch at height %d", ErrNoBlock, at)
	}
	if err != nil {
		return hand, err
	}
	return hand, canon.Decode(raw, &hand)
}

// epochEnd returns the height of the last block of the epoch to which the block at a height belongs, 0 if that epoch
// has not ended.
func (h History) epochEnd(at aweigh.Height) (end aweigh.Height, err error) {
	all := Record(h.Scope, 'e')
	err = h.Reader.Scan(KeyHandover(h.Scope, at), kv.PrefixEnd(all), false, func(k, _ []byte) bool {
		end = aweigh.Height(binary.BigEndian.Uint64(k[len(all):]))
		return false
	})
	return end, err
}

// Handovers returns the proofs of the epochs that begin above a height, in order, at most most of them.
func (h History) Handovers(above aweigh.Height, most int) (all []scope.Handover, err error) {
	var bad error
	err = h.Reader.Scan(KeyHandover(h.Scope, above+1), kv.PrefixEnd(Record(h.Scope, 'e')), false, func(_, raw []byte) bool {
		if len(all) >= most {
			return false
		}
		var hand scope.Handover
		if bad = canon.Decode(raw, &hand); bad != nil {
			bad = fmt.Errorf("%w: a handover: %w", scope.ErrCorrupt, bad)
		}
		all = append(all, hand)
		return bad == nil
	})
	return all, errors.Join(err, bad)
}

// recordTrust stores how a final block changed the anchors' trust, so that this can be looked up.
func (m *Machine) recordTrust(k *candidate) {
	for i, c := range k.result.Trust {
		a := c.Evidence.Anchor
		key := Record(m.id, 't', a[:]...)
		key = binary.BigEndian.AppendUint64(key, uint64(k.block.Header.Height))
		m.write(kv.Set(binary.BigEndian.AppendUint16(key, uint16(i)), canon.Encode(c)))
	}
}

func keyMinutes(id aweigh.ScopeID, m votes.MotionID) []byte { return Record(id, 'm', m[:]...) }

// archive stores what a final block makes the state forget of motions. It is needed for proofs of what they changed.
func (m *Machine) archive(k *candidate) {
	for i := range k.result.Forgotten {
		minutes := &k.result.Forgotten[i]
		m.write(kv.Set(keyMinutes(m.id, minutes.Motion.ID()), minutes.Encode()))
	}
}

// Minutes returns the minutes of a motion as they were when the state forgot it; nil if there are none.
func (h History) Minutes(id votes.MotionID) (*scope.Minutes, error) {
	raw, ok, err := h.Reader.Get(keyMinutes(h.Scope, id))
	if err != nil || !ok {
		return nil, err
	}
	return scope.DecodeMinutes(raw)
}
