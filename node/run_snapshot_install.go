package node

import (
	"encoding/binary"
	"errors"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
)

// ErrInstalling is returned for reads while a snapshot replaces the state.
var ErrInstalling = errors.New("node: the state is being replaced by a snapshot; ask again in a moment, or ask another node")

// installBytes bounds one commit of an installation.
const installBytes = 4 << 20

// install replaces the state by the snapshot that was fetched, whose records were all checked. Nothing else may write
// to the store meanwhile. If it is interrupted, resumeInstall begins again with the parts, which stay until the end.
func install(s store.Store, g scope.Genesis) error {
	id := g.Hash()
	offer, ok, err := storedOffer(s, id)
	if err != nil || !ok {
		return errors.Join(err, machine.ErrSnapshot)
	}
	from, to, meta := scope.Clear(id)
	if err := s.Commit([]kv.Op{kv.Set(machine.KeyInstalling(id), []byte{1}), kv.Del(meta)}, true); err != nil {
		return err
	}
	w := bulk{store: s}
	if err := w.clear(from, to); err != nil {
		return err
	}
	in, err := offer.begin(g)
	if err != nil {
		return err
	}
	for n := range offer.parts() {
		if err := offer.read(s, id, n, in, w.add); err != nil {
			return err
		}
	}
	last, err := in.Finish()
	if err != nil {
		return err
	}
	if err := w.flush(); err != nil {
		return err
	}
	open := machine.Record(id, 'c')
	if err := w.clear(open, kv.PrefixEnd(open)); err != nil { // certificates of views long past
		return err
	}
	if h, hash := offer.height(), offer.Own.Header.Hash(); !offer.first() {
		last = append(last,
			kv.Set(machine.KeyBlock(id, hash), offer.Block), kv.Set(machine.KeyHeight(id, h), canon.Encode(machine.BlockStub{Block: hash, Time: offer.Own.Header.Time, Cited: true})),
			kv.Set(machine.KeyFinality(id, h), canon.Encode(offer.Own.Certificate)),
			kv.Set(machine.KeyVouched(id), canon.Encode(machine.Vouched{Next: &offer.Next})),
			kv.Set(machine.KeyOldest(id), binary.BigEndian.AppendUint64(nil, uint64(h))))
	}
	last = append(last, kv.Del(machine.KeyVacant(id)), kv.Del(machine.KeyInstalling(id)), kv.Del(machine.KeyJob(id)))
	if err := s.Commit(last, true); err != nil {
		return err
	}
	return dropParts(s, id)
}

// resumeInstall finishes an installation that was interrupted.
func resumeInstall(s store.Store, g scope.Genesis) error {
	_, cut, err := s.Get(machine.KeyInstalling(g.Hash()))
	if err != nil || !cut {
		return err
	}
	return install(s, g)
}

// dropOffer deletes what was fetched.
func dropOffer(s store.Store, id aweigh.ScopeID) error {
	if err := s.Commit([]kv.Op{kv.Del(machine.KeyJob(id))}, true); err != nil {
		return err
	}
	return dropParts(s, id)
}

func dropParts(s store.Store, id aweigh.ScopeID) error {
	w, parts := bulk{store: s}, machine.Record(id, 'S')
	return w.clear(parts, kv.PrefixEnd(parts))
}

// bulk commits many ops in bounded batches.
type bulk struct {
	store store.Store
	ops   []kv.Op
	bytes int
}

func (w *bulk) add(ops []kv.Op) error {
	w.ops = append(w.ops, ops...)
	for i := range ops {
		w.bytes += len(ops[i].Key) + len(ops[i].Value) + 64
	}
	if w.bytes < installBytes {
		return nil
	}
	return w.flush()
}

func (w *bulk) flush() error {
	err := w.store.Commit(w.ops, false)
	w.ops, w.bytes = w.ops[:0], 0
	return err
}

// clear deletes all keys of a range.
func (w *bulk) clear(from, to []byte) error {
	var failed error
	err := w.store.Scan(from, to, false, func(k, _ []byte) bool {
		failed = w.add([]kv.Op{kv.Del(append([]byte(nil), k...))})
		return failed == nil
	})
	return errors.Join(err, failed, w.flush())
}
