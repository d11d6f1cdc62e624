// Package scope is the replicated state of one scope, as a pure function of its
// genesis and its final blocks (docs/protocol.md, P20 to P22).
//
// A Mutation is one request to change the scope. A Bundle is several mutations
// admitted and signed together by one author. A Block is an ordered batch of
// bundles under a Header. State.Execute turns a block into the writes, events
// and outcomes that follow from it; nothing else changes the state.
//
// The state is a multi-version key space with the semantics of etcd v3: keys
// are byte strings, every writing transaction gets the next revision, old
// revisions stay readable until they are compacted. A key may be attached to a
// lease; it is deleted when the lease is over by the blocks' time. Each key names
// an object. An object may have several names (Naming). Its UID never changes,
// neither with its content nor with its names. All of it lives in the store
// (package kv); nothing grows in memory with the number of keys.
package scope
