// Command compare measures Aweigh and other replicated key-value stores side by
// side on this machine: real programs, one process per member, every member
// syncing to the same disk, each under its own load generator.
//
// One repetition starts each system alone, with an empty directory, runs all
// its cells (an operation and a number of clients) and stops it again; the
// order of the systems moves on by one in the next repetition. Machines drift,
// so ratios are taken within a repetition, and only then is their median.
//
// It is started by scripts/compare, which builds the programs. Processor time
// is read from /proc, and is therefore known on Linux alone.
package main
