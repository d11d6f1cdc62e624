package node

import (
	"encoding/binary"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// Catch-up by snapshot has these records, beside those that records.go lists:
//
//	O            snapshotJob: what is being fetched, and how far
//	S<number>    a part that came
//	I            the state is being replaced: it cannot be read until that is done
//	o            height of the block from which on this node holds all
func keyJob(id aweigh.ScopeID) []byte { return record(id, 'O') }

func keyPart(id aweigh.ScopeID, n uint64) []byte {
	return record(id, 'S', binary.BigEndian.AppendUint64(nil, n)...)
}

func keyInstalling(id aweigh.ScopeID) []byte { return record(id, 'I') }

func keyOldest(id aweigh.ScopeID) []byte { return record(id, 'o') }

// snapshotAsk asks for an offer.
type snapshotAsk struct {
	_    struct{} `cbor:",toarray"`
	Have aweigh.Height
}

// snapshotOffer proves what the state after a block must be.
type snapshotOffer struct {
	_     struct{} `cbor:",toarray"`
	Block []byte
	Own   quorum.Certificate // the block's own finalization
	Next  scope.Finality     // of its child, whose header claims the state
}

// partAsk asks for the records of a snapshot that follow a key.
type partAsk struct {
	_      struct{} `cbor:",toarray"`
	Height aweigh.Height
	After  []byte // empty: from the first on
}

// snapshotPart is some of a snapshot's records.
type snapshotPart struct {
	_       struct{} `cbor:",toarray"`
	Records []scope.SnapshotRecord
	More    bool
}

// snapshotJob is how far a snapshot has been fetched.
type snapshotJob struct {
	_     struct{} `cbor:",toarray"`
	Peer  string
	Offer snapshotOffer
	Parts uint64
	After []byte // key of the last record
	Bytes uint64
	Whole bool
}

// ErrSnapshot is wrapped by errors about a snapshot that is not what it should be.
var ErrSnapshot = fmt.Errorf("node: bad snapshot")

// check verifies that the block and its child are final.
func (o *snapshotOffer) check(c *Checker) (*scope.Block, error) {
	b, err := scope.DecodeBlock(o.Block, c.Limits, c.Verify)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	own := scope.Finality{Header: b.Header, Certificate: o.Own}
	if err := own.Check(c.Keyring); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	if err := o.Next.Check(c.Keyring); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	if _, err := scope.NewImport(b.Header, o.Next.Header); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	return b, nil
}

// take checks a part that follows what came before.
func (p *snapshotPart) take(in *scope.Import, use func([]kv.Op) error) error {
	if len(p.Records) == 0 {
		return fmt.Errorf("%w: a part without records", ErrSnapshot)
	}
	for _, r := range p.Records {
		ops, err := in.Add(r)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrSnapshot, err)
		}
		if err := use(ops); err != nil {
			return err
		}
	}
	return nil
}

// storedJob is the snapshot that is being fetched, if any.
func storedJob(r kv.Reader, id aweigh.ScopeID) (job snapshotJob, ok bool, err error) {
	raw, ok, err := r.Get(keyJob(id))
	if err != nil || !ok {
		return job, false, err
	}
	return job, true, canon.Decode(raw, &job)
}

// awaitedHeight is that of the snapshot that is being fetched, 0 if none is.
func awaitedHeight(r kv.Reader, id aweigh.ScopeID) (aweigh.Height, error) {
	job, ok, err := storedJob(r, id)
	if err != nil || !ok {
		return 0, err
	}
	b, err := scope.DecodeBlock(job.Offer.Block, scope.MostLimits(), nil)
	if err != nil {
		return 0, err
	}
	return b.Header.Height, nil
}

// replay gives the parts that are stored to an import.
func (j *snapshotJob) replay(r kv.Reader, b *scope.Block, use func([]kv.Op) error) (*scope.Import, error) {
	in, err := scope.NewImport(b.Header, j.Offer.Next.Header)
	for n := uint64(0); err == nil && n < j.Parts; n++ {
		raw, ok, readErr := r.Get(keyPart(b.Header.Scope, n))
		if readErr != nil || !ok {
			return nil, fmt.Errorf("%w: part %d of %d is missing: %w", ErrSnapshot, n, j.Parts, readErr)
		}
		var p snapshotPart
		if err = canon.Decode(raw, &p); err == nil {
			err = p.take(in, use)
		}
	}
	return in, err
}
