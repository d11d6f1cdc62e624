// Package store keeps ordered byte keys durably. A node has one store, so that
// all its scopes share one log and one fsync.
//
// Package diskstore has the store of production: a log-structured merge tree in a
// directory. Mem is its twin for simulations: the same reads for the same
// commits, and a Crash that forgets unsynced commits. Datastore shows a part of
// either to libraries that want a go-datastore.
//
// The promises, which both keep and the tests compare:
//
//   - A commit is atomic: all of its ops, or none, survive a crash.
//   - Commits survive in order: a crash leaves a prefix of them.
//   - Once Commit with sync has returned nil, that commit and all before it
//     survive any crash.
//   - A store that has lost what was synced does not open, as if nothing had
//     happened (ErrDamaged), or fails when it is read.
//   - After one commit has failed the content of the disk is unknown. The
//     store refuses all further commits with ErrFailed and the reason; the
//     caller must stop, and open the store again to find out.
package store

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/aweigh/aweigh/kv"
)

// Errors, by consequence. All but ErrKey mean that the caller must stop.
var (
	// ErrFailed wraps the reason for which the store stopped accepting commits.
	ErrFailed = errors.New("store: failed earlier, accepts no more commits")
	// ErrClosed is returned for any use after Close.
	ErrClosed = errors.New("store: closed")
	// ErrKey is returned for an op on a reserved key; nothing was written.
	ErrKey = errors.New("store: reserved key")
)

// Store is a node's storage. Reads see every commit that has returned, synced
// or not, and may see one that has not returned yet.
type Store interface {
	kv.Reader

	// Commit applies ops in order, as one atomic step. With sync it returns
	// when this commit and all before it are durable. Without, it returns at
	// once, and the ops are durable after the next commit with sync: no ops
	// and sync set is a plain barrier.
	Commit(ops []kv.Op, sync bool) error

	// Snapshot is the present state, unchanged by later commits.
	Snapshot() Snapshot

	// Close makes everything durable and releases the directory. Nothing else
	// may be in progress, and Snapshots must have been closed.
	Close() error
}

// Snapshot is a Reader of one moment. It holds memory and disk space that
// Close gives back.
type Snapshot interface {
	kv.Reader
	Close() error
}

// The keys below firstKey, "" and "\x00", belong to the stores themselves.
// Callers cannot read or write them.
var firstKey = []byte{0, 0}

// Reserved reports whether a key belongs to the store itself.
func Reserved(key []byte) bool { return bytes.Compare(key, firstKey) < 0 }

// CheckKeys returns ErrKey if one of ops may not be written.
func CheckKeys(ops []kv.Op) error {
	for _, op := range ops {
		if Reserved(op.Key) {
			return fmt.Errorf("%w: %q", ErrKey, op.Key)
		}
	}
	return nil
}

// Bounds returns the lower end of a scan without the reserved keys, and whether
// anything can stand between it and to.
func Bounds(from, to []byte) (lower []byte, some bool) {
	if Reserved(from) {
		from = firstKey
	}
	return from, to == nil || bytes.Compare(from, to) < 0
}
