// Package box keeps the motion ballots of one scope until their motions close
// (docs/protocol.md, P29 to P35): also those that came early, before the motion
// was known, or while there was no quorum.
//
// A Box keeps the ballots that it has taken: it never makes room. When it is
// full, or full of one voter's ballots, it refuses more. A ballot leaves only
// when it can no longer count, because its motion closed or opened without its
// voter, and the owner of the box reports that (Closed, Opened).
//
// A box does no I/O. It reads through a kv.Reader and hands out the writes; a
// ballot is acknowledged only once those are durable. Package reconcile (Side)
// gives two boxes of one scope their union, or files that are carried between
// them (Export, ReadFile). Order, number and path of the files have no effect,
// because a ballot's identity is its content.
package box
