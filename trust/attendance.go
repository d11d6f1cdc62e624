package trust

import (
	"fmt"
	"math"
	"strings"
)

// attended is the effect of one epoch's record on a standing.
func attended(p Params, s Standing, r Attendance) (Standing, string) {
	if uint64(r.Timely)+uint64(r.Late) > uint64(r.Blocks) {
		return s, fmt.Sprintf("ignored: attended, but %d ballots for %d blocks", uint64(r.Timely)+uint64(r.Late), r.Blocks)
	}
	score, why := attend(p, s.Score, r)
	blame, more := p.judgement(s.Blame, &r)
	s.Score, s.Blame, s.Missed = score, blame, missed(s.Missed, r)
	return s, why + more
}

// leastMissed is how many counted blocks show whether an anchor is absent.
const leastMissed = 4

// missed is for how many epochs in a row no ballot of an anchor counted. An epoch of fewer blocks shows no absence.
func missed(before uint32, r Attendance) uint32 {
	switch {
	case r.Timely > 0 || r.Late > 0:
		return 0
	case r.Blocks < leastMissed || before == math.MaxUint32:
		return before
	}
	return before + 1
}

// attend is the effect of one epoch's attendance on a score, with the arithmetic in
// words. The record has no more ballots than blocks. Every division rounds down, and all products stay below 2^64:
//
//	span    = max(Blocks, Whole)
//	gain    = Gain × (2×Timely + Late) / (2 × span)
//	decay   = score × min(Blocks, Whole) / (Decay × Whole)
//	absence = score × (Blocks − Timely − Late) / (Absence × span)
//	led     = Lead × Led / (Led + Nullified) × min(Blocks, Whole) / Whole
//	idle    = Idle × Nullified / (Led + Nullified) × min(Blocks, Whole) / Whole
//
// Decay, and then absence, take no more than the score's part above Rest. The
// sum ends at 0 and at MaxScore.
func attend(p Params, before Score, r Attendance) (Score, string) {
	blocks, timely, late := uint64(r.Blocks), uint64(r.Timely), uint64(r.Late)
	score, whole := uint64(before), uint64(p.Whole)
	span, part := max(blocks, whole), min(blocks, whole)

	gain := uint64(p.Gain) * (2*timely + late) / (2 * span)
	room := score - min(score, uint64(p.Rest))
	fullDecay := score * part / (uint64(p.Decay) * whole)
	fullAbsence := score * (blocks - timely - late) / (uint64(p.Absence) * span)
	decay := min(fullDecay, room)
	absence := min(fullAbsence, room-decay)
	var led, idle uint64
	views := uint64(r.Led) + uint64(r.Nullified)
	if views > 0 {
		led = uint64(p.Lead) * uint64(r.Led) / views * part / whole
		idle = uint64(p.Idle) * uint64(r.Nullified) / views * part / whole
	}
	sum := score + gain + led - decay - absence
	after := min(sum-min(sum, idle), uint64(MaxScore))

	var b strings.Builder
	fmt.Fprintf(&b, "attended: %d of %d in time, %d late: +%d gain, -%d decay, -%d absence", timely, blocks, late, gain, decay, absence)
	if decay+absence < fullDecay+fullAbsence {
		fmt.Fprintf(&b, " (to rest at %d)", min(before, p.Rest))
	}
	if views > 0 {
		fmt.Fprintf(&b, ", +%d led %d of %d", led, r.Led, views)
		if r.Nullified > 0 {
			fmt.Fprintf(&b, ", -%d idle", idle)
		}
	}
	switch {
	case idle > sum:
		b.WriteString(", down to 0")
	case sum-idle > uint64(MaxScore):
		fmt.Fprintf(&b, ", up to %d", MaxScore)
	}
	return Score(after), b.String()
}
