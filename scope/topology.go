package scope

import "fmt"

// Topology is what a scope does about prefixes that are busy (P64). It is part of the policy, so that all nodes come to
// the same result from the chain.
type Topology struct {
	_     struct{} `cbor:",toarray"`
	Split Conduct
	// Rate is from how many changes of keys a second on, in the mean of an epoch, a prefix is busy: 1 to MaxSplitRate.
	Rate uint32
	// Epochs is for how many epochs in a row a prefix must be busy before it becomes a scope of its own: 1 or more.
	Epochs uint32
	// Rest is how many epochs at least lie between two splits, whether the first succeeded or not: 1 or more.
	Rest uint32
	// Most is how many prefixes the scope hands over by itself, in all.
	Most uint32
}

// Conduct is whether a scope does something by itself.
type Conduct uint8

const (
	SplitOff    Conduct = iota // it counts nothing
	SplitAdvise                // it says what it would do
	SplitAct                   // it does it
)

// MaxSplitRate is the largest Topology.Rate.
const MaxSplitRate = 1_000_000

// DefaultTopology advises. A single scope of few processors takes some thousand changes a second.
func DefaultTopology() Topology {
	return Topology{Split: SplitAdvise, Rate: 1000, Epochs: 3, Rest: 8, Most: 16}
}

// check reports whether the values are in range. Errors wrap ErrInvalid.
func (t *Topology) check() error {
	switch {
	case t.Split == SplitOff: // the others mean nothing
	case t.Split > SplitAct:
		return fmt.Errorf("%w: topology.split %d", ErrInvalid, t.Split)
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
	for c := SplitOff; c <= SplitAct; c++ {
		if c.String() == text {
			return c, nil
		}
	}
	return SplitOff, fmt.Errorf("%w: %q is none of off, advise and act", ErrInvalid, text)
}
