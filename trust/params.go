package trust

import (
	"errors"
	"fmt"

	"github.com/aweigh/aweigh/quorum"
)

// ErrParams is wrapped by errors about Params that no ledger can work with.
var ErrParams = errors.New("trust: bad parameters")

// Params are the numbers by which a scope's policy turns evidence into scores
// and scores into weights. The zero value is refused; start from DefaultParams.
type Params struct {
	_       struct{} `cbor:",toarray"`
	Floor   uint64   // weight of an anchor in good standing with score 0; at least 1
	Ceiling uint64   // weight of an anchor with MaxScore; at least Floor
	Initial Score    // score from which a readmitted anchor starts
}

// DefaultParams let weights differ tenfold, so that however scores stand, a
// quorum needs a fair number of heads as well: safety holds while fewer than
// n/(2r+1) of n anchors lie, where r is Ceiling/Floor.
func DefaultParams() Params {
	return Params{Floor: 100, Ceiling: 1_000, Initial: 100_000}
}

// Check reports the field that is out of range, wrapped in ErrParams.
func (p Params) Check() error {
	switch {
	case p.Floor == 0:
		return fmt.Errorf("%w: floor is 0; an anchor in good standing weighs at least 1", ErrParams)
	case p.Ceiling < p.Floor:
		return fmt.Errorf("%w: ceiling %d is below floor %d", ErrParams, p.Ceiling, p.Floor)
	case p.Ceiling > quorum.MaxTotal:
		return fmt.Errorf("%w: ceiling %d is above %d", ErrParams, p.Ceiling, uint64(quorum.MaxTotal))
	case p.Initial > MaxScore:
		return fmt.Errorf("%w: initial %d is above %d", ErrParams, p.Initial, MaxScore)
	}
	return nil
}

// Weight is what a score weighs: floor + (ceiling − floor) × score / MaxScore,
// rounded down. The Params must pass Check and the score be at most MaxScore;
// then the product stays below 2^52.
func (p Params) Weight(s Score) uint64 {
	return p.Floor + (p.Ceiling-p.Floor)*uint64(s)/uint64(MaxScore)
}
