// Package scenario is the language of simulated networks: the nodes and their
// links, liars and their attacks, faults and their times, clients' requests, and the
// properties that must hold in the end. A Scenario is plain data. It is read from
// YAML (Decode), changed value by value (Set), drawn whole from a seed (Draw), or
// taken from the Library that comes with this program.
//
// The package owns the words: the names of attacks, faults and motions, of the
// invariants that a scenario may expect to break, and of the goals that it may
// want to show. Check refuses senseless scenarios, with the line and the reason.
// Package sim, which this package does not import, has the meaning of the words.
package scenario
