package trust

import (
	"fmt"
	"math"

	"github.com/aweigh/aweigh"
)

// applyEvidence is what one piece of evidence does to one standing, and why. It
// returns s unchanged where the evidence has no effect.
func (l *Ledger) applyEvidence(p Params, s Standing, known bool, ev Evidence) (Standing, string) {
	ignored := func(why string) (Standing, string) {
		return s, fmt.Sprintf("ignored: %s, but %s", ev.Kind, why)
	}
	switch {
	case ev.Anchor.IsZero():
		return ignored("it names no anchor")
	case ev.Kind == Surety:
		return ignored("only the ledger itself calls on a surety")
	case ev.Kind == Called || ev.Kind == Rested:
		return ignored("only the ledger itself chooses which anchors weigh")
	case !known && ev.Kind != Founded && ev.Kind != Admitted:
		return ignored("the anchor has no standing in this scope")
	}
	score := min(ev.Score, MaxScore)
	switch ev.Kind {
	case Founded:
		if known {
			return ignored("the anchor has a standing already")
		}
		return Standing{Anchor: ev.Anchor, Score: score, Seated: true}, fmt.Sprintf("founded: the %s gives %d", ev.founder(), score)
	case Equivocated:
		if s.Barred {
			return ignored("the anchor is barred already")
		}
		if s.Seated && !s.Standby && s.Weighs <= ev.Epoch {
			s.Faulty = ev.Epoch + min(math.MaxUint64-ev.Epoch, 1+aweigh.Epoch(p.SuretyEpochs))
		}
		s.Score, s.Barred, s.Seated, s.Standby = 0, true, false, false
		return s, fmt.Sprintf("equivocated: two conflicting ballots, proof %s; barred until readmitted", ev.Proof.Short())
	case Attested:
		if s.Barred {
			return ignored("the anchor is barred")
		}
		s.Score = score
		return s, fmt.Sprintf("attested: motion %s sets %d", ev.Proof.Short(), score)
	case Readmitted:
		if !s.Barred {
			return ignored("the anchor is not barred")
		}
		s.Score, s.Barred, s.Seated, s.Weighs = p.Initial, false, true, p.weighs(ev.Epoch)
		s.Standby, s.Missed = p.Group.On(), 0
		return s, fmt.Sprintf("readmitted: motion %s, starting again from %d, %s", ev.Proof.Short(), s.Score, s.whenItWeighs())
	case Attended:
		if s.Barred {
			return ignored("the anchor is barred")
		}
		return attended(p, s, ev.Record)
	case Warned:
		if s.Barred {
			return ignored("the anchor is barred")
		}
		return credited(s, ev)
	case Admitted:
		return l.admit(p, s, known, ev)
	case Retired, Evicted:
		if !s.Seated {
			return ignored("the anchor is not in the roster")
		}
		s.Seated, s.Standby = false, false
		if ev.Kind == Retired {
			return s, fmt.Sprintf("retired: it leaves the roster, and keeps a score of %d on record", s.Score)
		}
		return s, fmt.Sprintf("evicted: motion %s, it leaves the roster, and keeps a score of %d on record", ev.Proof.Short(), s.Score)
	}
	return s, fmt.Sprintf("ignored: %s is not a kind that this program knows", ev.Kind)
}

// admit seats a new anchor, or one that returns, on its sponsor's word.
func (l *Ledger) admit(p Params, s Standing, known bool, ev Evidence) (Standing, string) {
	ignored := func(why string) (Standing, string) {
		return s, fmt.Sprintf("ignored: %s, but %s", ev.Kind, why)
	}
	sponsor, ok := l.Standing(ev.Sponsor)
	switch {
	case s.Seated:
		return ignored("the anchor is in the roster already")
	case ev.Sponsor.IsZero():
		return ignored("no sponsor stands surety")
	case ev.Sponsor == ev.Anchor:
		return ignored("no anchor is its own sponsor")
	case !ok || !sponsor.Seated:
		return ignored(fmt.Sprintf("its sponsor %s is not in the roster", ev.Sponsor.Short()))
	case sponsor.Weighs > ev.Epoch:
		return ignored(fmt.Sprintf("its sponsor %s is on probation until epoch %d", ev.Sponsor.Short(), sponsor.Weighs))
	}
	score, from := p.Initial, "starting from"
	switch {
	case s.Barred:
		from = "readmitted, starting again from"
	case known:
		score, from = min(s.Score, p.Initial), fmt.Sprintf("returning with %d, starting again from", s.Score)
	}
	s = Standing{
		Anchor: ev.Anchor, Score: score, Seated: true, Blame: s.Blame, Standby: p.Group.On(),
		Since: ev.Epoch, Sponsor: ev.Sponsor, Weighs: p.weighs(ev.Epoch), Faulty: s.Faulty,
	}
	return s, fmt.Sprintf("admitted: motion %s, sponsor %s, %s %d, %s",
		ev.Proof.Short(), ev.Sponsor.Short(), from, score, s.whenItWeighs())
}

// whenItWeighs is for people.
func (s Standing) whenItWeighs() string {
	if s.Standby {
		return fmt.Sprintf("on standby, can weigh from epoch %d", s.Weighs)
	}
	return fmt.Sprintf("weighs from epoch %d", s.Weighs)
}

// weighs is the first epoch in which an anchor admitted in epoch e has weight:
// it is in the roster from the next one on, and on probation there.
func (p Params) weighs(e aweigh.Epoch) aweigh.Epoch {
	if wait := 1 + aweigh.Epoch(p.Probation); e < math.MaxUint64-wait {
		return e + wait
	}
	return math.MaxUint64
}

// surety calls on the sponsor of an anchor just barred by ev, if it still
// stands surety. A sponsor that is barred itself has nothing left to lose.
func (l *Ledger) surety(p Params, liar Standing, ev Evidence) (Change, bool) {
	at, ok := l.seat(liar.Sponsor)
	if liar.Sponsor.IsZero() || !ok || l.standings[at].Barred {
		return Change{}, false
	}
	if ev.Epoch > liar.Since && ev.Epoch-liar.Since > aweigh.Epoch(p.SuretyEpochs) {
		return Change{}, false
	}
	s := &l.standings[at]
	before := s.Score
	loss := before / Score(p.Surety)
	s.Score -= loss
	return Change{
		Epoch:    ev.Epoch,
		Evidence: Evidence{Anchor: s.Anchor, Kind: Surety, Epoch: ev.Epoch, Height: ev.Height, Proof: ev.Proof},
		Before:   before, After: s.Score,
		Reason: fmt.Sprintf("surety: %s, which it brought in at epoch %d, lied, proof %s: -%d, which is 1/%d",
			liar.Anchor.Short(), liar.Since, ev.Proof.Short(), loss, p.Surety),
	}, true
}
