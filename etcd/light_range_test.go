package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
)

// shown is a ProvenReader of what a map holds.
type shown struct {
	kvs map[string]scope.KeyValue
	err error
}

func (x *shown) Range(context.Context, []byte, []byte) (*scope.RangeProof, scope.RangeReport, error) {
	var r scope.RangeReport
	for _, k := range slices.Sorted(maps.Keys(x.kvs)) {
		r.Kvs = append(r.Kvs, x.kvs[k])
	}
	return nil, r, x.err
}

// TestWatchesOfProofsMissNothing: a watch that takes the changes of a proven range from any revision on holds in the
// end what the last proof showed, however often and from where it begins again; and it is refused where changes are
// missing.
func TestWatchesOfProofsMissNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now, reader := int64(1), &shown{kvs: make(map[string]scope.KeyValue)}
		light := &light{reader: reader, ctx: t.Context(), log: slog.New(slog.DiscardHandler)}
		x := &provenRange{key: []byte("a"), end: []byte("z"), light: light, changed: make(chan struct{})}
		var last proven
		prove := func() {
			var err error
			if last, err = x.fetch(t.Context()); err != nil {
				t.Fatal(err)
			}
			if last.revision > now {
				t.Fatalf("revision %d, and the newest of the store is %d", last.revision, now)
			}
		}
		prove()
		watches := map[string]map[string]int64{"w": {}} // the mod revisions that each holds
		next := map[string]int64{"w": last.revision + 1}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			key := rapid.SampledFrom([]string{"b", "c", "d"}).Draw(t, "key")
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0, 1:
				now++
				v := reader.kvs[key]
				reader.kvs[key] = scope.KeyValue{Key: []byte(key), Value: fmt.Append(nil, now), ModRevision: now, CreateRevision: max(v.CreateRevision, 1), Version: v.Version + 1, UID: aweigh.UID{1}}
			case 2:
				if _, ok := reader.kvs[key]; ok {
					now++
					delete(reader.kvs, key)
				}
			case 3:
				prove()
			case 4: // another watch begins where a reader of what was proven last would
				name := fmt.Sprint("w", len(watches))
				watches[name], next[name] = make(map[string]int64), last.revision+1
				for _, v := range last.kvs {
					watches[name][string(v.Key)] = v.ModRevision
				}
			case 5:
				name := rapid.SampledFrom(slices.Sorted(maps.Keys(watches))).Draw(t, "watch")
				hears(t, x, watches[name], next, name)
			}
		}
		prove()
		want := make(map[string]int64)
		for k, v := range reader.kvs {
			want[k] = v.ModRevision
		}
		for _, name := range slices.Sorted(maps.Keys(watches)) {
			if hears(t, x, watches[name], next, name); !maps.Equal(watches[name], want) {
				t.Fatalf("%s holds %v, and the keys %v", name, watches[name], want)
			}
		}
	})
}

// hears delivers to a watch.
func hears(t *rapid.T, x *provenRange, held map[string]int64, next map[string]int64, name string) {
	events, through, _, ok := x.since(next[name])
	if !ok {
		t.Fatalf("%s: the changes from %d on are not remembered", name, next[name])
	}
	for i := range events {
		e := &events[i]
		if e.Kv.ModRevision < next[name] {
			t.Fatalf("%s: a change at %d, and those from %d on were asked for", name, e.Kv.ModRevision, next[name])
		}
		if was := held[string(e.Kv.Key)]; e.Prev != nil && e.Prev.ModRevision != was {
			t.Fatalf("%s: %q was of %d, not of %d", name, e.Kv.Key, was, e.Prev.ModRevision)
		}
		if e.Class == lineage.Delete {
			delete(held, string(e.Kv.Key))
		} else {
			held[string(e.Kv.Key)] = e.Kv.ModRevision
		}
	}
	next[name] = max(next[name], through+1)
}

// TestOldChangesOfProofsAreForgotten: what is remembered is bounded, and a watch that needs what is gone hears so.
func TestOldChangesOfProofsAreForgotten(t *testing.T) {
	t.Parallel()
	reader := &shown{kvs: make(map[string]scope.KeyValue)}
	light := &light{reader: reader, ctx: t.Context(), log: slog.New(slog.DiscardHandler)}
	x := &provenRange{light: light, changed: make(chan struct{})}
	for rev := int64(1); rev < 20; rev++ {
		reader.kvs["k"] = scope.KeyValue{Key: []byte("k"), Value: bytes.Repeat([]byte{byte(rev)}, 1<<20), ModRevision: rev, Version: rev}
		if _, err := x.fetch(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if x.size > keptBytes || len(x.batches) == 0 {
		t.Errorf("%d batches of %d bytes", len(x.batches), x.size)
	}
	if _, floor, _, ok := x.since(2); ok {
		t.Error("changes from revision 2 on are still there")
	} else if _, _, _, ok := x.since(floor); ok {
		t.Errorf("the change at %d is still there", floor)
	} else if _, _, _, ok := x.since(floor + 1); !ok {
		t.Errorf("changes from %d on are not there", floor+1)
	}
	reader.err = errors.New("none proves it")
	if _, err := x.fetch(t.Context()); !errors.Is(err, reader.err) || x.stale(time.Hour) != nil || !errors.Is(x.stale(0), reader.err) {
		t.Error(err, x.stale(time.Hour), x.stale(0))
	}
}

// TestWaitingReadsShareAProof: a read takes no proof that began before it did, and those that wait share one.
func TestWaitingReadsShareAProof(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reader := &slowReader{end: make(chan struct{})}
		x := &provenRange{light: &light{reader: reader, ctx: t.Context(), log: slog.New(slog.DiscardHandler)}, changed: make(chan struct{})}
		done := 0
		read := func() {
			if _, err := x.fetch(t.Context()); err != nil {
				t.Error(err)
			}
			done++
		}
		go read()
		synctest.Wait()
		for range 8 {
			go read()
			synctest.Wait()
		}
		for _, want := range []int{1, 9} {
			reader.end <- struct{}{}
			if synctest.Wait(); done != want {
				t.Errorf("%d reads have an answer, not %d", done, want)
			}
		}
		if reader.begun != 2 {
			t.Errorf("%d proofs, not 2", reader.begun)
		}
	})
}

// slowReader counts proofs, and ends one at a time.
type slowReader struct {
	begun int
	end   chan struct{}
}

func (x *slowReader) Range(context.Context, []byte, []byte) (*scope.RangeProof, scope.RangeReport, error) {
	x.begun++
	<-x.end
	return nil, scope.RangeReport{}, nil
}
