package trust

import (
	"math/big"
)

// What stands here computes with exact fractions, slowly and the obvious way.

func rat(n uint64) *big.Rat         { return new(big.Rat).SetInt(new(big.Int).SetUint64(n)) }
func (r Ratio) rat() *big.Rat       { return big.NewRat(int64(r.Num), int64(r.Den)) }
func mul(a, b *big.Rat) *big.Rat    { return new(big.Rat).Mul(a, b) }
func add(a, b *big.Rat) *big.Rat    { return new(big.Rat).Add(a, b) }
func sub(a, b *big.Rat) *big.Rat    { return new(big.Rat).Sub(a, b) }
func quo(a, b *big.Rat) *big.Rat    { return new(big.Rat).Quo(a, b) }
func lower(a, b *big.Rat) *big.Rat  { return map[bool]*big.Rat{true: a, false: b}[a.Cmp(b) < 0] }
func higher(a, b *big.Rat) *big.Rat { return map[bool]*big.Rat{true: a, false: b}[a.Cmp(b) > 0] }
func float(r *big.Rat) float64      { f, _ := r.Float64(); return f }
func within(a, b *big.Rat, d int) bool {
	return new(big.Rat).Abs(sub(a, b)).Cmp(big.NewRat(int64(d), 1)) <= 0
}

// exactFill is water-filling in fractions: cut every anchor above its share,
// and every group above its own, compute the new total, and begin again, until
// none is above. It is nil if the caps leave nothing.
func exactFill(c caps, claims []claim) []*big.Rat {
	total := new(big.Rat)
	groups := 0
	for _, a := range claims {
		total.Add(total, rat(a.raw))
		groups = max(groups, a.group+1)
	}
	for {
		lid, room := mul(total, c.share.rat()), mul(total, c.sponsored.rat())
		free, bound := new(big.Rat), new(big.Rat) // weight that stays, part of the total that is cut to a cap
		sums, part := make([]*big.Rat, groups), make([][2]*big.Rat, groups)
		for g := range groups {
			sums[g], part[g] = new(big.Rat), [2]*big.Rat{new(big.Rat), new(big.Rat)}
		}
		for _, a := range claims {
			f, b := rat(a.raw), new(big.Rat)
			if f.Cmp(lid) > 0 {
				f, b = new(big.Rat), c.share.rat()
			}
			if a.group < 0 {
				free.Add(free, f)
				bound.Add(bound, b)
				continue
			}
			sums[a.group].Add(sums[a.group], lower(rat(a.raw), lid))
			part[a.group][0].Add(part[a.group][0], f)
			part[a.group][1].Add(part[a.group][1], b)
		}
		for g := range groups {
			if sums[g].Cmp(room) > 0 {
				bound.Add(bound, c.sponsored.rat())
			} else {
				free.Add(free, part[g][0])
				bound.Add(bound, part[g][1])
			}
		}
		rest := sub(rat(1), bound)
		switch {
		case free.Sign() == 0 && rest.Sign() > 0:
			return nil
		case rest.Sign() <= 0 && free.Sign() > 0, rest.Sign() < 0:
			panic("the total cannot fall to a point where caps alone make more than the whole")
		case rest.Sign() == 0:
			// All anchors are cut and the shares make a whole: any total serves.
		default:
			if next := quo(free, rest); next.Cmp(total) != 0 {
				total = next
				continue
			}
		}
		weights := make([]*big.Rat, len(claims))
		lids := make([]*big.Rat, groups)
		for g := range groups {
			lids[g] = lower(lid, exactLevel(claims, g, room))
		}
		for i, a := range claims {
			weights[i] = lower(rat(a.raw), lid)
			if a.group >= 0 {
				weights[i] = lower(rat(a.raw), lids[a.group])
			}
		}
		return weights
	}
}

// exactLevel is the lid under which a group adds up to room: it tries what each
// number of anchors below the lid would make of it.
func exactLevel(claims []claim, g int, room *big.Rat) *big.Rat {
	var raws []*big.Rat
	sum := new(big.Rat)
	highest := new(big.Rat)
	for _, a := range claims {
		if a.group == g {
			raws = append(raws, rat(a.raw))
			sum.Add(sum, rat(a.raw))
			highest = higher(highest, rat(a.raw))
		}
	}
	if sum.Cmp(room) <= 0 {
		return highest
	}
	for cut := 1; cut <= len(raws); cut++ { // so many are cut to the lid
		for _, at := range raws { // the lowest of those that are cut
			left, above := new(big.Rat), 0
			for _, r := range raws {
				if r.Cmp(at) >= 0 {
					above++
				} else {
					left.Add(left, r)
				}
			}
			if above != cut {
				continue
			}
			lid := quo(sub(room, left), rat(uint64(cut)))
			fits := lid.Cmp(at) <= 0
			for _, r := range raws {
				fits = fits && (r.Cmp(at) >= 0 || r.Cmp(lid) <= 0)
			}
			if fits {
				return lid
			}
		}
	}
	panic("no lid fits")
}

// exactWalk is the point of the way, from 0 to 1, that churn and caps lead to.
func exactWalk(y weightPath, budget uint64) *big.Rat {
	need := new(big.Rat) // first point that keeps all caps
	demand := func(c Ratio, part, whole [2]uint64) {
		spare := func(end int) *big.Rat { return sub(mul(c.rat(), rat(whole[end])), rat(part[end])) }
		if a, b := spare(0), spare(1); a.Sign() < 0 {
			need = higher(need, quo(a, sub(a, b)))
		}
	}
	var whole [2]uint64
	sums := make(map[int][2]uint64)
	for i, c := range y.claims {
		whole[0] += y.from[i]
		whole[1] += y.to[i]
		s := sums[c.group]
		sums[c.group] = [2]uint64{s[0] + y.from[i], s[1] + y.to[i]}
	}
	for i := range y.claims {
		demand(y.caps.share, [2]uint64{y.from[i], y.to[i]}, whole)
	}
	for g, s := range sums {
		if g >= 0 {
			demand(y.caps.sponsored, s, whole)
		}
	}
	if full := change(y.from, y.to); full > budget {
		return higher(need, quo(rat(budget), rat(full)))
	}
	return rat(1)
}

// exactAttend is what attend approaches, without any rounding.
func exactAttend(p Params, before Score, r Attendance) *big.Rat {
	of := func(n uint32, d uint64) *big.Rat { return quo(rat(uint64(n)), rat(d)) }
	s := rat(uint64(before))
	span := uint64(max(r.Blocks, p.Whole))
	part := quo(rat(uint64(min(r.Blocks, p.Whole))), rat(uint64(p.Whole)))
	sum := add(s, mul(rat(uint64(p.Gain)), add(of(r.Timely, span), mul(big.NewRat(1, 2), of(r.Late, span)))))
	loss := add(
		quo(mul(s, part), rat(uint64(p.Decay))),
		quo(mul(s, of(r.Blocks-r.Timely-r.Late, span)), rat(uint64(p.Absence))))
	sum = sub(sum, lower(loss, higher(sub(s, rat(uint64(p.Rest))), new(big.Rat))))
	if views := uint64(r.Led) + uint64(r.Nullified); views > 0 {
		sum = add(sum, mul(part, mul(rat(uint64(p.Lead)), of(r.Led, views))))
		sum = sub(sum, mul(part, mul(rat(uint64(p.Idle)), of(r.Nullified, views))))
	}
	return lower(higher(sum, new(big.Rat)), rat(uint64(MaxScore)))
}
