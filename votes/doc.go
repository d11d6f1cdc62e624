// Package votes turns statements of anchors into evidence that needs no trust to
// check: keys and signatures, ballots, certificates, proofs of equivocation, and
// the guard that keeps an anchor from ever contradicting itself
// (docs/protocol.md, P5 to P9 and P36).
//
// Package quorum counts votes and trusts them; this package earns that trust. A
// Ballot is a quorum.Subject bound to one Domain (network, scope, epoch, roster
// and policy) and signed by one anchor. A Keyring holds the keys, weights and
// rules of one Domain; a ballot that it has checked is a Checked, and only a
// Keyring makes one. A Guard signs for one anchor in one Domain.
//
// Everything signed or stored has one encoding, canonical CBOR, pinned by the
// test vectors in testdata. Everything here is pure and, but for Guard and the
// caches of a Memory, immutable and safe for concurrent use.
package votes
