// Package referral asks the anchors of scopes whose state a node does not hold, and answers such questions for scopes
// whose state the node holds.
//
// A Scope is what is known of a foreign scope: its proven epochs, its delegations, and recent answers of its anchors.
// An Inquiry asks anchors until those that give the same answer have so much weight that one of them is honest, and
// returns that answer. Tell returns the answer of an honest anchor. No anchor is trusted alone (docs/scopes.md).
//
// Nothing here waits, reads a clock or uses a network: package node does the asking, and package sim does it in virtual
// time. Records are read and written through the store that the caller gives.
package referral
