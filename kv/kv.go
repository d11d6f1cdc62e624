// Package kv is the vocabulary of the pure packages for storage: reads of
// ordered byte keys as an interface, writes as values.
//
// The machines below package node never write. They return Ops, and their
// driver makes the Ops durable. Reading inside a step is allowed, because
// it is deterministic: a Reader shows the same pairs to every caller until its
// owner applies further Ops.
package kv

// Op sets Key to Value, or deletes Key if Delete is set. Keys and values must
// not be changed once they stand in an Op.
type Op struct {
	Key    []byte
	Value  []byte
	Delete bool
}

// Set is the Op that stores value under key.
func Set(key, value []byte) Op { return Op{Key: key, Value: value} }

// Del is the Op that removes key; removing an absent key is not an error.
func Del(key []byte) Op { return Op{Key: key, Delete: true} }

// Reader reads an ordered set of byte keys. Its results belong to the caller
// and stay valid, but must not be changed. An error means that the storage
// itself failed (never "not found"), and a caller that gets one must stop.
type Reader interface {
	// Get returns the value of key, and whether there is one.
	Get(key []byte) (value []byte, ok bool, err error)

	// Scan visits the pairs with from <= key < to in ascending order, or
	// descending if reverse is set, until visit returns false. A nil to means
	// "to the end". The slices given to visit are valid until it returns.
	Scan(from, to []byte, reverse bool, visit func(key, value []byte) bool) error
}

// Sifter is a Reader that can pass over pairs without reading their values.
type Sifter interface {
	Reader

	// Sift is Scan of the pairs that are wanted, by their keys and the lengths of their values in bytes. It asks for
	// each pair once, in order, after the wanted ones before it were visited.
	Sift(from, to []byte, want func(key []byte, size int) bool, visit func(key, value []byte) bool) error
}

// Sift is Sifter.Sift of any Reader.
func Sift(r Reader, from, to []byte, want func(key []byte, size int) bool, visit func(key, value []byte) bool) error {
	if s, ok := r.(Sifter); ok {
		return s.Sift(from, to, want, visit)
	}
	return r.Scan(from, to, false, func(k, v []byte) bool { return !want(k, len(v)) || visit(k, v) })
}

// PrefixEnd is the first key after all keys with the given prefix, nil if
// there is none (the prefix is empty or all 0xff).
func PrefixEnd(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			end := append([]byte(nil), prefix[:i+1]...)
			end[i]++
			return end
		}
	}
	return nil
}
