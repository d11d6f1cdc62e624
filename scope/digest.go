package scope

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/lthash"
)

// element represents one record in the hash of all records, a lthash.Hash, and,
// for version records, in the lineage as the object's digest. It does not depend
// on the scope. scratch is overwritten and returned for use in the next call.
func element(scratch, storeKey, record []byte) (aweigh.Hash, []byte) {
	scratch = append(scratch[:0], "aweigh/element/1"...)
	scratch = append(scratch, storeKey[len(space{}):]...)
	scratch = append(scratch, record...)
	return sha256.Sum256(scratch), scratch
}

// digest is the hash of all that the next blocks depend on.
func (s *State) digest() aweigh.Hash {
	b := make([]byte, 0, 512+lthash.Size+len(s.tally)+len(s.heat))
	b = append(b, "aweigh/state/1"...)
	for _, n := range []int64{
		s.head.Revision, s.head.Compacted, s.head.LineageSize, s.head.Leases, int64(s.head.LeaseDue), int64(s.head.Resumed), int64(s.head.Swept),
		int64(s.head.Started), s.head.Delegated, s.head.Folded, s.head.Access, s.head.Bytes, s.head.Obeyed, int64(s.head.Governed),
	} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	if s.head.Clocked {
		b = append(b, 1)
	}
	if s.head.Closed {
		b = append(b, 2)
	}
	b = s.cursor.append(b)
	b = append(b, s.head.LineageRoot[:]...)
	b = append(b, s.head.Ledger[:]...)
	b = append(b, s.head.Under[:]...)
	b = append(b, s.head.Agenda[:]...)
	b = s.head.Docket.append(b)
	b = s.sum.Append(b)
	b = binary.AppendUvarint(b, uint64(len(s.heat)))
	b = append(b, s.heat...)
	b = append(b, s.tally...)
	return sha256.Sum256(b)
}
