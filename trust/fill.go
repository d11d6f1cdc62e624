package trust

import "slices"

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

// hold reports whether weights keep within the caps.
func (c caps) hold(claims []claim, weights []uint64) bool {
	total := sum(weights)
	sums := make([]uint64, len(claims))
	for i, w := range weights {
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

// fill is water-filling under both caps: an anchor above its share is cut down
// to it, as in a tank whose lid is a share of its content, and in a group above
// its share the same is done with a lid of its own. It gives the weights, none
// above its claim, or false where whole numbers of at least 1 cannot keep
// within the caps.
//
// Let G(W) be the sum of weights when every anchor is cut to share×W and every
// group to sponsored×W, rounded down. Where G(W) ≥ W, the weights that make up
// G(W) keep within the caps of their own sum. Apart from rounding, G is concave
// with G(0) = 0, so that W is found by halving; rounding costs no more than a
// few units of weight, and can never break a cap.
func (t *fillLevels) fill(c caps) ([]uint64, bool) {
	weights := make([]uint64, len(t.claims))
	if t.pour(c, t.total, weights) >= t.total {
		return weights, true
	}
	low, high := uint64(0), t.total // low is a W as wanted, or 0; high is none
	if same := t.lightest * uint64(len(t.claims)); t.pour(c, same, weights) >= same {
		low = same // all weigh the same: without groups this always serves, and may be all that does
	}
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

// fillLevels is claims made ready for pouring.
type fillLevels struct {
	claims   []claim
	groups   [][]uint64 // claims of each group, ascending
	levels   []uint64   // lid of each group
	total    uint64
	lightest uint64
}

func newTank(claims []claim) *fillLevels {
	t := &fillLevels{claims: claims, lightest: claims[0].raw}
	for _, c := range claims {
		t.total += c.raw
		t.lightest = min(t.lightest, c.raw)
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
func (t *fillLevels) pour(c caps, total uint64, weights []uint64) uint64 {
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
	}
	return sum(weights)
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

// roomy reports whether shares and groups can hold 21/20 of the whole, so that
// there is room for the cap of sponsors. At 20/20 all caps would have to be met
// at once, which whole numbers seldom can.
func (c caps) roomy(t *fillLevels) bool {
	share, group := uint64(c.share.Num)*uint64(c.sponsored.Den), uint64(c.sponsored.Num)*uint64(c.share.Den)
	single := uint64(len(t.claims))
	var sum uint64
	for _, g := range t.groups {
		sum += min(uint64(len(g))*share, group)
		single -= uint64(len(g))
	}
	sum += single * share
	return 20*sum >= 21*uint64(c.share.Den)*uint64(c.sponsored.Den)
}

// capsOf are the caps that a policy sets for these claims, and the weights under
// them. Where it allows one sponsor's anchors so little that the others have no
// room to make up the rest within their own share, the cap of sponsors gives
// way, to the lowest thousandth that leaves room (and with weights of a few
// units, that whole numbers can meet without crushing anyone else).
func capsOf(p Params, claims []claim) (caps, []uint64) {
	t := newTank(claims)
	c := caps{p.ShareOf(len(claims)), p.Sponsored}
	serves := func(c caps) ([]uint64, bool) {
		if c.sponsored.Num < c.sponsored.Den && !c.roomy(t) {
			return nil, false
		}
		weights, ok := t.fill(c)
		return weights, ok && c.share.of(sum(weights)) >= (t.lightest+1)/2
	}
	if weights, ok := serves(c); ok {
		return c, weights
	}
	low, high := uint32(p.Sponsored.of(MaxDen)), uint32(MaxDen) // low fails, high serves
	for high-low > 1 {
		mid := low + (high-low)/2
		if _, ok := serves(caps{c.share, Ratio{Num: mid, Den: MaxDen}}); ok {
			high = mid
		} else {
			low = mid
		}
	}
	c.sponsored = Ratio{Num: high, Den: MaxDen}
	weights, _ := t.fill(c)
	return c, weights
}

func sum(weights []uint64) (total uint64) {
	for _, w := range weights {
		total += w
	}
	return total
}
