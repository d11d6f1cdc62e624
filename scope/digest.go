package scope

import (
	"crypto/sha256"

	"github.com/aweigh/aweigh"
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
