// Package model says what must come of the final blocks of a scope, in plain maps and slices: a reference for
// execution (scope.State.Execute) that tests and the simulator compare it with. It takes a genesis and then each
// block in order, and reckons outcomes, keys, leases, names, receipts, events and entries of the lineage. It is slow
// and obvious: one whole copy of the key space for every revision, and one of all else for every block.
//
// It uses the types of package scope, their checks of form and their canonical encodings, and none of the code that
// executes or reads.
//
// What it does not reckon it takes from a node (Told), and counts (Model.Unmodelled): who governs and by which policy,
// what is decided about that, and what is delegated when.
package model
