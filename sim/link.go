package sim

import (
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
)

// million is the whole of a Share.
const million = 1_000_000

// frame is a message on a link. It is checked once for all nodes that receive it
// in one epoch: they share a roster, so that the answer is the same for all.
type frame struct {
	raw     []byte
	hash    aweigh.Hash      // of raw, for the trace; zero until it is needed
	checker *machine.Checker // that gave msg and err
	msg     machine.Message
	err     error
	forged  bool // by a liar, on purpose
	parsed  bool
	content any // as machine.Parse gives it, nil if it gives none
}

// open is the frame's content, whether it verifies or not.
func (f *frame) open() any {
	if !f.parsed {
		f.parsed = true
		f.content, _ = machine.Parse(f.raw)
	}
	return f.content
}

func (w *World) check(from, to *Node, f *frame) (machine.Message, error) {
	if c := to.machine.Checker(); f.checker != c {
		f.checker = c
		if f.msg, f.err = c.Check(from.Peer, f.raw); f.err == nil && from.liar != nil {
			w.watch.passes(from, to, f)
		}
		if f.forged && w.events%someDoubled == 0 {
			w.watch.doubles(from, to, f)
		}
	}
	return f.msg, f.err
}

// wires are the links between all nodes, with their faults.
type wires struct {
	world   *World
	model   delayModel
	loss    int64 // parts per million of frames
	twice   int64
	reorder int64
	cut     map[pair]int // directions that carry nothing, by how many faults
	clogged map[int]int  // nodes, by how many faults
	held    []event      // frames that wait for a clog to end
	late    []lateness   // faults that delay frames
	parted  bool         // a node learned that another is out of reach

	messages, bytes uint64
}

// pair is one direction between two nodes, by their index.
type pair struct{ from, to int }

func (l *wires) open(w *World) {
	s := w.Scenario
	*l = wires{
		world: w, model: newDelayModel(s.Links),
		loss: int64(s.Faults.Loss), twice: int64(s.Faults.Duplicate), reorder: int64(s.Faults.Reorder),
		cut: make(map[pair]int), clogged: make(map[int]int),
	}
}

// send puts a frame on its way, after a time in which its sender holds it back.
func (w *World) send(from, to *Node, f *frame, wait time.Duration) {
	l := &w.wires
	l.messages++
	l.bytes += uint64(len(f.raw))
	if len(l.late) > 0 {
		wait += l.hold(from, to, f)
	}
	if w.number == 0 && w.firing {
		switch fate := w.script.next(from, to, f); {
		case fate.Lost:
			return
		case fate.Twice:
			w.push(event{at: w.now.Add(wait + fate.Wait), to: to, from: from, frame: f, sent: w.now})
		default:
			wait += fate.Wait
		}
	}
	copies := 1
	if l.loss > 0 && w.links.Int64N(million) < l.loss {
		copies = 0
	} else if l.twice > 0 && w.links.Int64N(million) < l.twice {
		copies = 2
	}
	for range copies {
		d := l.model.delay(w.links, from.number(), to.number())
		if l.reorder > 0 && w.links.Int64N(million) < l.reorder {
			d *= time.Duration(2 + w.links.IntN(9))
		}
		w.push(event{at: w.now.Add(wait + d), to: to, from: from, frame: f, sent: w.now})
	}
}

// arrive delivers a frame, unless a fault prevents it.
func (w *World) arrive(e event) {
	l, from, to := &w.wires, e.from, e.to
	if to.machine == nil || len(l.cut) > 0 && l.cut[pair{from.Index, to.Index}] > 0 {
		return
	}
	if len(l.clogged) > 0 && (l.clogged[from.Index] > 0 || l.clogged[to.Index] > 0) {
		l.held = append(l.held, e)
		return
	}
	if to.liar != nil && !to.liar.hear(from, e.frame) {
		return
	}
	msg, err := w.check(from, to, e.frame)
	if err != nil {
		w.watch.refused(from, to, e.frame, err)
		return
	}
	w.recordFrame(to, from, e.frame)
	if w.text != nil {
		w.say("%s < %s %s", to, from, describe(e.frame))
	}
	if w.marks.most > 0 {
		w.mark(Mark{Node: to.number(), From: from.number(), Sent: e.sent.Sub(start), Kind: "message", Text: describe(e.frame)})
	}
	w.watch.heard(from, to, e.frame)
	reminds, epoch, life := w.watch.reminds(from, to, e.frame), to.machine.Epoch().Number, to.life
	to.take(machine.Arrived{From: from.Peer, Message: msg})
	if reminds {
		w.watch.reminded(to, epoch, life)
	}
	if e.frame.forged {
		w.watch.keeps(to)
	}
}

// block cuts one direction between two nodes, or gives it back.
func (l *wires) block(from, to *Node, on bool) {
	p := pair{from.Index, to.Index}
	if on {
		l.cut[p]++
		return
	}
	if l.cut[p]--; l.cut[p] <= 0 {
		delete(l.cut, p)
	}
}

// clog holds back all frames to and from a node, or delivers them at once.
func (l *wires) clog(n *Node, on bool) {
	if on {
		l.clogged[n.Index]++
		return
	}
	if l.clogged[n.Index]--; l.clogged[n.Index] > 0 {
		return
	}
	delete(l.clogged, n.Index)
	held := l.held
	l.held = nil
	for _, e := range held {
		e.at = l.world.now.Add(l.model.delay(l.world.links, e.from.number(), e.to.number()))
		l.world.push(e) // those still clogged at one end wait again
	}
}

// reaches reports whether two nodes can talk with each other.
func (l *wires) reaches(a, b *Node) bool {
	return a.machine != nil && b.machine != nil && l.cut[pair{a.Index, b.Index}] == 0 && l.cut[pair{b.Index, a.Index}] == 0
}

// meet tells a node and all nodes that it can reach that they are connected.
// Each passes it to all its parts for which the other has one.
func (l *wires) meet(n *Node) {
	for i, p := range n.parts {
		var met []machine.Event
		for _, o := range l.world.Nodes {
			if o.body == n.body || o.Peer == n.Peer || !l.reaches(n.root(), o) {
				continue
			}
			met = append(met, machine.Met{Peer: o.Peer})
			if q := o.parts[i]; q.machine != nil {
				q.soon(machine.Met{Peer: n.Peer})
			}
		}
		if p.machine != nil {
			p.soon(met...)
		}
	}
}

// greet tells a part that was opened with whom its node is connected.
func (l *wires) greet(n *Node) {
	var met []machine.Event
	for _, o := range l.world.Nodes {
		if o.Peer != n.Peer && l.reaches(n.root(), o) {
			met = append(met, machine.Met{Peer: o.Peer})
		}
	}
	n.soon(met...)
}

// part makes a node and the others learn, or not, that it is out of their reach.
func (l *wires) part(n *Node) {
	for _, o := range l.world.Nodes {
		if o != n && o.Peer != n.Peer && o.machine != nil && !l.reaches(n, o) && l.world.links.IntN(2) == 0 {
			l.parted = true
			for i, p := range n.parts {
				o.parts[i].soon(machine.Parted{Peer: n.Peer})
				p.soon(machine.Parted{Peer: o.Peer})
			}
		}
	}
}
