package node

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// Catch-up by snapshot has these records, beside those that records.go lists:
//
//	O            snapshotOffer: what is being fetched
//	S<number>    a part that came
//	I            the state is being replaced: it cannot be read until that is done

func keyPart(id aweigh.ScopeID, n uint64) []byte {
	return machine.Record(id, 'S', binary.BigEndian.AppendUint64(nil, n)...)
}

// partNumber is the number of the part at a key.
func partNumber(key []byte) (n uint64, ok bool) {
	if len(key) < 8 {
		return 0, false
	}
	n = binary.BigEndian.Uint64(key[len(key)-8:])
	return n, true
}

// heightsAsk asks which snapshots are available to a node that has all blocks up to a height.
type heightsAsk struct {
	_    struct{} `cbor:",toarray"`
	Have aweigh.Height
	Any  bool // blocks are of no use to the asker: a snapshot of any height is, also of 0
}

// heights are those of snapshots.
type heights struct {
	_   struct{} `cbor:",toarray"`
	All []aweigh.Height
}

// snapshotAsk asks for the offer of one snapshot.
type snapshotAsk struct {
	_      struct{} `cbor:",toarray"`
	Height aweigh.Height
}

// snapshotOffer proves what the state after a block must be, and names the parts that make it. The names are a claim:
// they show which peer gives something else than was offered, and which peers offer the same. An offer without parts
// is not ready yet.
type snapshotOffer struct {
	_     struct{}       `cbor:",toarray"`
	Block []byte         // empty if it is the state that the scope was founded with
	Own   scope.Finality // of the block, by a certificate of its own
	Next  scope.Finality // of its child, whose header claims the state
	Sums  []byte         // of the parts, 32 bytes each
}

// partAsk asks for a part of a snapshot.
type partAsk struct {
	_      struct{} `cbor:",toarray"`
	Height aweigh.Height
	Number uint64
}

// snapshotPart is some of a snapshot's records.
type snapshotPart struct {
	_       struct{} `cbor:",toarray"`
	Records []scope.SnapshotRecord
}

// maxParts bounds the parts of a snapshot: their sums must fit an answer.
const maxParts = maxPart / 64

func sumOf(part []byte) aweigh.Hash { return aweigh.Sum([]byte("aweigh/part/1"), part) }

// parts returns the number of parts.
func (o *snapshotOffer) parts() uint64 { return uint64(len(o.Sums) / len(aweigh.Hash{})) }

// sum returns the hash of part n.
func (o *snapshotOffer) sum(n uint64) aweigh.Hash {
	return aweigh.Hash(o.Sums[n*uint64(len(aweigh.Hash{})):][:len(aweigh.Hash{})])
}

// check verifies that the block and its child are final, each in its epoch.
func (o *snapshotOffer) check(own, next *scope.Epoch) error {
	b, err := scope.DecodeBlock(o.Block, own.Policy.Limits, votes.Verify)
	if err != nil {
		return fmt.Errorf("%w: %w", machine.ErrSnapshot, err)
	}
	if o.Own.Header != b.Header || len(o.Own.Descendants) > 0 {
		return fmt.Errorf("%w: the finality of another block", machine.ErrSnapshot)
	}
	if err := errors.Join(o.Own.CheckIn(own), o.Next.CheckIn(next)); err != nil {
		return fmt.Errorf("%w: %w", machine.ErrSnapshot, err)
	}
	return nil
}

// first reports whether the offer is of the state that the scope was founded with, which the scope's genesis proves.
func (o *snapshotOffer) first() bool { return len(o.Block) == 0 }

// height returns the height of the block whose state is offered, 0 for the first state, whatever else the offer says.
func (o *snapshotOffer) height() aweigh.Height {
	if o.first() {
		return 0
	}
	return o.Own.Header.Height
}

// begin returns an import of the offered state of the scope with a genesis.
func (o *snapshotOffer) begin(g scope.Genesis) (in *scope.Import, err error) {
	if o.first() {
		in, err = scope.NewFirstImport(g)
	} else {
		in, err = scope.NewImport(o.Own.Header, o.Next.Header)
	}
	if err == nil && in.Scope() != g.Hash() {
		err = errors.New("a snapshot of another scope")
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", machine.ErrSnapshot, err)
	}
	return in, err
}

// take checks a part that follows the parts before it.
func (p *snapshotPart) take(in *scope.Import, use func([]kv.Op) error) error {
	if len(p.Records) == 0 {
		return fmt.Errorf("%w: a part without records", machine.ErrSnapshot)
	}
	for _, r := range p.Records {
		ops, err := in.Add(r)
		if err != nil {
			return fmt.Errorf("%w: %w", machine.ErrSnapshot, err)
		}
		if err := use(ops); err != nil {
			return err
		}
	}
	return nil
}

// storedOffer returns the offer of the snapshot that is being fetched; ok is false if there is none.
func storedOffer(r kv.Reader, id aweigh.ScopeID) (o snapshotOffer, ok bool, err error) {
	raw, ok, err := r.Get(machine.KeyJob(id))
	if err != nil || !ok {
		return o, false, err
	}
	return o, true, canon.Decode(raw, &o)
}

// awaitedHeight returns the height of the snapshot that is being fetched, 0 if there is none.
func awaitedHeight(r kv.Reader, id aweigh.ScopeID) (aweigh.Height, error) {
	o, _, err := storedOffer(r, id)
	return o.height(), err
}

// read passes a stored part to an import.
func (o *snapshotOffer) read(r kv.Reader, id aweigh.ScopeID, n uint64, in *scope.Import, use func([]kv.Op) error) error {
	raw, ok, err := r.Get(keyPart(id, n))
	if err == nil && (!ok || sumOf(raw) != o.sum(n)) {
		err = fmt.Errorf("node: part %d of %d of a snapshot is not here as it was stored", n, o.parts())
	}
	if err != nil {
		return err
	}
	var p snapshotPart
	if err := canon.Decode(raw, &p); err != nil {
		return fmt.Errorf("%w: %w", machine.ErrSnapshot, err)
	}
	return p.take(in, use)
}

// handoversAsk asks for the proofs of the epochs that begin above a height.
type handoversAsk struct {
	_     struct{} `cbor:",toarray"`
	Above aweigh.Height
}
