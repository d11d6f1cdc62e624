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
	Floor   uint64   // raw weight of an anchor in good standing with score 0; at least 1
	Ceiling uint64   // raw weight of an anchor with MaxScore; at least Floor
	Initial Score    // score of a new anchor, and the most with which one returns

	Gain    Score  // added for an epoch of full participation
	Decay   uint32 // every epoch 1/Decay of the score is lost
	Absence uint32 // 1/Absence of the score is lost in an epoch of full absence, less in proportion
	Rest    Score  // absence and decay alone do not bring a score below this
	Lead    Score  // at most this much is gained in an epoch for leading well
	Idle    Score  // at most this much is lost in an epoch for views led that gave nothing
	Whole   uint32 // counted blocks that make a whole epoch; fewer shrink gains and losses in proportion, more earn no more

	Blame   uint32 // full blame takes 1/Blame of a claim; at least 16
	With    uint32 // a whole epoch of ballots with the outcomes of contested motions takes 1/With of the blame
	Against uint32 // one of ballots against them adds 1/Against of what is missing to full blame
	Silent  uint32 // one of silence adds 1/Silent of what is missing to half of full blame
	Judged  uint32 // contested motions that make a whole epoch; fewer move blame in proportion, more move it no more
	Contest Ratio  // of the anchors' weight, which the losing side of a contested motion holds at least; at most 1/2
	Answer  Ratio  // of a motion's window, after which silence counts

	// Reversal is for how many epochs a motion that was carried can be reversed so that the anchors which had warned of
	// it have credit; at most MaxReversal, 0: never. See Params.Credits.
	Reversal uint32

	Share     Ratio // most of the total that one anchor holds, below 1/3; {0, 0} is by size, see ShareOf
	Sponsored Ratio // most of the total that the anchors of one sponsor hold together, below 1/3
	Churn     Ratio // most that the weight changes of one epoch add up to, of the total before

	Probation    uint32 // epochs for which a new anchor weighs 0
	Surety       uint32 // 1/Surety of a sponsor's score is lost when one that it brought in is proven to lie
	SuretyEpochs uint32 // for how many epochs after the admission

	Group Group // how many anchors weigh at a time
}

// With DefaultParams claims differ up to tenfold, so that however scores stand,
// a quorum needs a fair number of heads as well: safety holds while fewer than
// n/(2r+1) of n anchors lie, where r is 16/15 of Ceiling/Floor and no anchor is held
// below Floor by the cap of sponsors or on the way up from a first weight.
func DefaultParams() Params {
	return Params{
		Floor: 100, Ceiling: 1_000, Initial: 100_000,
		Gain: 31_250, Decay: 64, Absence: 16, Rest: 50_000, Lead: 2_000, Idle: 8_000, Whole: 64,
		Blame: 16, With: 64, Against: 32, Silent: 64, Judged: 4, Contest: Ratio{Num: 1, Den: 10}, Answer: Ratio{Num: 1, Den: 8}, Reversal: 8,
		Sponsored: Ratio{Num: 1, Den: 4}, Churn: Ratio{Num: 1, Den: 10},
		Probation: 4, Surety: 4, SuretyEpochs: 64,
	}
}

// Check returns the field that is out of range and its effect, wrapped in
// ErrParams.
func (p Params) Check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrParams, fmt.Sprintf(format, args...))
	}
	switch {
	case p.Floor == 0:
		return bad("floor is 0; an anchor in good standing weighs at least 1")
	case p.Ceiling < p.Floor:
		return bad("ceiling %d is below floor %d; trust would cost weight", p.Ceiling, p.Floor)
	case p.Ceiling > quorum.MaxTotal:
		return bad("ceiling %d is above %d, the most that all weights add up to", p.Ceiling, uint64(quorum.MaxTotal))
	case p.Decay == 0:
		return bad("decay is 0; the loss of every epoch is 1/decay of the score, so take a large number for little of it")
	case p.Absence == 0:
		return bad("absence is 0; the loss of an epoch of absence is 1/absence of the score, so take a large number for little of it")
	case p.Whole == 0:
		return bad("whole is 0; an epoch without blocks would earn all that a full one does")
	case p.Surety == 0:
		return bad("surety is 0; a sponsor loses 1/surety of its score, so take 1 for all of it")
	}
	if err := p.checkJudgement(); err != nil {
		return bad("%s", err)
	}
	for _, s := range []struct {
		field string
		score Score
	}{{"initial", p.Initial}, {"gain", p.Gain}, {"rest", p.Rest}, {"lead", p.Lead}, {"idle", p.Idle}} {
		if s.score > MaxScore {
			return bad("%s %d is above %d, which is full trust", s.field, s.score, MaxScore)
		}
	}
	if most := (uint64(MaxScore) + uint64(p.Decay) - 1) / uint64(p.Decay); most > uint64(p.Gain) && p.Decay <= uint32(MaxScore) {
		return bad("decay 1/%d takes up to %d of a full score, more than gain %d gives back; taking part in everything would lose trust",
			p.Decay, most, p.Gain)
	}
	if p.Share != (Ratio{}) {
		if err := p.Share.check(); err != nil {
			return bad("share %s", err)
		}
		if !p.Share.belowThird() {
			return bad("share %s is not below 1/3; one anchor alone could stop a bft scope", p.Share)
		}
	}
	if err := p.Sponsored.check(); err != nil {
		return bad("sponsored %s", err)
	}
	if !p.Sponsored.belowThird() {
		return bad("sponsored %s is not below 1/3; those that one sponsor brought in could stop a bft scope", p.Sponsored)
	}
	if err := p.Churn.check(); err != nil {
		return bad("churn %s", err)
	}
	if err := p.Group.check(); err != nil {
		return bad("group: %s", err)
	}
	return nil
}

// Weight is the weight of a score before any cap: floor + (ceiling − floor) ×
// score / MaxScore, rounded down. The Params must pass Check and the score be
// at most MaxScore; then the product stays below 2^52.
func (p Params) Weight(s Score) uint64 {
	return p.Floor + (p.Ceiling-p.Floor)*uint64(s)/uint64(MaxScore)
}

// ShareOf is the most of the total that one of n anchors holds: Share, or by
// size 1/5 from 7 anchors on and 3/10 from 4 on. Where n such shares do not
// make a whole, as always below 4 anchors, it is 1/n: all weigh the same.
func (p Params) ShareOf(n int) Ratio {
	r := p.Share
	switch {
	case r != Ratio{}:
	case n >= 7:
		r = Ratio{Num: 1, Den: 5}
	default:
		r = Ratio{Num: 3, Den: 10}
	}
	if uint64(n)*uint64(r.Num) < uint64(r.Den) {
		r = Ratio{Num: 1, Den: uint32(max(n, 1))}
	}
	return r
}
