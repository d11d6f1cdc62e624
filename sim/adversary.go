package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/sim/scenario"
	"github.com/aweigh/aweigh/trust"
	"github.com/aweigh/aweigh/votes"
)

// attack is one way to lie. A member of a coalition is an honest machine whose
// effects are bent before they leave; it signs with its own key alone.
type attack interface {
	// bend changes what the member is about to send.
	bend(l *liar, out []packet) []packet
	// hear looks at a frame that arrives, and reports whether the member's machine
	// may see it.
	hear(l *liar, from *Node, f *frame) bool
	// tick is called again and again while the member lies.
	tick(l *liar)
}

// plain is an attack that does nothing; others replace what they need.
type plain struct{}

func (plain) bend(_ *liar, out []packet) []packet { return out }
func (plain) hear(*liar, *Node, *frame) bool      { return true }
func (plain) tick(*liar)                          {}

// plan is the shared data of a coalition.
type plan struct {
	w       *World
	index   int // of the role
	role    scenario.Role
	rand    *rand.Rand
	members []*Node
	attacks []attack
	names   []string
	victims []*Node                         // aimed at by name
	sides   map[aweigh.View]int             // seed of the split of the honest in a view
	twoFor  map[aweigh.View][2]aweigh.Hash  // blocks proposed twice over by a member
	answers map[aweigh.Hash]referral.Answer // the first to each question of visitors
}

// packet is a frame for one node, perhaps held back for a while.
type packet struct {
	to    *Node
	frame *frame
	wait  time.Duration
}

// liar is a member of a coalition.
type liar struct {
	*plan
	n   *Node
	out []packet // what the machine sends in this step
}

// tickEvery is how often a liar that lies by itself does so.
const tickEvery = 100 * time.Millisecond

// assignRoles gives the roles of the scenario to anchors.
func (w *World) assignRoles() error {
	total := w.weights.Total()
	budget := w.rules.Mode.FaultBudget(total)
	lying := w.assignDiskFaults(budget)
	free := make([]*Node, 0, len(w.Nodes))
	named := make(map[int]bool)
	for _, r := range w.Scenario.Roles {
		for _, a := range r.Anchors {
			named[a] = named[a] || r.In == ""
		}
	}
	for _, n := range w.Nodes[:w.Scenario.Network.Anchors] { // observers lie only if they are named
		if !named[n.Index] && !n.faulty {
			free = append(free, n)
		}
	}
	for i, r := range w.Scenario.Roles {
		if r.In != "" { // its scope is to be founded yet
			continue
		}
		p := w.plan(i)
		take := func() {
			n := free[len(free)-1]
			free = free[:len(free)-1]
			p.members = append(p.members, n)
			lying += w.mayWeigh(n)
		}
		for _, a := range r.Anchors {
			p.members = append(p.members, w.Nodes[a])
			lying += w.mayWeigh(w.Nodes[a])
		}
		switch {
		case r.Weight == "budget" || r.Weight == "half":
			most := budget
			if r.Weight == "half" {
				most = lying + (budget-min(budget, lying))/2
			}
			for len(free) > 1 && lying+w.mayWeigh(free[len(free)-1]) <= most {
				take()
			}
		case r.Weight == "over":
			for len(free) > 1 && lying <= budget {
				take()
			}
		case r.Count > len(free):
			return fmt.Errorf("%w: cast[%d]: %d liars, but only %d anchors have no role", scenario.ErrInvalid, i, r.Count, len(free))
		default:
			for range r.Count {
				take()
			}
		}
		slices.SortFunc(p.members, func(a, b *Node) int { return a.Index - b.Index })
		w.roles = append(w.roles, p)
	}
	if all := len(free) + len(named); len(free) == 0 && all > 0 && len(w.Scenario.Roles) > 0 {
		return fmt.Errorf("%w: cast: no anchor is left to be honest", scenario.ErrInvalid)
	}
	for _, p := range w.roles {
		for _, n := range slices.Clone(p.members) {
			if p.has("twins") || p.has("fork") {
				p.members = append(p.members, n.face())
			}
		}
		p.begin()
	}
	return nil
}

// mayWeigh is the weight of a founder, or if it is on standby, the most that any has.
func (w *World) mayWeigh(n *Node) (weight uint64) {
	if weight = w.weight(n); weight > 0 || n.Index >= w.Scenario.Network.Anchors {
		return weight
	}
	for s := range w.weights.All() {
		weight = max(weight, s.Weight)
	}
	return weight
}

// plan is that of one role of the scenario, in one scope, without its members.
func (w *World) plan(i int) *plan {
	r := w.Scenario.Roles[i]
	p := &plan{
		w: w, index: i, role: r, rand: rand.New(rand.NewPCG(w.Scenario.Seed, uint64(100+i+1000*w.number))),
		sides: make(map[aweigh.View]int), twoFor: make(map[aweigh.View][2]aweigh.Hash), names: r.Attacks,
	}
	for _, v := range r.Victims {
		p.victims = append(p.victims, w.Nodes[v])
	}
	for _, name := range r.Attacks {
		p.attacks = append(p.attacks, newAttack(name))
	}
	return p
}

// begin starts the members' lies.
func (p *plan) begin() {
	for _, n := range p.members {
		n.liar = &liar{plan: p, n: n}
		p.w.at(p.role.From-p.w.Now()+time.Duration(p.rand.Int64N(int64(tickEvery))), n.liar.tick)
	}
}

// assignRolesBelow gives roles to the nodes' parts in a scope that was founded: a liar in the
// root scope lies here on the same plan, and a node with a role in this scope begins.
func (w *World) assignRolesBelow() {
	for i, r := range w.Scenario.Roles {
		p := w.plan(i)
		for _, o := range w.scopes[0].roles {
			if o.index == i {
				for _, m := range o.members {
					p.members = append(p.members, w.Nodes[m.Index])
				}
			}
		}
		if r.In == string(w.Genesis.Prefix()) {
			for _, n := range w.Nodes {
				if n.liar == nil && n.Face == 0 && (slices.Contains(r.Anchors, n.Index) || r.Weight == "all" && w.weight(n) > 0) {
					p.members = append(p.members, n)
				}
			}
		}
		if len(p.members) > 0 {
			w.roles = append(w.roles, p)
			p.begin()
		}
	}
}

func (p *plan) has(name string) bool { return slices.Contains(p.names, name) }

// on reports whether the coalition lies now.
func (p *plan) on() bool {
	at := p.w.Now()
	switch {
	case at < p.role.From || p.role.Until > 0 && at >= p.role.Until || p.w.untilBusy(at) > 0:
		return false
	case p.role.Every > 0:
		return (at-p.role.From)%p.role.Every < p.role.Every/2
	case p.role.During == scenario.DuringEnding:
		return p.w.watch.ending.is(p.w)
	}
	return true
}

// on reports whether this member lies now.
func (l *liar) on() bool {
	return l.plan.on() && (l.role.Above == 0 || l.w.watch.standing.score(l.n) >= trust.Score(l.role.Above))
}

// may reports whether to take an occasion.
func (p *plan) may() bool { return p.rand.Int64N(million) < int64(p.role.Rate) }

// told counts a lie.
func (l *liar) told(attack string, format string, args ...any) {
	w := l.w
	w.watch.attacks[attack]++
	w.record('L', l.n.Index, -1, []byte(attack))
	if w.text != nil || w.marks.most > 0 {
		text := fmt.Sprintf(format, args...)
		w.say("%s lies (%s): %s", l.n, attack, text)
		w.mark(Mark{Node: l.n.number(), From: -1, Kind: "lie", Text: attack + ": " + text})
	}
}

// victim reports whether a node is aimed at in a view: one named, or one of half
// of the honest nodes, the same for all members.
func (p *plan) victim(n *Node, v aweigh.View) bool {
	if p.friend(n) {
		return false
	}
	if len(p.victims) > 0 {
		return slices.Contains(p.victims, n)
	}
	return p.side(n, v) == 1
}

// side is the half of the nodes in which one stands in a view.
func (p *plan) side(n *Node, v aweigh.View) int {
	seed, ok := p.sides[v]
	if !ok {
		seed = p.rand.IntN(1 << 20)
		p.sides[v] = seed
	}
	return (n.number()*7919 + seed + n.number()*seed) >> 3 & 1
}

func (p *plan) friend(n *Node) bool { return slices.Contains(p.members, n) }

// others are the nodes outside the coalition, or all nodes if there are none.
func (p *plan) others() []*Node {
	if o := slices.DeleteFunc(slices.Clone(p.w.Nodes), p.friend); len(o) > 0 {
		return o
	}
	return p.w.Nodes
}

// someone is a node outside of the coalition.
func (p *plan) someone() *Node {
	o := p.others()
	return o[p.rand.IntN(len(o))]
}

// domain is that of the epoch that the liar's machine is in.
func (l *liar) domain() votes.Domain {
	if l.n.machine == nil {
		return l.w.epochs[len(l.w.epochs)-1].Domain()
	}
	return l.n.machine.Epoch().Domain()
}

// sign makes a ballot on whatever the liar likes.
func (l *liar) sign(s quorum.Subject) votes.Ballot {
	b := votes.Ballot{
		Format: scope.Format, Domain: l.domain(), Subject: s, Anchor: l.n.anchorID(),
	}
	b.Signature = l.n.key.Sign(votes.ContextBallot, b.SigningBytes())
	l.w.watch.ballot(l.n, b.Domain.Epoch, s)
	return b
}

// send sends content that the liar's machine knows nothing of.
func (l *liar) send(to *Node, content any) { l.sendFrame(to, &frame{raw: machine.Frame(content)}) }

func (l *liar) sendFrame(to *Node, f *frame) { l.w.send(l.n, to, f, 0) }

// flush sends the machine's frames as the attacks leave them.
func (l *liar) flush() {
	out := l.out
	l.out = nil
	if l.on() {
		for _, p := range l.attacks {
			out = p.bend(l, out)
		}
	}
	for _, x := range out {
		l.w.send(l.n, x.to, x.frame, x.wait)
	}
}

// hear shows the attacks a frame that arrives.
func (l *liar) hear(from *Node, f *frame) bool {
	if !l.on() {
		return true
	}
	for _, p := range l.attacks {
		if !p.hear(l, from, f) {
			return false
		}
	}
	return true
}

// tick gives every attack its turn, for as long as the world lasts.
func (l *liar) tick() {
	if l.on() && l.n.machine != nil {
		for _, p := range l.attacks {
			if p.tick(l); l.n.machine == nil {
				break
			}
		}
	}
	l.w.atBusy(tickEvery+time.Duration(l.rand.Int64N(int64(tickEvery))), l.tick)
}

// forget keeps a liar's disk from remembering what it signed.
func (l *liar) forget(ops []kv.Op) []kv.Op {
	return slices.DeleteFunc(slices.Clone(ops), func(op kv.Op) bool { return len(op.Key) > 0 && op.Key[0] == guardSpace })
}

// clean gives the liar a new machine in place of one that noticed a signature made
// behind its back: the disk does not remember it. Other nodes do not see the change.
func (l *liar) clean() {
	life := l.n.life
	l.w.at(500*time.Millisecond+time.Duration(l.rand.Int64N(int64(time.Second))), func() {
		if l.n.life == life && l.n.machine != nil {
			l.reborn()
		}
	})
}

func (l *liar) reborn() {
	n := l.n
	n.Disk.Crash(n.Disk.Unsynced())
	n.alarm, n.busy, n.inbox = 0, false, nil
	n.disk.crash()
	if err := n.start(); err != nil { // its disk has other records than it wrote
		must.Hold(n.spoiled || n.disk.failing(), "restarting a liar: %v", err)
		n.world.log(n, "stopped", "does not start: %v", err)
		n.halt()
		n.gone = true
		return
	}
	n.soon()
}

// view is the one that the liar's machine is in.
func (l *liar) view() aweigh.View { return l.n.machine.Status().View }
