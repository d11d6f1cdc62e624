package scenario

import "slices"

// lyingDisks are the kinds of faults after which a disk lacks writes that it reported as done. Their nodes count as
// faulty.
var lyingDisks = []string{"rollback", "forgetful", "torn", "corrupt", "misdirect", "lose"}

// Lies reports whether the fault makes its nodes faulty.
func (f Fault) Lies() bool { return slices.Contains(lyingDisks, f.Kind) }

// LyingDisk reports whether a disk of the scenario lies.
func (s Scenario) LyingDisk() bool { return slices.ContainsFunc(s.Faults.Timed, Fault.Lies) }
