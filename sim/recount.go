package sim

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// recount follows all motions through the final blocks, by the words of P28 to P34
// and in numbers of any size, and holds what nodes say of them against it.
type recount struct {
	all   map[votes.MotionID]*poll
	order []*poll          // as they opened
	next  aweigh.Height    // to be looked at
	keys  map[string]int   // version of each that exists
	by    map[string]*poll // that put it last
	made  int              // versions
}

// poll is one motion as the final blocks tell it.
type poll struct {
	id       votes.MotionID
	opened   aweigh.Height
	deadline aweigh.Instant
	author   aweigh.Hash
	puts     []string
	drops    []string
	found    map[string]int // version of each key when it opened
	voters   map[aweigh.Hash]seat
	total    *big.Int
	num, den *big.Int
	anchors  int                   // that must approve
	said     map[aweigh.Hash]uint8 // bits of choices, in time
	late     map[aweigh.Hash]uint8
	fate     scope.Fate // 0: open
	closed   aweigh.Height
	decided  *bool // the honest ballots alone close it
}

// seat is a voter of one motion.
type seat struct {
	weight           *big.Int
	anchor, required bool
}

func (r *recount) open() {
	r.all, r.keys, r.by, r.next = make(map[votes.MotionID]*poll), make(map[string]int), make(map[string]*poll), 1
}

// follow looks at the blocks up to a height that became final at a node.
func (x *watch) follow(n *Node, height aweigh.Height) {
	if x.w.Scenario.Approval.Motions == 0 {
		return
	}
	history := node.History{Reader: n.Disk, Scope: x.w.Genesis.Hash()}
	state := n.state()
	for r := &x.motions; r.next <= height; r.next++ {
		b, err := history.Block(r.next)
		must.OK(err, "reading a final block")
		x.block(n, state, b)
	}
}

// block does to the polls what a block does to motions, and compares.
func (x *watch) block(n *Node, state *scope.State, b *scope.Block) {
	r, h := &x.motions, &b.Header
	for _, p := range r.order {
		if p.fate == 0 && p.deadline <= h.Time { // drawn worlds have fewer than a block closes
			r.close(p, scope.Lapsed, h.Height)
		}
	}
	for _, c := range b.Bundles {
		for i := range c.Mutations() {
			m := &c.Mutations()[i]
			switch got, ok, err := state.Outcome(m.ID); {
			case err != nil || !ok || got.Height != h.Height || got.Code == scope.Failed:
				must.OK(err, "reading an outcome")
			case m.Class == scope.Write:
				x.opens(n, state, m, got.Code, h)
			case m.Class == scope.Withdraw:
				if p := r.all[m.Motion]; p != nil && p.fate == 0 && p.author == m.Author {
					r.close(p, scope.Withdrawn, h.Height)
				}
			}
		}
	}
	for rest := b.Ballots; len(rest) > 0; {
		var on []votes.MotionBallot
		for len(rest) > 0 {
			v, err := votes.DecodeMotionBallot(rest[0])
			must.OK(err, "decoding a ballot in a final block")
			if len(on) > 0 && on[0].Motion != v.Motion {
				break
			}
			on, rest = append(on, v), rest[1:]
		}
		if p := r.all[on[0].Motion]; p != nil {
			x.voted(p, on, h.Height)
		}
	}
	for _, p := range r.order {
		if p.fate == 0 || p.closed == h.Height {
			x.compare(n, state, p, h.Height)
		}
	}
}

// opens takes up a motion that a mutation opened. Who may vote, with which weight,
// and what carries it is reckoned from the epoch alone.
func (x *watch) opens(n *Node, state *scope.State, m *scope.CheckedMutation, code scope.Code, h *scope.Header) {
	w, r := x.w, &x.motions
	var puts, drops []string
	for i := range m.Txn.Success {
		if op := &m.Txn.Success[i]; op.Kind == scope.OpDelete {
			drops = append(drops, string(op.Key))
		} else {
			puts = append(puts, string(op.Key))
		}
	}
	below := func(key string) bool { return strings.HasPrefix(key, prefix) }
	asked := slices.ContainsFunc(puts, below) || slices.ContainsFunc(drops, below)
	w.holds(Motions, n, asked == (code == scope.Pending), "a write to %q and %q at height %d is %s", puts, drops, h.Height, code)
	if !asked {
		return
	}
	e := w.epochs[h.Epoch]
	a := &e.Policy.Approvals[0]
	p := &poll{
		id: m.ID, opened: h.Height, deadline: h.Time.Add(a.Window), author: m.Author, puts: puts, drops: drops,
		found: make(map[string]int), voters: make(map[aweigh.Hash]seat), total: new(big.Int),
		num: big.NewInt(int64(a.Num)), den: big.NewInt(int64(a.Den)), anchors: int(a.Anchors),
		said: make(map[aweigh.Hash]uint8), late: make(map[aweigh.Hash]uint8),
	}
	for s := range e.Roster.Weights.All() {
		p.voters[s.Anchor] = seat{weight: new(big.Int).SetUint64(s.Weight), anchor: true}
		p.total.Add(p.total, p.voters[s.Anchor].weight)
	}
	base := new(big.Int).Set(p.total)
	for i := range a.Approvers {
		of := &a.Approvers[i]
		weight := new(big.Int).Mul(base, big.NewInt(int64(of.Share)))
		weight.Div(weight, big.NewInt(million))
		p.voters[of.Key.ID()] = seat{weight: weight, required: of.Required || weight.Sign() == 0}
		p.total.Add(p.total, weight)
	}
	for _, key := range slices.Concat(puts, drops) {
		p.found[key] = r.keys[key]
	}
	r.all[m.ID], r.order = p, append(r.order, p)
	x.reach("motion opened")
	w.log(n, "motion", "%s opens at height %d", m.ID.Short(), h.Height)
}

// voted takes up a block's ballots on a motion.
func (x *watch) voted(p *poll, on []votes.MotionBallot, at aweigh.Height) {
	for i := range on {
		v := &on[i]
		if _, ok := p.voters[v.Voter]; !ok {
			continue
		}
		if p.fate != 0 {
			p.late[v.Voter] |= 1 << v.Choice
			x.reach("late ballot")
			continue
		}
		if p.said[v.Voter] |= 1 << v.Choice; p.said[v.Voter] == both {
			x.reach("two choices")
		}
	}
	if p.fate == 0 {
		switch p.verdict(p.said) {
		case scope.Carried:
			x.motions.close(p, x.motions.apply(p), at)
		case scope.Rejected:
			x.motions.close(p, scope.Rejected, at)
		}
	}
}

// both is what one says who says both things.
const both = 1<<votes.Approve | 1<<votes.Reject

// verdict counts afresh: Carried, Rejected, or 0.
func (p *poll) verdict(said map[aweigh.Hash]uint8) scope.Fate {
	yes, left := new(big.Int), new(big.Int) // weight that approves, and that still could
	yesAnchors, leftAnchors := 0, 0
	missing, lost := false, false // of those without whom nothing is carried
	for id, s := range p.voters { // order-free: sums
		approves, may := said[id] == 1<<votes.Approve, said[id]&(1<<votes.Reject) == 0
		if approves {
			yes.Add(yes, s.weight)
		}
		if may {
			left.Add(left, s.weight)
		}
		if s.anchor && approves {
			yesAnchors++
		}
		if s.anchor && may {
			leftAnchors++
		}
		missing = missing || s.required && !approves
		lost = lost || s.required && !may
	}
	enough := func(weight *big.Int, anchors int) bool {
		have, want := new(big.Int).Mul(weight, p.den), new(big.Int).Mul(p.total, p.num)
		return weight.Sign() > 0 && have.Cmp(want) >= 0 && anchors >= p.anchors
	}
	switch {
	case !missing && enough(yes, yesAnchors):
		return scope.Carried
	case lost || !enough(left, leftAnchors):
		return scope.Rejected
	}
	return 0
}

// apply makes the changes of a motion that has the approvals, unless one of its keys
// was changed since it opened.
func (r *recount) apply(p *poll) scope.Fate {
	for key, found := range p.found { // order-free: any
		if r.keys[key] != found {
			return scope.Void
		}
	}
	for _, key := range p.puts {
		r.made++
		r.keys[key], r.by[key] = r.made, p
	}
	for _, key := range p.drops {
		delete(r.keys, key)
	}
	return scope.Carried
}

func (*recount) close(p *poll, f scope.Fate, at aweigh.Height) {
	p.fate, p.closed = f, at
}

// compare holds what a node's state says of a motion against the recount as of a
// height.
func (x *watch) compare(n *Node, state *scope.State, p *poll, at aweigh.Height) {
	mo, end, err := state.Motion(p.id)
	must.OK(err, "reading a motion")
	x.w.holds(Motions, n, mo != nil && mo.Height == p.opened && mo.Deadline == p.deadline, "motion %s, opened at height %d, is on record: %+v", p.id.Short(), p.opened, mo)
	fate := scope.Fate(0)
	if end != nil && end.Height <= at {
		fate = end.Fate
	}
	same := fate == p.fate && (fate == 0 || end.Height == p.closed)
	x.w.holds(Motions, n, same, "motion %s is %v at height %d, and the ballots in the chain say %v", p.id.Short(), outcomeOf(end), at, named(p.fate))
	if p.fate != 0 && p.closed == at {
		x.reach("motion " + p.fate.String())
		x.w.log(n, "motion", "%s ends at height %d: %s", p.id.Short(), at, outcomeOf(end))
	}
}

func outcomeOf(e *scope.Ending) string {
	if e == nil {
		return "open"
	}
	return e.String()
}

func named(f scope.Fate) string {
	if f == 0 {
		return "open"
	}
	return f.String()
}

// fates looks at what all nodes say of motions in the end.
func (x *watch) fates(held []*Node, best *Node) {
	w := x.w
	for _, n := range held {
		state := n.state()
		head := state.Head().Height
		for _, p := range x.motions.order {
			mo, end, err := state.Motion(p.id)
			must.OK(err, "reading a motion")
			w.holds(Closed, n, (mo != nil) == (p.opened <= head), "motion %s opened at height %d; at height %d it is on record: %v", p.id.Short(), p.opened, head, mo != nil)
			same := end == nil && (p.fate == 0 || p.closed > head) || end != nil && end.Fate == p.fate && end.Height == p.closed
			w.holds(Closed, n, same, "motion %s was %s at height %d; in the end, at height %d, it is %s", p.id.Short(), named(p.fate), p.closed, head, outcomeOf(end))
		}
	}
	x.applied(best)
	for _, s := range w.polls.slips {
		for _, t := range s.taken {
			if !t.at.excused() && !t.late {
				w.holds(Boxes, t.at, x.kept(s, t.at, best), "the ballot of %s on motion %s was taken, and is neither in the chain nor in the box", s.by.name, s.on.id.Short())
			}
		}
	}
}

// applied holds motions that were open at once, as a node has them, to one change
// of a key, and the keys to what the motions made of them (P32).
func (x *watch) applied(n *Node) {
	w, r := x.w, &x.motions
	if n.state().Head().Height+1 != r.next {
		return // it knows of blocks that nobody else knows to be final
	}
	ends := make([]*scope.Ending, len(r.order))
	for i, p := range r.order {
		_, end, err := n.state().Motion(p.id)
		must.OK(err, "reading a motion")
		ends[i] = end
	}
	for i, p := range r.order {
		for j, q := range r.order[:i] {
			w.holds(Conflicts, n, !r.contrary(i, j, ends), "motions %s and %s change one key, were open at once, and are both applied", q.id.Short(), p.id.Short())
		}
	}
	for i := range w.Scenario.Approval.Keys {
		key := fmt.Sprintf("%s%d", prefix, i)
		kv, there := n.get(key)
		_, want := r.keys[key]
		w.holds(Conflicts, n, there == want, "%s is there: %v; the motions that were carried say %v", key, there, want)
		if there && want {
			end := ends[slices.Index(r.order, r.by[key])]
			w.holds(Conflicts, n, end != nil && kv.ModRevision == end.Revision, "%s was changed at revision %d, and the motion that put it last is %s", key, kv.ModRevision, outcomeOf(end))
		}
	}
}

// contrary reports whether two motions that were applied were open at once, and the
// later one changes a key that the other put, and that nobody deleted in between. A
// key that is absent again is as it was.
func (r *recount) contrary(i, j int, ends []*scope.Ending) bool {
	if !applies(ends[i]) || !applies(ends[j]) ||
		r.order[i].opened > ends[j].Height || r.order[j].opened > ends[i].Height { // in a block motions open before any is carried
		return false
	}
	if ends[i].Height < ends[j].Height {
		i, j = j, i
	}
	later, first := r.order[i], r.order[j]
	return slices.ContainsFunc(first.puts, func(key string) bool {
		for k, p := range r.order {
			if applies(ends[k]) && slices.Contains(p.drops, key) && p != later && ends[j].Height <= ends[k].Height && ends[k].Height <= ends[i].Height {
				return false
			}
		}
		return slices.Contains(later.puts, key) || ends[i].Height != ends[j].Height && slices.Contains(later.drops, key)
	})
}

func applies(e *scope.Ending) bool { return e != nil && e.Fate == scope.Carried }

// lacks says what people still wait for although it must come: a motion that honest
// ballots close, or whose deadline is over, and a ballot that an honest anchor took.
func (x *watch) lacks() string {
	w := x.w
	for _, p := range x.motions.order {
		switch {
		case p.fate != 0:
		case w.now > p.deadline.Add(-soon):
			return fmt.Sprintf("motion %s is open, with a deadline at %v", p.id.Short(), p.deadline.Sub(Start))
		case x.decided(p):
			return fmt.Sprintf("motion %s is open, and honest voters have decided it", p.id.Short())
		}
	}
	for _, s := range w.polls.slips {
		p := x.motions.all[s.on.id]
		if p == nil || !p.has(s.by) {
			continue
		}
		voter, bit := s.ballot.Voter, uint8(1)<<s.ballot.Choice
		for _, t := range s.taken {
			if !t.at.honest() || w.weight(t.at) == 0 || (p.said[voter]|p.late[voter])&bit != 0 {
				continue
			}
			if p.fate == 0 || t.life == t.at.life { // what comes late is not kept through a restart
				return fmt.Sprintf("the ballot of %s on motion %s is in no block, and %s took it", s.by.name, s.on.id.Short(), t.at)
			}
		}
	}
	return ""
}

// soon is the time in which a deadline is waited for.
const soon = 30 * time.Second

// decided reports whether what the honest say closes a motion, whatever others do.
func (x *watch) decided(p *poll) bool {
	if p.decided == nil {
		said := make(map[aweigh.Hash]uint8)
		for _, s := range x.w.polls.slips {
			if s.on.id == p.id {
				said[s.ballot.Voter] = 1 << s.ballot.Choice
			}
		}
		d := p.verdict(said) != 0
		p.decided = &d
	}
	return *p.decided
}

// settled reports whether a ballot cannot count any more.
func (r *recount) settled(s *slip) bool {
	p := r.all[s.on.id]
	return p != nil && (p.fate != 0 || !p.has(s.by))
}

// kept reports whether a ballot that a node took is in the chain, still in the box,
// or came too late to count.
func (x *watch) kept(s *slip, at, best *Node) bool {
	if best.recorded(&s.ballot) || at.recorded(&s.ballot) {
		return true
	}
	p := x.motions.all[s.on.id]
	if p == nil || p.fate == 0 && p.has(s.by) {
		return at.boxed(&s.ballot)
	}
	return true // closed, or not of the electorate
}

func (p *poll) has(v *voter) bool {
	_, ok := p.voters[v.key.Public().ID()]
	return ok
}
