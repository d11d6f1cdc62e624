package scope

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/aweigh/aweigh"
)

// KeyValue is one version of the object that a key names: what etcd calls a
// key-value, with the object's identity and its place in the lineage.
type KeyValue struct {
	_              struct{} `cbor:",toarray"`
	Key            []byte
	Value          []byte
	CreateRevision int64  // of the transaction that created the object
	ModRevision    int64  // of the transaction that wrote this version
	Sub            uint32 // place of the change within that transaction
	Version        int64  // counts from 1; 0 marks that the object was deleted
	Lease          int64  // 0: none
	UID            aweigh.UID
	Entry          int64 // index of the change's entry in the scope's lineage
}

func (v *KeyValue) at() revision { return revision{v.ModRevision, v.Sub} }

// appendRecord appends the record that stands in the store under the version's
// key, without what is in that key already. All numbers are unsigned LEB128:
//
//	version; if it is not 0: create revision, lease; entry; UID(32); value
func (v *KeyValue) appendRecord(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(v.Version))
	if v.Version != 0 {
		b = binary.AppendUvarint(b, uint64(v.CreateRevision))
		b = binary.AppendUvarint(b, uint64(v.Lease))
	}
	b = binary.AppendUvarint(b, uint64(v.Entry))
	b = append(b, v.UID[:]...)
	return append(b, v.Value...)
}

func (v *KeyValue) record() []byte {
	return v.appendRecord(make([]byte, 0, 4*binary.MaxVarintLen64+len(v.UID)+len(v.Value)))
}

// Digest is what the lineage names this version by: the hash of its place and
// its record, wherever it is kept.
func (v *KeyValue) Digest() aweigh.Hash {
	var anywhere space
	h, _ := element(nil, anywhere.version(v.Key, v.at()), v.record())
	return h
}

// isTombstone reports whether a version record marks a deletion.
func isTombstone(record []byte) bool { return len(record) > 0 && record[0] == 0 }

// longestTombstone is how many bytes the record of a deletion has at most: a longer one is of a version that lives.
const longestTombstone = 1 + 9 + len(aweigh.UID{})

// readRecord reads what appendRecord wrote; the value shares data's memory.
// Exactly one input gives each result. Errors wrap ErrCorrupt.
func (v *KeyValue) readRecord(data []byte) error {
	r := reader{data: data}
	v.Version = r.int64()
	if v.Version != 0 {
		v.CreateRevision = r.int64()
		v.Lease = int64(r.uint64())
	}
	v.Entry = r.int64()
	copy(v.UID[:], r.bytes(len(v.UID)))
	v.Value = r.data
	if r.bad || v.Version == 0 && len(v.Value) > 0 {
		return fmt.Errorf("%w: a version record of %d bytes", ErrCorrupt, len(data))
	}
	return nil
}

// object is the permanent record of a UID: the key that it was created under, or that named it
// last, and where its life ended, so that the history of a deleted object can be found.
type object struct {
	End int64 // index of the entry of its deletion, plus one; 0 while it lives
	Key []byte
}

// record is End as unsigned LEB128, then the key.
func (o object) record() []byte {
	b := make([]byte, 0, binary.MaxVarintLen64+len(o.Key))
	return append(binary.AppendUvarint(b, uint64(o.End)), o.Key...)
}

// readObject reads what record wrote; the key shares data's memory. Errors wrap
// ErrCorrupt.
func readObject(data []byte) (o object, err error) {
	r := reader{data: data}
	o.End = r.int64()
	if o.Key = r.data; r.bad {
		err = fmt.Errorf("%w: an object record of %d bytes", ErrCorrupt, len(data))
	}
	return o, err
}

// reader takes a record apart. After the first fault it returns zeros, and bad
// is set.
type reader struct {
	data []byte
	bad  bool
}

// int64 reads an unsigned LEB128 number of at most 63 bits in its shortest form.
func (r *reader) int64() int64 {
	x := r.uint64()
	if x > math.MaxInt64 {
		r.bad = true
		return 0
	}
	return int64(x)
}

// uint64 reads an unsigned LEB128 number in its shortest form.
func (r *reader) uint64() uint64 {
	x, n := binary.Uvarint(r.data)
	if r.bad || n <= 0 || n > 1 && r.data[n-1] == 0 {
		r.bad = true
		return 0
	}
	r.data = r.data[n:]
	return x
}

func (r *reader) byte() byte {
	if b := r.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) bytes(n int) []byte {
	if r.bad || n < 0 || len(r.data) < n {
		r.bad = true
		return nil
	}
	b := r.data[:n]
	r.data = r.data[n:]
	return b
}
