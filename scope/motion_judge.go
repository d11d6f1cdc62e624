package scope

import (
	"cmp"
	"encoding/binary"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/trust"
	"github.com/aweigh/aweigh/votes"
)

// opinion is how a motion that ended judges one of its voters, see trust.Attendance.
type opinion uint8

const (
	with    opinion = iota // its ballot is one for the outcome
	against                // one against it
	silent                 // it has none in the time for an answer, and none that counts
)

// judged counts the opinions about one anchor in an epoch.
type judged [3]uint32

// finding is an opinion about one anchor.
type finding struct {
	about aweigh.AnchorID
	is    opinion
}

// found brings the findings of a block to the tally of the epoch that goes on after
// it, whose roster is given. Anchors without a seat in it are not judged.
func (t *tally) found(r *Roster, all []finding) {
	for _, f := range all {
		seat, ok := r.Seat(f.about)
		if !ok {
			continue
		}
		if t.judged == nil {
			t.judged = make([]judged, len(t.counts))
		}
		if n := &t.judged[seat][f.is]; *n < 1<<31 {
			*n++
		}
	}
}

// appendJudged appends the counts of those that have some, in the order of seats.
func (t *tally) appendJudged(b []byte) []byte {
	at := len(b)
	b = append(b, 0, 0)
	n := uint16(0)
	for seat, j := range t.judged {
		if j == (judged{}) {
			continue
		}
		n++
		b = binary.BigEndian.AppendUint16(b, uint16(seat))
		for _, c := range j {
			b = binary.BigEndian.AppendUint32(b, c)
		}
	}
	binary.BigEndian.PutUint16(b[at:], n)
	return b
}

// readJudged reads all of what appendJudged wrote; ok is false for anything else.
func (t *tally) readJudged(b []byte) (ok bool) {
	const each = 2 + 4*len(judged{})
	if len(b) < 2 || len(b) != 2+each*int(binary.BigEndian.Uint16(b)) {
		return false
	}
	before := -1
	for b = b[2:]; len(b) > 0; b = b[each:] {
		seat := int(binary.BigEndian.Uint16(b))
		if seat <= before || seat >= len(t.counts) {
			return false
		}
		if before = seat; t.judged == nil {
			t.judged = make([]judged, len(t.counts))
		}
		j := &t.judged[seat]
		for i := range j {
			j[i] = binary.BigEndian.Uint32(b[2+4*i:])
		}
		if *j == (judged{}) {
			return false
		}
	}
	return true
}

// judgeVoters judges the voters of a motion that ended by their votes, if it was
// contested (P50).
func (x *execution) judgeVoters(rec *motionRecord, fate Fate) error {
	mo := &rec.Motion
	if fate != Carried && fate != Rejected {
		return nil
	}
	all, err := x.choices(mo.ID())
	if err != nil || !slices.ContainsFunc(all, func(c choice) bool { return c.is != all[0].is }) {
		return err // as most motions have no ballot against them
	}
	e, err := mo.Electorate()
	if err != nil {
		return err
	}
	won, needed := votes.Approve, mo.Rule.Threshold(e.Total())
	if fate == Rejected {
		won, needed = votes.Reject, e.Total()-needed+1
	}
	all, void := dropEquivocators(all)
	casts := make([]trust.Cast, len(all))
	for i := range all {
		w, _ := e.Of(all[i].voter)
		casts[i] = trust.Cast{Height: uint64(all[i].height), Weight: w, With: all[i].is == won}
	}
	p := &x.policy.Trust
	if !p.Contested(mo.sides(all, won)) {
		return nil
	}
	counted := trust.Counted(needed, casts)
	answer := mo.Opened.Add(answerTime(mo.Approval.Window, p.Answer))
	late := rec.Due == 0 && x.block.Header.Time >= answer // what waits for its turn was decided before
	for i := range mo.Voters {
		id := mo.Voters[i].Key.ID()
		if !mo.Voters[i].Anchor || slices.Contains(void, id) {
			continue
		}
		at := slices.IndexFunc(all, func(c choice) bool { return c.voter == id })
		switch {
		case at >= 0 && counted[at] && casts[at].With:
			x.findings = append(x.findings, finding{id, with})
		case at >= 0 && counted[at]:
			x.findings = append(x.findings, finding{id, against})
		case late && (at < 0 || all[at].time >= answer):
			x.findings = append(x.findings, finding{id, silent})
		}
	}
	return nil
}

// sides returns the weights of the anchors that chose the outcome, of those that chose the other one, and of all.
// Approvers weigh nothing here: they are not judged, and one that is required ends a motion by itself.
func (m *Motion) sides(all []choice, won votes.Choice) (with, against, total uint64) {
	for i := range m.Voters {
		v := &m.Voters[i]
		if !v.Anchor {
			continue
		}
		total += v.Weight
		switch at := slices.IndexFunc(all, func(c choice) bool { return c.voter == v.Key.ID() }); {
		case at < 0:
		case all[at].is == won:
			with += v.Weight
		default:
			against += v.Weight
		}
	}
	return with, against, total
}

// answerTime is a part of a motion's window, rounded down.
func answerTime(window time.Duration, r trust.Ratio) time.Duration {
	num, den := time.Duration(r.Num), time.Duration(r.Den)
	return window/den*num + window%den*num/den
}

// choice is a ballot that was recorded in time.
type choice struct {
	voter  aweigh.Hash
	is     votes.Choice
	height aweigh.Height
	time   aweigh.Instant
	entry  int64
}

// choices are the ballots that were recorded on a motion in time, by voter.
func (x *execution) choices(id votes.MotionID) (all []choice, err error) {
	recorded, err := x.ballots(id)
	for i := range recorded {
		r := &recorded[i]
		if r.Late {
			continue
		}
		v, err := r.Vote(id)
		if err != nil {
			return nil, err
		}
		b := v.Ballot()
		all = append(all, choice{b.Voter, b.Choice, r.Height, r.Time, r.Entry})
	}
	return all, err
}

// dropEquivocators takes out the voters that chose both ways (P33), which are void, and orders the others'
// ballots as they were recorded.
func dropEquivocators(all []choice) (of []choice, void []aweigh.Hash) {
	for i := 0; i < len(all); i++ {
		if i+1 < len(all) && all[i+1].voter == all[i].voter {
			void = append(void, all[i].voter)
			i++
			continue
		}
		of = append(of, all[i])
	}
	slices.SortFunc(of, func(a, b choice) int { return cmp.Compare(a.entry, b.entry) })
	return of, void
}
