package sim

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
)

// piece is some keys of a question, which one scope governs but for what it gave to others.
type piece struct {
	at        *Node // the part of the node in that scope
	key, end  []byte
	seen      store.Snapshot // as it was read
	height    aweigh.Height  // then
	life      int
	waits     aweigh.Instant // until then it waits for a block that claims what was read
	mayCover  aweigh.Instant // from then on it writes one
	isCovered bool
}

// proving is the work of a node on one answer, as node.ProveRange does it: a linearizable read in each scope, and then
// a final block whose header claims what was read.
type proving struct {
	*inquest
	at     *Node
	try    int // of the question
	left   []*piece
	proof  *scope.RangeProof
	states []*scope.State // that the parts are of
	nodes  []*Node
	done   func(error)
}

const (
	claimRetry   = 20 * time.Millisecond
	claimWaits   = 200 * time.Millisecond // for a block that comes by itself
	provenWithin = 2 * time.Second
	mostProven   = 4 << 20
)

// serve answers a question as a node does, or as a liar likes to. lie names what it does.
func (q *inquest) serve(at *Node, try int, answer func(raw []byte, lie string, err error)) {
	x := &proving{inquest: q, at: at, try: try, proof: &scope.RangeProof{Key: q.question.Key, End: q.question.End}}
	x.done = func(err error) {
		if at.liar != nil && at.liar.on() {
			at.liar.misprove(x, err, answer)
			return
		}
		if err != nil {
			answer(nil, "", err)
			return
		}
		answer(x.proof.Encode(), "", nil)
	}
	x.left = []*piece{{at: at.governs(q.question.Key, q.question.End), key: q.question.Key, end: q.question.End}}
	x.next()
}

// governs is the node's part in the scope that governs a range, as far as it knows.
func (n *Node) governs(key, end []byte) *Node {
	p := n.root()
	for p.machine != nil {
		s := scope.Segments(p.machine.Delegations(), key, end)
		if len(s) != 1 || s[0].Given == nil {
			break
		}
		c := n.world.find(s[0].Given.Child)
		if c == nil {
			break
		}
		p = c.Nodes[n.Index]
	}
	return p
}

// serves reports whether the part of a node can answer.
func (n *Node) serves() bool { return n.machine != nil && !n.disk.failing() && !n.spoiled }

// next reads the next piece.
func (x *proving) next() {
	if len(x.left) == 0 {
		x.done(nil)
		return
	}
	p := x.left[0]
	x.left = x.left[1:]
	if !p.at.serves() {
		x.done(errRefused)
		return
	}
	p.at.Read(func(r machine.Reply) {
		switch {
		case r.Refused != nil:
			x.done(r.Refused)
		case !p.at.serves():
			x.done(errRefused)
		default:
			now := x.w.now
			p.seen, p.height, p.life = p.at.Disk.Snapshot(), p.at.state().Height(), p.at.life
			p.waits, p.mayCover = now.Add(x.patience), now.Add(claimWaits)
			x.claim(p)
		}
	})
}

// claim shows a piece once a header claims it.
func (x *proving) claim(p *piece) {
	n := p.at
	if !n.serves() || n.life != p.life || x.over {
		x.done(errRefused)
		return
	}
	state, err := scope.Open(p.seen, n.world.id)
	if err != nil {
		x.done(err)
		return
	}
	by := n.prover()
	by.State = state.Within(n.world.bounds)
	a, err := by.Claim(n.local().Add(-provenWithin))
	if errors.Is(err, machine.ErrUncovered) {
		if x.w.now < p.waits {
			x.cover(p)
			x.w.at(claimRetry, func() { x.claim(p) })
			return
		}
		a, err = by.Claim(0) // the reader sees its time
	}
	if err == nil {
		err = x.show(p, a, by.State)
	}
	if err != nil {
		x.done(err)
		return
	}
	x.next()
}

// show adds a part about the piece, and goes on to the scopes below it.
func (x *proving) show(p *piece, a scope.Ancestry, s *scope.State) error {
	part, err := scope.NewRangePart(a, s, p.key, p.end, mostProven)
	if err != nil {
		return err
	}
	x.proof.Parts = append(x.proof.Parts, part)
	x.states, x.nodes = append(x.states, s), append(x.nodes, p.at)
	var below []*piece
	for _, l := range part.Below(p.key, p.end) {
		c := x.w.find(aweigh.ScopeID(l.Digest))
		if c == nil {
			return errRefused
		}
		key, end := scope.Intersect(l.Key, p.key, p.end)
		below = append(below, &piece{at: c.Nodes[p.at.Index], key: key, end: end})
	}
	x.left = append(below, x.left...)
	return nil
}

// cover has a node write a block where none comes by itself. Once the faults are over, earlier questions bring none.
func (x *proving) cover(p *piece) {
	w, n := p.at.world, p.at
	if p.isCovered || x.w.now < p.mayCover || n.Height != p.height || !w.firing && !x.last {
		return
	}
	p.isCovered = true
	n.Submit(w.mutation(scope.Txn{}, binary.BigEndian.AppendUint64(nil, x.rand.Uint64())), func(machine.Reply) {})
}
