package machine

import (
	"bytes"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/votes"
	"github.com/aweigh/aweigh/votes/reconcile"
)

// dueBallots are the ballots that the chain has yet to record, on motions that are on record. Those for which there is
// room are ready for the next block. The others wait in the box, or with the late ballots.
type dueBallots struct {
	lacks       func(votes.MotionBallot) bool // reports whether the chain has not recorded a ballot
	room        int                           // how many may be ready
	ready       map[aweigh.Hash]*readyBallot
	unproposed  int                            // how many of ready no open proposal holds
	backlog     map[votes.MotionID]aweigh.Hash // open motions: from which voter on the box may have what ready lacks
	late        reconcile.Tree                 // ballots on closed motions, see late.go
	lateBacklog bool                           // ready may lack some late ballots
}

// readyBallot is a ballot for the next block.
type readyBallot struct {
	votes.MotionBallot
	view aweigh.View // view of the open proposal that holds it, 0 if there is none
}

// maxDue bounds the ballots that are held ready for blocks.
const maxDue = 20_000

// newDueBallots returns an empty set. Late ballots may be on disk already.
func newDueBallots(room int, lacks func(votes.MotionBallot) bool) dueBallots {
	return dueBallots{
		lacks: lacks, room: room, lateBacklog: true,
		ready: make(map[aweigh.Hash]*readyBallot), backlog: make(map[votes.MotionID]aweigh.Hash),
	}
}

// get returns a ballot that is ready, nil if it is not.
func (d *dueBallots) get(id aweigh.Hash) *votes.MotionBallot {
	if b := d.ready[id]; b != nil {
		return &b.MotionBallot
	}
	return nil
}

// all returns the ballots that are ready, in no order.
func (d *dueBallots) all() []votes.MotionBallot {
	all := make([]votes.MotionBallot, 0, min(len(d.ready), 1024))
	for _, b := range d.ready { // order-free: the caller sorts them
		all = append(all, b.MotionBallot)
	}
	return all
}

// hold holds one ballot ready, unless the chain has recorded it. It returns false if there is no room for it.
func (d *dueBallots) hold(b votes.MotionBallot) bool {
	id := b.ID()
	if d.ready[id] != nil || !d.lacks(b) {
		return true
	}
	if d.full() {
		return false
	}
	d.ready[id] = &readyBallot{MotionBallot: b}
	d.unproposed++
	return true
}

// holdBoxed holds a ballot of the box ready. If there is no room it returns false, and the motion gets a backlog.
func (d *dueBallots) holdBoxed(b votes.MotionBallot) bool {
	if d.hold(b) {
		return true
	}
	if from, ok := d.backlog[b.Motion]; !ok || bytes.Compare(b.Voter[:], from[:]) < 0 {
		d.backlog[b.Motion] = b.Voter
	}
	return false
}

// holdLate takes a ballot on a closed motion, and holds it ready if there is room.
func (d *dueBallots) holdLate(b votes.MotionBallot) {
	d.late.Add(b.ID())
	if !d.hold(b) {
		d.lateBacklog = true
	}
}

func (d *dueBallots) full() bool { return len(d.ready) >= d.room }

// lacksSome reports whether ballots wait for room, and half of it is free.
func (d *dueBallots) lacksSome() bool {
	return (len(d.backlog) > 0 || d.lateBacklog) && len(d.ready) < d.room/2
}

// takeBacklog ends the backlog of a motion. It returns the voter from which on the box may have more; ok is false if
// the motion has no backlog.
func (d *dueBallots) takeBacklog(motion votes.MotionID) (from aweigh.Hash, ok bool) {
	from, ok = d.backlog[motion]
	delete(d.backlog, motion)
	return from, ok
}

// propose marks ballots that an open proposal of a view holds.
func (d *dueBallots) propose(ids []aweigh.Hash, view aweigh.View) {
	for _, id := range ids {
		if b := d.ready[id]; b != nil {
			if b.view == 0 {
				d.unproposed--
			}
			b.view = view
		}
	}
}

// release frees the ballots that proposals in the views from..to hold.
func (d *dueBallots) release(from, to aweigh.View) {
	for _, b := range d.ready { // order-free: each for itself
		if b.view != 0 && from <= b.view && b.view <= to {
			b.view = 0
			d.unproposed++
		}
	}
}

// on returns the IDs of the ballots on a motion that are ready, in order.
func (d *dueBallots) on(motion votes.MotionID) (ids []aweigh.Hash) {
	for id, b := range d.ready { // order-free: sorted below
		if b.Motion == motion {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b aweigh.Hash) int { return bytes.Compare(a[:], b[:]) })
	return ids
}

// settle forgets a ballot that needs no block any more. It reports whether that was a late ballot.
func (d *dueBallots) settle(id aweigh.Hash) (late bool) {
	late = d.late.Remove(id)
	if b := d.ready[id]; b != nil {
		if delete(d.ready, id); b.view == 0 {
			d.unproposed--
		}
	}
	return late
}
