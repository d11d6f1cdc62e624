package diskstore

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	ds "github.com/ipfs/go-datastore"
	"github.com/ipfs/go-datastore/query"

	"github.com/aweigh/aweigh/store"
)

// TestDatastoreStaysUnderItsPrefix writes next to foreign keys.
func TestDatastoreStaysUnderItsPrefix(t *testing.T) {
	p := openMem(t, vfs.NewMem())
	defer closed(t, p)
	for _, s := range []store.Store{p, store.NewMem()} {
		ctx, d := context.Background(), store.Datastore(s, []byte("ds\xff"))
		for _, foreign := range []string{"ds/a", "ds\xff", "dt/a"} {
			put(t, s, foreign, "foreign", false)
		}
		b, err := d.Batch(ctx)
		if err != nil {
			t.Fatal(err)
		}
		value := []byte("v")
		for _, k := range []string{"/a", "/a/c", "/a/b", "/ab"} {
			if err := b.Put(ctx, ds.NewKey(k), value); err != nil {
				t.Fatal(err)
			}
		}
		value[0] = 'x' // the caller's again
		if ok, _ := d.Has(ctx, ds.NewKey("/a")); ok {
			t.Error("a batch is visible before its commit")
		}
		if err := b.Commit(ctx); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			q    query.Query
			want string
		}{
			{query.Query{}, "[/a /a/b /a/c /ab]"},
			{query.Query{Prefix: "/a"}, "[/a/b /a/c]"},
			{query.Query{Prefix: "/a", Limit: 1, Offset: 1, KeysOnly: true}, "[/a/c]"},
			{query.Query{Orders: []query.Order{query.OrderByKeyDescending{}}, Limit: 1}, "[/ab]"},
		} {
			r, err := d.Query(ctx, c.q)
			if err != nil {
				t.Fatal(err)
			}
			es, err := r.Rest()
			var got []string
			for _, e := range es {
				got = append(got, e.Key)
				if e.Size != 1 || c.q.KeysOnly != (e.Value == nil) || !c.q.KeysOnly && string(e.Value) != "v" {
					t.Errorf("%T: %v: entry %+v", s, c.q, e)
				}
			}
			if err != nil || fmt.Sprint(got) != c.want {
				t.Errorf("%T: %v: %v %v, want %s", s, c.q, got, err, c.want)
			}
		}
		if err := d.Delete(ctx, ds.NewKey("/a")); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Get(ctx, ds.NewKey("/a")); !errors.Is(err, ds.ErrNotFound) {
			t.Errorf("%T: get of a deleted key: %v", s, err)
		}
		closed(t, d) // and s stays open
		put(t, s, "still", "open", true)
	}
}

func TestDatastoreIsDurableAfterSync(t *testing.T) {
	ctx, m := context.Background(), store.NewMem()
	d := store.Datastore(m, []byte("ds"))
	for i, sync := range []bool{true, false} {
		if err := d.Put(ctx, ds.NewKey(fmt.Sprint(i)), []byte("v")); err != nil {
			t.Fatal(err)
		}
		if sync {
			if err := d.Sync(ctx, ds.NewKey("/")); err != nil {
				t.Fatal(err)
			}
		}
	}
	m.Crash(0)
	if got := all(t, m); got != `"ds/0"="v" ` {
		t.Errorf("after a crash: %s", got)
	}
}
