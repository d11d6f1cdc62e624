package quorum

import (
	"errors"
	"fmt"
	"slices"

	"github.com/aweigh/aweigh"
)

// Mode states which faults a scope tolerates (P2).
type Mode uint8

const (
	// BFT tolerates anchors that lie, with less than a third of the weight.
	BFT Mode = 1
	// Crash tolerates anchors that stop, and assumes that none lies.
	Crash Mode = 2
	// Fast tolerates the same liars as BFT, and decides in one round of votes while little weight is silent (P56).
	Fast Mode = 3
)

// String returns "bft", "crash" or "fast".
func (m Mode) String() string {
	switch m {
	case BFT:
		return "bft"
	case Crash:
		return "crash"
	case Fast:
		return "fast"
	}
	return fmt.Sprintf("mode(%d)", uint8(m))
}

// Modes are all modes.
func Modes() []Mode { return []Mode{BFT, Fast, Crash} }

// ParseMode reads the form of Mode.String.
func ParseMode(s string) (Mode, error) {
	for _, m := range Modes() {
		if s == m.String() {
			return m, nil
		}
	}
	return 0, fmt.Errorf("quorum: mode is bft, fast or crash, not %q", s)
}

// Vouch returns the kind of an anchor's first vote for a block. In Crash, where no anchor lies, it is the last vote as
// well (P13).
func (m Mode) Vouch() Kind {
	if m.OneRound() {
		return Finalize
	}
	return Notarize
}

// Byzantine reports whether anchors may lie.
func (m Mode) Byzantine() bool { return m == BFT || m == Fast }

// Attends returns the kind of vote by which an anchor attends a block (P27): in Fast few blocks need another.
func (m Mode) Attends() Kind {
	if m == Fast {
		return Notarize
	}
	return Finalize
}

// OneRound reports whether one round of votes decides every view, since no anchor lies (P13).
func (m Mode) OneRound() bool { return m == Crash }

// FaultBudget returns the weight f, out of total, that may lie without harm.
func (m Mode) FaultBudget(total uint64) uint64 {
	if m.Byzantine() && total > 0 {
		return (total - 1) / 3
	}
	return 0
}

// Rule requires more than Num/Den of the whole weight, or all of it if that is less, and at least MinAnchors anchors,
// whatever their weight.
type Rule struct {
	_          struct{} `cbor:",toarray"`
	Num, Den   uint64
	MinAnchors uint32
}

// MaxDen bounds the denominator of a Rule.
const MaxDen = 1_000_000

// Threshold returns the least weight that meets the rule: ⌊total·Num/Den⌋ + 1, at most total.
func (r Rule) Threshold(total uint64) uint64 { return min(total*r.Num/r.Den+1, total) }

// Met reports whether a weight out of total, of the given number of anchors, meets the rule.
func (r Rule) Met(weight, total uint64, anchors int) bool {
	return total > 0 && weight >= r.Threshold(total) && uint64(anchors) >= uint64(r.MinAnchors)
}

// String returns a text such as "> 2/3" or "> 2/3, 3 anchors".
func (r Rule) String() string {
	s := fmt.Sprintf("> %d/%d", r.Num, r.Den)
	switch {
	case r.MinAnchors == 1:
		s += ", 1 anchor"
	case r.MinAnchors > 1:
		s += fmt.Sprintf(", %d anchors", r.MinAnchors)
	}
	return s
}

// Rules holds the rule of one scope for each kind of vote (P3).
type Rules struct {
	_                           struct{} `cbor:",toarray"`
	Mode                        Mode
	Notarize, Finalize, Nullify Rule
}

// DefaultRules returns the rules of P2: more than 2/3 in BFT, more than 1/2 in Crash.
func DefaultRules(m Mode) Rules {
	r := Rule{Num: 2, Den: 3}
	if m == Crash {
		r = Rule{Num: 1, Den: 2}
	}
	return Rules{Mode: m, Notarize: r, Finalize: r, Nullify: r}
}

// For returns the rule for certificates of a kind.
func (r Rules) For(k Kind) Rule {
	switch k {
	case Notarize:
		return r.Notarize
	case Finalize:
		return r.Finalize
	case Nullify:
		return r.Nullify
	}
	return Rule{Num: 1, Den: 1}
}

// Allows reports whether a vote can have a subject under these rules: nullify names a block, or NoBlock, in mode Fast
// alone.
func (r Rules) Allows(s Subject) bool {
	return s.Valid() && (s.Kind != Nullify || s.Block.IsZero() == (r.Mode != Fast))
}

// ErrUnsafe is wrapped by Check for rules under which two conflicting blocks
// could become final.
var ErrUnsafe = errors.New("quorum: unsafe rules")

// Check returns an error that wraps ErrUnsafe unless the rules are safe for the weights (P3), that is, 2N − W > f and
// F + S − W > f. stoppable is true for safe rules that may not be met if anchors of weight f, or any single one of
// several anchors, fail.
func (r Rules) Check(w Weights) (stoppable bool, err error) {
	if !r.Mode.Byzantine() && r.Mode != Crash {
		return false, fmt.Errorf("%w: no such mode %d", ErrUnsafe, r.Mode)
	}
	for _, k := range []Kind{Notarize, Finalize, Nullify} {
		if x := r.For(k); x.Den == 0 || x.Den > MaxDen || x.Num > x.Den {
			return false, fmt.Errorf("%w: %s: %d/%d is not a share between 0 and 1 with a denominator up to %d", ErrUnsafe, k, x.Num, x.Den, MaxDen)
		}
	}
	if w.Len() == 0 {
		return false, fmt.Errorf("%w: no anchors", ErrUnsafe)
	}
	total, f := w.Total(), r.Mode.FaultBudget(w.Total())
	n, fin, s := r.Notarize.Threshold(total), r.Finalize.Threshold(total), r.Nullify.Threshold(total)
	if 2*n <= total+f {
		return false, fmt.Errorf("%w: two notarizations of weight %d of %d may share no more than the weight %d that may lie", ErrUnsafe, n, total, f)
	}
	if fin+s <= total+f {
		return false, fmt.Errorf("%w: a finalization of weight %d and a nullification of weight %d of %d may share no more than the weight %d that may lie", ErrUnsafe, fin, s, total, f)
	}
	least := uint64(max(r.Notarize.MinAnchors, r.Finalize.MinAnchors, r.Nullify.MinAnchors))
	if least > uint64(w.Len()) {
		return false, fmt.Errorf("%w: %d anchors asked, %d there", ErrUnsafe, least, w.Len())
	}
	weight, anchors := w.failing(f)
	return max(n, fin, s) > total-weight || least > uint64(w.Len()-anchors), nil
}

// failing returns the most weight, and the greatest number of anchors, that may be missing if anchors of weight f
// together, or any single one of several, may fail.
func (w Weights) failing(f uint64) (weight uint64, anchors int) {
	if len(w.shares) < 2 {
		return f, 0
	}
	light := make([]uint64, 0, len(w.shares))
	for _, s := range w.shares {
		light = append(light, s.Weight)
	}
	slices.Sort(light)
	sum := uint64(0)
	for _, x := range light {
		if sum += x; sum > f {
			break
		}
		anchors++
	}
	return max(f, light[len(light)-1]), max(anchors, 1)
}

// Tally sums up the distinct anchors that gave the same answer. The zero value is empty.
type Tally struct {
	weight  uint64
	anchors map[aweigh.AnchorID]bool
}

// Add counts an anchor with its weight under w. It returns false, and changes nothing, if the anchor was counted
// before or has no weight.
func (t *Tally) Add(w Weights, a aweigh.AnchorID) bool {
	weight := w.Of(a)
	if weight == 0 || t.anchors[a] {
		return false
	}
	if t.anchors == nil {
		t.anchors = make(map[aweigh.AnchorID]bool)
	}
	t.anchors[a] = true
	t.weight += weight
	return true
}

// Weight returns the sum of the weights counted.
func (t *Tally) Weight() uint64 { return t.weight }

// Len returns the number of anchors counted.
func (t *Tally) Len() int { return len(t.anchors) }

// Has reports whether an anchor was counted.
func (t *Tally) Has(a aweigh.AnchorID) bool { return t.anchors[a] }

// Meets reports whether the tally meets the rule, out of the whole weight of w and never of the anchors present (P4).
func (t *Tally) Meets(r Rule, w Weights) bool { return r.Met(t.weight, w.Total(), len(t.anchors)) }
