// Package keytree is an authenticated ordered map: it gives a digest for each of a set of keys, and one hash, the
// root, names them all. A short proof shows, to a reader that knows the root alone, what a key has, that a key is
// absent, or that a list of keys is complete.
//
// The tree is a binary Merkle tree over the keys in order, in the shape of a crit-bit tree (Bernstein 2004; Morrison
// 1968, "PATRICIA"): an inner node stands for the first bit in which the keys below it differ, and no node has one
// child alone. So the shape follows from the set of keys, and neither from the order in which they came nor from
// keys that are gone: nodes that hold the same keys have the same root, however they came to hold them, and all keys
// that begin with a prefix are one subtree.
//
// # Bits
//
// Each byte of a key is preceded by a bit 1, its own bits follow, the highest first, and a bit 0 ends the key. So bit
// 9·i says whether the key has more than i bytes, and bit 9·i+1+j is bit 7-j of byte i. Keys are in the order of their
// bytes, and no key's bits begin another's.
//
// # Hashes
//
//	leaf:  SHA-256(0x00 ‖ kind, 1 byte ‖ digest ‖ key)
//	inner: SHA-256(0x01 ‖ bit, 4 bytes big-endian ‖ left ‖ right)
//
// The root of no keys is the zero Hash.
//
// # Costs
//
// A key with others of n bits before it is at most 9·(length+1) nodes deep, and log₂ of the number of keys on average.
// Keys of other prefixes do not make it deeper. A change computes the hashes on its path, and changes made together
// share what their paths share. A key takes 140 bytes of memory, and its own length.
package keytree
