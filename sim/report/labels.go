package report

import (
	"cmp"
	"math"
	"slices"
)

// apart leaves out values that are too near to the one before.
func apart(s scale, values []float64, least float64) (kept []float64) {
	for _, v := range values {
		if len(kept) == 0 || math.Abs(s.at(v)-s.at(kept[len(kept)-1])) >= least {
			kept = append(kept, v)
		}
	}
	return kept
}

// spread moves places, which grow, apart so far that labels fit, and keeps their
// middle, unless they would fall below a floor.
func spread(ys []float64, least, floor float64) []float64 {
	out := slices.Clone(ys)
	var shift float64
	for i := 1; i < len(out); i++ {
		out[i] = math.Max(out[i], out[i-1]+least)
	}
	for i := range out {
		shift += (out[i] - ys[i]) / float64(len(out))
	}
	for i := range out {
		out[i] = math.Min(out[i]-shift, floor-least*float64(len(out)-1-i))
	}
	return out
}

// spreadAny is spread for places in any order.
func spreadAny(ys []float64, least, floor float64) []float64 {
	order := make([]int, len(ys))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ys[a], ys[b]) })
	sorted := make([]float64, len(ys))
	for i, o := range order {
		sorted[i] = ys[o]
	}
	out := make([]float64, len(ys))
	for i, y := range spread(sorted, least, floor) {
		out[order[i]] = y
	}
	return out
}
