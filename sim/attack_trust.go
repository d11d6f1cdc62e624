package sim

import (
	"encoding/binary"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/trust"
	"github.com/aweigh/aweigh/votes"
)

// omit keeps its victims' ballots out of the record: a member's machine never
// sees them, so that the blocks that it proposes reconcile others only (P27).
// None of its ballots is a lie, so there is no proof of a fault.
type omit struct{ plain }

func (*omit) hear(l *liar, _ *Node, f *frame) bool {
	missed := func(a aweigh.AnchorID) bool { return l.victim(l.w.Nodes[l.w.anchors[a]], 0) }
	out := false
	switch c := f.open().(type) {
	case votes.Ballot:
		out = c.Subject.Kind == l.w.attends() && missed(c.Anchor)
	case machine.Offer:
		out = slices.ContainsFunc(c.Votes, func(v machine.OfferedVote) bool {
			return v.Subject.Kind == l.w.attends() && missed(v.Signature.Anchor)
		})
	case machine.Announce:
		out = slices.ContainsFunc(c.Certificate.Signatures, func(s quorum.Signature) bool { return missed(s.Anchor) })
	}
	if out {
		l.told("omit", "%s is not heard", describe(f))
	}
	return !out
}

// sybil brings in identities of its own: every member without a seat applies on
// the surety of one that has weight.
type sybil struct {
	plain
	asked map[*Node]aweigh.Epoch // when each applied last
}

func (x *sybil) tick(l *liar) {
	if l.w.weight(l.n) == 0 || !l.w.firing {
		return
	}
	for _, m := range l.members {
		if seat, _ := l.w.watch.standing.seat(m); !seat.Seated && !seat.Barred && x.mayAsk(l, m) {
			l.told("sybil", "%s applies on the surety of %s", m, l.n)
			l.w.apply(m, l.n, l.members)
			return
		}
	}
}

// mayAsk reports whether a member may apply now: once in every eight epochs.
func (x *sybil) mayAsk(l *liar, m *Node) bool {
	now := l.w.epochs[len(l.w.epochs)-1].Number
	if at, ok := x.asked[m]; ok && now < at+8 {
		return false
	}
	if x.asked == nil {
		x.asked = make(map[*Node]aweigh.Epoch)
	}
	x.asked[m] = now
	return true
}

// whitewash leaves when its trust has fallen by a quarter, and applies again: as
// another identity of the coalition if one is left, otherwise as itself. An
// honest anchor stands surety, as long as the honest are fooled.
type whitewash struct {
	sybil
	best map[*Node]trust.Score
	left map[*Node]bool
}

func (x *whitewash) tick(l *liar) {
	if l.n.Face != 0 || !l.w.firing {
		return
	}
	if x.best == nil {
		x.best, x.left = make(map[*Node]trust.Score), make(map[*Node]bool)
	}
	seat, _ := l.w.watch.standing.seat(l.n)
	x.best[l.n] = max(x.best[l.n], seat.Score)
	switch {
	case seat.Seated && seat.Score < x.best[l.n]/4*3 && x.mayAsk(l, l.n):
		l.told("whitewash", "leaves with a score of %d", seat.Score)
		l.n.approve(scope.Decision{Kind: scope.Retire, Subject: l.n.anchorID()})
		x.left[l.n] = true
	case !seat.Seated && (x.left[l.n] || seat.Barred):
		to := l.n
		for _, m := range l.members {
			if _, known := l.w.watch.standing.seat(m); !known {
				to = m
				break
			}
		}
		if sitting := l.w.sitting(); len(sitting) > 0 && x.mayAsk(l, to) {
			x.best[to] = 0
			l.told("whitewash", "%s applies in place of %s", to, l.n)
			l.w.apply(to, sitting[0], l.members)
		}
	}
}

// farm writes without end, so that epochs end by their blocks as often as they can.
type farm struct {
	plain
	sent uint64
}

func (x *farm) tick(l *liar) {
	if !l.w.firing {
		return
	}
	for range 4 {
		x.sent++
		nonce := binary.BigEndian.AppendUint64(nil, x.sent)
		t := scope.Txn{Success: []scope.Op{{Kind: scope.OpPut, Key: []byte(l.w.key("farm")), Value: nonce}}}
		m := l.w.mutation(t, append(nonce, byte(l.n.Index), byte(l.n.Index>>8)))
		l.n.Submit(m, func(machine.Reply) {})
	}
	l.told("farm", "writes %d", x.sent)
}

// usurp makes other ends of past epochs with the keys that sat in them: the next
// epoch is to be the coalition's own. It sends them to all nodes, above all to
// those that catch up.
type usurp struct{ plain }

func (x *usurp) tick(l *liar) {
	if now := l.n.machine.Epoch().Number; now > 0 {
		at := now - 1 - aweigh.Epoch(l.rand.Int64N(int64(min(now, 3))))
		if b, f := x.forge(l, at, 0); b != nil {
			to := l.someone()
			l.told("usurp", "%s is told of another end of epoch %d", to, at)
			l.send(to, machine.Announce{Header: f.Header, Certificate: f.Certificate})
		}
	}
}

func (x *usurp) hear(l *liar, from *Node, f *frame) bool {
	ask, ok := f.open().(machine.CatchUp)
	if !ok || l.friend(from) || from.machine == nil || !l.may() {
		return true
	}
	b, finality := x.forge(l, from.machine.Epoch().Number, ask.From)
	if b == nil {
		return true
	}
	l.told("usurp", "%s asks for height %d, and gets another end of epoch %d", from, ask.From, b.Header.Epoch)
	l.send(from, machine.Blocks{
		Blocks: [][]byte{b.Encode()}, Certificates: make([]quorum.Certificate, 1), Finality: finality, Height: ask.From + 100,
	})
	return false
}

// usurpView is far above all views that are in use, so that no anchor has
// signed another subject in it.
const usurpView = 1 << 40

// forge makes a block that ends an epoch at a height, 0 for its first one, and hands
// over to the coalition alone, finalized by those members that sat in that epoch;
// nil if there are none, or the true chain has no block of that epoch there.
func (x *usurp) forge(l *liar, at aweigh.Epoch, height aweigh.Height) (*scope.Block, scope.Finality) {
	if int(at) >= len(l.w.epochs) {
		return nil, scope.Finality{}
	}
	e := l.w.epochs[at]
	terms := scope.Terms{Policy: e.Policy}
	for _, a := range e.Roster.Anchors {
		if l.friend(l.w.Nodes[l.w.anchors[a.Key.ID()]]) {
			terms.Anchors, terms.Weights, terms.NonLeading = append(terms.Anchors, a), append(terms.Weights, 1), append(terms.NonLeading, false)
		}
	}
	history := machine.History{Reader: l.n.Disk, Scope: l.w.id}
	if height == 0 {
		height = e.Start + 1
	}
	first, err := history.Block(height)
	if err != nil || len(terms.Anchors) == 0 {
		return nil, scope.Finality{}
	}
	h := first.Header
	h.View, h.Time, h.Proposer = usurpView, h.Time+1, l.n.anchorID()
	if h.Epoch != at {
		return nil, scope.Finality{}
	}
	h.Next = terms.Hash(at + 1)
	b := scope.NewBlock(h, nil, scope.Evidence{})
	c := quorum.Certificate{Subject: quorum.Subject{Kind: quorum.Finalize, View: h.View, Block: b.Hash()}}
	for _, a := range terms.Anchors { // in order
		m := l.w.Nodes[l.w.anchors[a.Key.ID()]]
		ballot := votes.Ballot{Format: scope.Format, Domain: e.Domain(), Subject: c.Subject, Anchor: a.Key.ID()}
		ballot.Signature = m.key.Sign(votes.ContextBallot, ballot.SigningBytes())
		c.Signatures = append(c.Signatures, quorum.Signature{Anchor: ballot.Anchor, Bytes: ballot.Signature})
		l.w.watch.ballot(m, at, c.Subject)
	}
	return b, scope.Finality{Header: b.Header, Certificate: c}
}

// shirk keeps its ballots to finalize to itself, and certificates that hold them:
// it follows, leads, and leaves decisions to the others.
type shirk struct{ plain }

func (*shirk) bend(l *liar, out []packet) []packet {
	own := l.n.anchorID()
	mine := func(c quorum.Certificate) bool {
		return c.Subject.Kind == quorum.Finalize && slices.ContainsFunc(c.Signatures, func(s quorum.Signature) bool { return s.Anchor == own })
	}
	return slices.DeleteFunc(out, func(x packet) bool {
		hides := false
		switch c := x.frame.open().(type) {
		case votes.Ballot:
			hides = c.Subject.Kind == quorum.Finalize
		case machine.Announce:
			hides = mine(c.Certificate)
		case machine.Offer:
			hides = slices.ContainsFunc(c.Certificates, mine) || slices.ContainsFunc(c.Votes, func(v machine.OfferedVote) bool {
				return v.Signature.Anchor == own && v.Subject.Kind == quorum.Finalize
			})
		}
		if hides {
			l.told("shirk", "%s does not get %s", x.to, describe(x.frame))
		}
		return hides
	})
}
