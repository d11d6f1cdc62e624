package quorum_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/quorum/monitor"
)

// network is a small deterministic world of engines: anchors 1 to n, a queue of
// messages that only a test delivers, and a clock that only a test moves. It
// plays the part of package node: it "signs", keeps the durable record, and
// checks blocks.
type network struct {
	cfg    quorum.Config
	peers  []*peer // peers[i] is anchor i+1
	queue  []message
	now    aweigh.Instant
	blocks map[aweigh.Hash]block
	cast   map[string]bool // every vote ever signed, by signature
	model  *monitor.Epoch  // to which votes of anchors that do not lie are held

	dies   func() bool // whether a peer stops and starts again in the middle of a step
	gossip bool        // pass every certificate on at once (P11); offers do it later
	log    func(format string, args ...any)
	broken func(format string, args ...any) // an invariant does not hold

	faults  int
	highest aweigh.Hash // the highest block that is final anywhere
	finalAt map[aweigh.View]aweigh.Hash
}

// block is the content that a hash stands for. It carries all mutations of its
// branch, as bits.
type block struct {
	name    string
	view    aweigh.View
	parent  aweigh.Hash
	content uint64
	bad     bool
}

// peer is one anchor: an engine, or nil for a liar or one that is down, and
// what would be on its disk.
type peer struct {
	id     int
	as     int // the anchor that it is: id, but for a twin
	engine *quorum.Engine
	liar   bool

	votes     []quorum.Vote
	certs     []quorum.Certificate
	grounds   map[aweigh.View][]quorum.Vote
	proposals map[aweigh.View]parcel
	finals    []aweigh.Hash

	content map[aweigh.Hash]bool // blocks whose content it has; on disk are those that it voted for

	known   uint64      // mutations that this peer was given
	tip     aweigh.Hash // the highest block certified
	carried uint64      // mutations in the tip or the proposal of the current view
	working bool        // of the last Work
	wake    aweigh.Instant
	view    aweigh.View // as last logged
	offers  int
}

// parcel is a proposal with the certificates that show its place (P12).
type parcel struct {
	proposal quorum.Proposal
	proof    []quorum.Certificate
}

// message is one thing on the way: a vote, a certificate, a parcel or an offer.
type message struct {
	from, to int
	body     any
	at       aweigh.Instant // when it was sent
	view     aweigh.View    // in which its sender was
}

var start = aweigh.Instant(time.Hour)

func newNetwork(cfg quorum.Config, liars ...int) *network {
	n := &network{
		cfg: cfg, now: start,
		blocks:  map[aweigh.Hash]block{cfg.Root: {name: "root"}},
		cast:    map[string]bool{},
		log:     func(string, ...any) {},
		broken:  func(f string, args ...any) { panic(fmt.Sprintf(f, args...)) },
		highest: cfg.Root,
		finalAt: map[aweigh.View]aweigh.Hash{},
	}
	n.model = monitor.New(monitor.Config{
		Weights: cfg.Weights, Rules: cfg.Rules, Root: cfg.Root,
		Lies: func(a aweigh.AnchorID) bool { return slices.Contains(liars, n.id(a)) },
	})
	for i := range cfg.Weights.Len() {
		p := &peer{id: i + 1, as: i + 1, liar: slices.Contains(liars, i+1), proposals: map[aweigh.View]parcel{}, grounds: map[aweigh.View][]quorum.Vote{}, content: map[aweigh.Hash]bool{}, view: 1, tip: cfg.Root}
		if !p.liar {
			p.engine = quorum.NewEngine(n.config(p))
		}
		n.peers = append(n.peers, p)
	}
	return n
}

func (n *network) config(p *peer) quorum.Config {
	cfg := n.cfg
	cfg.Self = anchor(p.as)
	return cfg
}

func (n *network) peer(id int) *peer { return n.peers[id-1] }

// twin runs a lying anchor twice on its key: both machines do what an honest one does.
func (n *network) twin(liar int) {
	p := n.peer(liar)
	q := &peer{id: len(n.peers) + 1, as: p.as, liar: true, proposals: map[aweigh.View]parcel{}, grounds: map[aweigh.View][]quorum.Vote{}, content: map[aweigh.Hash]bool{}, view: 1, tip: n.cfg.Root}
	p.engine, q.engine = quorum.NewEngine(n.config(p)), quorum.NewEngine(n.config(q))
	n.peers = append(n.peers, q)
}

// sign makes anchor id's vote; the signature is its purpose in clear text.
func (n *network) sign(id int, s quorum.Subject) quorum.Vote {
	sig := fmt.Sprintf("%d: %s %d %s", id, s.Kind, s.View, s.Block)
	n.cast[sig] = true
	return quorum.Vote{Subject: s, Signature: quorum.Signature{Anchor: anchor(id), Bytes: []byte(sig)}}
}

// genuine reports whether a certificate is one: signatures really given, in
// order, of weight enough (P6).
func (n *network) genuine(c quorum.Certificate) bool {
	for i, s := range c.Signatures {
		id := n.id(s.Anchor)
		sig := fmt.Sprintf("%d: %s %d %s", id, c.Subject.Kind, c.Subject.View, c.Subject.Block)
		if string(s.Bytes) != sig || !n.cast[sig] || i > 0 && bytes.Compare(c.Signatures[i-1].Anchor[:], s.Anchor[:]) >= 0 {
			return false
		}
	}
	tally := c.Tally(n.cfg.Weights)
	return tally.Meets(n.cfg.Rules.For(c.Subject.Kind), n.cfg.Weights)
}

func (n *network) id(a aweigh.AnchorID) int { return int(a[0])<<8 | int(a[1]) }

// block makes the block of a name: "b3" or, for another of the view, "b3x".
func (n *network) block(name string, v aweigh.View, parent aweigh.Hash, adds uint64) aweigh.Hash {
	h := aweigh.Sum([]byte(name), parent[:])
	n.blocks[h] = block{name: name, view: v, parent: parent, content: n.blocks[parent].content | adds}
	n.model.Propose(h, parent, v)
	return h
}

func (n *network) name(h aweigh.Hash) string { return n.blocks[h].name }

// find is the block of a name, the youngest if there are several.
func (n *network) find(name string) (found aweigh.Hash) {
	for h, b := range n.blocks {
		if b.name == name && (found.IsZero() || bytes.Compare(h[:], found[:]) > 0) {
			found = h
		}
	}
	return found
}

// say is a subject with the block's name, as in "notarize b1" and "nullify 1".
func (n *network) say(s quorum.Subject) string {
	if s.Kind == quorum.Nullify {
		return fmt.Sprintf("nullify %d", s.View)
	}
	return fmt.Sprintf("%s %s", s.Kind, n.name(s.Block))
}

func (n *network) signers(c quorum.Certificate) string {
	var ids []string
	for _, s := range c.Signatures {
		ids = append(ids, fmt.Sprint(n.id(s.Anchor)))
	}
	return strings.Join(ids, ",")
}

// send puts a message to every other anchor, or to those named, on the queue.
func (n *network) send(from int, body any, to ...int) {
	view := aweigh.View(0)
	if e := n.peer(from).engine; e != nil {
		view = e.View()
	}
	for _, p := range n.peers {
		if p.id != from && (len(to) == 0 || slices.Contains(to, p.id)) {
			n.queue = append(n.queue, message{from, p.id, body, n.now, view})
		}
	}
}

// receive gives a message to its addressee.
func (n *network) receive(m message) {
	p := n.peer(m.to)
	if p.engine == nil {
		return
	}
	switch body := m.body.(type) {
	case quorum.Vote:
		n.step(p, body)
	case quorum.Certificate:
		n.step(p, body)
	case parcel:
		p.content[body.proposal.Vote.Block] = true
		n.step(p, append(inputs(body.proof), body.proposal)...)
	case quorum.Offer:
		in := inputs(body.Certificates)
		for _, v := range body.Votes {
			in = append(in, v)
		}
		n.step(p, in...)
		if p.engine != nil && (body.View < p.engine.View() || body.Final < p.engine.Final()) {
			n.offer(p, p.engine.Holdings(), m.from)
		}
	}
}

func inputs(certs []quorum.Certificate) (in []quorum.Input) {
	for _, c := range certs {
		in = append(in, c)
	}
	return in
}

// offer sends a peer's holdings, with the proposal that it names.
func (n *network) offer(p *peer, o quorum.Offer, to ...int) {
	n.send(p.id, o, to...)
	if o.Propose > 0 {
		n.send(p.id, p.proposals[o.Propose], to...)
	}
}

// step takes a peer through its inputs and all that follows from them within
// the peer itself.
func (n *network) step(p *peer, in ...quorum.Input) {
	for {
		out := p.engine.Step(n.now, in...)
		if n.dies != nil && n.dies() { // before anything was durable, or sent
			n.restart(p)
			return
		}
		in = n.follow(p, out)
		if work := p.known&^p.carried != 0; work != p.working {
			p.working = work
			in = append(in, quorum.Work(work))
		}
		for _, v := range p.engine.Unplaced() { // asks for the block
			if n.obtain(p, v.Block) {
				b := n.blocks[v.Block]
				in = append(in, quorum.Proposal{Vote: v, Parent: b.parent})
			}
		}
		if len(in) == 0 {
			p.wake = out.Wake
			if p.wake != 0 && p.wake <= n.now {
				n.broken("%d: wants to wake at %s, it is %s", p.id, p.wake.Sub(start), n.now.Sub(start))
			}
			return
		}
	}
}

// follow carries out an output, in its order, and returns the inputs that follow.
func (n *network) follow(p *peer, out quorum.Output) (in []quorum.Input) {
	for _, c := range out.Certified {
		if !n.genuine(c) {
			n.broken("%d: no certificate: %s by %s", p.id, n.say(c.Subject), n.signers(c))
		}
		p.certs = append(p.certs, c)
		n.log("%d: certificate %s by %s", p.id, n.say(c.Subject), n.signers(c))
		if b := n.blocks[c.Subject.Block]; c.Subject.Kind != quorum.Nullify && b.view > n.blocks[p.tip].view {
			p.tip = c.Subject.Block
		}
	}
	for _, g := range out.Grounds {
		p.grounds[g.View] = g.Votes
	}
	if v := p.engine.View(); v != p.view {
		p.view = v
		p.carried = n.blocks[p.tip].content // the content of a nullified view's block is work again
		n.log("%d: enter view %d, led by %d", p.id, v, n.id(p.engine.Leader(v)))
	}
	for _, s := range out.Sign {
		in = append(in, n.vote(p, s))
	}
	for _, c := range out.Final {
		n.finalize(p, c.Subject)
	}
	for _, s := range out.Sign {
		if out.Build != nil && s.View == out.Build.View && s.Kind == quorum.Nullify {
			n.broken("%d: shall build for view %d, and give it up", p.id, s.View)
		}
	}
	if s := out.Build; s != nil {
		in = append(in, n.build(p, *s)...)
	}
	for _, c := range out.Check {
		b := n.blocks[c.Vote.Block]
		if !n.obtain(p, b.parent) {
			continue
		}
		if !b.bad {
			p.carried = b.content
		}
		in = append(in, quorum.Verdict{View: c.Vote.View, Block: c.Vote.Block, Valid: !b.bad})
	}
	n.faults += len(out.Faults)
	for _, f := range out.Faults {
		n.log("%d: fault of %d: %s, %s", p.id, n.id(f.First.Anchor), n.say(f.First.Subject), n.say(f.Second.Subject))
		if f.First.Anchor != f.Second.Anchor || !f.First.Conflicts(f.Second.Subject) || !n.peer(n.id(f.First.Anchor)).liar {
			n.broken("%d: no fault: %v", p.id, f)
		}
	}
	if o := out.Offer; o != nil {
		p.offers++
		n.log("%d: offer %s", p.id, n.sayOffer(*o))
		n.offer(p, *o)
	}
	if n.gossip {
		for _, c := range out.Certified {
			n.send(p.id, c)
		}
	}
	return in
}

// vote is the signing guard: it keeps the record and refuses what conflicts.
func (n *network) vote(p *peer, s quorum.Subject) quorum.Vote {
	for _, v := range p.votes {
		if v.Conflicts(s) || v.Subject == s {
			n.broken("%d: signed %s and now %s (P7)", p.id, n.say(v.Subject), n.say(s))
		}
	}
	v := n.sign(p.as, s)
	p.votes = append(p.votes, v)
	n.hold(p, s)
	n.log("%d: %s", p.id, n.say(s))
	n.send(p.id, v)
	return v
}

// hold holds a vote to the model.
func (n *network) hold(p *peer, s quorum.Subject) {
	if err := n.model.Vote(anchor(p.as), s); err != nil {
		n.broken("%d: signed %s, which the model forbids: %v", p.id, n.say(s), err)
	}
}

func (n *network) build(p *peer, s quorum.Slot) []quorum.Input {
	if !n.obtain(p, s.Parent) {
		return nil
	}
	h := n.block(fmt.Sprintf("b%d", s.View), s.View, s.Parent, p.known)
	v := n.sign(p.as, quorum.Subject{Kind: n.cfg.Rules.Mode.Vouch(), View: s.View, Block: h})
	for _, old := range p.votes {
		if old.Conflicts(v.Subject) {
			n.broken("%d: signed %s and now %s (P7)", p.id, n.say(old.Subject), n.say(v.Subject))
		}
	}
	m := parcel{quorum.Proposal{Vote: v, Parent: s.Parent, ParentView: s.ParentView}, s.Proof}
	p.votes = append(p.votes, v)
	n.hold(p, v.Subject)
	p.proposals[s.View] = m
	p.content[h] = true
	empty := ""
	if n.blocks[h].content == n.blocks[s.Parent].content {
		empty = ", empty"
	}
	n.log("%d: propose %s on %s with %d certificates%s", p.id, n.name(h), n.name(s.Parent), len(s.Proof), empty)
	n.send(p.id, m)
	p.carried = n.blocks[h].content
	return []quorum.Input{m.proposal}
}

// finalize checks agreement: one final block in a view, and one chain.
func (n *network) finalize(p *peer, s quorum.Subject) {
	n.log("%d: final %s", p.id, n.name(s.Block))
	p.finals = append(p.finals, s.Block)
	if h, ok := n.finalAt[s.View]; ok && h != s.Block {
		n.broken("fork: view %d has two final blocks", s.View)
	}
	n.finalAt[s.View] = s.Block
	if n.descends(s.Block, n.highest) {
		n.highest = s.Block
	} else if !n.descends(n.highest, s.Block) {
		n.broken("fork: %s and %s are both final", n.name(n.highest), n.name(s.Block))
	}
}

func (n *network) descends(h, from aweigh.Hash) bool {
	for ; h != from; h = n.blocks[h].parent {
		if h == n.cfg.Root || h.IsZero() {
			return false
		}
	}
	return true
}

func (n *network) sayOffer(o quorum.Offer) string {
	var parts []string
	for _, c := range o.Certificates {
		parts = append(parts, "["+n.say(c.Subject)+"]")
	}
	for _, v := range o.Votes {
		parts = append(parts, fmt.Sprintf("%d:%s", n.id(v.Anchor), n.say(v.Subject)))
	}
	if o.Propose > 0 {
		parts = append(parts, fmt.Sprintf("proposal %d", o.Propose))
	}
	return fmt.Sprintf("view %d final %d: %s", o.View, o.Final, strings.Join(parts, " "))
}

// deliver delivers matching messages, and those that follow, until none is left.
func (n *network) deliver(match func(message) bool) {
	for i := 0; i < len(n.queue); {
		if m := n.queue[i]; match == nil || match(m) {
			n.queue = slices.Delete(n.queue, i, i+1)
			n.receive(m)
			i = 0
		} else {
			i++
		}
	}
}

// tick moves the clock, waking every engine when it asked to be woken.
func (n *network) tick(d time.Duration) {
	for end := n.now.Add(d); ; {
		var next *peer
		for _, p := range n.peers {
			if p.engine != nil && p.wake != 0 && p.wake <= end && (next == nil || p.wake < next.wake) {
				next = p
			}
		}
		if next == nil {
			n.now = end
			return
		}
		n.now = next.wake
		n.step(next)
	}
}

// run delivers everything at once whenever there is something, for a while.
func (n *network) run(d time.Duration) {
	for end := n.now.Add(d); n.now < end; {
		n.deliver(nil)
		wake := end
		for _, p := range n.peers {
			if p.engine != nil {
				wake = min(wake, cmpWake(p.wake, end))
			}
		}
		n.tick(wake.Sub(n.now))
	}
	n.deliver(nil)
}

// meet exchanges all holdings between all anchors, as peers do that connect
// again.
func (n *network) meet() {
	for _, p := range n.peers {
		if p.engine != nil {
			n.offer(p, p.engine.Holdings())
		}
	}
}

// runDelayed advances time, while every message takes the same delay.
func (n *network) runDelayed(delay, d time.Duration) {
	for end := n.now.Add(d); n.now < end; n.tick(10 * time.Millisecond) {
		late := n.now.Add(-delay)
		n.deliver(func(m message) bool { return m.at <= late })
	}
}

func cmpWake(wake, end aweigh.Instant) aweigh.Instant {
	if wake == 0 {
		return end
	}
	return wake
}

// work gives a new mutation to some peers, or to all.
func (n *network) work(mutation int, ids ...int) {
	for _, p := range n.peers {
		if len(ids) == 0 || slices.Contains(ids, p.id) {
			p.known |= 1 << mutation
			if p.engine != nil {
				n.step(p)
			}
		}
	}
}

func (n *network) crash(p *peer) { p.engine, p.wake = nil, 0 }

// obtain gets the content of a block and its ancestors from any anchor that has it.
// A liar's block exists by name only; the network makes its content up.
func (n *network) obtain(p *peer, h aweigh.Hash) bool {
	for ; h != n.cfg.Root && !h.IsZero() && n.cfg.Rules.Mode != quorum.BFT && !p.content[h]; h = n.blocks[h].parent {
		if !slices.ContainsFunc(n.peers, func(q *peer) bool { return q.engine != nil && q.content[h] }) {
			return false
		}
		p.content[h] = true
	}
	return true
}

// restart starts a peer anew from its record.
func (n *network) restart(p *peer) {
	kept := map[aweigh.Hash]bool{}
	for _, v := range p.votes {
		if !v.Block.IsZero() {
			kept[v.Block] = true
		}
	}
	for _, h := range p.finals {
		for ; h != n.cfg.Root && !kept[h]; h = n.blocks[h].parent {
			kept[h] = true
		}
	}
	p.content = kept
	p.engine = quorum.NewEngine(n.config(p))
	all := slices.Clone(p.votes)
	for v := range p.view + quorum.Ahead {
		all = append(all, p.grounds[v]...)
	}
	p.engine.Restore(all, p.certs)
	p.carried, p.working = n.blocks[p.tip].content, false
	p.view = p.engine.View()
	n.log("%d: restart in view %d, final %d", p.id, p.view, p.engine.Final())
	in := []quorum.Input{}
	if m, ok := p.proposals[p.view]; ok {
		in = append(in, m.proposal)
	}
	n.step(p, in...)
}

// best is the highest block that a peer has final.
func (n *network) best(p *peer) aweigh.Hash {
	if len(p.finals) == 0 {
		return n.cfg.Root
	}
	return p.finals[len(p.finals)-1]
}
