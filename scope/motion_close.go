package scope

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/votes"
)

const (
	// expiredAtOnce bounds the motions that a block closes because of its time.
	expiredAtOnce = 64
	// keptFor is how long closed motions stay on record.
	keptFor = 7 * 24 * time.Hour
	// forgottenAtOnce bounds the closed motions that a block forgets.
	forgottenAtOnce = 64
)

// enact carries a motion out; failure is the reason why that is no longer possible.
func (x *execution) enact(mo *Motion, m *CheckedMutation) (succeeded bool, failure, err error) {
	apply, failure, err := x.stands(mo, m)
	if err != nil || failure != nil {
		return false, failure, err
	}
	if m.Class == Govern {
		x.decide(decided{Decision: *m.Decision, Motion: m.ID, By: m.Author, Opened: mo.Opened})
		return true, nil, nil
	}
	if err := apply(); err != nil {
		return false, nil, err
	}
	x.next.head.Revision = x.revision()
	return mo.Success, nil, nil
}

// stands reports why a motion cannot be carried out any more, and changes nothing; apply makes the changes of one that
// is not about a decision.
func (x *execution) stands(mo *Motion, m *CheckedMutation) (apply func() error, failure, err error) {
	if mo.Epoch < x.next.head.Governed {
		return nil, errors.New("scope: others govern the scope since it opened; propose it again"), nil
	}
	if m.Class == Govern {
		if err := x.loadAgenda(); err != nil {
			return nil, nil, err
		}
		failure, err := x.admissible(m.Decision)
		if err != nil {
			return nil, nil, err
		}
		if failure == nil && m.Decision.Kind == SetPolicy && mo.Policy != x.block.Header.Policy {
			failure = errors.New("the policy was changed after it opened, and this one would undo that; propose it again")
		}
		if failure == nil {
			failure = sameApproval(mo, x.policy.decides(m.Decision))
		}
		if failure != nil || len(mo.Approval.Bounds) == 0 {
			return nil, failure, nil
		}
		impact, err := x.impactOfDecision(m.Decision)
		if err != nil {
			return nil, nil, err
		}
		return nil, mo.Approval.Permits(impact), nil
	}
	if failure, err = x.authorized(m); failure != nil || err != nil {
		return nil, failure, err
	}
	var p plan
	if m.Naming != nil {
		p, failure, err = x.renames(m)
	} else if failure = x.next.own.ownsAll(m.Txn); failure == nil { // they may have gone to another scope since
		p, failure, err = x.plan(m.Txn)
	}
	if err == nil && failure == nil {
		failure, err = x.unchanged(mo, &p)
	}
	if err != nil || failure != nil {
		return nil, failure, err
	}
	needed, failure, err := x.asked(m, &p)
	if failure == nil && err == nil && needed != nil {
		failure = sameApproval(mo, needed)
	}
	if failure == nil && err == nil && len(mo.Approval.Bounds) > 0 { // objects may have other names by now
		var impact *Impact
		if impact, failure, err = x.impactOfPlan(m, &p); failure == nil && err == nil {
			failure = mo.Approval.Permits(impact)
		}
	}
	if failure != nil || err != nil {
		return nil, failure, err
	}
	if m.Naming == nil {
		return func() error { _, err := x.run(p); return err }, nil, nil
	}
	named, failure, err := x.naming(m.Naming)
	return func() error { _, err := named(); return err }, failure, err
}

// sameApproval reports whether the policy now requires another approval than when a
// motion opened: otherwise a change of policy would not affect open motions.
func sameApproval(mo *Motion, now *Approval) (failure error) {
	if !bytes.Equal(canon.Encode(*now), canon.Encode(mo.Approval)) {
		return errors.New("scope: the policy asks for another approval by now; propose it again")
	}
	return nil
}

// unchanged reports the first difference to the state in which a motion opened.
func (x *execution) unchanged(mo *Motion, p *plan) (failure, err error) {
	if p.succeeded != mo.Success {
		return errors.New("scope: the conditions of its transaction hold no more as they did when it opened"), nil
	}
	now, err := x.basis(p)
	if err != nil {
		return nil, err
	}
	if len(now) != len(mo.Basis) {
		return errors.New("scope: another branch of its transaction would be taken than when it opened"), nil
	}
	for i, op := range p.writes() {
		newer := now[i] != mo.Basis[i]
		if !newer {
			if newer, err = x.newer(op, mo.Revision); err != nil {
				return nil, err
			}
		}
		if newer {
			return fmt.Errorf("scope: %q was changed after it opened; propose it again", op.Key), nil
		}
	}
	return nil, nil
}

// newer reports whether a put or deletion touches a key that was changed after a revision, even if its value is now
// the same as then. Keys that were written and deleted since, and compacted, cannot be detected.
func (x *execution) newer(op *Op, rev int64) (newer bool, err error) {
	from, to := x.space.versions(op.Key, op.End)
	err = x.r.Scan(from, to, false, func(k, _ []byte) bool {
		_, at, ok := x.space.splitVersion(k)
		newer = ok && at.main > rev
		return !newer && len(op.End) > 0 // of one key, the newest comes first
	})
	return newer, err
}

// writes are the puts and deletions of a plan without transactions within, in order.
func (p *plan) writes() (all []*Op) {
	for i := range p.ops {
		if k := p.ops[i].Kind; k == OpPut || k == OpDelete {
			all = append(all, &p.ops[i])
		}
	}
	return all
}

// close ends an open motion. Closed is closed (P31).
func (x *execution) close(rec *motionRecord, end Ending) error {
	mo, h := &rec.Motion, &x.block.Header
	id := mo.ID()
	end.Height, end.Time = h.Height, h.Time
	x.enter(lineage.Entry{Class: lineage.Closed, Reason: end.String(), Prior: mo.Hash()})

	found := len(x.findings)
	if err := x.judgeVoters(rec, end.Fate); err != nil {
		return err
	}
	if end.Fate == Carried {
		if err := x.weighReversal(mo, x.made, x.findings[found:]); err != nil {
			return err
		}
	}
	k := x.linePlace(rec)
	line, _, err := x.r.Get(k)
	if err != nil {
		return err
	}
	if err := errors.Join(x.dropRecord(k), x.dropRecord(x.space.motion(id))); err != nil {
		return err
	}
	if err := x.discharge(x.space.chargeOfMotion(id), openMotions); err != nil {
		return err
	}
	rec.Ending = &end
	x.setRecord(x.space.motion(id), rec.encode())
	x.setRecord(x.space.motionIndexKey(atClosed, h.Time, id), line)
	x.next.head.Docket.Open--
	if rec.Due > 0 {
		x.next.head.Docket.Due--
	}
	x.next.head.Docket.Closed++
	x.result.Motions = append(x.result.Motions, id)
	if x.next.head.Docket.Closed > x.bounds.MotionsKept {
		if err := x.forgetOldest(); err != nil {
			return err
		}
	}
	return x.nextDeadline()
}

// String is like "void: the reason".
func (e *Ending) String() string {
	if e.Reason == "" {
		return e.Fate.String()
	}
	return e.Fate.String() + ": " + e.Reason
}

// nextDeadline looks up when the next open motion is due.
func (x *execution) nextDeadline() error {
	x.next.head.Docket.Next = 0
	return x.scanMotionIndex(atOpen, func(at aweigh.Instant, _ votes.MotionID, _ []byte) bool {
		x.next.head.Docket.Next = at
		return false
	})
}

// expireMotions closes motions whose deadline has come, and forgets closed ones that are
// old.
func (x *execution) expireMotions() error {
	now, d := x.block.Header.Time, &x.next.head.Docket
	for n := 0; n < x.bounds.ExpiredAtOnce && d.Next != 0 && d.Next <= now; n++ {
		var id votes.MotionID
		err := x.scanMotionIndex(atOpen, func(_ aweigh.Instant, first votes.MotionID, _ []byte) bool {
			id = first
			return false
		})
		if err != nil {
			return err
		}
		rec, err := x.mustMotion(id)
		if err != nil {
			return err
		}
		if err := x.about(&rec.Motion); err != nil {
			return err
		}
		if err := x.close(&rec, Ending{Fate: MotionExpired}); err != nil {
			return err
		}
	}
	for n := 0; n < x.bounds.ForgottenAtOnce && d.Closed > 0; n++ {
		old := false
		err := x.scanMotionIndex(atClosed, func(at aweigh.Instant, _ votes.MotionID, _ []byte) bool {
			old = now.Sub(at) > x.bounds.KeptFor
			return false
		})
		if err != nil {
			return err
		}
		if !old {
			break
		}
		if err := x.forgetOldest(); err != nil {
			return err
		}
	}
	return nil
}

// about makes a motion's mutation the one that entries speak of.
func (x *execution) about(mo *Motion) error {
	m := &CheckedMutation{ID: mo.ID()}
	if err := m.Mutation.decode(mo.Mutation); err != nil {
		return fmt.Errorf("%w: the mutation of motion %s: %w", ErrCorrupt, m.ID.Short(), err)
	}
	x.begin(m)
	return nil
}

// forgetOldest drops the motion that closed first, with its ballots.
func (x *execution) forgetOldest() error {
	var id votes.MotionID
	var closed aweigh.Instant
	var of indexedMotion
	var bad error
	err := x.scanMotionIndex(atClosed, func(at aweigh.Instant, first votes.MotionID, line []byte) bool {
		id, closed, bad = first, at, canon.Decode(line, &of)
		return false
	})
	if bad != nil {
		err = fmt.Errorf("%w: the docket's line of motion %s: %w", ErrCorrupt, id.Short(), bad)
	}
	if err != nil {
		return err
	}
	minutes, err := x.minutes(id)
	if err == nil && minutes == nil {
		err = fmt.Errorf("%w: motion %s is not there", ErrCorrupt, id.Short())
	}
	if err != nil {
		return err
	}
	x.result.Forgotten = append(x.result.Forgotten, *minutes)
	drop := [][]byte{x.space.motionIndexKey(atClosed, closed, id), x.space.motion(id)}
	prefix := x.space.at(atVoted, id[:]...)
	err = x.r.Scan(prefix, kv.PrefixEnd(prefix), false, func(k, _ []byte) bool {
		drop = append(drop, append([]byte(nil), k...))
		return true
	})
	if err != nil {
		return err
	}
	for _, k := range drop {
		if err := x.dropRecord(k); err != nil {
			return err
		}
	}
	x.next.head.Docket.Closed--
	x.next.head.Docket.Bytes -= of.Bytes
	x.result.Motions = append(x.result.Motions, id)
	return nil
}

// errNoMotion is why what is not there cannot be withdrawn.
var errNoMotion = errors.New("scope: no such motion is on record")

// errDecision is why a motion about a decision cannot be withdrawn.
var errDecision = errors.New("scope: a decision cannot be withdrawn; reject it")

// errOthers is why a motion about a mutation cannot be withdrawn by another author.
func errOthers(of *Mutation) error {
	return fmt.Errorf("scope: only its author, %s, can withdraw it", of.Author.Short())
}

// withdraw ends a motion by the will of its author.
func (x *execution) withdraw(m *CheckedMutation) (failure, err error) {
	raw, _, err := x.r.Get(x.space.motion(m.Motion))
	if err != nil {
		return nil, err
	}
	if failure := x.spend(lookCost(len(raw))); failure != nil { // before it is looked at
		return failure, nil
	}
	rec, ok, err := x.motion(m.Motion)
	if err != nil {
		return nil, err
	}
	var of Mutation
	switch {
	case !ok:
		return errNoMotion, nil
	case rec.Ending != nil:
		return fmt.Errorf("scope: the motion is closed already: %s", rec.Ending), nil
	}
	if err := of.decode(rec.Motion.Mutation); err != nil {
		return nil, fmt.Errorf("%w: the mutation of motion %s: %w", ErrCorrupt, m.Motion.Short(), err)
	}
	if of.Author != m.Author {
		return errOthers(&of), nil
	}
	if of.Class == Govern { // or its subject could propose and withdraw it
		return errDecision, nil
	}
	return nil, x.close(&rec, Ending{Fate: Withdrawn})
}

// DeadlinePassed reports whether an open motion is due to be closed at an instant, as its deadline has come
// or as it waits for its turn.
func (s *State) DeadlinePassed(at aweigh.Instant) bool {
	d := &s.head.Docket
	return d.Due > 0 || d.Next != 0 && d.Next <= at
}
