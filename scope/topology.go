package scope

import (
	"fmt"
	"time"
)

// Topology is what a scope does about prefixes that are busy (P64), and that are quiet again (P66). It is part of the
// policy, so that all nodes come to the same result from the chain.
type Topology struct {
	_     struct{} `cbor:",toarray"`
	Split Conduct
	// Rate is from how many changes of keys a second on, in the mean of an epoch, a prefix is busy: 1 to MaxSplitRate.
	Rate uint32
	// Epochs is for how many epochs in a row a prefix must be busy before it becomes a scope of its own: 1 or more.
	Epochs uint32
	// Rest is how many epochs at least lie between two splits, whether the first succeeded or not: 1 or more.
	Rest uint32
	// Most is how many prefixes the scope has handed over by itself at a time.
	Most uint32
	// Fold is what becomes of a prefix that the scope handed over by itself, once it is quiet: it comes home.
	Fold Conduct
	// Quiet is for how long such a scope must have less than half of Rate, in the mean of each epoch, so that it is
	// quiet: MinQuiet to MaxQuiet. It follows its own policy, which is that of the scope above at first.
	Quiet time.Duration
}

// Conduct is whether a scope does something by itself.
type Conduct uint8

const (
	ConductOff    Conduct = iota // it counts nothing
	ConductAdvise                // it says what it would do
	ConductAct                   // it does it
)

const (
	// MaxSplitRate is the largest Topology.Rate.
	MaxSplitRate = 1_000_000
	// MinQuiet and MaxQuiet bound Topology.Quiet.
	MinQuiet, MaxQuiet = time.Second, 365 * 24 * time.Hour
)

// DefaultTopology advises. A single scope of few processors takes some thousand changes a second.
func DefaultTopology() Topology {
	return Topology{
		Split: ConductAdvise, Rate: 1000, Epochs: 3, Rest: 8, Most: 16, Fold: ConductAdvise, Quiet: time.Hour,
	}
}

// counts reports whether a scope counts its changes.
func (t *Topology) counts() bool { return t.Split != ConductOff || t.Fold != ConductOff }

// check reports whether the values are in range. Errors wrap ErrInvalid.
func (t *Topology) check() error {
	switch {
	case !t.counts(): // the others mean nothing
	case t.Split > ConductAct:
		return fmt.Errorf("%w: topology.split %d", ErrInvalid, t.Split)
	case t.Fold > ConductAct:
		return fmt.Errorf("%w: topology.fold %d", ErrInvalid, t.Fold)
	case t.Fold != ConductOff && (t.Quiet < MinQuiet || t.Quiet > MaxQuiet):
		return fmt.Errorf("%w: topology.quiet is from %v to %v, not %v", ErrInvalid, MinQuiet, MaxQuiet, t.Quiet)
	case t.Rate < 1 || t.Rate > MaxSplitRate:
		return fmt.Errorf("%w: topology.rate is from 1 to %d changes a second, not %d", ErrInvalid, MaxSplitRate, t.Rate)
	case t.Epochs < 1 || t.Rest < 1:
		return fmt.Errorf("%w: topology.epochs and topology.rest are 1 or more", ErrInvalid)
	}
	return nil
}

// String is the name in lower case.
func (c Conduct) String() string { return word("conduct", uint8(c), 0, "off", "advise", "act") }

// ParseConduct is the conduct of a name. The error wraps ErrInvalid.
func ParseConduct(text string) (Conduct, error) {
	for c := ConductOff; c <= ConductAct; c++ {
		if c.String() == text {
			return c, nil
		}
	}
	return ConductOff, fmt.Errorf("%w: %q is none of off, advise and act", ErrInvalid, text)
}
