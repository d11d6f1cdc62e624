package sim

import (
	"math/big"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// contradict rejects every motion as soon as it is open, whatever it is about. What
// honest voters approve is then contested, and members are against the outcome (P50).
type contradict struct {
	plain
	done map[bothOn]bool
}

func (x *contradict) tick(l *liar) {
	for _, p := range l.w.watch.motions.order {
		at := bothOn{l.n, p.id}
		if p.fate != 0 || x.done[at] || !l.may() {
			continue
		}
		if x.done == nil {
			x.done = make(map[bothOn]bool)
		}
		x.done[at] = true
		l.told("contradict", "rejects motion %s", p.id.Short())
		l.spread(l.vote(p.id, votes.Reject))
	}
}

// spread sends a frame to all others.
func (l *liar) spread(f *frame) {
	for _, to := range l.others() {
		l.sendFrame(to, f)
	}
}

// bait rejects every motion as soon as it is open, but those that undo an earlier one, which it approves: so its
// members have credit for all that are undone (P55).
type bait struct {
	plain
	done map[bothOn]bool
}

func (x *bait) tick(l *liar) {
	r := &l.w.watch.motions
	for _, p := range r.order {
		at := bothOn{l.n, p.id}
		if p.fate != 0 || x.done[at] || !l.may() {
			continue
		}
		if x.done == nil {
			x.done = make(map[bothOn]bool)
		}
		x.done[at] = true
		c := votes.Reject
		if len(p.puts) == 0 && slices.ContainsFunc(p.drops, func(key string) bool { return r.keys[key] }) {
			c = votes.Approve
		}
		l.told("bait", "says %s to motion %s", c, p.id.Short())
		l.spread(l.vote(p.id, c))
	}
}

// parrot waits until blocks hold two thirds of what a motion takes to be carried or rejected, and
// then votes like those that brought it there. Such a ballot counts for nothing (P50).
type parrot struct {
	plain
	done map[bothOn]bool
}

func (x *parrot) tick(l *liar) {
	for _, p := range l.w.watch.motions.order {
		at := bothOn{l.n, p.id}
		if p.fate != 0 || x.done[at] {
			continue
		}
		for _, c := range []votes.Choice{votes.Approve, votes.Reject} {
			if have, need := p.votedFor(c), p.takes(c); have.Mul(have, big.NewInt(3)).Cmp(need.Lsh(need, 1)) < 0 || x.done[at] {
				continue
			}
			if x.done == nil {
				x.done = make(map[bothOn]bool)
			}
			x.done[at] = true
			l.told("parrot", "says %s to motion %s, as others did", c, p.id.Short())
			l.spread(l.vote(p.id, c))
		}
	}
}

// dawdle approves every motion once it is open for longer than the time for an answer, a little later each time. The
// outcome is mostly clear by then, and its members are silent (P50).
type dawdle struct {
	plain
	due  map[bothOn]aweigh.Instant // when each member votes
	done map[bothOn]bool
}

func (x *dawdle) tick(l *liar) {
	if x.due == nil {
		x.due, x.done = make(map[bothOn]aweigh.Instant), make(map[bothOn]bool)
	}
	s, err := scope.Open(l.n.Disk, l.w.id)
	if err != nil { // its disk fails to read
		return
	}
	answer, now := l.w.Genesis.Policy.Trust.Answer, s.Head().Time
	for _, p := range l.w.watch.motions.order {
		at := bothOn{l.n, p.id}
		if p.fate != 0 || x.done[at] {
			continue
		}
		if _, ok := x.due[at]; !ok {
			rest := p.deadline.Sub(p.time)
			wait := rest / time.Duration(answer.Den) * time.Duration(answer.Num)
			x.due[at] = p.time.Add(wait + time.Duration(l.rand.Int64N(int64((rest-wait)/8)+1)))
		}
		if now < x.due[at] {
			continue
		}
		x.done[at] = true
		l.told("dawdle", "approves motion %s, late", p.id.Short())
		l.spread(l.vote(p.id, votes.Approve))
	}
}

// votedFor is the weight of the voters that made one choice, and not the other.
func (p *poll) votedFor(c votes.Choice) *big.Int {
	return p.weightOf(func(id aweigh.Hash) bool { return p.said[id] == 1<<c })
}

// weightOf is the weight of some voters.
func (p *poll) weightOf(some func(aweigh.Hash) bool) *big.Int {
	sum := new(big.Int)
	for id, s := range p.voters { // order-free: a sum
		if some(id) {
			sum.Add(sum, s.weight)
		}
	}
	return sum
}

// takes is the weight that one choice takes to end the motion: for approvals the share of all, rounded up;
// for rejections one more than what would leave enough, without the approvers that are void.
func (p *poll) takes(c votes.Choice) *big.Int {
	need := new(big.Int).Mul(p.total, p.num)
	need.Add(need, new(big.Int).Sub(p.den, big.NewInt(1))).Div(need, p.den)
	if need.Sign() == 0 {
		need.SetInt64(1)
	}
	if c == votes.Approve {
		return need
	}
	voters := p.weightOf(func(aweigh.Hash) bool { return true })
	return need.Sub(voters.Add(voters, big.NewInt(1)), need)
}
