package sim

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// rewrite answers those that catch up with another history.
type rewrite struct{ plain }

func (r *rewrite) hear(l *liar, from *Node, f *frame) bool {
	ask, ok := f.open().(machine.CatchUp)
	if !ok || l.friend(from) || !l.may() {
		return true
	}
	history := machine.History{Reader: l.n.Disk, Scope: l.w.id}
	b, err := history.Block(ask.From)
	if ask.From == 0 || err != nil { // nothing to rewrite yet: what does not exist is promised
		l.told("rewrite", "%s is promised a million blocks", from)
		l.send(from, machine.Blocks{Height: ask.From + 1_000_000})
		return false
	}
	finality, err := history.Finality(ask.From)
	if err != nil {
		return true
	}
	answer := machine.Blocks{Height: ask.From + 10, Certificates: make([]quorum.Certificate, 1), Finality: finality}
	what := ""
	switch l.rand.IntN(5) {
	case 0: // another block, under the coalition's own signatures
		h := b.Header
		h.Time++
		b = scope.NewBlock(h, nil, scope.Evidence{})
		answer.Finality = scope.Finality{Header: b.Header, Certificate: l.certificate(
			quorum.Subject{Kind: quorum.Finalize, View: h.View, Block: b.Hash()}, from)}
		what = "another block, finalized by the coalition"
	case 1: // another block, under the true one's finality
		h := b.Header
		h.Time++
		b = scope.NewBlock(h, b.Bundles, scope.Evidence{})
		answer.Finality.Header = b.Header
		what = "another block, under the true one's certificate"
	case 2: // the true block, less one signature
		c := &answer.Finality.Certificate
		c.Signatures = slices.Clone(c.Signatures[:len(c.Signatures)-1])
		what = "a certificate that lacks a signature"
	case 3: // the true block without its content
		b = &scope.Block{Header: b.Header}
		what = "a block without its content"
	case 4: // a block that was not asked for
		if older, err := history.Block(ask.From - 1); err == nil {
			b = older
		}
		what = "an older block"
	}
	answer.Blocks = [][]byte{b.Encode()}
	l.told("rewrite", "%s asks for height %d, and gets %s", from, ask.From, what)
	l.send(from, answer)
	return false
}

// badClock runs ahead as far as the others take it, and farther.
type badClock struct{ plain }

func (*badClock) tick(l *liar) {
	drift := int64(l.w.Genesis.Policy.Limits.Drift)
	ahead := time.Duration(l.rand.Int64N(3 * drift))
	l.told("clock", "runs %v ahead", ahead.Round(time.Millisecond))
	l.n.clock.set(l.w.now, ahead, 0)
	l.n.rewind()
}

// flood sends as many frames as it can.
type flood struct {
	plain
	sent uint64
}

// floodFrames is how many frames a coalition sends in a tick, so that a world
// with many nodes can still be simulated.
const floodFrames = 80

func (x *flood) tick(l *liar) {
	frames := max(2, floodFrames/len(l.members))
	l.told("flood", "%d frames", frames)
	for range frames {
		x.sent++
		some := aweigh.Sum(binary.BigEndian.AppendUint64(nil, x.sent))
		to, v := l.someone(), l.view()
		switch l.rand.IntN(20) {
		case 0: // fresh, valid, and of no use
			t := scope.Txn{Success: []scope.Op{{Kind: scope.OpPut, Key: []byte(l.w.key("flood")), Value: some[:]}}}
			b, err := scope.Sign(l.n.author, l.w.Genesis.Policy.Limits, l.w.mutation(t, some[:16]))
			must.OK(err, "signing a bundle")
			l.send(to, machine.RawBundle(b.Raw()))
		case 1: // a valid ballot for a view that no node is in
			l.send(to, l.sign(l.giveUp(v+aweigh.View(2+l.rand.IntN(100)))))
		case 2, 3, 4:
			l.send(to, machine.Offer{Domain: l.domain(), View: 1, Height: aweigh.Height(x.sent)})
		case 5, 6, 7:
			l.send(to, machine.CatchUp{From: 1})
		case 8, 9, 10:
			l.send(to, machine.Ask{Round: x.sent})
		default:
			l.send(to, machine.Want{Blocks: []aweigh.Hash{some}, Bundles: []aweigh.Hash{some}})
		}
	}
}

// stale answers reads with old blocks, more than once, and denies what it holds.
type stale struct {
	plain
	pledges []machine.Answer // that it could give in earlier epochs, the first of each
}

func (x *stale) bend(l *liar, out []packet) []packet {
	for i := range out {
		switch c := out[i].frame.open().(type) {
		case machine.Answer:
			old := x.old(l, c)
			l.told("stale", "%s hears of height %d instead of %d", out[i].to, old.Header.Height, c.Header.Height)
			out[i].frame = &frame{raw: machine.Frame(old)}
			for range l.rand.IntN(3) {
				out = append(out, out[i])
			}
		case machine.Offer:
			c.View, c.Final, c.Height, c.Votes, c.Certificates = min(c.View, 1), 0, 0, nil, nil
			l.told("stale", "%s is told that nothing happened", out[i].to)
			out[i].frame = &frame{raw: machine.Frame(c)}
		}
	}
	return out
}

// hear keeps final blocks from nodes that catch up, or answers that there are none.
func (x *stale) hear(l *liar, from *Node, f *frame) bool {
	if _, ok := f.open().(machine.CatchUp); !ok || l.friend(from) || l.has("rewrite") { // which answers in its own way
		return true
	}
	l.told("stale", "%s asks for final blocks in vain", from)
	if l.rand.IntN(2) == 0 {
		l.send(from, machine.Blocks{})
	}
	return false
}

// old is an answer with the genesis, or with the state of an epoch before, in place of one.
func (x *stale) old(l *liar, a machine.Answer) machine.Answer {
	if n := len(x.pledges); n == 0 || x.pledges[n-1].Header.Epoch < a.Header.Epoch {
		x.pledges = append(x.pledges, a)
	}
	var old machine.Answer
	if l.rand.IntN(3) == 0 {
		old = x.pledges[l.rand.IntN(len(x.pledges))]
	}
	old.Round = a.Round
	return old
}
