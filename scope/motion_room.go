package scope

import (
	"fmt"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/votes"
)

// Bounds on motions, of one scope. Authors that the scope knows are its anchors, their nodes, and the approvers and
// authors that its policy lists by their keys; all others are unlisted and share their bounds, since keys cost
// nothing. A motion under grants is that of the author that signed the first of them.
const (
	motionsOpen        = 1000
	motionsOfOne       = 250      // open ones of one known author, and of all unlisted authors together
	motionsKept        = 1000     // closed ones, for ballots that come late and for queries
	motionBytes        = 64 << 20 // of the records of all on keys
	motionBytesOne     = 16 << 20 // of the open ones of one known author, and of all unlisted authors together
	unlistedMotionStay = 10 * time.Minute
)

// gaveWay is the reason of the ending of a motion that was closed to make room.
const gaveWay = "it gave way to others, as there was no room for more open motions; propose it again"

// admitted reports whether an author is an anchor, an anchor's node, or one whose key the policy lists, to approve or
// to change something.
func (x *execution) admitted(author aweigh.Hash) bool {
	if x.proposers == nil {
		x.proposers = make(map[aweigh.Hash]bool)
		for key := range seated(x.epoch.Roster.Anchors) { // order-free: a set
			x.proposers[key] = true
		}
		for i := range x.policy.Approvals {
			for _, a := range x.policy.Approvals[i].Approvers {
				x.proposers[a.Key.ID()] = true
			}
		}
		for i := range x.policy.Authors {
			if a := &x.policy.Authors[i]; a.Who == OneKey && !a.reads() {
				x.proposers[x.epoch.keys[i]] = true
			}
		}
	}
	return x.proposers[author]
}

// motionShare is how many motions are open, and the bytes of their records.
type motionShare struct{ motions, bytes int64 }

func (h motionShare) with(line *indexedMotion) motionShare {
	return motionShare{h.motions + 1, h.bytes + line.Bytes}
}

func (h motionShare) above(motions, bytes int64) bool { return h.motions > motions || h.bytes > bytes }

// openLine is an open motion on keys, as the docket has it.
type openLine struct {
	indexedMotion
	until    aweigh.Instant
	id       votes.MotionID
	unlisted bool
	due      bool // it has the approvals, and never gives way
}

// motionRoom makes room for another motion on keys, or returns why there is none. It forgets closed motions for that.
// If there are too many open motions of unlisted authors, the one with the first deadline gives way to another of
// theirs, once it has been open for unlistedMotionStay. If there are too many of one known author, one of the caller
// with the most gives way, if that caller has more than the new one's. If there are too many of all authors, motions
// of unlisted authors give way to those of known authors, whatever their age, and then those of the author with the
// most, if that author has more than the new one. given reports whether a motion gave way.
func (x *execution) motionRoom(of indexedMotion) (given bool, failure, err error) {
	d := &x.next.head.Docket
	if failure := x.spend(d.Open / linesAUnit); failure != nil {
		return false, failure, nil
	}
	var open []openLine // in the order of deadlines
	for _, kind := range []byte{atDue, atOpen} {
		err := x.eachLine(kind, func(until aweigh.Instant, id votes.MotionID, line indexedMotion) bool {
			if line.Decision.IsZero() { // decisions have bounds of their own
				open = append(open, openLine{line, until, id, !x.admitted(line.Author), kind == atDue})
			}
			return true
		})
		if err != nil {
			return false, nil, err
		}
	}
	var displaced []votes.MotionID // closed only if that makes room
	for {
		i, failure, err := x.chooseDisplaced(open, &of)
		if failure != nil || err != nil {
			return false, failure, err
		}
		if i < 0 {
			break
		}
		displaced = append(displaced, open[i].id)
		open = append(open[:i:i], open[i+1:]...)
	}
	for _, id := range displaced {
		if err := x.closeFor(id); err != nil {
			return false, nil, err
		}
		given = true
	}
	for d.Closed > 0 && d.Bytes+of.Bytes > x.bounds.MotionBytes {
		if err := x.forgetOldest(); err != nil {
			return given, nil, err
		}
	}
	return given, nil, nil
}

// chooseDisplaced chooses which of the open motions gives way to a new one: none, −1, if there is room.
func (x *execution) chooseDisplaced(open []openLine, of *indexedMotion) (i int, failure, err error) {
	b, unlisted := x.bounds, !x.admitted(of.Author)
	all, unlistedShare := motionShare{}.with(of), motionShare{}
	by := make(map[aweigh.Hash]motionShare)
	first := -1 // the first of an unlisted author
	for i := range open {
		l := &open[i]
		all, by[l.Author] = all.with(&l.indexedMotion), by[l.Author].with(&l.indexedMotion)
		if l.unlisted {
			if unlistedShare = unlistedShare.with(&l.indexedMotion); first < 0 && !l.due {
				first = i
			}
		}
	}
	mine := by[of.Author].with(of)
	switch {
	case unlisted && unlistedShare.with(of).above(b.MotionsOfOne, b.MotionBytesOne):
		if unlistedShare.motions == 0 {
			return -1, fmt.Errorf("scope: a motion of %d bytes; those of authors that the scope does not know may have %d together", of.Bytes, b.MotionBytesOne), nil
		}
		young := first < 0
		if !young {
			rec, err := x.mustMotion(open[first].id)
			if err != nil {
				return -1, nil, err
			}
			young = x.block.Header.Time.Sub(rec.Motion.Opened) < b.UnlistedMotionStay
		}
		if young {
			return -1, fmt.Errorf("scope: %d motions of authors that the scope does not know, of %d bytes, are open already; at most %d, of %d bytes, may be. Try again later, or write through an anchor's node, or by a key that the policy lists",
				unlistedShare.motions, unlistedShare.bytes, b.MotionsOfOne, b.MotionBytesOne), nil
		}
		return first, nil, nil
	case !unlisted && mine.above(b.MotionsOfOne, b.MotionBytesOne):
		if i := ofLargestCaller(open, of, mine.bytes > b.MotionBytesOne, mine.motions > b.MotionsOfOne); i >= 0 {
			return i, nil, nil
		}
		return -1, fmt.Errorf("scope: %d motions of this author, of %d bytes, are open already; at most %d, of %d bytes, may be",
			mine.motions-1, mine.bytes-of.Bytes, b.MotionsOfOne, b.MotionBytesOne), nil
	case !all.above(b.MotionsOpen, b.MotionBytes):
		return -1, nil, nil
	case first >= 0 && !unlisted:
		return first, nil, nil
	}
	most, at := mine, -1
	for i := range open { // the first of those with as many
		if h := by[open[i].Author]; !unlisted && !open[i].due && (all.bytes > b.MotionBytes && h.bytes > most.bytes || all.motions > b.MotionsOpen && h.motions > most.motions) {
			most, at = h, i
		}
	}
	if at < 0 {
		return -1, fmt.Errorf("scope: %d motions, of %d bytes, are open already; some must close first", len(open), all.bytes-of.Bytes), nil
	}
	return at, nil, nil
}

// caller is one for whom motions were proposed, as the signers of their mutations state it.
type caller struct {
	signer aweigh.Hash
	name   string
}

func (m *indexedMotion) caller() caller { return caller{m.Signer, m.Caller} }

// ofLargestCaller is the first open motion of the caller that has the most of those of an author, if that caller has
// more than that of a new one with it: in bytes, in number, or in either. It is −1 if there is none. A node signs for
// all of its clients, so that one of them does not keep out the others. A holder of the author's grants, which could
// state any callers, displaces nothing that another signer proposed, and neither do callers of another signer.
func ofLargestCaller(open []openLine, of *indexedMotion, inBytes, inNumber bool) (i int) {
	by := map[caller]motionShare{of.caller(): motionShare{}.with(of)}
	mine := func(l *openLine) bool { return l.Author == of.Author && l.Signer == of.Signer }
	for i := range open {
		if l := &open[i]; mine(l) {
			by[l.caller()] = by[l.caller()].with(&l.indexedMotion)
		}
	}
	most, first := by[of.caller()], -1
	for i := range open {
		l := &open[i]
		if h := by[l.caller()]; mine(l) && !l.due && (inBytes && h.bytes > most.bytes || inNumber && h.motions > most.motions) {
			most, first = h, i
		}
	}
	return first
}

// closeFor closes an open motion so that there is room for another.
func (x *execution) closeFor(id votes.MotionID) error {
	rec, err := x.mustMotion(id)
	if err != nil {
		return err
	}
	mutation, changes, room, purse := x.mutation, x.changes, x.room, x.purse
	defer func() { x.mutation, x.changes, x.room, x.purse = mutation, changes, room, purse }()
	if err := x.about(&rec.Motion); err != nil {
		return err
	}
	return x.close(&rec, Ending{Fate: MotionExpired, Reason: gaveWay})
}
