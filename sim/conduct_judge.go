package sim

import (
	"math/big"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/trust"
	"github.com/aweigh/aweigh/votes"
)

// opinions counts again, from final blocks alone, what contested motions show of the
// anchors that could vote on them (P50), by epoch. It counts the motions that recount
// follows: unless others could have judged as well, blame must follow from it.
type opinions struct {
	in     map[aweigh.Epoch]map[aweigh.AnchorID]*opined
	others bool // there were motions that are not counted afresh

	remembered []*contested // as they were carried
}

// followed reports whether blame must follow from the motions that are counted afresh.
func (x *watch) followed() bool {
	return x.counts() && !x.conduct.opinions.others
}

// opined are the counts of one anchor in one epoch.
type opined struct {
	with, against, silent uint64
	warned                []*contested // motions of which it had warned, and that were reversed in the epoch
}

func (x *opinions) of(e aweigh.Epoch, a aweigh.AnchorID) *opined {
	if x.in == nil {
		x.in = make(map[aweigh.Epoch]map[aweigh.AnchorID]*opined)
	}
	if x.in[e] == nil {
		x.in[e] = make(map[aweigh.AnchorID]*opined)
	}
	if x.in[e][a] == nil {
		x.in[e][a] = new(opined)
	}
	return x.in[e][a]
}

// ended judges the voters of a motion that a block ended.
func (x *opinions) ended(p *poll, policy *trust.Params, h *scope.Header) (warners []aweigh.AnchorID) {
	won := votes.Approve
	switch p.fate {
	case scope.Carried:
	case scope.Rejected:
		won = votes.Reject
	default:
		return nil
	}
	scaled := func(n *big.Int, by uint64) *big.Int { return new(big.Int).Mul(n, new(big.Int).SetUint64(by)) }
	isAnchor := func(id aweigh.Hash) bool { return p.voters[id].anchor }
	with := p.weightOf(func(id aweigh.Hash) bool { return isAnchor(id) && p.said[id] == 1<<won })
	against := p.weightOf(func(id aweigh.Hash) bool { return isAnchor(id) && p.said[id] == 1<<won.Other() })
	total := p.weightOf(isAnchor)
	if with.Cmp(against) <= 0 || scaled(with, 3).Cmp(total) <= 0 || against.Sign() == 0 ||
		scaled(against, uint64(policy.Contest.Den)).Cmp(scaled(total, uint64(policy.Contest.Num))) < 0 {
		return nil
	}
	answer := time.Duration(new(big.Int).Div(
		scaled(big.NewInt(int64(p.deadline.Sub(p.time))), uint64(policy.Answer.Num)), big.NewInt(int64(policy.Answer.Den))).Int64())
	for id, s := range p.voters { // order-free: each counts for itself
		n := x.of(h.Epoch, id)
		switch said := p.said[id]; {
		case !s.anchor || said == both:
		case said != 0 && !p.clearBefore(p.at[id], won):
			if said == 1<<won {
				n.with++
			} else {
				n.against++
				warners = append(warners, id)
			}
		case h.Time.Sub(p.time) >= answer && (said == 0 || p.when[id].Sub(p.time) >= answer):
			n.silent++
		}
	}
	return warners
}

// clearBefore reports whether blocks before a height held half of what the outcome takes.
func (p *poll) clearBefore(at aweigh.Height, won votes.Choice) bool {
	sum := p.weightOf(func(id aweigh.Hash) bool { return p.said[id] == 1<<won && p.at[id] < at })
	return sum.Lsh(sum, 1).Cmp(p.takes(won)) >= 0
}

// blame is that of an anchor after an epoch, from that before it, and whether a reversal took some of it.
func (x *opinions) blame(p trust.Params, e aweigh.Epoch, a aweigh.AnchorID, before trust.Score) (blame trust.Score, credited bool) {
	n := x.of(e, a)
	all := n.with + n.against + n.silent
	span, b := max(all, uint64(p.Judged)), uint64(before)
	after := b + (1_000_000-b)*n.against/span/uint64(p.Against) - b*n.with/span/uint64(p.With)
	if b < 500_000 {
		after += (500_000 - b) * n.silent / span / uint64(p.Silent)
	}
	left := x.credit(p, e, a, after)
	return trust.Score(left), left < after
}
