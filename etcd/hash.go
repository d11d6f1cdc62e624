package etcd

import (
	"encoding/binary"
	"hash"
	"hash/crc32"

	"github.com/aweigh/aweigh/scope"
)

// hashKeys is the CRC-32C of all keys as of a revision, in their order: for each
// its create and mod revision, version and lease, then key and value with their
// lengths before them, all numbers in 8 bytes, big-endian. So it is the same on
// all nodes, whatever they compacted, and not the number that etcd computes from
// its files. proceed is asked between pages, and its error ends the work.
func hashKeys(all keyspace, proceed func() error) (uint32, error) {
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	err := all.each(proceed, func(kvs []scope.KeyValue) error {
		for i := range kvs {
			hashOne(sum, &kvs[i])
		}
		return nil
	})
	return sum.Sum32(), err
}

// hashOne adds one key.
func hashOne(sum hash.Hash32, kv *scope.KeyValue) {
	var b []byte
	for _, n := range []int64{kv.CreateRevision, kv.ModRevision, kv.Version, kv.Lease} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	for _, part := range [][]byte{kv.Key, kv.Value} {
		b = append(binary.BigEndian.AppendUint64(b, uint64(len(part))), part...)
	}
	_, _ = sum.Write(b) // never fails
}
