package scope

import (
	"errors"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/votes"
)

// clash reports why a decision cannot go with what is decided already and waits for the next
// epoch; anchors is how many there are, and most how many the policy takes. So the second of
// two that exclude each other is void, with the reason, when it has the approvals.
func (a agenda) clash(d *Decision, anchors, most int) error {
	id := d.ID()
	admits := 0
	for i := range a {
		o := &a[i].Decision
		if o.ID() == id {
			return errors.New("this is decided already, and takes effect with the next epoch")
		}
		switch {
		case o.Kind == SetPolicy && d.Kind == SetPolicy:
			return errors.New("another policy is decided already, and takes effect with the next epoch; this one would undo it: propose it again after that")
		case !d.Subject.IsZero() && o.Subject == d.Subject:
			return fmt.Errorf("it is decided already to %s this anchor", o.Kind)
		case o.seats() && d.seats() && o.Anchor.Peer == d.Anchor.Peer:
			return fmt.Errorf("it is decided already to %s the anchor %s of the same node", o.Kind, o.Anchor.Name)
		case o.seats() && d.seats() && o.Anchor.Name == d.Anchor.Name:
			return fmt.Errorf("it is decided already to %s another anchor called %s", o.Kind, o.Anchor.Name)
		}
		if o.seats() {
			admits++
		}
	}
	if d.seats() && anchors+admits >= most {
		return fmt.Errorf("it is decided already to admit as many anchors as the policy takes, %d", most)
	}
	return nil
}

// dropped is a decision that was carried, and could not take effect.
type dropped struct {
	decided
	why error
}

// combine finds which of the decisions that are due go together: the first ones first, and
// each that cannot be weighed with those is left out alone. It returns the result of weigh,
// nil if weigh fails even without any of them.
func combine(due agenda, weigh func(agenda) (*succession, error)) (u *succession, takes agenda, left []dropped) {
	u, err := weigh(due)
	if err == nil {
		return u, due, nil
	}
	if u, err = weigh(nil); err != nil {
		u = nil
	}
	rest := due
	for again := true; again; { // a decision may go only with one that comes after it
		again, left = false, nil
		for _, d := range rest {
			more := append(takes[:len(takes):len(takes)], d)
			next, err := weigh(more)
			if err != nil {
				left = append(left, dropped{d, err})
				continue
			}
			u, takes = next, more
			again = len(left) > 0
		}
		if rest = nil; again {
			for _, d := range left {
				rest = append(rest, d.decided)
			}
		}
	}
	return u, takes, left
}

// ineffective reports why a decision changed nothing though it was taken into account.
func (u *succession) ineffective(d *Decision) error {
	st, known := u.ledger.Standing(d.Subject)
	seated := known && st.Seated
	if d.seats() && !seated || (d.Kind == Retire || d.Kind == Evict) && seated || d.Kind == Attest && (st.Barred || st.Score != d.Score) {
		for i := len(u.trust) - 1; i >= 0; i-- {
			if c := &u.trust[i]; c.Evidence.Anchor == d.Subject && c.Evidence.Proof == d.ID() {
				return errors.New(c.Reason)
			}
		}
		return errors.New("the trust ledger did not follow it")
	}
	return nil
}

// conclude records the outcome of the decisions that were due as the epoch ends.
func (x *execution) conclude(u *succession, next aweigh.Epoch) error {
	for i := range u.takes {
		d := &u.takes[i]
		if why := u.ineffective(&d.Decision); why != nil {
			u.dropped = append(u.dropped, dropped{*d, why})
			continue
		}
		if d.Decision.ofApprover() {
			if err := x.readmit(&d.Decision); err != nil {
				return err
			}
		}
		if err := x.concluded(d.Motion, next, nil); err != nil {
			return err
		}
	}
	for i := range u.gives { // those that could not be followed are dismissed already
		if err := x.concluded(u.gives[i].Motion, next, nil); err != nil {
			return err
		}
	}
	for i := range u.dropped {
		if d := &u.dropped[i].Decision; d.Kind == Yield && d.Child.folds() {
			x.next.head.Obeyed-- // to be tried again
		}
		if d := &u.dropped[i].Decision; d.Kind == Fold && d.byItself() {
			if err := x.staysAway(&u.dropped[i].decided, u.dropped[i].why); err != nil {
				return err
			}
			continue
		}
		if err := x.dismiss(&u.dropped[i].decided, nil, u.dropped[i].why); err != nil {
			return err
		}
	}
	return nil
}

// dismiss records that a decision which was carried could not take effect.
func (x *execution) dismiss(d *decided, key []byte, why error) error {
	x.begin(&CheckedMutation{ID: d.Motion, Mutation: Mutation{Author: d.By, Class: Govern}})
	x.enter(lineage.Entry{Class: lineage.Failed, Key: key, Reason: reason(why)})
	if err := x.unwarn(d.Motion); err != nil {
		return err
	}
	return x.concluded(d.Motion, 0, why)
}

// concluded writes down in a motion when its decision took effect, or why it did not.
func (x *execution) concluded(id votes.MotionID, at aweigh.Epoch, why error) error {
	if id.IsZero() { // none was needed
		return nil
	}
	rec, ok, err := x.motion(id)
	if err != nil || !ok || rec.Ending == nil || rec.Ending.Fate != Carried {
		return err
	}
	if rec.Ending.Effective = at; why != nil {
		rec.Ending.Fate = Void
		rec.Ending.Reason = reason(fmt.Errorf("scope: it had the approvals, but could not take effect with what was decided before: %w", why))
	}
	if err := x.dropRecord(x.space.motion(id)); err != nil {
		return err
	}
	x.setRecord(x.space.motion(id), canon.Encode(rec))
	x.result.Motions = append(x.result.Motions, id)
	return nil
}

// supersede closes the policies that were proposed from another one than that which the next
// epoch has: they would undo it.
func (x *execution) supersede(was, is aweigh.Hash) error {
	if was == is {
		return nil
	}
	var stale []motionRecord
	var bad error
	err := x.eachOpen(func(_ aweigh.Instant, id votes.MotionID, line indexedMotion) bool {
		if line.Decision.IsZero() {
			return true
		}
		var rec motionRecord
		var m Mutation
		var d Decision
		if rec, bad = x.mustMotion(id); bad != nil {
			return false
		}
		if bad = m.decode(rec.Motion.Mutation); bad == nil {
			bad = canon.Decode(m.Content, &d)
		}
		if bad == nil && d.Kind == SetPolicy {
			stale = append(stale, rec)
		}
		return bad == nil
	})
	if err = errors.Join(err, bad); err != nil {
		return err
	}
	for i := range stale {
		if err := x.about(&stale[i].Motion); err != nil {
			return err
		}
		why := fmt.Sprintf("another policy, %s, takes effect; this one was proposed from the one before, and would undo it: propose it again", is.Short())
		if err := x.close(&stale[i], Ending{Fate: Superseded, Reason: why}); err != nil {
			return err
		}
	}
	return nil
}
