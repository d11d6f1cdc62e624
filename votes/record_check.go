package votes

import (
	"encoding/binary"
	"fmt"

	"github.com/aweigh/aweigh"
)

// CheckRecorded reports whether a pair of the store is what the guard of an anchor
// of a keyring can have written: a ballot under its key, with its signature, or a
// mark. Records of other epochs than the keyring's are checked for their form.
// Errors wrap ErrRecord.
func CheckRecorded(k *Keyring, key, value []byte) error {
	wrong := func(err error) error { return fmt.Errorf("%w: key %x: %w", ErrRecord, key, err) }
	prefix := len(recordPrefix(k.domain))
	if len(key) != prefix+9 {
		return wrong(ErrMalformed)
	}
	view, kind := aweigh.View(binary.BigEndian.Uint64(key[prefix:])), key[prefix+8]
	epoch := aweigh.Epoch(binary.BigEndian.Uint64(key[prefix-8:]))
	if view == 0 && kind == markFloor {
		if len(value) != 8 {
			return wrong(ErrMalformed)
		}
		return nil
	}
	b, err := DecodeBallot(value)
	if err != nil {
		return wrong(err)
	}
	if want := recordKey(b.Domain, b.Subject.View, byte(b.Subject.Kind)); string(want) != string(key) && (view != 0 || kind != markLost) {
		return wrong(ErrMalformed)
	}
	if epoch != k.domain.Epoch {
		return nil
	}
	if _, err := k.Check(b); err != nil {
		return wrong(err)
	}
	return nil
}
