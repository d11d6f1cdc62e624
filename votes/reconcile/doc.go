// Package reconcile gives two sets their union at a cost that follows their
// difference and not their size (docs/protocol.md, P30). The members are byte
// strings, each named by a hash; their meaning has no effect here.
//
// It is range-based set reconciliation (A. Meyer, "Range-Based Set
// Reconciliation", 2022, arXiv:2212.13567; before it Y. Minsky and A.
// Trachtenberg, "Practical Set Reconciliation", 2002): the two sides compare
// fingerprints of ranges of names, split those that differ, and send the
// members that the other lacks where ranges are small.
//
// The ranges are those of names with a common prefix, and a range's fingerprint
// is the hash of a trie's node (Tree). Fingerprints that are sums or exclusive
// ors of hashes allow any range, but an attacker that chooses many members finds
// sets of equal sum (D. Wagner, "A Generalized Birthday Problem", 2002), and
// fingerprints that resist that need states of 2 KiB (LtHash). The hash of a trie's
// node is as strong as SHA-256, of 32 bytes, and costs a path to renew. In return
// the trie needs evenly spread names, which hashes are; an attacker that grinds
// similar names makes a few paths deeper by a few nodes.
//
// On the wire fingerprints and names are cut short, so each session has a new
// salt: members that look alike cannot be prepared for a later session.
package reconcile
