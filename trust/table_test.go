package trust

import (
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// tables is how many random tables a test looks at; AWEIGH_TABLES sets it.
func tables(t *testing.T, usual int) int {
	if n, err := strconv.Atoi(os.Getenv("AWEIGH_TABLES")); err == nil {
		return n
	}
	if testing.Short() {
		return usual / 10
	}
	return usual
}

// aTable draws claims: up to 20 anchors, seldom up to 128, some of them brought
// in by up to four sponsors.
func aTable(r *rand.Rand, p Params) []claim {
	n := 1 + r.IntN(20)
	if r.IntN(50) == 0 {
		n = 1 + r.IntN(128)
	}
	claims := make([]claim, n)
	sponsors, part := r.IntN(5), 1+r.IntN(8)
	number := make(map[int]int) // groups count from 0 without gaps
	spread := 1 + r.IntN(int(MaxScore))
	for i := range claims {
		claims[i] = claim{p.Weight(Score(r.IntN(spread))), -1}
		if sponsors > 0 && r.IntN(8) < part {
			s := r.IntN(sponsors)
			if _, ok := number[s]; !ok {
				number[s] = len(number)
			}
			claims[i].group = number[s]
		}
	}
	return claims
}

// holdsExactly computes the same as caps.hold, in fractions.
func holdsExactly(c caps, claims []claim, weights []uint64) bool {
	var total uint64
	sums := make(map[int]uint64)
	for i, w := range weights {
		total += w
		sums[claims[i].group] += w
		if w == 0 {
			return false
		}
	}
	for i, w := range weights {
		if quo(rat(w), rat(total)).Cmp(c.share.rat()) > 0 {
			return false
		}
		if g := claims[i].group; g >= 0 && quo(rat(sums[g]), rat(total)).Cmp(c.sponsored.rat()) > 0 {
			return false
		}
	}
	return true
}

// room is what shares and groups together can hold of the total: below 1, the
// cap of sponsors cannot hold.
func room(c caps, claims []claim) *big.Rat {
	sum := new(big.Rat)
	groups := make(map[int]uint64)
	for _, a := range claims {
		groups[a.group]++
	}
	for g, n := range groups {
		part := mul(rat(n), c.share.rat())
		if g >= 0 {
			part = lower(part, c.sponsored.rat())
		}
		sum.Add(sum, part)
	}
	return sum
}

// TestCapsHold looks at random tables: no anchor and no sponsor's anchors above
// their cap, no weight of 0 and none above its claim, and the cap of sponsors
// gives way only where it must.
func TestCapsHold(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	p := DefaultParams()
	gave := 0
	for range tables(t, 20_000) {
		claims := aTable(r, p)
		c, weights := capsOf(p, claims)
		if !holdsExactly(c, claims, weights) || !c.hold(claims, weights) {
			t.Fatalf("%v breaks %v of %v", weights, c, claims)
		}
		var total uint64
		for i, w := range weights {
			total += w
			if w > claims[i].raw {
				t.Fatalf("%d out of a claim of %d", w, claims[i].raw)
			}
		}
		if len(claims) >= 4 && 3*slices.Max(weights) >= total {
			t.Fatalf("one of %d anchors could stop a bft scope: %v", len(claims), weights)
		}
		if len(claims) < 4 && slices.Max(weights) != slices.Min(weights) {
			t.Fatalf("%d anchors weigh %v", len(claims), weights)
		}
		if c.share != p.ShareOf(len(claims)) {
			t.Fatalf("share %v", c.share)
		}
		if c.sponsored == p.Sponsored {
			continue
		}
		gave++
		if room(caps{c.share, p.Sponsored}, claims).Cmp(big.NewRat(11, 10)) >= 0 {
			t.Fatalf("the cap of sponsors gave way to %v for %v, without need", c.sponsored, claims)
		}
		tighter := caps{c.share, Ratio{Num: max(c.sponsored.Num, 31) - 30, Den: MaxDen}}
		if c.sponsored.Num < MaxDen && room(tighter, claims).Cmp(big.NewRat(11, 10)) >= 0 {
			t.Fatalf("the cap of sponsors gave way to %v for %v, more than needed", c.sponsored, claims)
		}
	}
	if gave == 0 {
		t.Error("the cap of sponsors never gave way: the tables are too tame")
	}
}

// rounding is the largest loss by rounding in all, in units of weight for each anchor:
// every anchor loses less than 1, and a cap that others are cut to passes it on.
const rounding = 3

// TestFillIsWaterFilling compares with the exact fractions.
func TestFillIsWaterFilling(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 2))
	p := DefaultParams()
	cut := 0
	for range tables(t, 1_000) {
		p.Floor = 100 * uint64(1+r.IntN(100_000))
		p.Ceiling = p.Floor * uint64(1+r.IntN(20))
		claims := aTable(r, p)
		c, weights := capsOf(p, claims)
		exact := exactFill(c, claims)
		if exact == nil {
			t.Fatalf("nothing of %v under %v, but %v", claims, c, weights)
		}
		tolerance := rounding * len(claims)
		for i, w := range weights {
			if !within(rat(w), exact[i], tolerance) || rat(w).Cmp(exact[i]) > 0 {
				t.Fatalf("%d anchors, anchor %d: %d, exactly %.2f, of %v under %v", len(claims), i, w, float(exact[i]), claims, c)
			}
			if w < claims[i].raw {
				cut++
			}
		}
	}
	if cut == 0 {
		t.Error("no cap was ever needed")
	}
}

// TestFillKnowsNoNames: order and names of anchors and of sponsors are nothing
// to it.
func TestFillKnowsNoNames(t *testing.T) {
	p := DefaultParams()
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		claims := aTable(rand.New(rand.NewPCG(seed, 3)), p)
		order := rapid.Permutation(numbers(len(claims))).Draw(t, "order")
		groups := rapid.Permutation(numbers(4)).Draw(t, "groups")
		used := make([]bool, 4)
		for _, a := range claims {
			if a.group >= 0 {
				used[a.group] = true
			}
		}
		mixed := make([]claim, len(claims))
		for i, j := range order {
			mixed[j] = claims[i]
			if g := claims[i].group; g >= 0 {
				mixed[j].group = 0
				for other := range 4 { // the place of its number among those used
					if used[other] && groups[other] < groups[g] {
						mixed[j].group++
					}
				}
			}
		}
		c, weights := capsOf(p, claims)
		c2, weights2 := capsOf(p, mixed)
		if c != c2 {
			t.Fatalf("caps %v and %v", c, c2)
		}
		for i, j := range order {
			if weights[i] != weights2[j] {
				t.Fatalf("anchor %d weighs %d, and %d in another order", i, weights[i], weights2[j])
			}
		}
	})
}

func numbers(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// TestFillScales: claims times k are weights times k, but for rounding.
func TestFillScales(t *testing.T) {
	p := DefaultParams()
	p.Floor, p.Ceiling = 10_000, 100_000
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		k := rapid.Uint64Range(2, 300).Draw(t, "k")
		claims := aTable(rand.New(rand.NewPCG(seed, 4)), p)
		large := slices.Clone(claims)
		for i := range large {
			large[i].raw *= k
		}
		c, weights := capsOf(p, claims)
		more, ok := newTank(large).fill(c)
		if !ok {
			t.Fatalf("%v does not fill %v", c, large)
		}
		for i := range weights {
			if !within(rat(more[i]), rat(weights[i]*k), int(k)*rounding*len(claims)) {
				t.Fatalf("anchor %d: %d, and times %d: %d", i, weights[i], k, more[i])
			}
		}
	})
}

// aWay draws a table and the weights that another time of the same roster gave,
// at times with anchors gone or new.
func aWay(r *rand.Rand, p Params) (y weightPath, budget uint64) {
	y.claims = aTable(r, p)
	y.caps, y.to = capsOf(p, y.claims)
	earlier := slices.Clone(y.claims)
	calm := 1 + r.IntN(900)
	for i := range earlier {
		raw := int(earlier[i].raw) + r.IntN(2*calm+1) - calm
		earlier[i].raw = uint64(min(max(raw, int(p.Floor)), int(p.Ceiling)))
	}
	_, y.from = capsOf(p, earlier)
	for _, w := range y.from {
		budget += w
	}
	if budget /= 10; r.IntN(3) == 0 {
		y.from[r.IntN(len(y.from))] = 0
	}
	return y, budget
}

// TestChangesAreBounded looks at random ways: the caps hold wherever one stops,
// and the sum of changes is within the budget unless the caps demand more.
func TestChangesAreBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 5))
	p := DefaultParams()
	var bound, demanded int
	for range tables(t, 20_000) {
		y, budget := aWay(r, p)
		got := y.walk(budget)
		if !holdsExactly(y.caps, y.claims, got) {
			t.Fatalf("%+v walks to %v", y, got)
		}
		if slices.Max(y.from) == 0 {
			continue
		}
		most, need := budget, y.firstWithin()
		if need > 0 {
			demanded++
			most = max(budget, change(y.from, y.to)*need/steps+10*rounding*uint64(len(got)))
		}
		if n := change(y.from, got); n > most {
			t.Fatalf("%+v walks to %v, which changes %d, more than %d", y, got, n, most)
		}
		if change(y.from, y.to) > budget {
			bound++
		}
	}
	if bound == 0 || demanded == 0 {
		t.Errorf("%d ways were too long, %d began outside the caps: too tame", bound, demanded)
	}
}

// TestWalkGoesAsFarAsItMay compares with the exact point of the way.
func TestWalkGoesAsFarAsItMay(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 6))
	p := DefaultParams()
	p.Floor, p.Ceiling = 1_000_000, 10_000_000 // so that rounding does not blur the picture
	for range tables(t, 3_000) {
		y, budget := aWay(r, p)
		if slices.Max(y.from) == 0 {
			continue
		}
		got, at := y.walk(budget), exactWalk(y, budget)
		for i, w := range got {
			exact := add(mul(rat(y.from[i]), sub(rat(1), at)), mul(rat(y.to[i]), at))
			if !within(rat(w), exact, rounding*len(got)) {
				t.Fatalf("anchor %d of %d: %d, exactly %.2f at %.4f of the way, %+v", i, len(got), w, float(exact), float(at), y)
			}
		}
	}
}

// TestCoarseWeightsGoAsNearAsTheyCan: where weights are a few units, the first
// point within the caps may have no whole numbers near it that are.
func TestCoarseWeightsGoAsNearAsTheyCan(t *testing.T) {
	y := weightPath{caps: caps{Ratio{Num: 1, Den: 5}, Ratio{Num: 85, Den: 100}}}
	for i := range 20 {
		from, to, group := uint64(13), uint64(67), 0
		switch i {
		case 4:
			from, to, group = 61, 236, -1
		case 13:
			from = 0
		}
		y.claims, y.from, y.to = append(y.claims, claim{group: group}), append(y.from, from), append(y.to, to)
	}
	if _, ok := y.at(y.firstWithin()); ok || !y.caps.hold(y.claims, y.to) {
		t.Fatal("whole numbers serve at once: this shows nothing")
	}
	got := y.walk(30)
	if n := change(y.from, got); !holdsExactly(y.caps, y.claims, got) || n > 150 {
		t.Errorf("%v, which changes %d of %d", got, n, change(y.from, y.to))
	}
}
