package diskstore

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/store"
)

// fault remembers the first failure, for good. A disk that has once refused a
// write or a sync may have dropped the pages: on Linux a second fsync reports
// success without having written them (Rebello et al., "Can Applications
// Recover from fsync Failures?", USENIX ATC 2020). So there is no trying again.
type fault struct {
	dir    string // of the store
	once   sync.Once
	failed chan struct{} // closed once err is set
	err    error
}

func newFault(dir string) *fault { return &fault{dir: dir, failed: make(chan struct{})} }

func (f *fault) set(err error) {
	f.once.Do(func() {
		f.err = fmt.Errorf("%w: %w", store.ErrFailed, err)
		close(f.failed)
	})
}

func (f *fault) get() error {
	select {
	case <-f.failed:
		return f.err
	default:
		return nil
	}
}

// read returns err, the error of a read. Damage is remembered: Pebble reports none to a listener for values
// that are kept apart from their keys.
func (f *fault) read(err error) error {
	if pebble.IsCorruptionError(err) {
		f.set(fmt.Errorf("%w: %s: %w", ErrDamaged, f.dir, err))
	}
	return err
}

// Failed is closed when the store fails, also in the background, as when a
// table cannot be written because the disk is full. Err then has the reason.
func (s *Store) Failed() <-chan struct{} { return s.fault.failed }

// Err is nil, or why the store refuses commits: ErrFailed, wrapped around it.
func (s *Store) Err() error { return s.fault.get() }

// logger receives Pebble's messages. Its Fatalf is meant to end the process;
// the choice of when to end is the caller's, so it becomes a fault instead.
type logger struct{ fault *fault }

func (logger) Infof(string, ...any)  {}
func (logger) Errorf(string, ...any) {} // background errors come through listener

// Fatalf returns if there is an error among args: then a file operation failed,
// and Pebble's callers pass the error on. Without one, Pebble found its own
// invariants broken, and to go on could write nonsense.
func (l logger) Fatalf(format string, args ...any) {
	for _, a := range args {
		if err, ok := a.(error); ok {
			l.fault.set(fmt.Errorf("pebble: %w", err))
			return
		}
	}
	err := fmt.Errorf(format, args...)
	l.fault.set(err)
	must.OK(err, "pebble")
}

// listener turns what fails in the background into a fault.
func listener(f *fault) *pebble.EventListener {
	return &pebble.EventListener{
		BlobFileRewriteEnd: func(info pebble.BlobFileRewriteInfo) { // or it would be tried again at once, for ever
			if info.Err != nil && !errors.Is(info.Err, pebble.ErrCancelledCompaction) {
				f.set(fmt.Errorf("rewriting a file of values: %w", f.read(info.Err)))
			}
		},
		BackgroundError: func(err error) { f.set(fmt.Errorf("background work: %w", err)) },
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			f.set(fmt.Errorf("%w: corrupt file %s: %w", ErrDamaged, info.Path, info.Details))
		},
	}
}
