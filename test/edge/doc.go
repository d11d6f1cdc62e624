// Package edge runs whole nodes, node.Node with all of its goroutines, in worlds that follow from a seed. The
// simulator (package sim) drives the machine of a node alone; the code around a machine runs here: runners, routes,
// watches, leases, admission, snapshots, shutdown.
//
// A world lives in a bubble of testing/synctest, so that time is virtual and costs nothing. network replaces libp2p,
// disk the file system. The seed decides the roles, the clients' programs, the faults, and what becomes of every
// message and sync: the last two by the content of the message and not by the order in which goroutines come. Go
// schedules goroutines as it likes, in a bubble too, so two runs of one seed differ in details. A seed that fails
// mostly fails again:
//
//	go test ./test/edge -run TestWorlds -from 17 -worlds 1 -count 10
package edge
