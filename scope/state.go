package scope

import (
	"errors"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/lthash"
	"github.com/aweigh/aweigh/keytree"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/trust"
)

// Head is a scope's place in its chain, with the counts that follow from its state.
type Head struct {
	_       struct{} `cbor:",toarray"`
	Network aweigh.NetworkID
	Scope   aweigh.ScopeID
	Prefix  canon.Bytes // of all keys of the scope; empty for the root scope
	Epoch   aweigh.Epoch
	View    aweigh.View    // of the last block, 0 for the genesis
	Height  aweigh.Height  // of the last block, 0 for the genesis
	Block   aweigh.Hash    // the last block; the scope's ID for the genesis
	Time    aweigh.Instant // of the last block

	Revision    int64          // of the last writing transaction; an empty key space has 1, as in etcd
	Clocked     bool           // revisions go by the time, because the network has several scopes; see clock
	Started     aweigh.Instant // of the network
	Delegated   int64          // prefixes that other scopes govern
	Folded      int64          // times that a scope below came home
	Closed      bool           // the scope has gone back to the one above, with all that it held
	Governed    aweigh.Epoch   // the first of the present government; 0: that of the founding
	Obeyed      int64          // entries in the parent's lineage up to the last order that was obeyed; 0: none was
	Compacted   int64          // revisions below cannot be read; 0 before the first compaction
	LineageSize int64          // entries in the log
	LineageRoot aweigh.Hash
	Ledger      aweigh.Hash // trust.Ledger.Digest
	Under       aweigh.Hash // of the record of the Epoch that the next block belongs to
	Agenda      aweigh.Hash // of the record of decisions that are carried
	Docket      MotionIndex

	Leases   int64          // that there are
	LeaseDue aweigh.Instant // when the first of them is to be looked at; 0: there is none
	Resumed  aweigh.Instant // of the last block before which the scope had stood still while a lease was over; 0: there was none

	Bytes  int64 // of the records of all versions of keys that compaction has left
	Access int64 // Revision of the Access; 0: there never were users or roles

	Swept uint64 // all receipts that were void before this minute are forgotten

	Current aweigh.Hash // root of the tree of what keys hold, which follows from the records
	Digest  aweigh.Hash // of the whole state; the next header's State
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
	tally  []byte       // of the epoch so far, encoded
	heat   []byte       // likewise

	// Parts that were read already; nil if not. Other states may share them.
	sum     *lthash.Hash
	counted *tally  // as tally
	warm    *heat   // as heat
	epoch   *Epoch  // as head.Under
	pending *agenda // as head.Agenda
	named   *names
	used    *usages
	own     *region
	born    *birth
	current *keytree.Tree // as head.Current
}

// meta is the encoding of a State.
type meta struct {
	_         struct{} `cbor:",toarray"`
	Format    uint16
	Head      Head
	Cursor    int64
	CursorSub uint32
	Sum       []byte
	Tally     []byte
	Heat      []byte // encoded heat of the epoch so far; empty: nothing was counted
}

// Init is the writes that make the state at genesis.
func Init(g Genesis) ([]kv.Op, error) {
	if _, err := g.Check(); err != nil {
		return nil, err
	}
	s, ops, err := begin(&g)
	if err != nil {
		return nil, err
	}
	return append(ops, s.write()), nil
}

// begin returns the state of a scope at its genesis without any keys, and the ops
// that make it, except the one that writes the state itself.
func begin(g *Genesis) (*State, []kv.Op, error) {
	ledger, err := g.Ledger()
	if err != nil {
		return nil, nil, err
	}
	epoch, err := g.Epoch()
	if err != nil {
		return nil, nil, err
	}
	id := g.Hash()
	raw, none := epoch.Encode(), agenda{}.encode()
	tally := newTally(len(g.Anchors))
	root, err := lineage.Open(nil, nil, 0).Root()
	if err != nil {
		return nil, nil, err
	}
	s := &State{
		view: view{space: spaceOf(id), bounds: &defaults},
		head: Head{
			Network: g.Network(), Scope: id, Prefix: canon.Bytes(g.Prefix()), Block: id, Time: g.Time, Revision: g.firstRevision(), Started: g.started(),
			LineageRoot: root, Ledger: ledger.Digest(), Under: epochDigest(raw), Agenda: agendaDigest(none),
		},
		cursor: first(1),
		tally:  tally.encode(),
		sum:    new(lthash.Hash),
		epoch:  epoch,
	}
	if d := g.Descent; d != nil { // earlier history is the parent's
		s.head.Clocked, s.head.Compacted = true, s.head.Revision
		s.cursor = first(d.Revision + 2)
	}
	s.head.Digest = s.digest()
	return s, []kv.Op{
		kv.Set(s.space.at(atGenesis), g.Encode()),
		kv.Set(s.space.at(atEpoch), raw), kv.Set(s.space.at(atAgenda), none), kv.Set(s.space.at(atLedger), ledger.Encode()),
	}, nil
}

// Open is the state of a scope in r. The error wraps ErrCorrupt if r holds none.
func Open(r kv.Reader, id aweigh.ScopeID) (*State, error) {
	s := &State{view: view{r: r, space: spaceOf(id), bounds: &defaults}}
	m, sum, err := s.stored(id)
	if err != nil {
		return nil, err
	}
	s.head, s.cursor, s.tally, s.sum = m.Head, revision{m.Cursor, m.CursorSub}, m.Tally, sum
	if len(m.Heat) > 0 {
		s.heat = m.Heat
	}
	return s, nil
}

// stored is the meta record in the store.
func (v *view) stored(id aweigh.ScopeID) (m meta, sum *lthash.Hash, err error) {
	raw, ok, err := v.r.Get(v.space.at(atMeta))
	if err != nil {
		return m, nil, err
	}
	if !ok {
		return m, nil, fmt.Errorf("%w: nothing is there for scope %s", ErrCorrupt, id.Short())
	}
	if err := canon.Decode(raw, &m); err != nil {
		return m, nil, fmt.Errorf("%w: meta record: %w", ErrCorrupt, err)
	}
	sum = new(lthash.Hash)
	if m.Format != Format || m.Head.Scope != id || !sum.SetBytes(m.Sum) {
		return m, nil, fmt.Errorf("%w: meta record of format %d for scope %s", ErrCorrupt, m.Format, m.Head.Scope.Short())
	}
	return m, sum, nil
}

// write is the op that stores the meta record.
func (s *State) write() kv.Op {
	return kv.Set(s.space.at(atMeta), canon.Encode(meta{
		Format: Format, Head: s.head, Cursor: s.cursor.main, CursorSub: s.cursor.sub, Sum: s.sum.Bytes(), Tally: s.tally, Heat: s.heat,
	}))
}

// Head returns the state's head.
func (s *State) Head() Head { return s.head }

// IsClosed reports whether the scope has gone back to the one above.
func (s *State) IsClosed() bool { return s.head.Closed }

// Height is that of the last block, 0 for the genesis.
func (s *State) Height() aweigh.Height { return s.head.Height }

// Compacted is the revision below which none can be read, 0 before the first compaction.
func (s *State) Compacted() int64 { return s.head.Compacted }

// Over is the state read through r, which must show what the Reader of s shows.
func (s *State) Over(r kv.Reader) *State {
	over := *s
	over.r = r
	return &over
}

// Lean returns the state without the parts that are in memory only for the next block. Executing that block
// reads it again, and so do queries.
func (s *State) Lean() *State {
	lean := *s
	lean.sum, lean.log, lean.counted, lean.warm, lean.pending, lean.named, lean.used = nil, nil, nil, nil, nil, nil, nil
	if s.current != nil && s.current.Len() <= s.bounds.LeanKeys {
		lean.current = nil
	}
	return &lean
}

// IsLean reports whether the state is as Lean leaves it.
func (s *State) IsLean() bool { return s.sum == nil }

// single is the content of a record that every scope has.
func (s *State) single(kind byte, what string) ([]byte, error) {
	raw, ok, err := s.r.Get(s.space.at(kind))
	if err == nil && !ok {
		err = fmt.Errorf("%w: no %s", ErrCorrupt, what)
	}
	return raw, err
}

// Epoch is the one that the next block belongs to: after a block that ends an
// epoch, the new one.
func (s *State) Epoch() (*Epoch, error) {
	if s.epoch != nil {
		return s.epoch, nil
	}
	raw, err := s.single(atEpoch, "epoch")
	if err != nil {
		return nil, err
	}
	e, err := decodeEpoch(raw)
	if err == nil && epochDigest(raw) != s.head.Under {
		err = errors.New("another epoch than the head names")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return e, nil
}

// Begin reads what executing blocks needs and keeps it at hand. If the state's
// epoch is one of those known, it is not read again.
func (s *State) Begin(known ...*Epoch) (*State, error) {
	c := *s
	for _, e := range known {
		if e.record == s.head.Under {
			c.epoch = e
		}
	}
	e, err := c.Epoch()
	if err != nil {
		return nil, err
	}
	open, err := s.agenda()
	if err != nil {
		return nil, err
	}
	t, err := s.count()
	if err == nil && len(t.counts) != len(e.Roster.Anchors) {
		err = fmt.Errorf("%w: a tally of %d anchors, where there are %d", ErrCorrupt, len(t.counts), len(e.Roster.Anchors))
	}
	if err != nil {
		return nil, err
	}
	warm, err := s.heatSoFar()
	if err != nil {
		return nil, err
	}
	named, err := s.names()
	if err != nil {
		return nil, err
	}
	used, err := s.usage()
	if err != nil {
		return nil, err
	}
	own, err := s.region()
	if err != nil {
		return nil, err
	}
	if c.sum == nil {
		m, sum, err := s.stored(s.head.Scope)
		if err == nil && m.Head.Digest != s.head.Digest {
			err = fmt.Errorf("%w: meta record of another state than that after block %d", ErrCorrupt, s.head.Height)
		}
		if err != nil {
			return nil, err
		}
		c.sum = sum
	}
	if c.born, err = s.birth(); err != nil {
		return nil, err
	}
	c.epoch, c.pending, c.counted, c.warm, c.named, c.used, c.own = e, &open, t, warm, &named, used, own
	return &c, nil
}

// count is the tally of the epoch so far, which must not be changed.
func (s *State) count() (*tally, error) {
	if s.counted != nil {
		return s.counted, nil
	}
	t, err := decodeTally(s.tally)
	return &t, err
}

// agenda is the decisions that wait for the next epoch.
func (s *State) agenda() (agenda, error) {
	if s.pending != nil {
		return *s.pending, nil
	}
	raw, err := s.single(atAgenda, "agenda")
	if err == nil && agendaDigest(raw) != s.head.Agenda {
		err = fmt.Errorf("%w: another agenda than the head names", ErrCorrupt)
	}
	if err != nil {
		return nil, err
	}
	return decodeAgenda(raw)
}

// Ledger is the scope's trust ledger.
func (s *State) Ledger() (trust.Ledger, error) {
	raw, err := s.single(atLedger, "trust ledger")
	if err != nil {
		return trust.Ledger{}, err
	}
	l, err := trust.DecodeLedger(raw)
	if err == nil && l.Digest() != s.head.Ledger {
		err = errors.New("another trust ledger than the head names")
	}
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
	return lineage.Open(s.r, s.space.at(atLineage), s.head.LineageSize).Within(s.bounds.Lineage)
}

// CheckHeader returns an error unless a block with this header can follow the state: its place in the chain and in its
// epoch, its time, and its claims about the state as of its parent (P13, P20, P24, P25). Errors wrap ErrInvalid, or
// are those of the store. It does not check the proposer; callers that know the leaders must.
func (s *State) CheckHeader(h Header) error {
	switch p := &s.head; {
	case h.Format != Format:
		return fmt.Errorf("%w: block format %d, this program knows %d", ErrInvalid, h.Format, Format)
	case h.Network != p.Network || h.Scope != p.Scope:
		return fmt.Errorf("%w: a block of scope %s of network %s", ErrInvalid, h.Scope.Short(), h.Network.Short())
	case h.Height != p.Height+1 || h.Parent != p.Block:
		return fmt.Errorf("%w: block %d on %s does not follow block %d, %s", ErrInvalid, h.Height, h.Parent.Short(), p.Height, p.Block.Short())
	case h.Time <= p.Time:
		return fmt.Errorf("%w: a block's time %d is not after its parent's %d", ErrInvalid, h.Time, p.Time)
	case h.LineageSize != p.LineageSize || h.LineageRoot != p.LineageRoot:
		return fmt.Errorf("%w: a lineage of %d entries, %s, where it has %d, %s", ErrInvalid, h.LineageSize, h.LineageRoot.Short(), p.LineageSize, p.LineageRoot.Short())
	case h.State != p.Digest:
		return fmt.Errorf("%w: state %s where it is %s", ErrInvalid, h.State.Short(), p.Digest.Short())
	case h.Current != p.Current:
		return fmt.Errorf("%w: keys with root %s where it is %s", ErrInvalid, h.Current.Short(), p.Current.Short())
	}
	return s.checkEpoch(h)
}

// checkEpoch is the part of CheckHeader that concerns epochs.
func (s *State) checkEpoch(h Header) error {
	e, err := s.Epoch()
	if err != nil {
		return err
	}
	p := &s.head
	empty := h.Mutations.IsZero() && h.Evidence.IsZero()
	if h.Epoch+1 == e.Number && h.Epoch == p.Epoch { // waits with others for the end of the epoch before to become final
		if h.View <= p.View || !empty || !h.Next.IsZero() || h.Domain() != e.Before {
			return fmt.Errorf("%w: block %d after the end of epoch %d must be empty", ErrInvalid, h.Height, h.Epoch)
		}
		return nil
	}
	begins := p.Epoch != e.Number || p.Height == 0
	switch {
	case e.Home != nil:
		return fmt.Errorf("%w: block %d of a scope that is closed", ErrInvalid, h.Height)
	case h.Domain() != e.Domain():
		return fmt.Errorf("%w: a block of epoch %d, roster %s and policy %s, where it is %d, %s and %s", ErrInvalid,
			h.Epoch, h.Roster.Short(), h.Policy.Short(), e.Number, e.Roster.Hash().Short(), e.Policy.Hash().Short())
	case begins && p.Block != e.Root:
		return fmt.Errorf("%w: epoch %d begins after block %s", ErrInvalid, e.Number, e.Root.Short())
	case !begins && h.View <= p.View:
		return fmt.Errorf("%w: view %d does not follow view %d", ErrInvalid, h.View, p.View)
	}
	next, err := s.next(h.Time)
	switch {
	case err != nil:
		return err
	case next == nil && h.Next.IsZero():
		return nil
	case next == nil || h.Next != next.terms.Hash(e.Number+1):
		return fmt.Errorf("%w: block %d ends epoch %d when it should not, or under other terms than those that follow from the chain", ErrInvalid, h.Height, e.Number)
	case !empty:
		return fmt.Errorf("%w: block %d ends epoch %d and must be empty", ErrInvalid, h.Height, e.Number)
	}
	return nil
}

// Claim fills in the fields of a header that CheckHeader looks at, except Epoch, View
// and Time, which must be set. full reports that the block may carry content.
// The error is the store's.
func (s *State) Claim(h Header) (claimed Header, full bool, err error) {
	e, err := s.Epoch()
	if err != nil {
		return h, false, err
	}
	p := &s.head
	h.Format, h.Network, h.Scope = Format, p.Network, p.Scope
	h.Height, h.Parent = p.Height+1, p.Block
	h.LineageSize, h.LineageRoot, h.State, h.Current = p.LineageSize, p.LineageRoot, p.Digest, p.Current
	if h.Epoch < e.Number {
		h.Roster, h.Policy = e.Before.Roster, e.Before.Policy
		return h, false, nil
	}
	d := e.Domain()
	h.Epoch, h.Roster, h.Policy = d.Epoch, d.Roster, d.Policy
	if e.Home != nil { // there is no such block
		return h, false, nil
	}
	next, err := s.next(h.Time)
	if next == nil || err != nil {
		return h, true, err
	}
	h.Next = next.terms.Hash(e.Number + 1)
	return h, false, nil
}
