package trust

import (
	"slices"
)

// claim is what one anchor brings to the table.
type claim struct {
	raw   uint64 // at least 1
	group int    // of those that one sponsor brought in, from 0; -1 for an anchor without sponsor
}

// caps are the bounds that hold for one table of weights.
type caps struct {
	share     Ratio // of each anchor
	sponsored Ratio // of each group
}

// hold says whether weights keep within the caps.
func (c caps) hold(claims []claim, weights []uint64) bool {
	var total uint64
	sums := make([]uint64, len(claims))
	for i, w := range weights {
		total += w
		if g := claims[i].group; g >= 0 {
			sums[g] += w
		}
	}
	for _, w := range weights {
		if !c.share.holds(w, total) {
			return false
		}
	}
	for _, s := range sums {
		if !c.sponsored.holds(s, total) {
			return false
		}
	}
	return true
}

// fill is water-filling under both caps: whoever is above its share is cut down
// to it, as in a tank whose lid is a share of what the tank holds, and in a
// group above its share the same is done with a lid of its own. It gives the
// weights, none above its claim, or false where whole numbers of at least 1
// cannot keep within the caps.
//
// Let G(W) be the sum of weights when every anchor is cut to share×W and every
// group to sponsored×W, rounded down. Where G(W) ≥ W, the weights that make up
// G(W) keep within the caps of their own sum. But for rounding, G is concave
// with G(0) = 0, so that W is found by halving; rounding costs no more than a
// few units of weight, and can never break a cap.
func (c caps) fill(claims []claim) ([]uint64, bool) {
	t := newTank(claims)
	weights := make([]uint64, len(claims))
	if t.pour(c, t.total, weights) >= t.total {
		return weights, true
	}
	low, high := uint64(0), t.total // low is a W as wanted, or 0; high is none
	for high-low > 1 {
		if mid := low + (high-low)/2; t.pour(c, mid, weights) >= mid {
			low = mid
		} else {
			high = mid
		}
	}
	t.pour(c, low, weights)
	return weights, low > 0 && slices.Min(weights) > 0
}

// tank is claims made ready for pouring.
type tank struct {
	claims []claim
	groups [][]uint64 // claims of each group, ascending
	levels []uint64   // lid of each group
	total  uint64
}

func newTank(claims []claim) *tank {
	t := &tank{claims: claims}
	for _, c := range claims {
		t.total += c.raw
		if c.group >= 0 {
			for len(t.groups) <= c.group {
				t.groups = append(t.groups, nil)
			}
			t.groups[c.group] = append(t.groups[c.group], c.raw)
		}
	}
	for _, g := range t.groups {
		slices.Sort(g)
	}
	t.levels = make([]uint64, len(t.groups))
	return t
}

// pour sets the weights that a total would allow, and returns their sum.
func (t *tank) pour(c caps, total uint64, weights []uint64) (sum uint64) {
	lid := c.share.of(total)
	room := c.sponsored.of(total)
	for g, claims := range t.groups {
		if t.levels[g] = lid; c.sponsored.Num < c.sponsored.Den {
			t.levels[g] = min(lid, level(claims, room))
		}
	}
	for i, a := range t.claims {
		weights[i] = min(a.raw, lid)
		if a.group >= 0 {
			weights[i] = min(a.raw, t.levels[a.group])
		}
		sum += weights[i]
	}
	return sum
}

// level is the highest lid under which ascending claims add up to at most room;
// without need of a lid it is the highest claim.
func level(claims []uint64, room uint64) uint64 {
	for i, raw := range claims {
		left := uint64(len(claims) - i)
		if raw*left > room {
			return room / left
		}
		room -= raw
	}
	return claims[len(claims)-1]
}

// slack is by how many thousandths the cap of sponsors gives way beyond need.
// Without it, weights would have to meet all caps at once, which whole numbers
// seldom can.
const slack = 50

// capsOf are the caps that a policy sets for these claims, and the weights under
// them. Where it allows one sponsor's anchors so little that the others cannot
// make up the rest within their own share, the cap of sponsors gives way: to
// slack above the lowest thousandth that leaves everyone else room for half of
// the lightest claim.
func capsOf(p Params, claims []claim) (caps, []uint64) {
	c := caps{p.ShareOf(len(claims)), p.Sponsored}
	lightest := claims[0].raw
	for _, a := range claims {
		lightest = min(lightest, a.raw)
	}
	try := func(c caps) ([]uint64, bool) {
		weights, ok := c.fill(claims)
		if !ok {
			return nil, false
		}
		var total uint64
		for _, w := range weights {
			total += w
		}
		return weights, c.share.of(total) >= (lightest+1)/2
	}
	if weights, ok := try(c); ok {
		return c, weights
	}
	low, high := uint32(p.Sponsored.of(MaxDen)), uint32(MaxDen) // low fails, high serves
	for high-low > 1 {
		mid := low + (high-low)/2
		if _, ok := try(caps{c.share, Ratio{Num: mid, Den: MaxDen}}); ok {
			high = mid
		} else {
			low = mid
		}
	}
	c.sponsored = Ratio{Num: min(high+slack, MaxDen), Den: MaxDen}
	weights, _ := c.fill(claims)
	return c, weights
}
