package store

import (
	"bytes"
	"context"
	"fmt"

	ds "github.com/ipfs/go-datastore"
	"github.com/ipfs/go-datastore/query"

	"github.com/aweigh/aweigh/kv"
)

// Datastore shows the keys of s that start with prefix as a go-datastore, for
// libp2p's peer and record stores: one database, one log and one fsync for all.
// As with other datastores, writes are durable only after Sync, or after any
// synced commit to s. Close closes nothing: s belongs to the caller that opened it.
//
// go-ds-pebble can also share a database, but writes without a prefix, past
// the lock and the sticky failure of Pebble, and its Close closes the database.
func Datastore(s Store, prefix []byte) ds.Batching {
	return &datastore{s, bytes.Clone(prefix)}
}

type datastore struct {
	store  Store
	prefix []byte
}

func (d *datastore) key(k ds.Key) []byte {
	return append(d.prefix[:len(d.prefix):len(d.prefix)], k.String()...)
}

func (d *datastore) Get(_ context.Context, k ds.Key) ([]byte, error) {
	value, ok, err := d.store.Get(d.key(k))
	if err == nil && !ok {
		err = ds.ErrNotFound
	}
	return value, err
}

func (d *datastore) Has(_ context.Context, k ds.Key) (bool, error) {
	_, ok, err := d.store.Get(d.key(k))
	return ok, err
}

func (d *datastore) GetSize(ctx context.Context, k ds.Key) (int, error) {
	return ds.GetBackedSize(ctx, d, k)
}

func (d *datastore) Put(_ context.Context, k ds.Key, value []byte) error {
	return d.store.Commit([]kv.Op{d.set(k, value)}, false)
}

func (d *datastore) Delete(_ context.Context, k ds.Key) error {
	return d.store.Commit([]kv.Op{kv.Del(d.key(k))}, false)
}

func (d *datastore) Sync(context.Context, ds.Key) error { return d.store.Commit(nil, true) }

func (d *datastore) Close() error { return nil }

// Query gathers its results before it returns them, so that nothing stays open
// if the caller abandons them. Filters and orders that the scan cannot do are
// left to go-datastore's own slow and sure functions.
func (d *datastore) Query(ctx context.Context, q query.Query) (query.Results, error) {
	under := ds.NewKey(q.Prefix).String() // strict children only: "/a" finds "/a/b", not "/a" or "/ab"
	if under != "/" {
		under += "/"
	}
	from := append(bytes.Clone(d.prefix), under...)

	enough := 0
	if len(q.Filters) == 0 && len(q.Orders) == 0 && q.Limit > 0 {
		enough = q.Offset + q.Limit
	}
	var found []query.Entry
	err := d.store.Scan(from, kv.PrefixEnd(from), false, func(key, value []byte) bool {
		e := query.Entry{Key: string(key[len(d.prefix):]), Size: len(value)}
		if !q.KeysOnly {
			e.Value = bytes.Clone(value)
		}
		found = append(found, e)
		return len(found) != enough && ctx.Err() == nil
	})
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("store: query under %s: %w", under, err)
	}
	return query.NaiveQueryApply(q, query.ResultsWithEntries(q, found)), nil
}

// Batch gathers writes; its Commit applies them as one atomic commit.
func (d *datastore) Batch(context.Context) (ds.Batch, error) { return &batch{d: d}, nil }

// set copies value, which stays the caller's own.
func (d *datastore) set(k ds.Key, value []byte) kv.Op { return kv.Set(d.key(k), bytes.Clone(value)) }

type batch struct {
	d   *datastore
	ops []kv.Op
}

func (b *batch) Put(_ context.Context, k ds.Key, value []byte) error {
	b.ops = append(b.ops, b.d.set(k, value))
	return nil
}

func (b *batch) Delete(_ context.Context, k ds.Key) error {
	b.ops = append(b.ops, kv.Del(b.d.key(k)))
	return nil
}

func (b *batch) Commit(context.Context) error {
	ops := b.ops
	b.ops = nil
	return b.d.store.Commit(ops, false)
}
