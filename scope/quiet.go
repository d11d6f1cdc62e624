package scope

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
)

// A scope that split off by itself goes back by itself once it is quiet (P66). If its policy lets it, it ends an epoch
// then, even without writes, and the terms of the next one say so (Quiet). Handovers prove that to the scope above.
// If its own policy lets it, that orders the scope to come home, as a decision would (P65).

// warm reports whether so many changes in so long are too many for a scope that is quiet: half of what is busy.
func (t *Topology) warm(changes uint64, d time.Duration) bool { return 2*changes >= t.busy(d) }

// quietFrom is from when on a scope counts as quiet for long enough that was founded at some time, if nothing in it
// changes any more in the epoch. Then warm does not hold either.
func (t *Topology) quietFrom(h *heat, e *Epoch, founded aweigh.Instant) aweigh.Instant {
	from := max(h.Warm, founded).Add(t.Quiet)
	if h.Changes > 0 {
		twice := 2*min(h.Changes, 1<<31) + 1 // or the sum would exceed an Instant, with a rate of 1
		ms := (twice*1000 + uint64(t.Rate) - 1) / uint64(t.Rate)
		from = max(from, e.Time.Add(time.Duration(ms)*time.Millisecond))
	}
	return from
}

// asksFrom is from when on a block ends the epoch because the scope is quiet; 0: never, as things stand. A scope that
// could not ask when the last epoch ended waits until another ends.
func (s *State) asksFrom(e *Epoch) (aweigh.Instant, error) {
	if e.Policy.Topology.Fold != ConductAct || e.Quiet {
		return 0, nil
	}
	if h, err := s.heatSoFar(); h == nil || h.Stays || err != nil {
		return 0, err
	}
	return s.quietFrom(e)
}

// birth is what a scope was founded with that decides whether it goes home.
type birth struct {
	time   aweigh.Instant
	notice time.Duration
}

func (s *State) birth() (*birth, error) {
	if s.born != nil {
		return s.born, nil
	}
	g, err := s.Genesis()
	return &birth{g.Time, g.Notice()}, err
}

// quietFrom is from when on the scope may ask to come home; 0: never, as things stand.
func (s *State) quietFrom(e *Epoch) (aweigh.Instant, error) {
	if e.Policy.Topology.Fold != ConductAct || e.Home != nil || s.head.Delegated > 0 || s.head.Docket.Open > 0 {
		return 0, nil
	}
	return s.quietSince(e)
}

// quietSince is from when on the scope counts as quiet, whatever it may do then; 0: never.
func (s *State) quietSince(e *Epoch) (aweigh.Instant, error) {
	born, err := s.birth()
	if err != nil || born.notice == 0 || e.Policy.Topology.Fold == ConductOff {
		return 0, err
	}
	h, err := s.heatSoFar()
	if err != nil {
		return 0, err
	}
	return e.Policy.Topology.quietFrom(h, e, born.time), nil
}

// asks says in the terms of a succession whether the scope, which is quiet at that time, can go back.
func (s *State) asks(u *succession, at aweigh.Instant) error {
	u.terms.Quiet = false
	e, err := s.Epoch()
	if err != nil || u.yields || u.closes || len(u.takes)+len(u.gives)+len(u.left)+len(u.dropped) > 0 {
		return err
	}
	from, err := s.quietFrom(e)
	if err != nil || from == 0 || at < from {
		return err
	}
	if u.stays, err = s.stays(); err == nil {
		u.terms.Quiet = u.stays == nil
	}
	return err
}

// stays is why a scope that is quiet does not ask to go back: what takes work to find.
func (s *State) stays() (failure, err error) {
	islands, err := s.islands()
	if err == nil && len(islands) > 0 {
		return errors.New("islands have decided in it"), nil
	}
	if err != nil {
		return nil, err
	}
	parts, _, failure, err := s.Parts(aweigh.Hash{})
	if failure != nil || err != nil {
		return failure, err
	}
	e, err := s.Epoch()
	if err != nil {
		return nil, err
	}
	for _, p := range parts { // of which the limits are those of the scope above, or it does not take this one back
		if most := e.Policy.Limits.BringBytes(); len(p) > most {
			return fmt.Errorf("a key and its value take %d bytes, and limits.mutation_bytes lets at most %d come home", len(p), most), nil
		}
	}
	return nil, nil
}

// TakesBack reports why the scope does not order by itself that one comes home to which it delegated, and which is in
// an epoch; nil if it does, unless a decision waits.
func (e *Epoch) TakesBack(d *Delegation, below *Epoch) error {
	if failure := e.mayFold(d); failure != nil {
		return failure
	}
	if !below.Quiet {
		return errWarm
	}
	return e.alike(below)
}

// mayCallHome reports why the scope takes no step by which one comes home that no decision ordered to.
func (x *execution) mayCallHome(d *Delegation, below *Epoch) (failure, err error) {
	if below == nil { // no way is shown
		return errNoFold, nil
	}
	if err := x.loadAgenda(); err != nil {
		return nil, err
	}
	if len(x.government.carried) > 0 {
		return errors.New("scope: a decision waits for the end of the epoch"), nil
	}
	if failure := x.epoch.mayFold(d); failure != nil {
		return fmt.Errorf("%w, and it does not come home by itself: %w", errNoFold, failure), nil
	}
	return nil, nil
}

// callHome decides that a scope comes home, if the way that was shown leads to where it asks for that, and nothing
// forbids it. Otherwise the way can be shown further.
func (x *execution) callHome(d *Delegation, below *Epoch) {
	if below.Quiet && x.epoch.alike(below) == nil {
		by := Folding(d.Prefix)
		by.Reason = fmt.Sprintf("by itself: the scope is quiet, at the start of its epoch %d", below.Number)
		x.decide(decided{Decision: by, Opened: x.block.Header.Time})
	}
}

// errWarm is why a scope stays that is used.
var errWarm = errors.New("it has not been quiet for long enough")

// mayFold reports why the scope never orders by itself that one comes home to which it delegated, as things stand in
// this one.
func (e *Epoch) mayFold(d *Delegation) error {
	switch {
	case d.Revocation != nil:
		return errors.New("there is an order about it")
	case !d.ByItself:
		return errors.New("a decision founded it")
	case e.Policy.Topology.Fold != ConductAct:
		return fmt.Errorf("the policy of the scope above has topology.fold %s", e.Policy.Topology.Fold)
	}
	return nil
}

// alike reports in what a scope differs from one below that split off: load must not undo what people decided there.
func (e *Epoch) alike(below *Epoch) error {
	a, b := e.Policy, below.Policy
	a.Topology, b.Topology = Topology{}, Topology{}
	if !bytes.Equal(canon.Encode(a), canon.Encode(b)) {
		return errors.New("its policy is another than that of the scope above")
	}
	for i := range below.Roster.Anchors {
		if a := &below.Roster.Anchors[i]; !e.seatsKey(a) {
			return fmt.Errorf("%s is no anchor of the scope above", a.Name)
		}
	}
	for i := range e.Roster.Anchors {
		if a := &e.Roster.Anchors[i]; !below.seatsKey(a) {
			return fmt.Errorf("%s is an anchor of the scope above alone", a.Name)
		}
	}
	return nil
}

func (e *Epoch) seatsKey(a *Anchor) bool {
	_, ok := e.Roster.Seat(a.Key.ID())
	return ok
}

// staysAway dismisses that a scope comes home by itself. It may ask again.
func (x *execution) staysAway(d *decided, why error) error {
	prefix := d.Decision.Child.Prefix
	if err := x.dismiss(d, prefix, why); err != nil {
		return err
	}
	given, ok := x.next.own.given.find(prefix)
	if !ok || given.Revocation != nil {
		return nil
	}
	return x.dropRecord(x.space.homing(given.Child))
}

// AdvisesAlone is the reason why a scope does nothing that it could do now.
const AdvisesAlone = "the policy lets the scope advise alone"

// Homeward is whether a scope goes back to the one above by itself.
type Homeward struct {
	Below bool           // there is one above
	Quiet bool           // its terms say so, and the scope above decides
	From  aweigh.Instant // it counts as quiet, if nothing changes; 0: never
	Stays string         // why it does not ask for that, or not yet; "": it does
}

// homeward is as of the state's block, if the epoch ended with a block at the given time.
func (s *State) homeward(e *Epoch, at aweigh.Instant) (h Homeward, err error) {
	g, err := s.Genesis()
	if err != nil || g.Descent == nil {
		return h, err
	}
	h.Below, h.Quiet = true, e.Quiet
	if h.From, err = s.quietSince(e); err != nil || h.Quiet {
		return h, err
	}
	h.Stays, err = s.staysFor(&g, e, h.From, at)
	return h, err
}

// staysFor is why a scope does not ask to go back that is quiet from some time on; "": it does.
func (s *State) staysFor(g *Genesis, e *Epoch, from, at aweigh.Instant) (string, error) {
	t := &e.Policy.Topology
	switch {
	case e.Home != nil:
		return "it is closed", nil
	case t.Fold == ConductOff:
		return "the policy has topology.fold off", nil
	case g.Notice() == 0:
		return "it was founded for good", nil
	case s.head.Delegated > 0:
		return fmt.Sprintf("it has delegated %s", counted(s.head.Delegated, "prefix")), nil
	case s.head.Docket.Open > 0:
		return fmt.Sprintf("it waits for the end of %s", counted(s.head.Docket.Open, "open motion")), nil
	case at < from:
		return fmt.Sprintf("it must have less than half of %s a second for %v, of which %v are left at least",
			counted(t.Rate, "change"), t.Quiet, from.Sub(at).Round(time.Second)), nil
	}
	failure, err := s.stays()
	if why := reasonOf(failure); why != "" || err != nil {
		return why, err
	}
	if t.Fold != ConductAct {
		return AdvisesAlone, nil
	}
	return "", nil
}
