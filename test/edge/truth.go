package edge

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
)

// change is one change of one key.
type change struct {
	revision int64
	key      string
	value    string
	deleted  bool
}

func changeOf(e *scope.Event) change {
	return change{e.Kv.ModRevision, string(e.Kv.Key), string(e.Kv.Value), e.Class == lineage.Delete}
}

// truth is the committed history, read from the states of all nodes as their blocks become final. No watch takes part.
type truth struct {
	w *world

	mu     sync.Mutex
	scopes map[aweigh.ScopeID]*ledger
	newest int64 // revision, of all scopes
}

// ledger is the history of a scope.
type ledger struct {
	changes map[int64][]change // by revision
	seen    map[int64]time.Time
}

func newTruth(w *world) *truth { return &truth{w: w, scopes: make(map[aweigh.ScopeID]*ledger)} }

// scribe follows the states of a node, over all of its lives, until ctx ends.
func (t *truth) scribe(ctx context.Context, s *seat) {
	next := make(map[aweigh.ScopeID]int64)
	for ctx.Err() == nil {
		n := s.node()
		if n == nil {
			rest(ctx, 200*time.Millisecond)
			continue
		}
		changed := n.Changed()
		for _, p := range n.Replicas() {
			next[p.Scope()] = t.read(ctx, s, p, max(1, next[p.Scope()]))
		}
		t.w.budget(s, n, budgetSlack)
		if n.Root().LastStatus().Lost { // disks keep what was synced here
			t.w.fail("record", "%s met ballots of its own that are not on its record", s.name)
		}
		select {
		case <-changed:
		case <-time.After(time.Second): // the node may be down
		case <-ctx.Done():
		}
	}
}

// read reads what is new in a part's state, from a revision on, and returns the next one.
func (t *truth) read(ctx context.Context, s *seat, p *node.Replica, from int64) (next int64) {
	v, err := p.Read(ctx, false)
	if err != nil {
		if !errors.Is(err, node.ErrInstalling) && !tolerable(err) {
			t.w.fail("read", "%s: its state: %v", s.name, err)
		}
		return from
	}
	defer v.Close()
	h := v.Head()
	if from < h.Compacted {
		from = h.Compacted
	}
	if from > h.Revision {
		return from
	}
	events, next, err := v.Events(from, h.Revision, nil, []byte{0}, 1<<20)
	if err != nil {
		t.w.fail("read", "%s: the events from revision %d on: %v", s.name, from, err)
		return from
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.scopes[h.Scope]
	if l == nil {
		l = &ledger{changes: make(map[int64][]change), seen: make(map[int64]time.Time)}
		t.scopes[h.Scope] = l
	}
	read := make(map[int64][]change)
	for i := range events {
		c := changeOf(&events[i])
		read[c.revision] = append(read[c.revision], c)
	}
	for revision, changes := range read {
		if known, ok := l.changes[revision]; ok {
			if !slices.Equal(known, changes) && revision > h.Compacted {
				t.w.fail("agreement", "revision %d is %v at %s, and elsewhere %v", revision, changes, s.name, known)
			}
			continue
		}
		l.changes[revision], l.seen[revision] = changes, time.Now()
		t.newest = max(t.newest, revision)
		t.w.count("changes", len(changes))
	}
	return next
}

// latest is the highest revision that is known.
func (t *truth) latest() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.newest
}

// someRevision is one that is known, not among the last.
func (t *truth) someRevision(r *rand.Rand) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	var known []int64
	for _, l := range t.scopes {
		for revision := range l.changes {
			known = append(known, revision)
		}
	}
	if len(known) == 0 {
		return 0
	}
	slices.Sort(known)
	return known[r.IntN(len(known))]
}

// all are the changes of the revisions from <= r <= to in a range of keys, in the order of revisions.
func (t *truth) all(key, end []byte, from, to int64) (found []change) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.scopes {
		for revision, changes := range l.changes {
			if revision < from || revision > to {
				continue
			}
			for _, c := range changes {
				if scope.Within([]byte(c.key), key, end) {
					found = append(found, c)
				}
			}
		}
	}
	order(found)
	return found
}

// order sorts changes by revision, and those of one by key.
func order(all []change) {
	slices.SortStableFunc(all, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.revision, b.revision), cmp.Compare(a.key, b.key))
	})
}

// at is what a range of keys held as of a revision.
func (t *truth) at(key, end []byte, revision int64) map[string]change {
	state := make(map[string]change)
	for _, c := range t.all(key, end, 1, revision) {
		if state[c.key] = c; c.deleted {
			delete(state, c.key)
		}
	}
	return state
}

// wrote is the change that put a value, which one request alone puts.
func (t *truth) wrote(key, value string) (change, bool) {
	for _, c := range t.all([]byte(key), nil, 1, 1<<62) {
		if !c.deleted && c.value == value {
			return c, true
		}
	}
	return change{}, false
}

// deletions are the changes that deleted a key, with the moments at which they were first seen.
func (t *truth) deletions(key string) (at []time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.scopes {
		for revision, changes := range l.changes {
			for _, c := range changes {
				if c.key == key && c.deleted {
					at = append(at, l.seen[revision])
				}
			}
		}
	}
	return at
}

// prefixEnd is the end of the range of keys with a prefix.
func prefixEnd(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	end[len(end)-1]++
	return end
}
