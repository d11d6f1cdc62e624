// Command mutants plants the bugs of its list, one at a time, and reports which
// the simulator finds, and after how many worlds. It measures the simulator, and
// not the program: a bug that is not found shows which check or load is missing.
//
// The list stands in list/*.diff, a file for each class. A bug is one small change
// as people make it by mistake. It is built with go build -overlay, so that the
// tree is never touched:
//
//	scripts/mutants                          # all of them: about an hour on two cores
//	scripts/mutants -class leases            # one class
//	scripts/mutants -name dropped-last-key   # one bug
//	scripts/mutants -share 1/10              # a tenth, another one each day
//	scripts/mutants -markdown                # the table of docs/simulation.md
//
// Worlds of package sim look for all of them but those of class edge, for which worlds of test/edge do.
//
// A bug that the list calls found is LATE after the worlds that the list says, and LOST after ten times as many (of a
// thousand worlds, three times): an error.
package main
