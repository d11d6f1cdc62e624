package sim

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/trust"
	"github.com/aweigh/aweigh/votes"
)

// conduct counts again, from final blocks alone, the acts of anchors in an epoch:
// the leader of each view, the ballots in time, and the proofs of lies. From these
// must follow the scores of the next epoch, the non-leading anchors, and the end of
// the epoch.
type conduct struct {
	attention
	next   aweigh.Height // to be looked at
	blocks uint64        // of the epoch, without the one that ends it
	view   aweigh.View   // of the last of them
	deeds  map[aweigh.AnchorID]*conductCounts
	seen   map[aweigh.Height]map[aweigh.AnchorID]bool // the anchors whose ballots on a block are on the chain
	liars  []aweigh.AnchorID                          // that were proven to lie, in order
	said   map[contrary]bool                          // over all epochs

	opinions opinions
	groups   groups
	retiring []aweigh.AnchorID // that asked to leave, and have a seat still
}

// conductCounts are those of one anchor.
type conductCounts struct{ timely, late, led, nullified uint64 }

// contrary is a ballot on a motion.
type contrary struct {
	motion, voter aweigh.Hash
	choice        votes.Choice
}

// attention is how long ballots are waited for, and which views count as nullified.
type attention struct {
	recent, timely  aweigh.Height // blocks: of the epoch, and in time
	skipped         aweigh.View   // counted between two blocks
	nonLeadingAfter uint64        // nullified views after which an anchor does not lead
}

// attentionOf follows docs/trust.md, with the bounds that the scenario sets.
func attentionOf(b *scope.Bounds) attention {
	return attention{
		recent: aweigh.Height(cmp.Or(b.RecentBlocks, 32)), timely: aweigh.Height(cmp.Or(b.TimelyBlocks, 4)),
		skipped: cmp.Or(b.MostSkipped, 256), nonLeadingAfter: uint64(cmp.Or(b.NonLeadingAfter, 4)),
	}
}

// begin begins an epoch.
func (c *conduct) begin() {
	c.blocks, c.view, c.liars, c.groups.load = 0, 0, nil, 0
	c.deeds, c.seen = make(map[aweigh.AnchorID]*conductCounts), make(map[aweigh.Height]map[aweigh.AnchorID]bool)
}

// of are the deeds of an anchor.
func (c *conduct) of(a aweigh.AnchorID) *conductCounts {
	if c.deeds[a] == nil {
		c.deeds[a] = new(conductCounts)
	}
	return c.deeds[a]
}

// conducted looks at final blocks up to a height.
func (x *watch) conducted(n *Node, to aweigh.Height) {
	c := &x.conduct
	if x.lost || !x.within {
		return
	}
	if c.said == nil {
		c.next, c.said = 1, make(map[contrary]bool)
		c.begin()
	}
	history := machine.History{Reader: n.Disk, Scope: x.w.id}
	for ; c.next <= to; c.next++ {
		b, err := history.Block(c.next)
		must.OK(err, "reading a final block")
		if int(b.Header.Epoch) < len(x.w.epochs) {
			x.conductedIn(n, b, x.w.epochs[b.Header.Epoch])
		}
	}
}

func (x *watch) conductedIn(n *Node, b *scope.Block, e *scope.Epoch) {
	c, h, w := &x.conduct, &b.Header, x.w
	leader := leads(e.Leaders(), e.Seed(), h.View)
	w.holds(Validity, n, h.Proposer == leader, "the block at height %d is of %s, and %s leads view %d", h.Height, h.Proposer.Short(), leader.Short(), h.View)
	due := c.blocks >= e.Policy.EpochBlocks || len(c.liars) > 0 ||
		c.blocks >= 2*uint64(c.timely) && e.Policy.EpochTime > 0 && h.Time >= e.Time.Add(e.Policy.EpochTime)
	if due {
		w.holds(Ending, n, !h.Next.IsZero(), "epoch %d goes on at height %d, after %d blocks and %d proofs of fault", h.Epoch, h.Height, c.blocks, len(c.liars))
	}
	for _, bundle := range b.Bundles {
		for i := range bundle.Mutations() {
			m := &bundle.Mutations()[i]
			c.opinions.others = c.opinions.others || m.Decision != nil
			if m.Decision != nil && m.Decision.Kind == scope.Retire {
				x.retires(n, m, h.Height)
			}
		}
	}
	for i := range b.Proofs {
		c.proven(b.Proofs[i].Anchor())
	}
	for i := range b.Attended {
		a := &b.Attended[i]
		for j := range a.Signatures {
			c.attended(a.Signatures[j].Anchor, a.Height, h.Height)
		}
	}
	for _, raw := range b.Ballots {
		v, err := votes.DecodeMotionBallot(raw)
		must.OK(err, "decoding a ballot in a final block")
		c.said[contrary{v.Motion, v.Voter, v.Choice}] = true
	}
	if !h.Next.IsZero() {
		return
	}
	c.blocks++
	c.groups.load += uint64(b.Len())
	c.seen[h.Height] = make(map[aweigh.AnchorID]bool)
	delete(c.seen, h.Height-c.recent)
	c.of(h.Proposer).led++
	for v := max(c.view+1, h.View-min(h.View, c.skipped)+1); v < h.View; v++ {
		c.of(leads(e.Leaders(), e.Seed(), v)).nullified++
	}
	c.view = h.View
}

// retires notes that an anchor leaves, if the scope took that.
func (x *watch) retires(n *Node, m *scope.CheckedMutation, at aweigh.Height) {
	got, ok, err := n.state().Outcome(m.ID)
	must.OK(err, "reading an outcome")
	if ok && got.Height == at && got.Code == scope.Applied {
		x.conduct.retiring = append(x.conduct.retiring, m.Decision.Subject)
	}
}

func (c *conduct) proven(a aweigh.AnchorID) {
	if !slices.Contains(c.liars, a) {
		c.liars = append(c.liars, a)
	}
}

// attended counts a ballot on a block that a later one records.
func (c *conduct) attended(a aweigh.AnchorID, of, by aweigh.Height) {
	seen, open := c.seen[of]
	if !open || seen[a] {
		return
	}
	if seen[a] = true; by-of <= c.timely {
		c.of(a).timely++
	} else {
		c.of(a).late++
	}
}

// bothWays reports whether ballots of both choices on one motion are on the chain.
func (c *conduct) bothWays(voter aweigh.AnchorID) bool {
	for s := range c.said { // order-free: any
		if s.voter == voter && c.said[contrary{s.motion, s.voter, s.choice.Other()}] {
			return true
		}
	}
	return false
}

// leads draws the leader of a view, in proportion to the weights.
func leads(w quorum.Weights, seed aweigh.Hash, v aweigh.View) aweigh.AnchorID {
	h := aweigh.Sum([]byte("aweigh/leader/1"), seed[:], binary.BigEndian.AppendUint64(nil, uint64(v)))
	at, below := binary.BigEndian.Uint64(h[:])%w.Total(), uint64(0)
	for s := range w.All() {
		if below += s.Weight; at < below {
			return s.Anchor
		}
	}
	return aweigh.AnchorID{}
}

// judged holds the standings of a new epoch to what anchors did in the one before.
func (x *watch) judged(n *Node, was, e *scope.Epoch, before, after trust.Ledger) {
	c := &x.conduct
	if x.lost || !x.within || c.said == nil {
		return
	}
	decided := x.takenUp(n, was, e, after)
	for s := range after.All() {
		old, known := before.Standing(s.Anchor)
		why, set := moved(was, decided[s.Anchor], s)
		switch {
		case set:
		case !known || old.Since != s.Since:
			why = admittedWrongly(was, old, known, s)
		case slices.Contains(c.liars, s.Anchor):
			if !s.Barred {
				why = "it was proven to lie, and is not barred"
			}
		case s.Barred && !old.Barred:
			if !c.bothWays(s.Anchor) {
				why = "it is barred, and no final block proves it a lie"
			}
		default:
			if want := c.score(was, before, old); s.Score != want {
				why = fmt.Sprintf("its score is %d, and %d follows from the chain", s.Score, want)
			}
			_, sat := was.Roster.Seat(s.Anchor)
			want, credited := c.opinions.blame(was.Policy.Trust, was.Number, s.Anchor, old.Blame)
			if x.followed() && sat && !old.Barred {
				if s.Blame != want {
					why = fmt.Sprintf("its blame is %d, and %d follows from the ballots in the chain", s.Blame, want)
				} else if credited {
					x.reach("warning credited")
				}
			}
		}
		x.w.holds(Standings, n, why == "", "epoch %d, node %d: %s", e.Number, x.w.anchors[s.Anchor], why)
	}
	c.groups.counted(c, was, c.blocks-min(c.blocks, uint64(c.timely)), before, after)
	if !slices.Equal(e.Terms().Weights, was.Terms().Weights) || !unmoved(before, after) { // or no anchor can be weighed again
		why := c.groups.misgrouped(was, e, after)
		x.w.holds(Standings, n, why == "", "epoch %d: %s", e.Number, why)
	}
	nonLeading := c.nonLeading(was, e)
	for i := range e.Roster.Anchors {
		x.w.holds(Standings, n, nonLeading[i] == (len(e.NonLeading) > i && e.NonLeading[i]), "epoch %d: whether anchor %d leads, of %v, is %v", e.Number, i, nonLeading, e.NonLeading)
	}
	c.begin()
}

func admittedWrongly(was *scope.Epoch, old trust.Standing, known bool, s trust.Standing) string {
	p := was.Policy.Trust
	score := p.Initial
	if known && !old.Barred {
		score = min(old.Score, p.Initial)
	}
	if from := was.Number + 1 + aweigh.Epoch(p.Probation); s.Score != score || s.Weighs != from {
		return fmt.Sprintf("it was admitted with a score of %d and weighs from epoch %d on, not with %d from %d", s.Score, s.Weighs, score, from)
	}
	return ""
}

// score is that of an anchor which neither came nor was proven to lie.
func (c *conduct) score(was *scope.Epoch, before trust.Ledger, old trust.Standing) trust.Score {
	p, score := was.Policy.Trust, uint64(old.Score)
	for _, liar := range c.liars {
		l, _ := before.Standing(liar)
		if !l.Barred && l.Sponsor == old.Anchor && was.Number <= l.Since+aweigh.Epoch(p.SuretyEpochs) && !old.Barred {
			score -= score / uint64(p.Surety)
		}
	}
	if _, seated := was.Roster.Seat(old.Anchor); !seated || old.Barred || c.blocks <= uint64(c.timely) {
		return trust.Score(score)
	}
	// Ballots on the last blocks still have time, so that those blocks do not count.
	d, counted, whole := c.of(old.Anchor), c.blocks-uint64(c.timely), uint64(p.Whole)
	timely := min(d.timely, counted)
	late := min(d.late, counted-timely)
	span, part := max(counted, whole), min(counted, whole)
	gain := uint64(p.Gain) * (2*timely + late) / (2 * span)
	loss := score*part/(uint64(p.Decay)*whole) + score*(counted-timely-late)/(uint64(p.Absence)*span)
	loss = min(loss, score-min(score, uint64(p.Rest)))
	idle := uint64(0)
	if views := d.led + d.nullified; views > 0 {
		gain += uint64(p.Lead) * d.led / views * part / whole
		idle = uint64(p.Idle) * d.nullified / views * part / whole
	}
	score += gain - loss
	return trust.Score(min(score-min(score, idle), uint64(trust.MaxScore)))
}

// nonLeading reports which anchors of the new roster lead no views.
func (c *conduct) nonLeading(was, e *scope.Epoch) []bool {
	nonLeading := make([]bool, len(e.Roster.Anchors))
	total, away := e.Roster.Weights.Total(), uint64(0)
	for i := range e.Roster.Anchors {
		id := e.Roster.Anchors[i].Key.ID()
		d, weight := c.of(id), e.Roster.Weights.Of(id)
		if _, sat := was.Roster.Seat(id); !sat || weight == 0 || d.led > 0 || d.nullified < c.nonLeadingAfter {
			continue
		}
		if away += weight; 2*away >= total {
			break
		}
		nonLeading[i] = true
	}
	return nonLeading
}
