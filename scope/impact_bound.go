package scope

import (
	"errors"
	"fmt"
	"strings"
)

// ImpactBound limits one number of what a motion may change, as its Impact has it. A motion beyond it does not open,
// and is void if it would be beyond it as it is carried out (P62).
type ImpactBound struct {
	_     struct{} `cbor:",toarray"`
	Of    Measure
	Limit int64 // from 0 to mostBound
}

// Measure is a number of an Impact that an ImpactBound limits.
type Measure uint8

const (
	// ChangedKeys are the keys that change, under all names of their objects. This and the next three have limits from
	// above, of approvals of changes and deletions.
	ChangedKeys Measure = 1
	// DeletedKeys are those of them that are gone afterwards.
	DeletedKeys Measure = 2
	// EndedObjects are objects that no key names any more.
	EndedObjects Measure = 3
	// WrittenBytes are the bytes of the keys and values that are written.
	WrittenBytes Measure = 4
	// FlippedRights are rights of authors, and rules of verbs, that change. This and the next two are of approvals of
	// decisions.
	FlippedRights Measure = 5
	// FewestToStop is how few anchors could stop the scope. This and the next have a limit from below. What is below it
	// is refused only if it is less than now, or no decision could mend it.
	FewestToStop Measure = 6
	// FewestToBreak is how few anchors could, lying together, make the scope finalize two histories.
	FewestToBreak Measure = 7
)

// mostBound is the largest limit.
const mostBound = 1 << 40

// Measures are all measures, in order.
func Measures() (all []Measure) {
	for m := ChangedKeys; m <= FewestToBreak; m++ {
		all = append(all, m)
	}
	return all
}

// AtLeast reports whether a limit is one from below.
func (m Measure) AtLeast() bool { return m >= FewestToStop }

// String is one word, like "keys".
func (m Measure) String() string {
	words := [...]string{"", "keys", "deleted", "ended", "bytes", "rights", "stop", "break"}
	if m == 0 || int(m) >= len(words) {
		return fmt.Sprintf("measure(%d)", uint8(m))
	}
	return words[m]
}

// of is what a number of the measure counts, like "keys that change".
func (m Measure) of(n int64) string {
	things := [...]string{"", "key that changes", "key that is deleted", "object that ends", "byte that is written",
		"right that changes", "anchor to stop the scope", "anchor to break the scope"}
	if int(m) >= len(things) {
		return m.String()
	}
	one := things[m]
	if n == 1 {
		return one
	}
	noun, rest, _ := strings.Cut(one, " ")
	rest = strings.NewReplacer("changes", "change", "that is", "that are", "ends", "end").Replace(rest)
	return noun + "s " + rest
}

// String is like "at most 10 keys that change".
func (b ImpactBound) String() string {
	how := "at most"
	if b.Of.AtLeast() {
		how = "at least"
	}
	return fmt.Sprintf("%s %d %s", how, b.Limit, b.Of.of(b.Limit))
}

// value is the number that the bound is about, now and afterwards.
func (b ImpactBound) value(i *Impact) (was, is int64) {
	r := i.Reform
	if r == nil {
		r = new(Reform)
	}
	switch b.Of {
	case ChangedKeys:
		return 0, i.Keys
	case DeletedKeys:
		return 0, i.Deleted
	case EndedObjects:
		return 0, i.Ended
	case WrittenBytes:
		return 0, i.Bytes
	case FlippedRights:
		if r.Untold { // more than were looked at
			return 0, mostBound + 1
		}
		return 0, r.Flipped
	case FewestToStop:
		return int64(r.Was.Stop), int64(r.Is.Stop)
	case FewestToBreak:
		return int64(r.Was.Break), int64(r.Is.Break)
	}
	return 0, 0
}

// ErrBeyond refuses a motion that would change more than its approval permits.
var ErrBeyond = errors.New("scope: beyond the bounds that the policy sets")

// Permits reports whether a motion under the approval may change so much. The error wraps ErrBeyond and names the first
// bound that does not hold.
func (a *Approval) Permits(i *Impact) error {
	for _, b := range a.Bounds {
		was, is := b.value(i)
		if b.Of.AtLeast() && is < min(b.Limit, was) || !b.Of.AtLeast() && is > b.Limit {
			return fmt.Errorf("%w: %d %s, and %s may be in one motion under the approval of %s",
				ErrBeyond, is, b.Of.of(is), b, a.name())
		}
	}
	return nil
}

// checkBounds reports whether an approval can have its bounds.
func (a *Approval) checkBounds() error {
	for i, b := range a.Bounds {
		switch {
		case b.Of == 0 || b.Of > FewestToBreak:
			return fmt.Errorf("no such measure %d", uint8(b.Of))
		case i > 0 && a.Bounds[i-1].Of >= b.Of:
			return errors.New("its bounds are not distinct and in order")
		case a.ofKeys() != (b.Of <= WrittenBytes):
			return fmt.Errorf("a bound of %s does not go with %s", b.Of, a.Matter)
		case b.Limit < 0 || b.Limit > mostBound:
			return fmt.Errorf("a bound of %d %s; it is from 0 to %d", b.Limit, b.Of, int64(mostBound))
		}
	}
	return nil
}
