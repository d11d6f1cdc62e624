// Package scenario is the language of what happens in a simulated network: who
// takes part, over which links, who lies how, what breaks when, what clients ask,
// and what must hold in the end. A Scenario is plain data. It is read from YAML
// (Decode), changed value by value (Set), drawn whole from a seed (Draw), or taken
// from the Library that comes with this program.
//
// The package owns the words: the names of plays, faults and motions, of the
// invariants that a scenario may expect to break, and of the goals that it may
// want to show. Check refuses what makes no sense, with the line and the reason.
// What the words do is in package sim, which this one does not know.
package scenario
