package scope

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/kv"
)

// Audit reads all records of a scope's state and checks that they are the state that
// final headers claim, no more and no less: it sums up and counts the records that the
// state's digest covers, and derives again and compares what follows from them (hashes
// of the lineage, objects, the order of changes, what is attached to leases, when
// leases and redirects end).
type Audit struct {
	Reader  kv.Reader
	Genesis *Genesis
	Bounds  *Bounds // under which the state came about; nil: the defaults
	// Tell, if not nil, is called after every few records, with the records and bytes
	// read since the last call. An error ends the audit.
	Tell func(records, bytes int) error
}

// Founded reports whether the state is the one that the scope began with.
// Errors wrap ErrInvalid, or are the store's.
func (a Audit) Founded() error {
	if d := a.Genesis.Descent; d != nil {
		in, err := NewFirstImport(*a.Genesis)
		if err != nil {
			return err
		}
		return a.records(a.Reader, in)
	}
	ops, err := Init(*a.Genesis)
	if err != nil {
		return err
	}
	want := kv.NewOverlay(nothingAt{})
	want.Apply(ops...)
	s := spaceOf(a.Genesis.Hash())
	count := len(ops)
	var bad error
	err = a.Reader.Scan(s[:], kv.PrefixEnd(s[:]), false, func(k, v []byte) bool {
		w, ok, _ := want.Get(k)
		if count--; !ok || !bytes.Equal(v, w) {
			bad = fmt.Errorf("%w: record %x is not that of the genesis", ErrInvalid, k[len(s):])
		}
		return bad == nil
	})
	if err == nil && bad == nil && count != 0 {
		bad = fmt.Errorf("%w: %d records of the genesis are missing", ErrInvalid, count)
	}
	if err == nil {
		err = bad
	}
	return err
}

// Claimed reports whether the state is the one after the block of header h that the
// header of its child claims. Both must be known to be final. Errors are those of Founded.
func (a Audit) Claimed(h, child Header) error {
	in, err := NewImport(h, child)
	if err != nil {
		return err
	}
	return a.records(a.Reader, in)
}

// Newest reports whether the state is the one after block b, which must be known to be
// final: it checks the state before b that u shows against what b's header claims, and
// executes b on it. before is the header of b's parent, nil for the first block. Errors
// are those of Founded.
func (a Audit) Newest(before *Header, b *Block, u Undo) error {
	h := &b.Header
	s := spaceOf(h.Scope)
	if u.Block != b.Hash() || u.Short {
		return fmt.Errorf("%w: what block %d replaced is not on record", ErrInvalid, h.Height)
	}
	view, err := u.before(a.Reader, s, b)
	if err != nil {
		return fmt.Errorf("%w: the state before block %d: %w", ErrInvalid, h.Height, err)
	}
	in, err := a.expect(before, h)
	if err == nil {
		err = a.records(view, in)
	}
	if err != nil {
		return fmt.Errorf("the state before block %d: %w", h.Height, err)
	}
	state, err := Open(view, h.Scope)
	if err != nil {
		return err
	}
	if a.Bounds != nil {
		state = state.Within(a.Bounds)
	}
	if err := state.CheckHeader(*h); err != nil {
		return err
	}
	res, err := state.Execute(b)
	if err != nil {
		return err
	}
	return a.same(view, res.Ops, s, h.Height)
}

// expect is an import of the state that a block's header claims.
func (a Audit) expect(before *Header, h *Header) (*Import, error) {
	if before != nil {
		return NewImport(*before, *h)
	}
	id := a.Genesis.Hash()
	if h.Height != 1 || h.Parent != id || h.Scope != id {
		return nil, fmt.Errorf("%w: block %d is not the first of scope %s", ErrInvalid, h.Height, id.Short())
	}
	if a.Genesis.Descent != nil {
		in, err := NewFirstImport(*a.Genesis)
		if err == nil && in.want.LineageSize != h.LineageSize {
			err = fmt.Errorf("%w: the first block claims %d entries before it", ErrInvalid, h.LineageSize)
		}
		return in, err // CheckHeader compares the rest
	}
	in := newImport(Head{
		Network: h.Network, Scope: id, Block: id, Time: a.Genesis.Time,
		LineageSize: h.LineageSize, LineageRoot: h.LineageRoot, Digest: h.State, Current: h.Current,
	})
	return in, nil
}

// same reports whether the store holds what ops write over a view of it.
func (a Audit) same(view *kv.Overlay, ops []kv.Op, s space, at aweigh.Height) error {
	after := kv.NewOverlay(nothingAt{})
	for i := range ops {
		if bytes.HasPrefix(ops[i].Key, s[:]) { // not those of a scope that the block founds
			after.Apply(ops[i])
		}
	}
	wrong := func(k []byte) error {
		return fmt.Errorf("%w: record %x is not what block %d made it", ErrInvalid, k[len(s):], at)
	}
	for _, op := range view.Ops() {
		if _, made := after.First(op.Key, append(bytes.Clone(op.Key), 0)); !made {
			return wrong(op.Key)
		}
	}
	for _, op := range after.Ops() {
		want, set, err := after.Get(op.Key)
		if err != nil {
			return err
		}
		have, ok, err := a.Reader.Get(op.Key)
		if err != nil {
			return err
		}
		if ok != set || !bytes.Equal(have, want) {
			return wrong(op.Key)
		}
	}
	return nil
}

// auditBytes is how much is read at a time.
const auditBytes = 1 << 20

// records checks all records that r shows of the scope of an import.
func (a Audit) records(r kv.Reader, in *Import) error {
	s := in.state.space
	d := derived{r: r, space: s, hashes: sha256.New(), changes: sha256.New(), away: make(map[string]bool)}
	if err := d.begin(in); err != nil {
		return err
	}
	var after []byte
	for more := true; more; {
		var recs []SnapshotRecord
		var err error
		if recs, more, err = ReadSnapshot(r, a.Genesis.Hash(), after, auditBytes); err != nil {
			return err
		}
		size := 0
		for _, rec := range recs {
			ops, err := in.Add(rec)
			if err == nil {
				err = d.take(ops)
			}
			if err != nil {
				return err
			}
			after = rec.Key
			size += len(rec.Key) + len(rec.Value)
		}
		if a.Tell != nil {
			if err := a.Tell(len(recs), size); err != nil {
				return err
			}
		}
	}
	ops, err := in.Finish()
	if err == nil {
		err = d.take(ops)
	}
	if err != nil {
		return err
	}
	return d.finish()
}

// derived compares what follows from the records of a state with what the store has.
type derived struct {
	r     kv.Reader
	space space

	hashes, changes    hash.Hash       // of all that must be there, in order
	objects            int             // that were created
	ended, endedStored int             // of those
	away               map[string]bool // those that went to a scope below, and live: they must come home, as must those with another key than their first
	marks              [256]int        // records without content that must be there, by kind
}

// begin has the import give all changes that the store should still have.
func (d *derived) begin(in *Import) error {
	v := view{r: d.r, space: d.space, bounds: &defaults}
	err := v.changes(revision{}, func(c change, _ bool) bool {
		at := c.at
		in.since = &at
		return false
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return nil
}

func (d *derived) wrong(k []byte) error {
	return fmt.Errorf("%w: record %x does not follow from the others", ErrInvalid, k[len(d.space):])
}

// take compares what an import would write.
func (d *derived) take(ops []kv.Op) error {
	for i := range ops {
		op := &ops[i]
		switch op.Key[len(d.space)] {
		case atLineage:
			if op.Key[len(d.space)+1] == 'h' {
				d.hashes.Write(op.Value)
			}
		case atChange:
			if err := d.changed(op.Value); err != nil {
				return err
			}
		case atLeaseKey, atLeaseEnd, atRedirectExpiry:
			have, ok, err := d.r.Get(op.Key)
			if err != nil {
				return err
			}
			if !ok || len(have) > 0 {
				return d.wrong(op.Key)
			}
			d.marks[op.Key[len(d.space)]]++
		case atObject:
			if err := d.object(op); err != nil {
				return err
			}
		}
	}
	return nil
}

// object compares the record of an object. One that was created may have ended since;
// then the end compares, and every end must be in the lineage.
func (d *derived) object(op *kv.Op) error {
	have, ok, err := d.r.Get(op.Key)
	if err != nil {
		return err
	}
	stored, err := readObject(have)
	switch {
	case !ok || err != nil:
		return d.wrong(op.Key)
	case op.Delete: // it comes home, and is counted once more
		if d.objects--; stored.End > 0 {
			d.endedStored--
		}
		delete(d.away, string(op.Key))
		return nil
	case !isNew(op.Value): // one with several names may end several times, and the last one stays
		if end, _ := readObject(op.Value); stored.End > end.End {
			return nil
		}
		if stored.End == 0 {
			d.away[string(op.Key)] = true
			return nil
		}
		d.ended++
	default:
		d.objects++
		if stored.End > 0 {
			d.endedStored++
			return nil
		}
	}
	if !bytes.Equal(have, op.Value) {
		if isNew(op.Value) { // unless it comes home, under another key
			d.away[string(op.Key)] = true
			return nil
		}
		return d.wrong(op.Key)
	}
	return nil
}

// changed adds a run of changes to those that must be there.
func (d *derived) changed(run []byte) error { return hashChanges(d.changes, run) }

// hashChanges hashes the changes of a run, however the runs are cut.
func hashChanges(h hash.Hash, run []byte) error {
	r := reader{data: run}
	var line []byte
	for main := int64(0); len(r.data) > 0; {
		main += r.int64()
		sub, size := r.int64(), r.int64()
		key := r.bytes(int(size))
		if r.bad {
			return fmt.Errorf("%w: a run of changes of %d bytes", ErrInvalid, len(run))
		}
		line = revision{main, uint32(sub)}.append(line[:0])
		line = binary.BigEndian.AppendUint32(line, uint32(size))
		h.Write(append(line, key...))
	}
	return nil
}

// finish compares what can be compared only as a whole, and looks for surplus records.
func (d *derived) finish() error {
	count := func(kind byte, visit func(k, v []byte) error) (n int, err error) {
		from := d.space.at(kind)
		scan := d.r.Scan(from, kv.PrefixEnd(from), false, func(k, v []byte) bool {
			n++
			err = visit(k, v)
			return err == nil
		})
		if scan != nil {
			err = scan
		}
		return n, err
	}
	nothing := func(_, _ []byte) error { return nil }
	hashes, changes, last := sha256.New(), sha256.New(), int64(-1)
	if _, err := count(atLineage, func(k, v []byte) error {
		if rest := k[len(d.space)+1:]; len(rest) != 9 || rest[0] != 'e' && rest[0] != 'h' {
			return d.wrong(k)
		} else if rest[0] == 'h' {
			last += int64(len(v) / sha256.Size)
			if int64(binary.BigEndian.Uint64(rest[1:])) != last || len(v) == 0 {
				return d.wrong(k)
			}
			hashes.Write(v)
		}
		return nil
	}); err != nil {
		return err
	}
	if _, err := count(atChange, func(k, v []byte) error {
		at, err := lastChange(v)
		if err != nil || !bytes.Equal(k, d.space.change(at)) {
			return d.wrong(k)
		}
		return hashChanges(changes, v)
	}); err != nil {
		return err
	}
	switch {
	case !bytes.Equal(hashes.Sum(nil), d.hashes.Sum(nil)):
		return fmt.Errorf("%w: the hashes of the lineage are not those of its entries", ErrInvalid)
	case !bytes.Equal(changes.Sum(nil), d.changes.Sum(nil)):
		return fmt.Errorf("%w: the order of changes is not that of the lineage", ErrInvalid)
	case len(d.away) > 0:
		return fmt.Errorf("%w: %d objects have other records than follow from the lineage", ErrInvalid, len(d.away))
	case d.ended != d.endedStored:
		return fmt.Errorf("%w: %d objects have ended, and %d say so", ErrInvalid, d.ended, d.endedStored)
	}
	if n, err := count(atObject, nothing); err != nil || n != d.objects {
		return fmt.Errorf("%w: records of %d objects, where the lineage tells of %d (%v)", ErrInvalid, n, d.objects, err)
	}
	for _, kind := range []byte{atLeaseKey, atLeaseEnd, atRedirectExpiry} {
		if n, err := count(kind, nothing); err != nil || n != d.marks[kind] {
			return fmt.Errorf("%w: %d records of kind %q, where %d follow from the others (%v)", ErrInvalid, n, kind, d.marks[kind], err)
		}
	}
	return d.strange()
}

// lastChange is the place of the last change of a run.
func lastChange(run []byte) (at revision, err error) {
	r := reader{data: run}
	for len(r.data) > 0 && !r.bad {
		at.main += r.int64()
		at.sub = uint32(r.int64())
		r.bytes(int(r.int64()))
	}
	if r.bad {
		err = ErrInvalid
	}
	return at, err
}

// strange looks for records of unknown kinds.
func (d *derived) strange() error {
	known := map[byte]bool{atChange: true, atObject: true, atRedirectExpiry: true, atLeaseKey: true, atLeaseEnd: true}
	for _, part := range carried {
		known[part[0]] = true
	}
	for kind := range 256 {
		if known[byte(kind)] {
			continue
		}
		var bad error
		from := d.space.at(byte(kind))
		err := d.r.Scan(from, kv.PrefixEnd(from), false, func(k, _ []byte) bool {
			bad = fmt.Errorf("%w: record %x is of no known kind", ErrInvalid, k[len(d.space):])
			return false
		})
		if err == nil {
			err = bad
		}
		if err != nil {
			return err
		}
	}
	return nil
}
