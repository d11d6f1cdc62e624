package etcd

import (
	"encoding/binary"
	"fmt"
	"time"

	"go.etcd.io/bbolt"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
)

// Names in etcd's backend file (etcd 3.6, server/storage/schema).
var (
	bucketKey   = []byte("key")   // revision -> mvccpb.KeyValue
	bucketLease = []byte("lease") // lease ID -> leasepb.Lease
	bucketMeta  = []byte("meta")
	buckets     = [][]byte{
		bucketKey, bucketLease, bucketMeta, []byte("alarm"), []byte("auth"), []byte("authRoles"), []byte("authUsers"),
		[]byte("cluster"), []byte("members"), []byte("members_removed"),
	}
	metaCompacted = []byte("finishedCompactRev")
	metaIndex     = []byte("consistent_index")
	metaTerm      = []byte("term")
	metaConf      = []byte("confState")
	metaVersion   = []byte("storageVersion")
)

// backendTxn is how many bytes of keys one transaction of the file takes: bbolt
// holds them in memory.
const backendTxn = 16 << 20

// writeBackend writes all keys as the backend file of an etcd that has just compacted at their
// revision, with the leases of a view of the root scope's state. proceed is asked now and then, and its
// error ends the work.
func writeBackend(name string, v *node.View, all keyspace, proceed func() error) (err error) {
	db, err := bbolt.Open(name, 0o600, &bbolt.Options{NoSync: true, NoFreelistSync: true, Timeout: time.Second})
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	defer func() {
		if closeErr := db.Close(); err == nil && closeErr != nil {
			err = fmt.Errorf("etcd: %w", closeErr)
		}
	}()
	if err := db.Update(func(tx *bbolt.Tx) error { return writeMeta(tx, v, all.revision) }); err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	return all.each(proceed, func(kvs []scope.KeyValue) error {
		for len(kvs) > 0 {
			n, size := 0, 0
			for n < len(kvs) && size < backendTxn {
				size += len(kvs[n].Key) + len(kvs[n].Value)
				n++
			}
			err := db.Update(func(tx *bbolt.Tx) error { return writeKeys(tx, kvs[:n]) })
			if err != nil {
				return fmt.Errorf("etcd: %w", err)
			}
			kvs = kvs[n:]
		}
		return nil
	})
}

func writeKeys(tx *bbolt.Tx, kvs []scope.KeyValue) error {
	b, leases := tx.Bucket(bucketKey), tx.Bucket(bucketLease)
	for i := range kvs {
		if id := kvs[i].Lease; id != 0 && leases.Get(leaseKey(id)) == nil { // it ended since, and shall end there
			if err := writeLease(leases, id, 1); err != nil {
				return err
			}
		}
		value, err := proto.Marshal(kvOf(&kvs[i]))
		if err != nil {
			return err
		}
		k := revisionKey(kvs[i].ModRevision, int64(kvs[i].Sub))
		for sub := int64(kvs[i].Sub); b.Get(k) != nil; k = revisionKey(kvs[i].ModRevision, sub) { // changes of other scopes at the same revision
			sub++
		}
		if err := b.Put(k, value); err != nil {
			return err
		}
	}
	return nil
}

func writeMeta(tx *bbolt.Tx, v *node.View, revision int64) error {
	for _, name := range buckets {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	h, meta := v.Head(), tx.Bucket(bucketMeta)
	for _, m := range []struct{ key, value []byte }{
		{metaCompacted, revisionKey(revision, 0)},
		{metaIndex, binary.BigEndian.AppendUint64(nil, uint64(h.Height))},
		{metaTerm, binary.BigEndian.AppendUint64(nil, term(&h))},
		{metaConf, []byte(`{"auto_leave":false}`)},
		{metaVersion, []byte(storageVersion)},
	} {
		if err := meta.Put(m.key, m.value); err != nil {
			return err
		}
	}
	ids, err := v.Leases()
	if err != nil {
		return err
	}
	for _, id := range ids {
		g, ok, err := v.Lease(id)
		if err != nil || !ok {
			return err
		}
		if err := writeLease(tx.Bucket(bucketLease), g.ID, g.TTL); err != nil {
			return err
		}
	}
	return nil
}

func writeLease(b *bbolt.Bucket, id, ttl int64) error {
	var record []byte
	for n, x := range []int64{id, ttl} {
		if x != 0 {
			record = protowire.AppendVarint(protowire.AppendTag(record, protowire.Number(n+1), protowire.VarintType), uint64(x))
		}
	}
	return b.Put(leaseKey(id), record)
}

func leaseKey(id int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(id)) }

// revisionKey is how etcd's backend names a revision.
func revisionKey(main, sub int64) []byte {
	b := append(binary.BigEndian.AppendUint64(nil, uint64(main)), '_')
	return binary.BigEndian.AppendUint64(b, uint64(sub))
}
