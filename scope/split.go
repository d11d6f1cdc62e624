package scope

import (
	"bytes"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/trust"
)

// Hot is a path, or a key, of which a scope counts the changes.
type Hot struct {
	Prefix []byte
	Key    bool   // this very key
	Least  uint64 // changes in the epoch so far, at least
	Most   uint64 // at most
	Streak uint32 // epochs in a row before this one in which it was busy
}

// Outlook is what a scope sees of its topology, and what it would do if the epoch ended now.
type Outlook struct {
	Topology
	Changes uint64        // in the epoch so far
	Since   time.Duration // that the epoch takes so far, by the time of its blocks
	Busy    uint64        // changes in that time from which on a prefix is busy
	Hot     []Hot         // ordered by prefix
	Splits  uint32        // that the scope made by itself
	Moved   aweigh.Epoch  // that began with the last one, with one that failed, or with an order home by itself; 0: none
	Home    Homeward
	Next    []byte // the prefix that would become a scope of its own; nil: none
	Reason  string // why nothing would be done yet, or would never be; "": the split is due
}

// Outlook is as of the state's block, if the epoch ended with a block at the given time.
func (s *State) Outlook(at aweigh.Instant) (o Outlook, err error) {
	e, err := s.Epoch()
	if err != nil {
		return o, err
	}
	h, err := s.heatSoFar()
	if err != nil {
		return o, err
	}
	l, err := s.Ledger()
	if err != nil {
		return o, err
	}
	t := &e.Policy.Topology
	o = Outlook{Topology: *t, Changes: h.Changes, Since: max(0, at.Sub(e.Time)), Splits: h.Splits, Moved: h.Moved}
	o.Busy = t.busy(o.Since)
	for i := range h.Counters {
		c := &h.Counters[i]
		hot := Hot{Prefix: bytes.Clone(c.Prefix), Key: c.Key, Least: c.sure(), Most: c.Count}
		if !c.Key {
			hot.Streak = streakOf(h.Streaks, c.Prefix)
		}
		o.Hot = append(o.Hot, hot)
	}
	if o.Home, err = s.homeward(e, at); err != nil {
		return o, err
	}
	child, why, err := s.splits(h, e, e, &l, o.Since)
	if child != nil {
		o.Next = bytes.Clone(child.Prefix)
	}
	if o.Reason = why; why == "" && t.Split != ConductAct {
		o.Reason = AdvisesAlone
	}
	return o, err
}

// splits is the scope that a busy path becomes with the epoch next, and why it does not yet; or why none does. The
// first busy path counts of which nothing forbids a split.
func (s *State) splits(h *heat, e, next *Epoch, l *trust.Ledger, took time.Duration) (c *Child, why string, err error) {
	t := &e.Policy.Topology
	if t.Split == ConductOff {
		return nil, "the policy has topology.split off", nil
	}
	paths, why := h.busyPaths(t, took)
	if len(paths) == 0 {
		return nil, why, nil
	}
	islands, err := s.islands()
	if err != nil {
		return nil, "", err
	}
	for _, p := range paths {
		some := next.splitChild(p.Prefix, l)
		refused, err := s.refusesSplit(h, e, next, l, some, islands)
		if err != nil {
			return nil, "", err
		}
		if refused != "" {
			if c == nil {
				c, why = some, refused
			}
			continue
		}
		return some, s.splitWaits(h, e, p.Prefix), nil
	}
	return c, why, nil
}

// splitWaits is what the split of a path still waits for; "": nothing.
func (s *State) splitWaits(h *heat, e *Epoch, prefix []byte) string {
	t, next, before := &e.Policy.Topology, e.Number+1, streakOf(h.Streaks, prefix)
	switch {
	case before+1 < t.Epochs:
		return fmt.Sprintf("it must be busy in %d epochs in a row, and was in %d before this one", t.Epochs, before)
	case h.Splits >= t.Most:
		return fmt.Sprintf("the scope has made %s by itself that are not home again, and the policy allows no more", counted(h.Splits, "split"))
	case h.Moved != 0 && next-h.Moved < aweigh.Epoch(t.Rest):
		return fmt.Sprintf("%s lie between a move and a split; the last move was at the start of epoch %d", counted(t.Rest, "epoch"), h.Moved)
	case s.head.Docket.Open > 0:
		return fmt.Sprintf("it waits for the end of %s", counted(s.head.Docket.Open, "open motion"))
	}
	return ""
}

// refusesSplit is why a scope cannot be founded without a decision; "": it can. What people have arranged for keys or
// anchors must not change by load alone.
func (s *State) refusesSplit(
	h *heat, e, next *Epoch, l *trust.Ledger, c *Child, islands []IslandRecord,
) (why string, err error) {
	pause := failedRests * aweigh.Epoch(e.Policy.Topology.Rest)
	for i := range h.Failed {
		if f := &h.Failed[i]; bytes.Equal(f.Prefix, c.Prefix) && next.Number-f.Epoch < pause {
			return fmt.Sprintf("its split failed at the start of epoch %d: %s", f.Epoch, f.Reason), nil
		}
	}
	own, err := s.region()
	if err != nil {
		return "", err
	}
	for _, p := range []*Policy{&e.Policy, &next.Policy} {
		if failure, err := s.delegable(c, own, p); failure != nil || err != nil {
			return reasonOf(failure), err
		}
		for i := range p.Partitions {
			if prefix := p.Partitions[i].Prefix; overlap(prefix, c.Prefix) {
				return fmt.Sprintf("it overlaps the partition %q", prefix), nil
			}
		}
		for i := range p.Authors {
			a := &p.Authors[i]
			some := slices.ContainsFunc(a.Prefixes, func(prefix []byte) bool { return overlap(prefix, c.Prefix) })
			if a.Quota != (Quota{}) && (some || len(a.Prefixes) == 0) {
				return fmt.Sprintf("the authors of %q have a quota, which they would have once more in the new scope", a.Name), nil
			}
		}
	}
	if slices.ContainsFunc(islands, func(is IslandRecord) bool { return overlap(is.Prefix, c.Prefix) }) {
		return "islands have decided about such keys", nil
	}
	return reasonOf(c.keepsBalance(next, l)), nil
}

// failedRests is for how many rests a path is not tried again whose split failed.
const failedRests = 8

// overlap reports whether there are keys with both prefixes.
func overlap(a, b []byte) bool { return bytes.HasPrefix(a, b) || bytes.HasPrefix(b, a) }

func reasonOf(failure error) string {
	if failure == nil {
		return ""
	}
	return reason(failure)
}

// splitChild is the scope that a path becomes with an epoch: under its policy, with all anchors that weigh something or
// are on standby, and with the trust that they have. It advises alone, and has no name: people choose names.
func (e *Epoch) splitChild(prefix []byte, l *trust.Ledger) *Child {
	c := &Child{Prefix: bytes.Clone(prefix), Policy: e.Policy}
	c.Policy.Topology.Split = min(c.Policy.Topology.Split, ConductAdvise)
	for i := range e.Roster.Anchors {
		a := &e.Roster.Anchors[i]
		s, _ := l.Standing(a.Key.ID())
		if !s.Barred && (e.Roster.Weights.Of(s.Anchor) > 0 || s.Standby && s.Weighs <= e.Number) {
			c.Anchors = append(c.Anchors, *a)
		}
	}
	return c
}

// keepsBalance reports why a scope cannot be founded without a decision: it has too few anchors, a liar weighs
// something still, or the anchors that one anchor brought in could together weigh more in it than the policy permits,
// since a genesis names no sponsors.
func (c *Child) keepsBalance(e *Epoch, l *trust.Ledger) (failure error) {
	if err := c.Check(); err != nil {
		return err
	}
	g := c.some()
	stoppable, err := g.Check()
	if err != nil {
		return err
	}
	first, err := g.Epoch()
	if err != nil {
		return err
	}
	if c.Policy.Rules.Mode.Byzantine() && (stoppable || len(c.Anchors) < leastGroup) {
		return fmt.Errorf("scope: of its %s none could fail", counted(len(c.Anchors), "anchor"))
	}
	for a := range e.Roster.Weights.All() {
		if s, _ := l.Standing(a.Anchor); s.Barred && a.Weight > 0 {
			return fmt.Errorf("scope: %s was proven to lie, and weighs something still", a.Anchor.Short())
		}
	}
	now, then, most := make(map[aweigh.AnchorID]uint64), make(map[aweigh.AnchorID]uint64), c.Policy.Trust.Sponsored
	for i := range c.Anchors {
		id := c.Anchors[i].Key.ID()
		s, _ := l.Standing(id)
		now[s.Sponsor] += e.Roster.Weights.Of(id)
		then[s.Sponsor] += first.Roster.Weights.Of(id)
	}
	total, before := first.Roster.Weights.Total(), e.Roster.Weights.Total()
	for i := range c.Anchors {
		s, _ := l.Standing(c.Anchors[i].Key.ID())
		sum := then[s.Sponsor]
		above := sum*uint64(most.Den) > total*uint64(most.Num)
		if !s.Sponsor.IsZero() && above && exceeds(sum, total, now[s.Sponsor], before) {
			return fmt.Errorf("scope: the anchors that %s brought in would weigh %d of %d there", s.Sponsor.Short(), sum, total)
		}
	}
	return nil
}

// exceeds reports whether the share a/b is larger than c/d.
func exceeds(a, b, c, d uint64) bool {
	high, low := bits.Mul64(a, d)
	high2, low2 := bits.Mul64(c, b)
	return high > high2 || high == high2 && low > low2
}

// warm counts the changes that the block made so far.
func (x *execution) warm() {
	if !x.policy.Topology.counts() || len(x.changed) == 0 {
		return
	}
	h, own := x.next.warm.clone(), len(x.next.head.Prefix)
	for i := range x.changed {
		h.change(x.bounds, own, x.changed[i].key)
	}
	x.next.warm = h
}

// split ends the counts of an epoch. If the policies before and after its end permit it, the scope gives a busy path a
// scope of its own; but not where a decision takes effect or waits.
func (x *execution) split(s *State, u *succession) error {
	ended, h := x.next.warm, x.next.warm.clone()
	t, next := &x.policy.Topology, x.next.epoch
	took := x.block.Header.Time.Sub(x.epoch.Time)
	h.end(t, took, x.block.Header.Time)
	h.Stays = u.stays != nil
	if slices.ContainsFunc(u.gives, func(d decided) bool { return d.Decision.byItself() }) {
		h.Moved = next.Number
	}
	x.next.warm = h
	waiting, err := s.agenda()
	acts := t.Split == ConductAct && next.Policy.Topology.Split == ConductAct
	if err != nil || !acts || len(waiting) > 0 || u.yields {
		return err
	}
	c, why, err := x.next.splits(ended, x.epoch, next, x.ledger, took)
	if err != nil || c == nil || why != "" {
		return err
	}
	h.Moved = next.Number
	i, _ := ended.find(c.Prefix, false)
	return x.splitOff(h, c, fmt.Sprintf("by itself: %d of %d changes in %v, busy for %s",
		ended.Counters[i].sure(), ended.Changes, took, counted(streakOf(ended.Streaks, c.Prefix)+1, "epoch")))
}

// byItself reports whether a delegation, or its end, follows from load, and from no decision.
func (d *Decision) byItself() bool { return (d.Kind == Delegate || d.Kind == Fold) && d.Reason != "" }

// splitOff delegates to a scope, and notes in h whether that succeeded.
func (x *execution) splitOff(h *heat, c *Child, why string) error {
	d := Decision{Kind: Delegate, Child: c, Reason: why}
	failure, err := x.give(&decided{Carried: x.block.Header.Height, Decision: d})
	switch {
	case err != nil:
		return err
	case failure != nil:
		h.fail(x.bounds, c.Prefix, h.Moved, failure)
	default:
		h.Splits++
	}
	return nil
}

// heatSoFar is what was counted in the epoch so far, which must not be changed.
func (s *State) heatSoFar() (*heat, error) {
	if s.warm != nil {
		return s.warm, nil
	}
	return decodeHeat(s.heat)
}
