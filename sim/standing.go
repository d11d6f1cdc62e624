package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/trust"
)

// EpochRecord is one epoch as it began.
type EpochRecord struct {
	Number aweigh.Epoch
	At     time.Duration // when the first honest node began it
	Height aweigh.Height // of the block that it starts from
	Total  uint64        // weight
	Liars  uint64        // of it, of the nodes with a role
	Heads  int           // anchors that weigh something
	Lying  int           // of them
	Seats  []SeatRecord  // of all nodes with a standing
}

// SeatRecord is what one anchor is in one epoch.
type SeatRecord struct {
	Node   int
	Weight uint64 // 0 on probation, and without a seat
	Score  trust.Score
	Seated bool
	Barred bool
	Blame  trust.Score // of its ballots on motions
}

// standing watches what trust makes of the anchors.
type standing struct {
	epochs []EpochRecord
	ledger trust.Ledger // at the start of the newest epoch
	few    bool         // liars began below a quarter of weight and heads
	scores map[int]trust.Score
	obeyed int64 // as in scope.Head
}

func (x *standing) open(w *World) {
	l, err := w.Genesis.Ledger()
	must.OK(err, "reading the genesis")
	x.record(w, w.epochs[0], l)
	why := overCap(w.epochs[0], l)
	w.holds(Caps, nil, why == "", "epoch 0: %s", why)
	first := x.epochs[0]
	x.few = first.Liars*4 < first.Total && first.Lying*4 < first.Heads
	if w.Genesis.Policy.Trust.Group.On() { // liars may be on standby: of four or more that weigh, one has less than a third
		x.few = w.liars() == 1
	}
}

// liars is how many nodes lie, or have a disk that does.
func (w *World) liars() (n int) {
	for _, x := range w.Nodes {
		if x.Face == 0 && !x.honest() {
			n++
		}
	}
	return n
}

// score is an anchor's at the start of the newest epoch.
func (x *standing) score(n *Node) trust.Score { return x.scores[n.number()] }

// seat is the seat of a node's anchor in the newest epoch; ok is false if it
// never had one.
func (x *standing) seat(n *Node) (s SeatRecord, ok bool) {
	seats := x.epochs[len(x.epochs)-1].Seats
	i := slices.IndexFunc(seats, func(s SeatRecord) bool { return s.Node == n.number() })
	if i < 0 {
		return SeatRecord{Node: n.number()}, false
	}
	return seats[i], true
}

// record keeps an epoch.
func (x *standing) record(w *World, e *scope.Epoch, l trust.Ledger) {
	r := EpochRecord{Number: e.Number, At: w.Now(), Height: e.Start, Total: e.Roster.Weights.Total()}
	x.scores = make(map[int]trust.Score)
	for s := range l.All() {
		at := w.anchors[s.Anchor]
		weight := e.Roster.Weights.Of(s.Anchor)
		r.Seats = append(r.Seats, SeatRecord{at, weight, s.Score, s.Seated, s.Barred, s.Blame})
		x.scores[at] = s.Score
		if weight == 0 {
			continue
		}
		r.Heads++
		if w.Nodes[at].liar != nil {
			r.Liars += weight
			r.Lying++
		}
	}
	slices.SortFunc(r.Seats, func(a, b SeatRecord) int { return a.Node - b.Node })
	x.epochs, x.ledger = append(x.epochs, r), l
}

// enter holds a new epoch to what trust promises.
func (x *standing) enter(w *World, n *Node, e *scope.Epoch) {
	l, err := n.state().Ledger()
	must.OK(err, "reading the trust ledger")
	before, was := x.ledger, w.epochs[e.Number-1]
	x.record(w, e, l)
	if x.yields(w, n, e) {
		w.watch.conduct.begin()
		return
	}
	w.watch.judged(n, was, e, before, l)
	w.watch.effects(n, e, before, l)
	w.watch.voids(n, e)
	again := slices.Equal(e.Terms().Weights, was.Terms().Weights)
	if !again { // where no anchor can be weighed again, weights stay, whatever they are
		why := overCap(e, l)
		w.holds(Caps, n, why == "", "epoch %d: %s", e.Number, why)
		why = overChurn(was, e, l)
		w.holds(Churn, n, why == "", "epoch %d: %s", e.Number, why)
	}
	decided := w.watch.takenUp(n, was, e, l)
	for s := range l.All() {
		at := w.Nodes[w.anchors[s.Anchor]]
		old, known := before.Standing(s.Anchor)
		why, set := moved(was, decided[s.Anchor], s)
		if !set {
			why = misjudged(was.Policy.Trust, old, known, s, at.honest() || !w.watch.within)
		}
		if why == "" && s.Barred != (e.Roster.Weights.Of(s.Anchor) == 0) && s.Barred && len(e.Roster.Anchors) > 1 && !again {
			why = "it is barred, and weighs something"
		}
		w.holds(Standings, n, why == "", "epoch %d, node %d: %s", e.Number, at.number(), why)
		x.goals(w, old, known, s, was, e)
	}
	r := x.epochs[len(x.epochs)-1]
	x.few = x.few && (!e.Policy.Trust.Group.On() || w.liars() == 1)
	if x.few && len(w.roles) > 0 {
		w.holds(Third, nil, r.Liars*3 < r.Total, "epoch %d: liars weigh %d of %d, and began with less than a quarter", e.Number, r.Liars, r.Total)
	}
}

func (x *standing) goals(w *World, old trust.Standing, known bool, s trust.Standing, was, e *scope.Epoch) {
	reach := w.watch.reach
	if old.Score != s.Score {
		reach("trust moved")
	}
	if old.Blame != s.Blame {
		reach("blame moved")
	}
	if known && old.Barred && !s.Barred && s.Seated {
		reach("readmitted")
	}
	if old.Standby && !s.Standby && e.Roster.Weights.Of(s.Anchor) > 0 {
		reach("standby called")
	}
	if !old.Standby && s.Standby && was.Roster.Weights.Of(s.Anchor) > 0 {
		reach("went on standby")
	}
	if s.Barred && was.Roster.Weights.Of(s.Anchor) > 0 && e.Roster.Weights.Of(s.Anchor) == 0 {
		reach("barred liar")
	}
	if s.Since > 0 && was.Roster.Weights.Of(s.Anchor) == 0 && e.Roster.Weights.Of(s.Anchor) > 0 {
		reach("new anchor")
	}
	if known && old.Seated && !s.Seated && !s.Barred {
		reach("anchor left")
	}
}

// overCap names the anchors that weigh more than the policy's caps allow, "" if
// none does. It computes the weights of package trust again.
func overCap(e *scope.Epoch, l trust.Ledger) string {
	p, w := e.Policy.Trust, e.Roster.Weights
	share := p.ShareOf(w.Len())
	groups := make(map[aweigh.AnchorID]uint64)
	heads := make(map[aweigh.AnchorID]int)
	for s := range w.All() {
		if s.Weight*uint64(share.Den) > w.Total()*uint64(share.Num) {
			return fmt.Sprintf("%s weighs %d of %d, more than %s", s.Anchor.Short(), s.Weight, w.Total(), share)
		}
		st, _ := l.Standing(s.Anchor)
		groups[st.Sponsor] += s.Weight // founders have no sponsor
		heads[st.Sponsor]++
	}
	// The cap of sponsors gives way where the others cannot make up the rest. It is
	// held to where they can do so easily: if each held its share, and each group its
	// own, they would make up the whole.
	room := heads[aweigh.AnchorID{}] * int(share.Num) * 1000 / int(share.Den)
	for sponsor, n := range heads { // order-free: a sum
		if !sponsor.IsZero() {
			room += min(n*int(share.Num)*1000/int(share.Den), int(p.Sponsored.Num)*1000/int(p.Sponsored.Den))
		}
	}
	for _, sponsor := range sortedIDs(groups) {
		if sum := groups[sponsor]; !sponsor.IsZero() && room >= 1250 && sum*uint64(p.Sponsored.Den) > w.Total()*uint64(p.Sponsored.Num) {
			return fmt.Sprintf("those whom %s brought in weigh %d of %d, more than %s", sponsor.Short(), sum, w.Total(), p.Sponsored)
		}
	}
	return ""
}

// overChurn reports by how much the weights of the remaining anchors changed
// more than the policy allows, "" if they did not. Weights above a cap, because
// others left or the policy changed, may change by more.
func overChurn(was, e *scope.Epoch, l trust.Ledger) string {
	p := e.Policy.Trust
	var sum, fresh uint64
	var stay []quorum.Share
	for s := range e.Roster.Weights.All() {
		old := was.Roster.Weights.Of(s.Anchor)
		sum += max(old, s.Weight) - min(old, s.Weight)
		if old == 0 { // a first weight of 1 comes whatever the sum
			fresh++
			old = 1
		}
		stay = append(stay, quorum.Share{Anchor: s.Anchor, Weight: old})
	}
	w, err := quorum.NewWeights(stay...)
	must.OK(err, "weights of the anchors that stay")
	start := *e
	start.Roster.Weights = w
	if int(fresh) == len(stay) || overCap(&start, l) != "" || tightGroup(&start, l) {
		return ""
	}
	most := was.Roster.Weights.Total()*uint64(p.Churn.Num)/uint64(p.Churn.Den) + fresh
	if sum > most {
		return fmt.Sprintf("weights changed by %d in sum, where %d of %d may", sum, most, was.Roster.Weights.Total())
	}
	return ""
}

// tightGroup reports whether some sponsor's anchors hold more than their share,
// whether or not the cap gives way for them.
func tightGroup(e *scope.Epoch, l trust.Ledger) bool {
	p, w := e.Policy.Trust, e.Roster.Weights
	groups := make(map[aweigh.AnchorID]uint64)
	for s := range w.All() {
		if st, _ := l.Standing(s.Anchor); !st.Sponsor.IsZero() {
			groups[st.Sponsor] += s.Weight
		}
	}
	for _, sum := range groups { // order-free: any
		if sum*uint64(p.Sponsored.Den) > w.Total()*uint64(p.Sponsored.Num) {
			return true
		}
	}
	return false
}

// misjudged reports which bound a standing broke from one epoch to the next, ""
// if none.
func misjudged(p trust.Params, old trust.Standing, known bool, s trust.Standing, honest bool) string {
	gain := p.Gain + p.Lead
	loss := old.Score/trust.Score(p.Decay) + old.Score/trust.Score(p.Absence) + p.Idle
	switch {
	case s.Score > trust.MaxScore:
		return fmt.Sprintf("a score of %d", s.Score)
	case s.Barred && (s.Score != 0 || s.Seated):
		return fmt.Sprintf("barred, with a score of %d", s.Score)
	case s.Barred && honest && known && !old.Barred:
		return "honest, and barred"
	case !known || old.Since != s.Since || old.Barred: // admitted
		if s.Score > p.Initial+gain {
			return fmt.Sprintf("admitted with a score of %d, above %d", s.Score, p.Initial)
		}
	case s.Score > old.Score+gain:
		return fmt.Sprintf("rose from %d to %d, by more than %d", old.Score, s.Score, gain)
	case honest && old.Score > loss && s.Score < old.Score-loss && !sponsors(p, old, s):
		return fmt.Sprintf("honest, and fell from %d to %d, by more than %d", old.Score, s.Score, loss)
	}
	return ""
}

// sponsors reports whether a loss may be that of a surety: one part in
// trust.Params.Surety, or more if several failed.
func sponsors(p trust.Params, old, s trust.Standing) bool {
	return s.Score <= old.Score-old.Score/trust.Score(p.Surety)
}

func sortedIDs(m map[aweigh.AnchorID]uint64) []aweigh.AnchorID {
	ids := make([]aweigh.AnchorID, 0, len(m))
	for id := range m {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b aweigh.AnchorID) int { return slices.Compare(a[:], b[:]) })
	return ids
}
