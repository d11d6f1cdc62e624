// Package lineage is the history of a scope that can be proven: an append-only
// log of entries, one for every operation that a final mutation did, with a
// Merkle root (RFC 6962) that stands in every block header, and a chain of
// entries through the life of every object.
//
// A Log writes nothing itself. It reads from a kv.Reader, returns the ops that
// make its growth durable, and needs no more than O(log n) hashes in memory.
// Inclusion and Consistency proofs verify anywhere, from a Head alone.
package lineage
