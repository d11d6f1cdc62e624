package sim

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/anishathalye/porcupine"
)

// zone is when one value of a key was there: all that wrote or read it must come one after
// another in any order in time. Times are those of the requests.
type zone struct {
	value    string
	written  int64 // when its write began
	first    int64 // when the first of them was over
	last     int64 // when the last of them began
	unread   bool  // never written
	repeated bool  // more than one wrote it
}

// before reports whether something about one value was over before something about another began.
func (z *zone) before(o *zone) bool { return z.first < o.last }

// zones checks that the requests for one key fit an order in time, quickly however many requests were open
// at once: Gibbons and Korach, Testing shared memories (SIAM Journal on Computing, 1997), section 3. It is
// exact for writes and reads of values that are all different. A swap counts as a read and a write at any
// two moments within it, and not at all if it failed, so of those it may miss some; nor does it look at keys
// where a value was written twice. It returns what does not fit.
func zones(ops []porcupine.Operation) (why string) {
	all := map[string]*zone{"": {first: -1, last: -1, written: -1}}
	order := []*zone{all[""]}
	at := func(value string, op *porcupine.Operation) *zone {
		z := all[value]
		if z == nil {
			z = &zone{value: value, first: op.Return, last: op.Call, unread: true}
			all[value], order = z, append(order, z)
		}
		z.first, z.last = min(z.first, op.Return), max(z.last, op.Call)
		return z
	}
	for i := range ops {
		d := ops[i].Input.(*operation)
		if d.kind == "read" {
			at(d.got, &ops[i])
		} else if !d.failed {
			if d.kind == "swap" {
				at(d.was, &ops[i])
			}
			z := at(d.value, &ops[i])
			z.repeated = !z.unread
			z.unread, z.written = false, ops[i].Call
		}
	}
	for _, z := range order {
		switch {
		case z.repeated:
			return ""
		case z.unread:
			return fmt.Sprintf("%q was read, and never written", z.value)
		case z.first < z.written:
			return fmt.Sprintf("%q was read before it was written", z.value)
		}
	}
	// Two values contradict each other if each was there before the other, and one of them then for a while
	// for certain. Of such neighbours do, if any: so the last that began before another ended decides.
	var sure []*zone
	for _, z := range order {
		if z.first < z.last {
			sure = append(sure, z)
		}
	}
	slices.SortStableFunc(sure, func(a, b *zone) int { return cmp.Compare(a.first, b.first) })
	for _, z := range order {
		n := sort.Search(len(sure), func(i int) bool { return !sure[i].before(z) })
		if n > 0 && sure[n-1] != z && z.before(sure[n-1]) {
			return fmt.Sprintf("each of %q and %q was there before the other", sure[n-1].value, z.value)
		}
	}
	return ""
}
