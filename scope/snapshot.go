package scope

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/lthash"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/trust"
)

// SnapshotRecord is one pair of a scope's state, as a snapshot carries it.
type SnapshotRecord struct {
	_     struct{} `cbor:",toarray"`
	Key   []byte   // without the scope's prefix
	Value []byte
}

// carried lists the parts of a scope that a snapshot holds, in the order of the store. Everything else is derived:
// from the lineage its hashes, the objects and the order of changes, and from the leases and versions the attached
// keys. So it is computed again, and the node that gives the snapshot need not be trusted.
var carried = []string{
	string(atMeta), string(atNames), string(atGenesis), string(atTaken), string(atHoming), string(atHomePart), string(atTerms), string(atUsage), string(atFolded), string(atWarning), string(atSent), string(atReceived), string(atAliases), string(atAccess), string(atEpoch), string(atAgenda), string(atVoid), string(atLease), string(atIsland), string(atVersion),
	string(atLineage) + "e", string(atReceipt), string(atRedirect), string(atMotion), string(atVoted), string(atOpen), string(atClosed),
	string(atAside), string(atLedger), string(atDue), string(atCharge), string(atExpiry), string(atDelegated),
}

// ReadSnapshot is the records of a snapshot that follow the one at after (nil:
// from the first one on), until they hold at least most bytes. more reports
// that others follow. r must show one moment.
func ReadSnapshot(r kv.Reader, id aweigh.ScopeID, after []byte, most int) (records []SnapshotRecord, more bool, err error) {
	s := spaceOf(id)
	next := append(bytes.Clone(after), 0)
	for _, part := range carried {
		from := append(s[:], part...)
		to := kv.PrefixEnd(from)
		if after != nil {
			if at := append(s[:], next...); bytes.Compare(at, from) > 0 {
				from = at
			}
		}
		if bytes.Compare(from, to) >= 0 {
			continue
		}
		err = r.Scan(from, to, false, func(k, v []byte) bool {
			if more = most <= 0; more {
				return false
			}
			records = append(records, SnapshotRecord{Key: bytes.Clone(k[len(s):]), Value: bytes.Clone(v)})
			most -= len(k) + len(v)
			return true
		})
		if err != nil || more {
			return records, more, err
		}
	}
	return records, false, nil
}

// Import takes the records of a snapshot, in the order of ReadSnapshot, checks
// that they are the state which a final header claims, and gives the ops that
// make it. Nothing is proven before Finish returns nil. Not safe for concurrent
// use.
type Import struct {
	state State // from the meta record, once it was checked
	want  Head  // what is known of it before
	last  []byte
	begun bool

	sum      lthash.Hash // of what came
	first    *founded    // set if what a scope was founded with is to come
	versions int64
	leases   int64
	live     []byte // escaped key of the last version
	current  growing
	named    int64 // records about names
	received int64 // decisions about names that were sent
	charged  int64 // records about quotas
	aside    int64 // records about what islands changed in vain
	bytes    int64 // of versions
	log      *lineage.Log
	entries  []lineage.Entry
	place    revision  // of the last change
	since    *revision // the oldest change to give; nil: the oldest that is needed
	changed  []change
	ledger   bool
	epoch    bool
	agenda   bool
	genesis  bool

	receipts []byte // ID, length as 2 bytes, record; one after another, by ID
	starts   []int
	used     int

	scratch []byte
	lanes   lthash.Lanes
}

// NewImport expects the state after the block of header h, as its child's header
// claims it. Both must be known to be final.
func NewImport(h, child Header) (*Import, error) {
	if child.Parent != h.Hash() || child.Height != h.Height+1 || child.Scope != h.Scope {
		return nil, fmt.Errorf("%w: block %d does not follow block %d", ErrInvalid, child.Height, h.Height)
	}
	return newImport(Head{
		Network: h.Network, Scope: h.Scope, Epoch: h.Epoch, View: h.View, Height: h.Height, Block: h.Hash(), Time: h.Time,
		LineageSize: child.LineageSize, LineageRoot: child.LineageRoot, Digest: child.State, Current: child.Current,
	}), nil
}

func newImport(want Head) *Import {
	s := spaceOf(want.Scope)
	return &Import{want: want, state: State{view: view{space: s, bounds: &defaults}}, log: lineage.Open(nil, s.at(atLineage), 0)}
}

// Add takes the next record. Errors wrap ErrInvalid: the snapshot is not what
// the headers claim.
func (i *Import) Add(rec SnapshotRecord) (ops []kv.Op, err error) {
	if i.last != nil && bytes.Compare(rec.Key, i.last) <= 0 || len(rec.Key) == 0 {
		return nil, fmt.Errorf("%w: record %x of a snapshot stands out of order", ErrInvalid, rec.Key)
	}
	i.last = bytes.Clone(rec.Key)
	if kind := rec.Key[0]; (kind == atMeta) == i.begun {
		return nil, fmt.Errorf("%w: a snapshot begins with one meta record", ErrInvalid)
	}
	k := append(i.state.space[:], rec.Key...)
	set := []kv.Op{kv.Set(k, rec.Value)}
	switch rec.Key[0] {
	case atMeta:
		return nil, i.meta(rec)
	case atLease:
		return i.lease(k, rec.Value)
	case atVersion:
		return i.version(k, rec.Value)
	case atReceived:
		return set, i.decision(k, rec)
	case atNames, atAliases, atRedirect, atSent:
		if i.named++; i.named > i.want.LineageSize+i.state.bounds.Redirects+1 { // redirects are handed over without an entry
			return nil, fmt.Errorf("%w: more records about names than entries in the lineage", ErrInvalid)
		}
		i.element(k, rec.Value)
		return i.state.space.withRedirectExpiry(set)
	case atDelegated:
		var d delegated
		if err := canon.Decode(rec.Value, &d); err != nil {
			return nil, fmt.Errorf("%w: delegation: %w", ErrInvalid, err)
		}
		i.current.add(HoldsScope, rec.Key[1:], GenesisHash(d.Genesis))
		return set, i.motion(k, rec)
	case atMotion, atVoted, atOpen, atDue, atClosed, atAccess, atVoid, atIsland, atTaken, atTerms, atWarning, atHoming, atHomePart, atFolded:
		return set, i.motion(k, rec)
	case atAside:
		if i.aside++; i.aside > asideAnEntry*i.want.LineageSize {
			return nil, fmt.Errorf("%w: more records about islands than the lineage tells of", ErrInvalid)
		}
		i.element(k, rec.Value)
		return set, nil
	case atCharge, atUsage:
		if i.charged++; i.charged > 2*i.want.LineageSize+mostUsages { // each counts what is in the lineage, or a rate
			return nil, fmt.Errorf("%w: more records about quotas than the lineage tells of", ErrInvalid)
		}
		i.element(k, rec.Value)
		return set, nil
	case atLineage:
		return i.run(rec)
	case atReceipt:
		if len(rec.Key) != 1+len(aweigh.Hash{}) || len(rec.Value) > 1<<16-1 || len(i.receipts) > maxReceipts {
			return nil, fmt.Errorf("%w: receipt %x", ErrInvalid, rec.Key)
		}
		i.starts = append(i.starts, len(i.receipts))
		i.receipts = append(i.receipts, rec.Key[1:]...)
		i.receipts = append(binary.BigEndian.AppendUint16(i.receipts, uint16(len(rec.Value))), rec.Value...)
		return set, nil
	case atLedger:
		l, err := trust.DecodeLedger(rec.Value)
		if err != nil || len(rec.Key) != 1 || l.Digest() != i.state.head.Ledger || !bytes.Equal(l.Encode(), rec.Value) {
			return nil, fmt.Errorf("%w: not the trust ledger that is claimed", ErrInvalid)
		}
		i.ledger = true
		return set, nil
	case atEpoch:
		if _, err := decodeEpoch(rec.Value); err != nil || len(rec.Key) != 1 || epochDigest(rec.Value) != i.state.head.Under {
			return nil, fmt.Errorf("%w: not the epoch that is claimed", ErrInvalid)
		}
		i.epoch = true
		return set, nil
	case atAgenda:
		if _, err := decodeAgenda(rec.Value); err != nil || len(rec.Key) != 1 || agendaDigest(rec.Value) != i.state.head.Agenda {
			return nil, fmt.Errorf("%w: not the agenda that is claimed", ErrInvalid)
		}
		i.agenda = true
		return set, nil
	case atGenesis:
		if g, err := DecodeGenesis(rec.Value); err != nil || len(rec.Key) != 1 || g.Hash() != i.want.Scope || canon.Bytes(g.Prefix()) != i.state.head.Prefix {
			return nil, fmt.Errorf("%w: not the genesis of the scope", ErrInvalid)
		}
		i.genesis = true
		return set, nil
	case atExpiry:
		return set, i.expiry(k, rec.Value)
	}
	return nil, fmt.Errorf("%w: record %x has no place in a snapshot", ErrInvalid, rec.Key)
}

// meta checks the meta record: what the headers do not name themselves, the
// digest that they name covers.
func (i *Import) meta(rec SnapshotRecord) error {
	var m meta
	s := &i.state
	s.sum = new(lthash.Hash)
	if err := canon.Decode(rec.Value, &m); err != nil || len(rec.Key) != 1 || m.Format != Format || !s.sum.SetBytes(m.Sum) || !validTally(m.Tally) || !validHeat(m.Heat) {
		return fmt.Errorf("%w: meta record of a snapshot", ErrInvalid)
	}
	s.head, s.cursor = m.Head, revision{m.Cursor, m.CursorSub}
	var want Head
	if i.first != nil {
		want = i.first.head(m.Head)
	} else {
		want = i.want
		want.Revision, want.Compacted, want.Ledger = m.Head.Revision, m.Head.Compacted, m.Head.Ledger
		want.Under, want.Agenda, want.Docket = m.Head.Under, m.Head.Agenda, m.Head.Docket
		want.Leases, want.LeaseDue, want.Resumed = m.Head.Leases, m.Head.LeaseDue, m.Head.Resumed
		want.Swept, want.Access = m.Head.Swept, m.Head.Access
		want.Bytes = m.Head.Bytes // which is counted
		want.Prefix, want.Clocked, want.Started, want.Delegated = m.Head.Prefix, m.Head.Clocked, m.Head.Started, m.Head.Delegated
		want.Folded, want.Closed = m.Head.Folded, m.Head.Closed
		want.Obeyed, want.Governed = m.Head.Obeyed, m.Head.Governed
	}
	s.tally, s.heat = m.Tally, m.Heat
	if i.first != nil && (s.cursor != i.first.state.cursor || !bytes.Equal(s.tally, i.first.state.tally) || len(s.heat) > 0) {
		return fmt.Errorf("%w: the counts of a snapshot of what a scope was founded with", ErrInvalid)
	}
	if s.head != want || s.digest() != want.Digest || !bytes.Equal(s.write().Value, rec.Value) {
		return fmt.Errorf("%w: the snapshot's head is not what the header of block %d claims", ErrInvalid, want.Height+1)
	}
	i.begun = true
	return nil
}

func (i *Import) element(k, record []byte) (h aweigh.Hash) {
	h, i.scratch = element(i.scratch, k, record)
	i.sum.Add(h, &i.lanes)
	return h
}

// motion takes a record about motions, or about what they decided.
func (i *Import) motion(k []byte, rec SnapshotRecord) error {
	if i.named++; i.named > 4*i.want.LineageSize+int64(i.state.bounds.HandKeys)+maxHomeParts+1 { // each in the lineage, some twice
		return fmt.Errorf("%w: more records about motions than the lineage tells of", ErrInvalid)
	}
	i.element(k, rec.Value)
	return nil
}

// version takes a version of a key.
func (i *Import) version(k, record []byte) ([]kv.Op, error) {
	var v KeyValue
	s := i.state.space
	escaped, _, ok := s.splitVersion(k)
	if i.versions++; !ok || i.versions > i.want.LineageSize || v.readRecord(record) != nil {
		return nil, fmt.Errorf("%w: version %x", ErrInvalid, k)
	}
	digest := i.element(k, record)
	i.bytes += recordBytes(k, record)
	set := []kv.Op{kv.Set(k, record)}
	newest := !bytes.Equal(escaped, i.live)
	if newest && v.Version != 0 {
		i.current.add(HoldsVersion, keyOf(escaped), digest)
	}
	if newest && v.Lease != 0 {
		set = append(set, kv.Set(s.leaseKey(v.Lease, keyOf(escaped)), nil))
	}
	i.live = bytes.Clone(escaped)
	return set, nil
}

// lease takes a lease.
func (i *Import) lease(k, record []byte) ([]kv.Op, error) {
	l, err := readLease(record)
	id := k[len(i.state.space)+1:]
	if i.leases++; err != nil || len(id) != 8 || i.leases > i.state.head.Leases {
		return nil, fmt.Errorf("%w: lease %x", ErrInvalid, id)
	}
	i.element(k, record)
	if i.first != nil {
		i.first.due = aweigh.Earliest(i.first.due, l.expires)
	}
	end := i.state.space.leaseEnd(l.expires, int64(binary.BigEndian.Uint64(id)))
	return []kv.Op{kv.Set(k, record), kv.Set(end, nil)}, nil
}

// run takes a run of entries.
func (i *Import) run(rec SnapshotRecord) ([]kv.Op, error) {
	entries, err := lineage.DecodeRun(rec.Value)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	end := i.log.Size() + int64(len(i.entries)+len(entries))
	if want := binary.BigEndian.AppendUint64([]byte{atLineage, 'e'}, uint64(end-1)); !bytes.Equal(rec.Key, want) || end > i.want.LineageSize {
		return nil, fmt.Errorf("%w: a run of entries at %x, where %x is next", ErrInvalid, rec.Key, want)
	}
	for n := range entries {
		if i.first == nil {
			break
		}
		if err := i.first.enter(&entries[n]); err != nil {
			return nil, err
		}
	}
	i.entries = append(i.entries, entries...)
	if len(i.entries) < entriesAtOnce {
		return nil, nil
	}
	return i.enter()
}

// mostUsages bounds the entries that are on record for their rate alone: those of the policies of some seconds.
const mostUsages = 64 * maxAuthors

// maxReceipts bounds the bytes of receipts that are held until their lists come:
// those of more than ten million mutations.
const maxReceipts = 1 << 30

// entriesAtOnce is how many entries are stored together.
const entriesAtOnce = 1024

// enter stores the entries that came, and what follows from them.
func (i *Import) enter() ([]kv.Op, error) {
	s := &i.state
	at := i.log.Size()
	ops, err := i.log.Append(i.entries...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	i.changed = i.changed[:0]
	oldest := first(s.head.Compacted)
	if s.cursor.before(oldest) {
		oldest = s.cursor
	}
	if i.since != nil && i.since.before(oldest) {
		oldest = *i.since
	}
	for n := range i.entries {
		e := &i.entries[n]
		o := object{Key: e.Key}
		switch {
		case e.Class == lineage.Delete || e.Class == lineage.HandedOver || e.Class == lineage.Left:
			o.End = at + int64(n) + 1
		case !e.Class.Shows() && !e.Class.Clears():
			continue
		}
		switch e.Class {
		case lineage.CameHome, lineage.Received:
			if e.Prev > 0 { // it had gone from here
				ops = append(ops, kv.Del(s.space.at(atObject, e.Object[:]...)))
			}
			ops = append(ops, kv.Set(s.space.at(atObject, e.Object[:]...), o.record()))
		case lineage.Insert, lineage.TakenOver, lineage.Delete, lineage.HandedOver, lineage.Left:
			ops = append(ops, kv.Set(s.space.at(atObject, e.Object[:]...), o.record()))
		}
		if i.place.main == e.Revision {
			i.place.sub++
		} else {
			i.place = first(e.Revision)
		}
		if !i.place.before(oldest) {
			i.changed = append(i.changed, change{i.place, e.Key})
		}
	}
	i.entries = i.entries[:0]
	return append(ops, s.space.changeRuns(i.changed, s.bounds.ChangesInRun)...), nil
}

// receipt is the record of a mutation that came.
func (i *Import) receipt(id []byte) ([]byte, bool) {
	const size = len(aweigh.Hash{})
	n := sort.Search(len(i.starts), func(n int) bool {
		return bytes.Compare(i.receipts[i.starts[n]:][:size], id) >= 0
	})
	if n == len(i.starts) || !bytes.Equal(i.receipts[i.starts[n]:][:size], id) {
		return nil, false
	}
	rest := i.receipts[i.starts[n]+size:]
	return rest[2:][:binary.BigEndian.Uint16(rest)], true
}

// expiry imports a list of mutations whose receipts came before.
func (i *Import) expiry(k, ids []byte) error {
	var list []byte
	if len(ids)%len(aweigh.Hash{}) != 0 {
		return fmt.Errorf("%w: a list of mutations of %d bytes", ErrInvalid, len(ids))
	}
	for id := range slices.Chunk(ids, len(aweigh.Hash{})) {
		record, ok := i.receipt(id)
		if !ok {
			return fmt.Errorf("%w: no receipt of mutation %x", ErrInvalid, id)
		}
		list = appendReceipt(list, id, record)
		i.used++
	}
	i.element(k, list)
	return nil
}

// Finish checks that the records are the state that the headers claim, no more
// and no less, and returns the last ops. Errors wrap ErrInvalid.
func (i *Import) Finish() ([]kv.Op, error) {
	ops, err := i.enter()
	if err != nil {
		return nil, err
	}
	root, err := i.log.Root()
	if err != nil {
		return nil, err
	}
	switch h := &i.want; {
	case !i.begun || !i.ledger || !i.epoch || !i.agenda || !i.genesis:
		return nil, fmt.Errorf("%w: a snapshot without meta record, genesis, epoch, agenda or trust ledger", ErrInvalid)
	case i.log.Size() != h.LineageSize || root != i.state.head.LineageRoot:
		return nil, fmt.Errorf("%w: a lineage of %d entries, %s, where %d, %s are claimed", ErrInvalid, i.log.Size(), root.Short(), h.LineageSize, i.state.head.LineageRoot.Short())
	case i.used != len(i.starts):
		return nil, fmt.Errorf("%w: %d receipts, of which lists name %d", ErrInvalid, len(i.starts), i.used)
	case i.bytes != i.state.head.Bytes:
		return nil, fmt.Errorf("%w: versions of %d bytes, where %d are claimed", ErrInvalid, i.bytes, i.state.head.Bytes)
	case i.current.finish().Root() != i.state.head.Current:
		return nil, fmt.Errorf("%w: keys with root %s, where %s is claimed", ErrInvalid, i.current.tree.Root().Short(), i.state.head.Current.Short())
	case i.sum != *i.state.sum:
		return nil, fmt.Errorf("%w: the records do not hash to the claimed state %s", ErrInvalid, h.Digest.Short())
	}
	if i.first != nil {
		if err := i.first.check(i); err != nil {
			return nil, err
		}
	}
	return append(ops, i.state.write()), nil
}

// Clear is the range of all keys of a scope, and the key of the record without
// which there is no state to open.
func Clear(id aweigh.ScopeID) (from, to, meta []byte) {
	s := spaceOf(id)
	return s[:], kv.PrefixEnd(s[:]), s.at(atMeta)
}
