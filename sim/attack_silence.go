package sim

import (
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// viewOf is the view that a ballot or proposal is about; ok is false for others.
func viewOf(f *frame) (v aweigh.View, ok bool) {
	switch c := f.open().(type) {
	case votes.Ballot:
		return c.Subject.View, true
	case machine.Proposal:
		return c.Header.View, true
	}
	return 0, false
}

// withhold keeps ballots and proposals from its victims.
type withhold struct{ plain }

func (*withhold) bend(l *liar, out []packet) []packet {
	for i, x := range out {
		if o, ok := x.frame.open().(machine.Offer); ok && l.victim(x.to, o.View) {
			o.Votes = slices.DeleteFunc(slices.Clone(o.Votes), func(v machine.OfferedVote) bool {
				return v.Signature.Anchor == l.n.anchorID()
			})
			out[i].frame = &frame{raw: machine.Frame(o)}
		}
	}
	return slices.DeleteFunc(out, func(x packet) bool {
		v, ok := viewOf(x.frame)
		if !ok || !l.victim(x.to, v) || !l.may() {
			return false
		}
		l.told("withhold", "%s does not get %s", x.to, describe(x.frame))
		return true
	})
}

// mute sends nothing to nodes outside of the coalition.
type mute struct{ plain }

func (*mute) bend(l *liar, out []packet) []packet {
	return slices.DeleteFunc(out, func(x packet) bool {
		if l.friend(x.to) {
			return false
		}
		l.told("mute", "%s does not get %s", x.to, describe(x.frame))
		return true
	})
}

// delayed sends ballots and proposals just inside or just outside of the time
// that the others give a view.
type delayed struct{ plain }

func (*delayed) bend(l *liar, out []packet) []packet {
	if !l.may() {
		return out
	}
	patience := l.w.Scenario.Network.Timing.View << l.rand.IntN(3)
	wait := patience - 20*time.Millisecond + time.Duration(l.rand.Int64N(int64(40*time.Millisecond)))
	for i := range out {
		if _, ok := viewOf(out[i].frame); ok {
			out[i].wait = wait
			l.told("delay", "%s gets %s after %v", out[i].to, describe(out[i].frame), wait)
		}
	}
	return out
}

// censor drops the submissions of its victims' clients, and the victims' requests.
type censor struct{ plain }

func (*censor) hear(l *liar, from *Node, f *frame) bool {
	switch c := f.open().(type) {
	case machine.RawBundle:
		b, err := scope.CheckBundle(c, l.w.Genesis.Policy.Limits, l.w.verify)
		if err != nil || !l.isVictim(b.Author()) {
			return true
		}
		l.told("censor", "a bundle of %d mutations", len(b.Mutations()))
		return false
	case machine.Want, machine.Ask, machine.CatchUp:
		if !l.victim(from, 0) {
			return true
		}
		l.told("censor", "%s from %s", describe(f), from)
		return false
	}
	return true
}

// isVictim reports whether an author's node is a victim.
func (l *liar) isVictim(author votes.PublicKey) bool {
	for _, n := range l.w.Nodes {
		if n.author.Public().ID() == author.ID() {
			return l.victim(n, 0)
		}
	}
	return false
}

// defeat gives up every view at once.
type defeat struct{ plain }

func (*defeat) tick(l *liar) {
	s := l.giveUp(l.view())
	b := &frame{raw: machine.Frame(l.sign(s))}
	l.told("defeat", "%v", s)
	for _, n := range l.others() {
		l.sendFrame(n, b)
	}
}

// amnesia restarts without a record of its signatures.
type amnesia struct{ plain }

func (*amnesia) tick(l *liar) {
	if l.rand.IntN(5) == 0 {
		l.told("amnesia", "forgets what it signed in view %d", l.view())
		l.reborn()
	}
}
