package scope

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/kv"
)

const (
	// maxAgenda bounds the decisions that are open or wait for the next epoch.
	maxAgenda = 64
	// maxOutside bounds those of them that no anchor has approved: applications.
	maxOutside = 16
	// decideWithin is how long a decision may stay open, by the blocks' time.
	decideWithin = 7 * 24 * time.Hour
)

// govern executes an approval of a decision; failure says why it counts nothing.
func (x *execution) govern(m *CheckedMutation) (failure, err error) {
	open, err := x.next.agenda()
	if err != nil {
		return nil, err
	}
	now := x.block.Header.Time
	open = slices.DeleteFunc(slices.Clone(open), func(p Proposed) bool {
		return p.Carried == 0 && now.Sub(p.Opened) > decideWithin
	})
	d := m.Decision
	if failure, err = x.admissible(d); failure != nil || err != nil {
		return failure, err
	}
	anchor := aweigh.AnchorID(m.Author)
	_, sits := x.epoch.Roster.Seat(anchor)
	id := d.ID()
	at := slices.IndexFunc(open, func(p Proposed) bool { return p.Decision.ID() == id })
	switch {
	case at >= 0 && open[at].Carried != 0:
		return fmt.Errorf("this is decided already, and takes effect with the next epoch"), nil
	case d.Kind == Retire && anchor != d.Subject:
		return fmt.Errorf("only the anchor itself can retire; to remove another, evict it"), nil
	case at < 0 && len(open) >= maxAgenda:
		return fmt.Errorf("%d decisions are open already; approve some of them first, or wait until they lapse", len(open)), nil
	case at < 0:
		if !sits {
			if failure := x.outsider(m, open); failure != nil {
				return failure, nil
			}
		}
		at, open = len(open), append(open, Proposed{Decision: *d, By: m.Author, Opened: now})
	case !sits:
		return errors.New("this is proposed already; only anchors can approve it"), nil
	}
	p := &open[at]
	p.Approvals = slices.Clone(p.Approvals)
	if sits && !slices.Contains(p.Approvals, anchor) {
		p.Approvals = append(p.Approvals, anchor)
	}
	if x.carries(p) {
		p.Carried, x.tally.early = x.block.Header.Height, true
	}
	x.setAgenda(open)
	return nil, nil
}

// outsider says why one who is no anchor cannot put a decision on the agenda.
func (x *execution) outsider(m *CheckedMutation, open agenda) error {
	if m.Decision.Kind != Admit {
		return errors.New("only anchors can propose this")
	}
	n := 0
	for i := range open {
		if len(open[i].Approvals) == 0 {
			n++
			if open[i].By == m.Author {
				return errors.New("an application of this node is open already")
			}
		}
	}
	if n >= maxOutside {
		return fmt.Errorf("%d applications are open already; ask an anchor to propose this one", n)
	}
	return nil
}

// admissible says why a decision could not take effect as things stand.
func (x *execution) admissible(d *Decision) (failure, err error) {
	r := x.epoch.Roster
	seat, seated := r.Seat(d.Subject)
	switch d.Kind {
	case SetPolicy:
		if _, err := d.Policy.Rules.Check(r.Weights); err != nil {
			return err, nil
		}
		if d.Policy.Rules.Mode != x.policy.Rules.Mode {
			return errors.New("a scope keeps its mode"), nil
		}
		if n := d.Policy.Limits.Anchors; n < len(r.Anchors) {
			return fmt.Errorf("the roster has %d anchors, more than the %d that this policy takes", len(r.Anchors), n), nil
		}
	case Admit:
		if seated {
			return fmt.Errorf("%s is an anchor already", r.Anchors[seat].Name), nil
		}
		if r.Weights.Of(d.Sponsor) == 0 {
			return fmt.Errorf("the sponsor %s has no weight here", d.Sponsor.Short()), nil
		}
		if len(r.Anchors) >= x.policy.Limits.Anchors {
			return fmt.Errorf("the roster has %d anchors already, as many as the policy takes", len(r.Anchors)), nil
		}
		for _, a := range r.Anchors {
			if a.Peer == d.Anchor.Peer {
				return fmt.Errorf("the node %s holds the anchor %s already", a.Peer, a.Name), nil
			}
		}
	case Retire, Evict:
		if !seated {
			return fmt.Errorf("%s is no anchor", d.Subject.Short()), nil
		}
		if w := r.Weights; w.Of(d.Subject) == w.Total() {
			return errors.New("this is the only anchor with weight"), nil
		}
	}
	return nil, nil
}

// carries reports whether a decision has the approvals that it needs.
func (x *execution) carries(p *Proposed) bool {
	if p.Decision.Kind == Retire {
		return true
	}
	if p.Decision.Kind == Admit && !slices.Contains(p.Approvals, p.Decision.Sponsor) {
		return false
	}
	weight, anchors := p.Approval(x.epoch.Roster)
	return x.policy.Rules.Finalize.Met(weight, x.epoch.Roster.Weights.Total(), anchors)
}

// Approval is the weight under a roster of those who approved, and their number.
func (p *Proposed) Approval(r Roster) (weight uint64, anchors int) {
	for _, a := range p.Approvals {
		if w := r.Weights.Of(a); w > 0 {
			weight += w
			anchors++
		}
	}
	return weight, anchors
}

func (x *execution) setAgenda(open agenda) {
	raw := open.encode()
	x.next.head.Agenda = agendaDigest(raw)
	x.next.pending = &open
	x.ops = append(x.ops, kv.Set(x.space.at(atAgenda), raw))
}
