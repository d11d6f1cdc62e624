package policytext

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aweigh/aweigh/scope"
)

// The words of an approval that bound what a motion may change.
const (
	mostWord  = "at-most"
	leastWord = "at-least"
)

func boundWord(m scope.Measure) string {
	if m.AtLeast() {
		return leastWord
	}
	return mostWord
}

// writeBounds are the bounds of an approval as addBounds reads them: words like at-most=keys:10,deleted:0.
func writeBounds(all []scope.ImpactBound) (words []string) {
	for _, word := range []string{mostWord, leastWord} {
		var of []string
		for _, b := range all {
			if boundWord(b.Of) == word {
				of = append(of, fmt.Sprintf("%s:%d", b.Of, b.Limit))
			}
		}
		if len(of) > 0 {
			words = append(words, word+"="+strings.Join(of, ","))
		}
	}
	return words
}

// addBounds reads the value of one word.
func addBounds(all []scope.ImpactBound, word, value string) ([]scope.ImpactBound, error) {
	for part := range strings.SplitSeq(value, ",") {
		name, limit, _ := strings.Cut(part, ":")
		var known []string
		b := scope.ImpactBound{}
		for _, m := range scope.Measures() {
			if boundWord(m) != word {
				continue
			}
			if known = append(known, m.String()); m.String() == name {
				b.Of = m
			}
		}
		if b.Of == 0 {
			return nil, fmt.Errorf("no bound is called %q%s; it is one of %s",
				name, meant(name, slices.Clone(known)), strings.Join(known, ", "))
		}
		n, err := strconv.ParseInt(limit, 10, 64)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%q is not a bound like %s:10", part, name)
		}
		b.Limit = n
		all = append(all, b)
	}
	slices.SortStableFunc(all, func(a, b scope.ImpactBound) int { return cmp.Compare(a.Of, b.Of) })
	for i := range all {
		if i > 0 && all[i].Of == all[i-1].Of {
			return nil, fmt.Errorf("%s stands twice", all[i].Of)
		}
	}
	return all, nil
}
