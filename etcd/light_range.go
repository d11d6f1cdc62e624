package etcd

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
)

const (
	// mostKept bounds the batches of changes that a provenRange remembers.
	mostKept = 1024
	// keptBytes bounds the keys and values of those batches.
	keptBytes = 4 << 20
)

// provenRange is what the keys of a range hold, as proofs have shown it one after the other, and how it changed between
// them. Changes that lie between two proofs are one batch. Safe for concurrent use.
type provenRange struct {
	key, end []byte
	light    *light
	id       uint64 // of this memory: one that is forgotten and begins anew has another

	mu       sync.Mutex // guards what follows
	fetching bool       // run does
	next     *fetch     // that has not begun
	now      proven
	at       time.Time // of the last proof; zero if there was none
	last     error     // of the last fetch
	// The batches with all changes after revision floor, the oldest first.
	batches []batch
	floor   int64
	size    int           // bytes of the batches
	changed chan struct{} // closed when a fetch ends

	// Guarded by light.memory:
	watches  int // that follow it
	unfollow context.CancelFunc
	used     time.Time
}

// proven is what the keys of a range held, as of a revision.
type proven struct {
	// revision is the newest of the versions, or more: it rises with each change that is found, by one at least. So it
	// names what the keys held among all that one provenRange has seen, and among no more: without a version, a
	// deletion has no revision that a proof could show.
	revision int64
	kvs      []scope.KeyValue
}

// batch is what changed between two proofs.
type batch struct {
	revision int64
	events   []scope.Event
	size     int
}

// fetch is a proof that callers wait for.
type fetch struct {
	done chan struct{}
	got  proven
	err  error
}

// fetch proves anew what the keys hold. Calls that wait for one proof share the next: it begins after all of them did.
func (x *provenRange) fetch(ctx context.Context) (proven, error) {
	x.mu.Lock()
	f := x.next
	if f == nil {
		f = &fetch{done: make(chan struct{})}
		x.next = f
		if !x.fetching {
			x.fetching = true
			x.light.background(x.run)
		}
	}
	x.mu.Unlock()
	select {
	case <-f.done:
		return f.got, f.err
	case <-ctx.Done():
		return proven{}, ctx.Err()
	}
}

// run fetches one proof after the other while there are calls that wait for one.
func (x *provenRange) run() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for x.next != nil {
		f := x.next
		x.next = nil
		x.mu.Unlock()
		kvs, err := x.read()
		x.mu.Lock()
		if f.err = err; err == nil {
			x.take(kvs)
			f.got, x.at = x.now, time.Now()
		} else if x.light.lasting(err) == codes.OK {
			x.light.unread.Do(func() { x.light.log.Warn("no node gave an answer that holds", "key", string(x.key), "err", err) })
		}
		x.last = err
		close(x.changed)
		x.changed = make(chan struct{})
		close(f.done)
	}
	x.fetching = false
}

func (x *provenRange) read() ([]scope.KeyValue, error) {
	ctx, cancel := context.WithTimeout(x.light.ctx, max(x.light.atMost/2, leastFetch))
	defer cancel()
	select {
	case x.light.proofs <- struct{}{}:
		defer func() { <-x.light.proofs }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	_, r, err := x.light.reader.Range(ctx, x.key, x.end)
	return r.Kvs, err
}

// take notes what a proof shows that is later than all before it.
func (x *provenRange) take(kvs []scope.KeyValue) {
	newest := int64(1)
	for i := range kvs {
		newest = max(newest, kvs[i].ModRevision)
	}
	if x.at.IsZero() {
		x.now, x.floor = proven{newest, kvs}, newest
		return
	}
	b := batch{revision: max(newest, x.now.revision+1)}
	if b.events, kvs = changesBetween(x.now.kvs, kvs, x.now.revision+1); len(b.events) == 0 {
		return
	}
	for i := range b.events {
		e := &b.events[i]
		if b.size += len(e.Kv.Key) + len(e.Kv.Value); e.Prev != nil {
			b.size += len(e.Prev.Value)
		}
	}
	x.now = proven{b.revision, kvs}
	x.batches, x.size = append(x.batches, b), x.size+b.size
	for len(x.batches) > mostKept || x.size > keptBytes && len(x.batches) > 0 {
		x.floor, x.size = x.batches[0].revision, x.size-x.batches[0].size
		x.batches[0] = batch{}
		x.batches = x.batches[1:]
	}
}

// changesBetween returns the changes between two lists of pairs in order of key, in the order of their revisions.
// Deletions get a revision, since a proof shows none of theirs. The pairs returned are those of after, and share the
// memory of before where nothing changed.
func changesBetween(before, after []scope.KeyValue, deletion int64) (events []scope.Event, kvs []scope.KeyValue) {
	kvs = make([]scope.KeyValue, 0, len(after))
	for len(before) > 0 || len(after) > 0 {
		order := -1 // of the first of before and the first of after
		if len(before) == 0 {
			order = 1
		} else if len(after) > 0 {
			order = bytes.Compare(before[0].Key, after[0].Key)
		}
		switch {
		case order < 0:
			was, gone := before[0], scope.KeyValue{Key: before[0].Key, ModRevision: deletion}
			events = append(events, scope.Event{Class: lineage.Delete, Kv: gone, Prev: &was})
			before = before[1:]
		case order > 0:
			events = append(events, scope.Event{Class: lineage.Insert, Kv: after[0]})
			kvs, after = append(kvs, after[0]), after[1:]
		case same(&before[0], &after[0]):
			kvs, before, after = append(kvs, before[0]), before[1:], after[1:]
		default:
			was := before[0] // an event keeps one pair in memory, and not the list
			events = append(events, scope.Event{Class: lineage.Update, Kv: after[0], Prev: &was})
			kvs, before, after = append(kvs, after[0]), before[1:], after[1:]
		}
	}
	slices.SortStableFunc(events, func(a, b scope.Event) int {
		return cmp.Or(cmp.Compare(a.Kv.ModRevision, b.Kv.ModRevision), cmp.Compare(a.Kv.Sub, b.Kv.Sub))
	})
	return events, kvs
}

// same reports whether two pairs are one version. A scope that took it over has another entry for it.
func same(a, b *scope.KeyValue) bool {
	return a.ModRevision == b.ModRevision && a.Sub == b.Sub && a.Version == b.Version && a.UID == b.UID &&
		a.CreateRevision == b.CreateRevision && a.Lease == b.Lease && bytes.Equal(a.Value, b.Value)
}

// reached reports whether a revision names what the keys held, and all changes since are remembered.
func (x *provenRange) reached(revision int64) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	_, ok := slices.BinarySearchFunc(x.batches, revision, func(b batch, r int64) int {
		return cmp.Compare(b.revision, r)
	})
	return ok || revision == x.floor && !x.at.IsZero()
}

// since returns the changes after a revision that was reached, and up to which one they reach. ok is false if some of
// them are not remembered any more.
func (x *provenRange) since(after int64) (events []scope.Event, through int64, changed <-chan struct{}, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if after < x.floor {
		return nil, x.now.revision, nil, false
	}
	for i := range x.batches {
		if x.batches[i].revision > after {
			events = append(events, x.batches[i].events...)
		}
	}
	return events, x.now.revision, x.changed, true
}
