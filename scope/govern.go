package scope

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/quorum"
)

const (
	// proposedAtOnce bounds the decisions that one anchor has open: what it fills
	// is its own share alone.
	proposedAtOnce = 4
	// outsideAtOnce bounds those that no anchor has approved: applications.
	outsideAtOnce = 16
	// governedByOne bounds the mutations of one anchor that a block executes, and
	// governedOutside those of all others.
	governedByOne   = 8
	governedOutside = 16
	// decideWithin is how long a decision may stay open, by the blocks' time.
	decideWithin = 7 * 24 * time.Hour
)

// government is what a block does to the agenda.
type government struct {
	open    agenda
	loaded  bool
	changed bool
	by      map[aweigh.Hash]int // mutations of each anchor
	outside int
}

// govern executes an approval of a decision; failure says why it counts nothing.
func (x *execution) govern(m *CheckedMutation) (failure, err error) {
	g, d, anchor := &x.government, m.Decision, aweigh.AnchorID(m.Author)
	_, seated := x.epoch.Roster.Seat(anchor)
	weighs := x.epoch.Roster.Weights.Of(anchor) > 0
	switch {
	case d.Kind == Retire && (anchor != d.Subject || !seated):
		return errors.New("only the anchor itself can retire; to remove another, evict it"), nil
	case d.Kind != Retire && d.Kind != Admit && !weighs:
		return errors.New("only anchors with weight can propose or approve this"), nil
	case seated && g.by[m.Author] >= governedByOne || !seated && g.outside >= governedOutside:
		return errors.New("too many decisions in one block; try again"), nil
	}
	if g.by == nil {
		g.by = make(map[aweigh.Hash]int)
	}
	if seated {
		g.by[m.Author]++
	} else {
		g.outside++
	}
	if err := x.loadAgenda(); err != nil {
		return nil, err
	}
	if failure := x.admissible(d); failure != nil {
		return failure, nil
	}
	id := d.ID()
	at := slices.IndexFunc(g.open, func(p Proposed) bool { return p.ID == id })
	if at < 0 {
		if failure := x.mayPropose(m, weighs); failure != nil {
			return failure, nil
		}
		at, g.open = len(g.open), append(g.open, Proposed{ID: id, Decision: *d, By: m.Author, Opened: x.block.Header.Time})
		g.changed = true
	} else if failure := refusal(&g.open[at], anchor, weighs || d.Kind == Retire); failure != nil {
		return failure, nil
	}
	p := &g.open[at]
	if (weighs || d.Kind == Retire) && !slices.Contains(p.Approvals, anchor) {
		p.Approvals = append(slices.Clone(p.Approvals), anchor)
		g.changed = true
	}
	if x.carries(p) {
		p.Carried, x.tally.early = x.block.Header.Height, true
	}
	return nil, nil
}

// loadAgenda reads the agenda for this block, without what has lapsed.
func (x *execution) loadAgenda() error {
	g := &x.government
	if g.loaded {
		return nil
	}
	open, err := x.next.agenda()
	if err != nil {
		return err
	}
	now := x.block.Header.Time
	g.open = slices.DeleteFunc(slices.Clone(open), func(p Proposed) bool {
		return p.Carried == 0 && now.Sub(p.Opened) > decideWithin
	})
	g.loaded, g.changed = true, len(g.open) < len(open)
	return nil
}

// refusal says why an approval of what is on the agenda counts nothing.
func refusal(p *Proposed, anchor aweigh.AnchorID, may bool) error {
	switch {
	case p.Carried != 0:
		return errors.New("this is decided already, and takes effect with the next epoch")
	case !may:
		return errors.New("this is proposed already; only anchors with weight can approve it")
	}
	return nil
}

// mayPropose says why an author cannot put a decision on the agenda.
func (x *execution) mayPropose(m *CheckedMutation, weighs bool) error {
	mine, outside := 0, 0
	for i := range x.government.open {
		p := &x.government.open[i]
		if p.Carried == 0 && p.By == m.Author {
			mine++
		}
		if p.Carried == 0 && len(p.Approvals) == 0 {
			outside++
		}
	}
	switch {
	case m.Decision.Kind == Retire:
		return nil
	case weighs && mine >= proposedAtOnce:
		return fmt.Errorf("%d decisions that this anchor proposed are open already; they must be carried or lapse first", mine)
	case weighs:
		return nil
	case mine > 0:
		return errors.New("an application of this node is open already")
	case outside >= outsideAtOnce:
		return fmt.Errorf("%d applications are open already; ask an anchor to propose this one", outside)
	}
	return nil
}

// admissible says why a decision could not take effect as things stand.
func (x *execution) admissible(d *Decision) error {
	r := x.epoch.Roster
	seat, seated := r.Seat(d.Subject)
	switch d.Kind {
	case SetPolicy:
		if d.Policy.Hash() == x.policy.Hash() {
			return errors.New("this is the policy in force")
		}
		if l := d.Policy.Limits; l.MutationBytes < leastMutation || l.BundleBytes < 2*leastMutation || l.BlockBytes < 2*leastMutation || l.ValidFor < time.Second {
			return fmt.Errorf("under such limits no policy could be set again: a mutation needs %d bytes, a bundle and a block twice as many, and a second to be ordered", leastMutation)
		}
		if _, err := d.Policy.Rules.Check(r.Weights); err != nil {
			return err
		}
		for i := range d.Policy.Approvals {
			if err := d.Policy.Approvals[i].carriable(r); err != nil {
				return err
			}
		}
		if d.Policy.Rules.Mode != x.policy.Rules.Mode {
			return errors.New("a scope keeps its mode")
		}
		if n := d.Policy.Limits.Anchors; n < len(r.Anchors) {
			return fmt.Errorf("the roster has %d anchors, more than the %d that this policy takes", len(r.Anchors), n)
		}
	case Admit:
		if seated {
			return fmt.Errorf("%s is an anchor already", r.Anchors[seat].Name)
		}
		if r.Weights.Of(d.Sponsor) == 0 {
			return fmt.Errorf("the sponsor %s has no weight here", d.Sponsor.Short())
		}
		if len(r.Anchors) >= x.policy.Limits.Anchors {
			return fmt.Errorf("the roster has %d anchors already, as many as the policy takes", len(r.Anchors))
		}
		for _, a := range r.Anchors {
			if a.Peer == d.Anchor.Peer {
				return fmt.Errorf("the node %s holds the anchor %s already", a.Peer, a.Name)
			}
		}
	case Retire, Evict:
		if !seated {
			return fmt.Errorf("%s is no anchor", d.Subject.Short())
		}
		return x.without(d.Subject)
	}
	return nil
}

// leastMutation has room for any decision.
const leastMutation = 16 << 10

// without says why an anchor cannot go.
func (x *execution) without(a aweigh.AnchorID) error {
	rest := slices.DeleteFunc(slices.Collect(x.epoch.Roster.Weights.All()), func(s quorum.Share) bool { return s.Anchor == a })
	if len(rest) == 0 {
		return errors.New("this is the only anchor with weight")
	}
	w, err := quorum.NewWeights(rest...)
	if err == nil {
		_, err = x.policy.Rules.Check(w)
	}
	if err != nil {
		return fmt.Errorf("the policy's rules do not hold without this anchor: %w", err)
	}
	return nil
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

// storeAgenda writes what the block made of the agenda.
func (x *execution) storeAgenda() {
	if !x.government.changed {
		return
	}
	open := x.government.open
	raw := open.encode()
	x.next.head.Agenda = agendaDigest(raw)
	x.next.pending = &open
	x.ops = append(x.ops, kv.Set(x.space.at(atAgenda), raw))
}
