package trust

import "fmt"

// MaxDen is the largest denominator of a Ratio of Params, so that all products
// with weights stay within uint64.
const MaxDen = 1_000

// Ratio is a part of a whole, Num/Den.
type Ratio struct {
	_        struct{} `cbor:",toarray"`
	Num, Den uint32
}

// String is like "1/4".
func (r Ratio) String() string { return fmt.Sprintf("%d/%d", r.Num, r.Den) }

// check reports why r is no part of a whole.
func (r Ratio) check() error {
	switch {
	case r.Num == 0 || r.Num > r.Den:
		return fmt.Errorf("%s is not above 0 and at most 1", r)
	case r.Den > MaxDen:
		return fmt.Errorf("%s has a denominator above %d", r, MaxDen)
	}
	return nil
}

func (r Ratio) belowThird() bool { return 3*uint64(r.Num) < uint64(r.Den) }

// of is r of n, rounded down; n is below 2^53.
func (r Ratio) of(n uint64) uint64 { return n * uint64(r.Num) / uint64(r.Den) }

// holds reports whether part is at most r of whole, both below 2^53.
func (r Ratio) holds(part, whole uint64) bool {
	return part*uint64(r.Den) <= whole*uint64(r.Num)
}
