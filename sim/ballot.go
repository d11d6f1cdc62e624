package sim

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/sim/scenario"
	"github.com/aweigh/aweigh/votes"
	"github.com/aweigh/aweigh/votes/box"
)

// polls are the motions and ballots that the voters know.
type polls struct {
	rand      *rand.Rand
	voters    []*voter // approvers, then the honest anchors
	second    *voter   // that decides what actors ask for, where a step-up does
	keys      votes.KeySet
	questions []*question
	slips     []*pendingBallot
}

// voter is a person with a key.
type voter struct {
	name string
	key  votes.PrivateKey
	own  *Node // the anchor's node; nil for approvers
	// fickle voters sign both votes on every motion.
	fickle bool
}

// question is a change that must be approved.
type question struct {
	id     votes.MotionID
	author *Node
	bundle *scope.CheckedBundle
	puts   []string // keys
	drops  []string
	asked  time.Duration
	undone bool // another one deletes what it puts
}

// pendingBallot is a voter's ballot on a motion.
type pendingBallot struct {
	by     *voter
	on     *question
	ballot votes.MotionBallot
	tries  int
	taken  []taken
}

// taken is a ballot that a node acknowledged.
type taken struct {
	at   *Node
	late bool // its motion was closed
}

// startMotions schedules the scenario's motions and ballots.
func (w *World) startMotions() {
	p, a := &w.polls, &w.Scenario.Approval
	if a.Motions == 0 && !guarded(&w.Scenario) && len(w.Scenario.Network.Waits) == 0 && len(w.Genesis.Policy.Partitions) == 0 {
		return
	}
	var hosts []*Node
	keys := make([]votes.PublicKey, 0, len(w.Nodes)+len(p.voters))
	for _, v := range p.voters {
		keys = append(keys, v.key.Public())
	}
	if p.second != nil {
		keys = append(keys, p.second.key.Public())
	}
	for _, n := range w.Nodes {
		if n.Face != 0 {
			continue
		}
		if n.key != nil {
			keys = append(keys, n.key.Public())
		}
		if n.liar == nil {
			hosts = append(hosts, n)
			if n.key != nil {
				p.voters = append(p.voters, &voter{name: n.String(), key: *n.key, own: n})
			}
		}
	}
	var err error
	p.keys, err = votes.NewKeySet(keys...)
	must.OK(err, "listing voters")
	if len(hosts) == 0 {
		return
	}
	for range a.Motions {
		at := w.drawTime(p.rand)
		var q *question
		host := hosts[p.rand.IntN(len(hosts))]
		if of := p.undoable(); of != nil && p.happens(a.Undo) {
			of.undone = true
			at = of.asked + time.Second + p.upTo(time.Second)
			q = w.undoing(of, host)
		} else {
			q = w.question(host)
		}
		q.asked = at
		p.questions = append(p.questions, q)
		w.at(at, q.ask)
		if p.happens(a.Withdraw) {
			w.at(at+p.upTo(2*time.Second), q.withdraw)
		}
		for _, v := range p.voters {
			if p.happens(a.Absent) {
				continue
			}
			c := votes.Approve
			if p.happens(a.Against) {
				c = votes.Reject
			}
			w.courier(w.pendingBallot(v, q, c), at)
			if v.fickle {
				w.courier(w.pendingBallot(v, q, c.Other()), at)
			}
		}
	}
}

// happens decides by chance.
func (p *polls) happens(s scenario.Share) bool { return p.rand.Int64N(million) < int64(s) }

func (p *polls) upTo(most time.Duration) time.Duration {
	return time.Duration(p.rand.Int64N(int64(most) + 1))
}

// undoable is a question that another one can undo, nil if there is none, or if none is to be undone.
func (p *polls) undoable() *question {
	for _, q := range p.questions {
		if len(q.puts) > 0 && len(q.drops) == 0 && !q.undone {
			return q
		}
	}
	return nil
}

// undoing makes a question that deletes what another one puts.
func (w *World) undoing(of *question, author *Node) *question {
	q := &question{author: author, drops: of.puts}
	var t scope.Txn
	for _, key := range of.puts {
		t.Success = append(t.Success, scope.Op{Kind: scope.OpDelete, Key: []byte(key)})
	}
	return w.signed(q, t)
}

// question makes a change of one key or two, that a node's client will ask for.
func (w *World) question(author *Node) *question {
	p := &w.polls
	q := &question{author: author}
	var t scope.Txn
	first := p.rand.IntN(w.Scenario.Approval.Keys)
	for i := range 1 + p.rand.IntN(2) {
		key := fmt.Sprintf("%s%d", prefix, (first+i)%w.Scenario.Approval.Keys)
		if i > 0 && key == string(t.Success[0].Key) {
			break
		}
		if p.rand.IntN(4) == 0 {
			q.drops = append(q.drops, key)
			t.Success = append(t.Success, scope.Op{Kind: scope.OpDelete, Key: []byte(key)})
		} else {
			q.puts = append(q.puts, key)
			t.Success = append(t.Success, scope.Op{Kind: scope.OpPut, Key: []byte(key), Value: fmt.Appendf(nil, "%d", len(p.questions))})
		}
	}
	return w.signed(q, t)
}

// signed has the author of a question sign its transaction.
func (w *World) signed(q *question, t scope.Txn) *question {
	p, author := &w.polls, q.author
	m := w.mutation(t, binary.BigEndian.AppendUint64([]byte("question"), uint64(len(p.questions))))
	now := w.watch.time.from(w.now)
	m.ValidUntil = now.Add(w.Scenario.Stop + 5*time.Minute)
	if lim := &w.Genesis.Policy.Limits; lim.Pending > lim.ValidFor {
		m.ValidUntil, m.Patient = now.Add(lim.Pending), true
	} else if most := now.Add(lim.ValidFor); m.ValidUntil > most {
		m.ValidUntil = most
	}
	var err error
	key := author.author
	if a := &w.Scenario.Approval; a.StepUp && p.happens(a.Own) {
		key = p.voters[p.rand.IntN(a.Approvers)].key
	}
	q.bundle, err = scope.Sign(key, w.Genesis.Policy.Limits, m)
	must.OK(err, "signing a question")
	q.id = q.bundle.Mutations()[0].ID
	return q
}

// ask asks until the chain has it.
func (q *question) ask() {
	q.author.log("asks", "%s", q.id.Short())
	q.author.insist(q.bundle, func(o *scope.Outcome) { q.author.log("asked", "%s: %s %s", q.id.Short(), o.Code, o.Reason) })
}

func (q *question) withdraw() {
	m := q.author.world.mutation(scope.Txn{}, []byte("withdraws"))
	m.Class, m.Content = scope.Withdraw, canon.Encode(scope.Withdrawal{Motion: q.id})
	b, err := scope.Sign(q.author.author, q.author.world.Genesis.Policy.Limits, m)
	must.OK(err, "signing a withdrawal")
	q.author.log("withdraws", "%s", q.id.Short())
	q.author.insist(b, func(*scope.Outcome) {})
}

func (n *Node) log(kind, format string, args ...any) { n.world.log(n, kind, format, args...) }

// insist submits a bundle again and again until it is answered, or faults and
// clients are over.
func (n *Node) insist(b *scope.CheckedBundle, done func(*scope.Outcome)) {
	w, answered := n.world, false
	var ask func()
	ask = func() {
		if answered || !w.firing {
			return
		}
		if n.machine != nil {
			n.propose(machine.Submit{Bundle: b}, func(r machine.Reply) {
				if r.Outcome != nil {
					answered = true
					done(r.Outcome)
				}
			})
		}
		w.at(askAgain, ask)
	}
	ask()
}

// pendingBallot makes a voter sign.
func (w *World) pendingBallot(v *voter, q *question, c votes.Choice) *pendingBallot {
	s := &pendingBallot{by: v, on: q, ballot: w.ballotOn(q.id, c, v.key)}
	w.polls.slips = append(w.polls.slips, s)
	return s
}

// ballotOn signs a ballot on a motion.
func (w *World) ballotOn(m votes.MotionID, c votes.Choice, key votes.PrivateKey) votes.MotionBallot {
	b := votes.MotionBallot{
		MotionVote: votes.MotionVote{Network: w.Genesis.Hash(), Scope: w.Genesis.Hash(), Motion: m, Choice: c},
		Voter:      key.Public().ID(), Algorithm: votes.EdDSA,
	}
	b.Signature = key.Sign(votes.ContextCOSE, b.SigningBytes())
	return b
}

// courier carries a ballot on a question that is asked at an instant to its nodes.
func (w *World) courier(s *pendingBallot, asked time.Duration) {
	p, a := &w.polls, &w.Scenario.Approval
	for range a.Nodes {
		at := asked + p.upTo(time.Second)
		switch {
		case p.happens(a.Lost):
			continue
		case p.happens(a.Early):
			at = max(0, asked-p.upTo(2*time.Second))
		case p.happens(a.Offline):
			at = asked + p.upTo(a.Delay)
		}
		n := w.Nodes[p.rand.IntN(len(w.Nodes))]
		if s.by.own != nil && p.rand.IntN(3) == 0 {
			n = s.by.own
		}
		carry := func() {
			if w.firing {
				s.handIn(n)
			}
		}
		w.at(at, carry)
		if p.happens(a.Twice) {
			w.at(at+p.upTo(2*time.Second), carry)
		}
	}
}

// handIn hands the ballot in at a node, if that is up.
func (s *pendingBallot) handIn(n *Node) {
	s.tries++
	w := n.world
	n.handIn(s.ballot, n == s.by.own, func(c machine.Casting) {
		w.log(n, "cast", "%s of %s on %s: %v, late %v, %v", s.ballot.Choice, s.by.name, s.on.id.Short(), c.Outcome, c.Late, c.Err)
		if c.Err == nil {
			s.taken = append(s.taken, taken{n, c.Late})
			w.watch.reach("ballot taken")
			if w.watch.motions.all[s.on.id] == nil {
				w.watch.reach("early ballot")
			}
		}
		if c.Err == nil && !s.by.fickle && !n.excused() {
			w.holds(Boxes, n, c.Outcome != box.Equivocated, "takes the only ballot of %s on motion %s for the second", s.by.name, s.on.id.Short())
		}
	})
}

// handIn gives a ballot to the node's machine, and the machine's answer to done.
func (n *Node) handIn(b votes.MotionBallot, own bool, done func(machine.Casting)) {
	w := n.world
	if n.machine == nil || n.liar != nil && n.liar.dropsBallot() {
		return
	}
	c, err := votes.CheckMotionBallot(b, w.Genesis.Hash(), w.Genesis.Hash(), w.polls.keys, w.verify)
	must.OK(err, "checking a voter's ballot")
	event := func(id uint64) machine.Event {
		return machine.HandIn{ID: id, Ballots: []votes.CheckedMotionBallot{c}, Own: own}
	}
	n.ask("ballot", event, func(r machine.Reply) { done(r.Cast[0]) })
}

// collect brings every ballot that no honest node took to an honest anchor, when the
// faults are over: at once, and again until it is taken.
func (w *World) collect() {
	p := &w.polls
	for _, s := range p.slips {
		var carry func()
		carry = func() {
			core := w.sitting()
			if len(core) == 0 || w.watch.motions.settled(s) || s.safe() {
				return
			}
			s.handIn(core[p.rand.IntN(len(core))])
			w.at(time.Second, carry)
		}
		w.at(p.upTo(3*time.Second), carry)
	}
}

// safe reports whether an honest node has taken the ballot.
func (s *pendingBallot) safe() bool {
	return slices.ContainsFunc(s.taken, func(t taken) bool { return t.at.honest() })
}

// holds reports whether a node's disk holds a ballot for a block to come: in its box
// or, if the motion is closed, under a key of its own.
func (n *Node) holds(b *votes.MotionBallot) bool {
	scope, id := n.world.Genesis.Hash(), b.ID()
	boxed := slices.Concat([]byte{'b'}, scope[:], []byte{'m'}, b.Motion[:], b.Voter[:], []byte{byte(b.Choice)})
	late := slices.Concat([]byte{'n'}, scope[:], []byte{'l'}, id[:])
	for _, key := range [][]byte{boxed, late} {
		_, ok, err := n.Disk.Get(key)
		if must.OK(err, "reading a ballot"); ok {
			return true
		}
	}
	return false
}

// recorded reports whether a node's chain has a ballot.
func (n *Node) recorded(b *votes.MotionBallot) bool {
	have, err := n.state().HasBallot(b.MotionVote, b.Voter)
	must.OK(err, "reading a ballot")
	return have
}
