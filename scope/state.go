package scope

import (
	"encoding/binary"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/trust"
)

// Head says where a scope's state stands.
type Head struct {
	_       struct{} `cbor:",toarray"`
	Network aweigh.NetworkID
	Scope   aweigh.ScopeID
	Epoch   aweigh.Epoch
	View    aweigh.View    // of the last block, 0 for the genesis
	Height  aweigh.Height  // of the last block, 0 for the genesis
	Block   aweigh.Hash    // the last block; the scope's ID for the genesis
	Time    aweigh.Instant // of the last block

	Revision    int64 // of the last writing transaction; an empty key space has 1, as in etcd
	Compacted   int64 // revisions below cannot be read; 0 before the first compaction
	LineageSize int64 // entries in the log
	LineageRoot aweigh.Hash
	Ledger      aweigh.Hash // trust.Ledger.Digest
	Digest      aweigh.Hash // of the whole state; the next header's State
}

// State is a view of one scope's state through a Reader, as of its Head. It
// holds no more than the meta record and is as good as its Reader: it becomes
// useless when the Reader comes to show a later state. It never writes.
// Safe for concurrent use if its Reader is.
type State struct {
	view
	head   Head
	log    *lineage.Log // as of head, if known: to be forked only
	cursor revision     // next change that compaction looks at; above Compacted: none
	sum    accumulator
}

// meta is the encoding of a State.
type meta struct {
	_         struct{} `cbor:",toarray"`
	Format    uint16
	Head      Head
	Cursor    int64
	CursorSub uint32
	Sum       []byte
}

// Init is the writes that make the state at genesis.
func Init(g Genesis) ([]kv.Op, error) {
	if _, err := g.Check(); err != nil {
		return nil, err
	}
	ledger, err := g.Ledger()
	if err != nil {
		return nil, err
	}
	id := g.Hash()
	root, err := lineage.Open(nil, nil, 0).Root()
	if err != nil {
		return nil, err
	}
	s := State{
		view: view{space: spaceOf(id)},
		head: Head{
			Network: id, Scope: id, Block: id, Time: g.Time, Revision: 1,
			LineageRoot: root, Ledger: ledger.Digest(),
		},
		cursor: first(1),
	}
	s.head.Digest = s.digest()
	return []kv.Op{kv.Set(s.space.at(atLedger), ledger.Encode()), s.write()}, nil
}

// Open is the state of a scope in r. The error wraps ErrCorrupt if r holds none.
func Open(r kv.Reader, id aweigh.ScopeID) (*State, error) {
	s := &State{view: view{r: r, space: spaceOf(id)}}
	raw, ok, err := r.Get(s.space.at(atMeta))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("%w: nothing is there for scope %s", ErrCorrupt, id.Short())
	}
	var m meta
	if err := canon.Decode(raw, &m); err != nil {
		return nil, fmt.Errorf("%w: meta record: %w", ErrCorrupt, err)
	}
	if m.Format != Format || m.Head.Scope != id || !s.sum.setBytes(m.Sum) {
		return nil, fmt.Errorf("%w: meta record of format %d for scope %s", ErrCorrupt, m.Format, m.Head.Scope.Short())
	}
	s.head, s.cursor = m.Head, revision{m.Cursor, m.CursorSub}
	return s, nil
}

// write is the op that stores the meta record.
func (s *State) write() kv.Op {
	return kv.Set(s.space.at(atMeta), canon.Encode(meta{
		Format: Format, Head: s.head, Cursor: s.cursor.main, CursorSub: s.cursor.sub, Sum: s.sum.bytes(),
	}))
}

// digest is the hash of all that the next blocks depend on.
func (s *State) digest() aweigh.Hash {
	b := make([]byte, 0, 256+accumulatorBytes)
	b = append(b, "aweigh/state/1"...)
	for _, n := range []int64{s.head.Revision, s.head.Compacted, s.head.LineageSize} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	b = s.cursor.append(b)
	b = append(b, s.head.LineageRoot[:]...)
	b = append(b, s.head.Ledger[:]...)
	b = append(b, s.sum.bytes()...)
	return aweigh.Sum(b)
}

// Head says where the state stands.
func (s *State) Head() Head { return s.head }

// Height is that of the last block, 0 for the genesis.
func (s *State) Height() aweigh.Height { return s.head.Height }

// Over is the state read through r, which must show what the Reader of s shows.
func (s *State) Over(r kv.Reader) *State {
	over := *s
	over.r = r
	return &over
}

// Ledger is the scope's trust ledger.
func (s *State) Ledger() (trust.Ledger, error) {
	raw, ok, err := s.r.Get(s.space.at(atLedger))
	if err != nil {
		return trust.Ledger{}, err
	}
	if !ok {
		return trust.Ledger{}, fmt.Errorf("%w: no trust ledger", ErrCorrupt)
	}
	l, err := trust.DecodeLedger(raw)
	if err != nil {
		return trust.Ledger{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return l, nil
}

// Lineage is the scope's log of entries.
func (s *State) Lineage() *lineage.Log {
	if s.log != nil {
		return s.log.Fork(s.r)
	}
	return lineage.Open(s.r, s.space.at(atLineage), s.head.LineageSize)
}

// CheckHeader says whether a block with this header can follow the state: its
// place in the chain, its time, and its claims about the state as of its parent
// (P13, P20). Errors wrap ErrInvalid. Roster and policy, the view and the
// proposer are the business of those who know the epoch.
func (s *State) CheckHeader(h Header) error {
	switch p := &s.head; {
	case h.Format != Format:
		return fmt.Errorf("%w: block format %d, this program knows %d", ErrInvalid, h.Format, Format)
	case h.Network != p.Network || h.Scope != p.Scope:
		return fmt.Errorf("%w: a block of scope %s of network %s", ErrInvalid, h.Scope.Short(), h.Network.Short())
	case h.Height != p.Height+1 || h.Parent != p.Block:
		return fmt.Errorf("%w: block %d on %s does not follow block %d, %s", ErrInvalid, h.Height, h.Parent.Short(), p.Height, p.Block.Short())
	case h.Epoch < p.Epoch || h.Epoch == p.Epoch && h.View <= p.View:
		return fmt.Errorf("%w: epoch %d view %d does not follow epoch %d view %d", ErrInvalid, h.Epoch, h.View, p.Epoch, p.View)
	case h.Time <= p.Time:
		return fmt.Errorf("%w: a block's time %d is not after its parent's %d", ErrInvalid, h.Time, p.Time)
	case h.LineageSize != p.LineageSize || h.LineageRoot != p.LineageRoot:
		return fmt.Errorf("%w: a lineage of %d entries, %s, where it has %d, %s", ErrInvalid, h.LineageSize, h.LineageRoot.Short(), p.LineageSize, p.LineageRoot.Short())
	case h.State != p.Digest:
		return fmt.Errorf("%w: state %s where it is %s", ErrInvalid, h.State.Short(), p.Digest.Short())
	}
	return nil
}

// Claim fills in the fields of a header that CheckHeader looks at, but for
// Epoch, View and Time.
func (s *State) Claim(h Header) Header {
	p := &s.head
	h.Format, h.Network, h.Scope = Format, p.Network, p.Scope
	h.Height, h.Parent = p.Height+1, p.Block
	h.LineageSize, h.LineageRoot, h.State = p.LineageSize, p.LineageRoot, p.Digest
	return h
}
