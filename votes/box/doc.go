// Package box keeps the motion ballots of one scope until their motions close
// (docs/protocol.md, P29 to P35): those that came early, while nobody knew the
// motion, and those that came while there was no quorum, too.
//
// What a Box has taken it keeps: it never makes room. When it is full, or full
// of one voter's ballots, it refuses more. A ballot leaves only when it can no
// longer count, because its motion closed or opened without its voter, and the
// owner of the box says so (Closed, Opened).
//
// A box does no I/O. It reads through a kv.Reader and hands out the writes; a
// ballot is acknowledged only once those are durable. Two boxes of one scope
// are brought to their union by package reconcile (Side), or by files that
// somebody carries (Export, ReadFile). Their order, their number and their path
// change nothing, because a ballot's identity is what it says.
package box
