package sim

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/votes"
)

// newBallotAttack makes the attacks that are about motions, nil for others.
func newBallotAttack(name string) attack {
	switch name {
	case "bury":
		return &withholdBallots{}
	case "bothways":
		return &bothways{}
	case "stuff":
		return &stuff{}
	case "counterfeit":
		return &counterfeit{}
	case "heckle":
		return &repeatVotes{}
	case "contradict":
		return &contradict{}
	case "bait":
		return &bait{}
	case "parrot":
		return &parrot{}
	case "dawdle":
		return &dawdle{}
	}
	return nil
}

// withholdBallots takes no ballots on motions: so a member passes none on, and
// there are none in the blocks that it proposes. Its blocks are valid.
type withholdBallots struct{ plain }

func (*withholdBallots) hear(l *liar, from *Node, f *frame) bool {
	switch f.open().(type) {
	case machine.Cast, machine.ReconcileMsg:
		l.told("bury", "%s from %s", describe(f), from)
		return false
	}
	return true
}

// dropsBallot reports whether a ballot that is handed in here disappears.
func (l *liar) dropsBallot() bool {
	if !l.on() || !l.has("bury") {
		return false
	}
	l.told("bury", "a ballot that is handed in")
	return true
}

// bothways approves and rejects every motion that is open: half of the honest get
// one ballot, half the other, and both get the rest later, or never. A member
// continues when it is barred.
type bothways struct {
	plain
	done map[bothOn]bool
}

type bothOn struct {
	by     *Node
	motion votes.MotionID
}

func (x *bothways) tick(l *liar) {
	for _, p := range l.w.watch.motions.order {
		at := bothOn{l.n, p.id}
		if p.fate != 0 || x.done[at] || !l.may() {
			continue
		}
		if x.done == nil {
			x.done = make(map[bothOn]bool)
		}
		x.done[at] = true
		yes, no := l.vote(p.id, votes.Approve), l.vote(p.id, votes.Reject)
		l.told("bothways", "approves and rejects motion %s", p.id.Short())
		later := time.Duration(l.rand.Int64N(int64(4 * time.Second))) // signed without a network
		silent := l.rand.IntN(3) == 0
		for _, to := range l.others() {
			first, second := yes, no
			if l.side(to, aweigh.View(len(x.done))) == 1 {
				first, second = no, yes
			}
			l.sendFrame(to, first)
			if !silent {
				l.w.send(l.n, to, second, later)
			}
		}
	}
}

// vote is a frame with a member's ballot.
func (l *liar) vote(m votes.MotionID, c votes.Choice) *frame {
	b := l.w.ballotOn(m, c, *l.n.key)
	return castOf(b)
}

func castOf(all ...votes.MotionBallot) *frame {
	var raws [][]byte
	for _, b := range all {
		raws = append(raws, b.Encode())
	}
	return &frame{raw: machine.Frame(machine.Cast{Ballots: raws})}
}

// stuff fills the boxes of the others with valid ballots on motions that were
// never proposed, up to their bound and beyond.
type stuff struct {
	plain
	sent uint64
	by   map[*Node]int
}

const (
	stuffed      = 24  // ballots of a member in one tick
	stuffedInAll = 600 // somewhat more than a box takes of one voter
)

func (x *stuff) tick(l *liar) {
	if x.by == nil {
		x.by = make(map[*Node]int)
	}
	if x.by[l.n] >= stuffedInAll {
		return
	}
	x.by[l.n] += stuffed
	var all []votes.MotionBallot
	for range stuffed {
		x.sent++
		some := aweigh.Sum([]byte("no motion"), binary.BigEndian.AppendUint64(nil, x.sent))
		all = append(all, l.w.ballotOn(some, votes.Choice(1+x.sent%2), *l.n.key))
	}
	l.told("stuff", "%d ballots on motions that were never proposed", len(all))
	f := castOf(all...)
	for _, to := range l.others() {
		if l.may() {
			l.sendFrame(to, f)
		}
	}
}

// counterfeit hands on ballots that do not count, and puts them into its blocks: of
// another network or scope, in the names of others, of non-members, and cut short.
type counterfeit struct{ plain }

func (x *counterfeit) tick(l *liar) {
	if raw, what := x.ballot(l); raw != nil {
		to := l.someone()
		l.told("counterfeit", "%s gets a ballot %s", to, what)
		l.send(to, machine.Cast{Ballots: [][]byte{raw}})
	}
}

func (x *counterfeit) bend(l *liar, out []packet) []packet {
	bad := make(map[*frame]*frame)
	for i := range out {
		c, ok := out[i].frame.open().(machine.Proposal)
		if !ok {
			continue
		}
		if bad[out[i].frame] == nil {
			raw, what := x.ballot(l)
			if raw == nil {
				return out
			}
			c.Evidence.Ballots = append(slices.Clone(c.Evidence.Ballots), raw)
			c.Header.Evidence = c.Evidence.Hash()
			bad[out[i].frame] = &frame{raw: machine.Frame(l.propose(c))}
			l.told("counterfeit", "a block with a ballot %s", what)
		}
		out[i].frame = bad[out[i].frame]
	}
	return out
}

// ballot makes one, and returns what is wrong with it; none if the occasion is not taken.
func (*counterfeit) ballot(l *liar) (raw []byte, what string) {
	all := l.w.watch.motions.order
	if len(all) == 0 || len(l.w.polls.voters) == 0 || !l.may() {
		return nil, ""
	}
	m, some := all[l.rand.IntN(len(all))].id, aweigh.Sum([]byte("elsewhere"))
	b := l.w.ballotOn(m, votes.Approve, *l.n.key)
	switch l.rand.IntN(5) {
	case 0:
		b.Network, what = some, "of another network"
	case 1:
		b.Scope, what = some, "of another scope"
	case 2:
		others := l.w.polls.voters
		b.Voter, what = others[l.rand.IntN(len(others))].key.Public().ID(), "in another's name"
	case 3:
		return l.w.ballotOn(m, votes.Approve, l.n.author).Encode(), "of a key that may not vote"
	case 4:
		raw := b.Encode()
		return raw[:l.rand.IntN(len(raw))], "cut short"
	}
	b.Signature = l.n.key.Sign(votes.ContextCOSE, b.SigningBytes())
	return b.Encode(), what
}

// repeatVotes disturbs the reconciliation of ballot boxes: with messages that are
// cut short or changed, unrequested, or in the wrong part.
type repeatVotes struct{ heard [][]byte }

func (x *repeatVotes) hear(l *liar, _ *Node, f *frame) bool {
	if c, ok := f.open().(machine.ReconcileMsg); ok && len(x.heard) < kept {
		x.heard = append(x.heard, c.Message)
	}
	return true
}

func (*repeatVotes) bend(l *liar, out []packet) []packet {
	for i, x := range out {
		c, ok := x.frame.open().(machine.ReconcileMsg)
		if !ok || len(c.Message) == 0 || !l.may() {
			continue
		}
		c.Message = slices.Clone(c.Message)
		if l.rand.IntN(2) == 0 {
			c.Message = c.Message[:l.rand.IntN(len(c.Message))]
		} else {
			c.Message[l.rand.IntN(len(c.Message))] ^= 1 << l.rand.IntN(8)
		}
		l.told("heckle", "%s gets a broken message", x.to)
		out[i].frame = &frame{raw: machine.Frame(c)}
	}
	return out
}

func (x *repeatVotes) tick(l *liar) {
	if len(x.heard) == 0 || !l.may() {
		return
	}
	to := l.someone()
	l.told("heckle", "%s gets a message of another meeting", to)
	l.send(to, machine.ReconcileMsg{Part: machine.ReconcileStep(1 + l.rand.IntN(3)), Message: x.heard[l.rand.IntN(len(x.heard))]})
}
