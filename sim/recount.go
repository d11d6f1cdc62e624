package sim

import (
	"math/big"
	"slices"
	"strings"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// recount follows all motions through the final blocks, by the words of P28 to P34
// and in numbers of any size, and compares the nodes' motions with it.
type recount struct {
	all     map[votes.MotionID]*poll
	order   []*poll           // as they opened
	next    aweigh.Height     // to be looked at
	keys    map[string]bool   // that exist
	by      map[string]*poll  // that put it last
	last    map[string]int    // change of each key
	content map[string]string // of the keys that exist
	made    int               // changes
}

// poll is one motion as the final blocks tell it.
type poll struct {
	id       votes.MotionID
	verb     string // of the action that waits; "" of other changes
	opened   aweigh.Height
	time     aweigh.Instant // when it opened
	deadline aweigh.Instant
	author   aweigh.Hash
	asked    string // the approval that it takes
	puts     []string
	drops    []string
	values   map[string]string  // of the puts, by key
	did      map[string]altered // keys that it wrote, once it is carried
	found    map[string]int     // last change of each key when it opened
	voters   map[aweigh.Hash]seat
	total    *big.Int
	num, den *big.Int
	anchors  int                   // that must approve
	said     map[aweigh.Hash]uint8 // bits of choices, in time
	late     map[aweigh.Hash]uint8
	at       map[aweigh.Hash]aweigh.Height  // of the block that has a ballot in time
	when     map[aweigh.Hash]aweigh.Instant // likewise
	fate     scope.Fate                     // 0: open
	closed   aweigh.Height
	decided  *bool // the honest ballots alone close it
}

// seat is a voter of one motion.
type seat struct {
	weight           *big.Int
	anchor, required bool
}

func (r *recount) open() {
	r.all, r.next = make(map[votes.MotionID]*poll), 1
	r.keys, r.by, r.last = make(map[string]bool), make(map[string]*poll), make(map[string]int)
	r.content = make(map[string]string)
}

// follow looks at the blocks up to a height that became final at a node.
func (x *watch) follow(n *Node, height aweigh.Height) {
	if !x.counts() {
		return
	}
	history := machine.History{Reader: n.Disk, Scope: x.w.Genesis.Hash()}
	state := n.state()
	for r := &x.motions; r.next <= height; r.next++ {
		b, err := history.Block(r.next)
		must.OK(err, "reading a final block")
		x.block(n, state, b)
	}
}

// block applies a block to the polls, and compares them with the node's motions.
func (x *watch) block(n *Node, state *scope.State, b *scope.Block) {
	r, h := &x.motions, &b.Header
	for _, p := range r.order {
		if p.fate == 0 && p.deadline <= h.Time && x.expires(p, state, h.Height) {
			r.close(p, scope.MotionExpired, h.Height)
		}
	}
	opened := false
	for _, c := range b.Bundles {
		for i := range c.Mutations() {
			m := &c.Mutations()[i]
			got, ok, err := state.Outcome(m.ID)
			must.OK(err, "reading an outcome")
			if !ok || got.Height != h.Height || got.Code == scope.Failed {
				continue
			}
			opened = opened || got.Code == scope.Pending
			switch {
			case m.Class == scope.Write:
				x.opens(n, m, got.Code, h)
			case m.Class == scope.Act:
				x.actionOpens(n, state, m, got.Code, h)
			case m.Class == scope.Name:
				x.conduct.opinions.others = x.conduct.opinions.others || got.Code == scope.Pending
			case m.Class == scope.Withdraw:
				if p := r.all[m.Motion]; p != nil && p.fate == 0 && p.author == m.Author {
					r.close(p, scope.Withdrawn, h.Height)
				}
			}
		}
	}
	if opened {
		x.giveWay(state, h.Height)
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
			x.voted(p, state, on, h)
		}
	}
	for _, p := range r.order {
		if p.fate == 0 || p.closed == h.Height {
			x.compare(n, state, p, h.Height)
		}
	}
}

// opens takes up a motion that a mutation opened. Its voters, their weights and
// its rule are computed from the epoch alone.
func (x *watch) opens(n *Node, m *scope.CheckedMutation, code scope.Code, h *scope.Header) {
	w := x.w
	var puts, drops []string
	values := make(map[string]string)
	for i := range m.Txn.Success {
		if op := &m.Txn.Success[i]; op.Kind == scope.OpDelete {
			drops = append(drops, string(op.Key))
		} else {
			puts = append(puts, string(op.Key))
			values[string(op.Key)] = string(op.Value)
		}
	}
	e := w.epochs[h.Epoch]
	asked := slices.ContainsFunc(puts, func(key string) bool { return takes(&e.Policy, key, false) }) ||
		slices.ContainsFunc(drops, func(key string) bool { return takes(&e.Policy, key, true) })
	asked = asked || code == scope.Pending && slices.ContainsFunc(slices.Concat(puts, drops), w.touchesOthers)
	if m.Patient && !asked { // about what an island decided: those are not counted afresh
		part := func(key string) bool { return e.Policy.PartitionOf([]byte(key)) != nil }
		if keys := slices.Concat(puts, drops); len(keys) > 0 && part(keys[0]) {
			x.conduct.opinions.others = x.conduct.opinions.others || code == scope.Pending
			return
		}
	}
	w.holds(Motions, n, asked == (code == scope.Pending), "a write to %q and %q at height %d is %s", puts, drops, h.Height, code)
	if !asked || !strings.HasPrefix(slices.Concat(puts, drops)[0], prefix) { // tenants' motions are not counted afresh
		x.conduct.opinions.others = x.conduct.opinions.others || asked
		return
	}
	x.takeUp(n, &poll{id: m.ID, author: m.Author, puts: puts, drops: drops, values: values}, &e.Policy.Approvals[0], h)
}

// takeUp gives a poll that opens what follows from its approval, and from the epoch.
func (x *watch) takeUp(n *Node, p *poll, a *scope.Approval, h *scope.Header) {
	w, r := x.w, &x.motions
	*p = poll{
		id: p.id, verb: p.verb, author: p.author, puts: p.puts, drops: p.drops, values: p.values, did: make(map[string]altered), asked: a.String(),
		opened: h.Height, time: h.Time, deadline: h.Time.Add(a.Window),
		found: make(map[string]int), voters: make(map[aweigh.Hash]seat), total: new(big.Int),
		num: big.NewInt(int64(a.Num)), den: big.NewInt(int64(a.Den)), anchors: int(a.Anchors),
		said: make(map[aweigh.Hash]uint8), late: make(map[aweigh.Hash]uint8),
		at: make(map[aweigh.Hash]aweigh.Height), when: make(map[aweigh.Hash]aweigh.Instant),
	}
	if a.StepUp {
		p.seconds(a)
	} else {
		p.weigh(a, w.epochs[h.Epoch].Roster.Weights)
	}
	for i := range a.Approvers { // the weight of one that signed both ways stays in the total
		if id := a.Approvers[i].Key.ID(); r.twoFaced(id) {
			delete(p.voters, id)
			x.reach("void approver")
		}
	}
	for _, key := range slices.Concat(p.puts, p.drops) {
		p.found[key] = r.last[key]
	}
	r.all[p.id], r.order = p, append(r.order, p)
	x.reach("motion opened")
	w.log(n, "motion", "%s opens at height %d", p.id.Short(), h.Height)
}

// twoFaced reports whether a voter has approved and rejected one motion before.
func (r *recount) twoFaced(voter aweigh.Hash) bool {
	return slices.ContainsFunc(r.order, func(p *poll) bool { return p.said[voter]|p.late[voter] == both })
}

// seconds are the voters on a step-up: each approver but the author.
func (p *poll) seconds(a *scope.Approval) {
	for i := range a.Approvers {
		if id := a.Approvers[i].Key.ID(); id != p.author {
			p.voters[id] = seat{weight: big.NewInt(1)}
			p.total.Add(p.total, p.voters[id].weight)
		}
	}
}

// weigh are the voters on other motions: anchors and approvers.
func (p *poll) weigh(a *scope.Approval, anchors quorum.Weights) {
	for s := range anchors.All() {
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
}

// asked is the approval that a block's policy asks for.
func (w *World) asked(h *scope.Header) string {
	return w.epochs[h.Epoch].Policy.Approvals[0].String()
}

// voted takes up a block's ballots on a motion.
func (x *watch) voted(p *poll, state *scope.State, on []votes.MotionBallot, h *scope.Header) {
	at := h.Height
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
		p.at[v.Voter], p.when[v.Voter] = at, h.Time
		if p.said[v.Voter] |= 1 << v.Choice; p.said[v.Voter] == both {
			x.reach("two choices")
		}
	}
	if p.fate == 0 {
		switch p.verdict(p.said) {
		case scope.Carried:
			x.motions.close(p, x.carried(p, state, h), at)
		case scope.Rejected:
			x.motions.close(p, scope.Rejected, at)
		}
		o, e := &x.conduct.opinions, x.w.epochs[h.Epoch]
		if warners := o.ended(p, &e.Policy.Trust, h); p.fate == scope.Carried {
			o.reversals(p, warners, e, &x.w.Scenario.Bounds.Scope, at)
		}
	}
}

// both is the mark of a voter that cast both votes.
const both = 1<<votes.Approve | 1<<votes.Reject

// verdict counts afresh: Carried, Rejected, or 0.
func (p *poll) verdict(said map[aweigh.Hash]uint8) scope.Fate {
	yes, left := new(big.Int), new(big.Int) // weight that approves, and that still could
	yesAnchors, leftAnchors := 0, 0
	missing, lost := false, false // of the voters that are required
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
// was changed since it opened, or the policy asks for another approval than then.
func (r *recount) apply(p *poll, asked string) scope.Fate {
	if asked != p.asked {
		return scope.Void
	}
	for key, found := range p.found { // order-free: any
		if r.last[key] != found {
			return scope.Void
		}
	}
	for _, key := range p.puts {
		was := r.value(key)
		r.content[key] = p.values[key]
		p.did[key] = altered{was, r.value(key)}
		r.made++
		r.keys[key], r.by[key], r.last[key] = true, p, r.made
	}
	for _, key := range p.drops {
		if r.keys[key] {
			p.did[key] = altered{r.value(key), nil}
			delete(r.content, key)
			r.made++
			r.last[key] = r.made
		}
		delete(r.keys, key)
	}
	return scope.Carried
}

func (*recount) close(p *poll, f scope.Fate, at aweigh.Height) {
	p.fate, p.closed = f, at
}

// compare compares a motion in a node's state with the recount as of a height.
func (x *watch) compare(n *Node, state *scope.State, p *poll, at aweigh.Height) {
	mo, end, err := state.Motion(p.id)
	must.OK(err, "reading a motion")
	if mo == nil && forgets(&x.w.Scenario.Bounds) {
		return
	}
	x.w.holds(Motions, n, mo != nil && mo.Height == p.opened && mo.Deadline == p.deadline, "motion %s, opened at height %d, is on record: %+v", p.id.Short(), p.opened, mo)
	fate := scope.Fate(0)
	if end != nil && end.Height <= at {
		fate = end.Fate
	}
	same := fate == p.fate && (fate == 0 || end.Height == p.closed)
	x.w.holds(Motions, n, same, "motion %s is %v at height %d, and the ballots in the chain say %v", p.id.Short(), outcomeOf(end), at, named(p.fate))
	if p.fate != 0 && p.closed == at {
		x.reach("motion " + p.fate.String())
		if p.verb != "" && p.fate == scope.Carried {
			x.reach("action approved")
		}
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
