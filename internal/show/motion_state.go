package show

import (
	"fmt"
	"strings"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
)

// waiting is the fate of a motion that no block has opened yet.
const waiting = "waiting"

// openedIn is where a motion opened.
func openedIn(m *aweighv1.Motion) string {
	if m.Fate == waiting {
		return fmt.Sprintf(", in no block yet (epoch %d)", m.Epoch)
	}
	return fmt.Sprintf(", in block %d (epoch %d), %s", m.Height, m.Epoch, instant(m.OpenedNs))
}

// keptWhere is whether a motion that waits outlives a restart of the node.
func keptWhere(m *aweighv1.Motion) string {
	if m.Kept {
		return "; it is on the node's disk"
	}
	return "; the node that answers would lose it in a restart"
}

// bar draws the weights: approvals from the left, rejections from the right, and
// where the threshold lies.
func bar(m *aweighv1.Motion, width int) string {
	if m.Total == 0 {
		return ""
	}
	at := func(w uint64) int { return int(w * uint64(width) / m.Total) }
	cells := []rune(strings.Repeat("·", width))
	for i := range at(m.Approve) {
		cells[i] = '█'
	}
	for i := range at(m.Reject) {
		cells[width-1-i] = '▒'
	}
	mark := min(at(m.Needed), width)
	return "[" + string(cells[:mark]) + "|" + string(cells[mark:]) + "] " + share(m.Approve, m.Total)
}

// DoomedUntil returns until when a motion stays open that would be void, and how it can end
// before.
func DoomedUntil(m *aweighv1.Motion) string {
	sooner := fmt.Sprintf("%s, which proposed it, ends it sooner: aweigh motion withdraw %s", Line(authorOf(m)), short(m.Id))
	if len(m.Decision) > 0 {
		sooner = fmt.Sprintf("anchors end it sooner: aweigh ballot reject %s", short(m.Id))
	}
	return fmt.Sprintf("it stays open until %s%s at the latest; %s", instant(m.DeadlineNs), in(m.DeadlineNs), sooner)
}
