package quorum

import (
	"cmp"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
)

// Ahead is how many views past its own an engine keeps votes for, and for how many views behind its own it remembers
// that finalizations are missing. A node that is further off catches up by certificates, which have no such bound.
const Ahead = 64

// Engine is the consensus machine of one anchor, or of an observer, in one epoch. Only Step changes it; an Engine is a
// function of its Config and of the inputs and instants given to it. It is not safe for concurrent use.
type Engine struct {
	cfg    Config
	vouch  Kind       // of the votes for blocks: Mode.Vouch
	fast   FastBounds // bounds of mode Fast
	seat   int        // of cfg.Self; -1: this engine only watches
	rounds map[aweigh.View]*round
	order  []aweigh.View // the keys of rounds, ascending

	view  aweigh.View // current
	final aweigh.View // of the last final block
	tip   aweigh.View // of the highest block certified
	ended aweigh.View // the highest that a certificate ended
	floor aweigh.View // views below are closed, except for finalizations

	fresh    []aweigh.View // notarized since the last step
	slowly   []aweigh.View // notarized, in mode Fast, and neither decided nor finalized by this anchor
	restored *Output       // the output of Restore; nil after the first step

	now      aweigh.Instant // of the step
	lag      time.Duration  // from the notarization of the last final view to its finalization
	work     bool
	entered  aweigh.Instant // the current view
	deadline aweigh.Instant // of the current view; 0: no timer runs
	offer    aweigh.Instant // of the next offer; 0: none
	fails    int            // views that failed, less those that succeeded since
	lulls    int            // views in a row that succeeded while there was no work
	heard    []aweigh.View  // by seat: the highest view in which the anchor spoke
	wasted   []int          // by seat: views that it led and that gave no block, since one that did
	pledge   Certificate    // see Pledge
	away     []bool         // by seat: known to be out of reach
}

// NewEngine returns an engine at view 1 of an epoch.
func NewEngine(cfg Config) *Engine {
	cfg.Timing = cfg.Timing.withDefaults()
	if cfg.Bounds == (Bounds{}) {
		cfg.Bounds = DefaultBounds()
	}
	if cfg.Leaders.Len() == 0 {
		cfg.Leaders = cfg.Weights
	}
	e := &Engine{
		cfg:    cfg,
		vouch:  cfg.Rules.Mode.Vouch(),
		fast:   cfg.Rules.FastBounds(cfg.Weights),
		seat:   -1,
		rounds: make(map[aweigh.View]*round),
		view:   1,
		heard:  make([]aweigh.View, cfg.Weights.Len()),
		wasted: make([]int, cfg.Weights.Len()),
		away:   make([]bool, cfg.Weights.Len()),
	}
	if seat, ok := cfg.Weights.Seat(cfg.Self); ok {
		e.seat = seat
	}
	return e
}

// Restore gives a new engine the record of a previous life of this anchor (P8): the votes that it signed and the
// certificates that it held, of which those below the last finalization may be missing. It must be called before the
// first Step. A leader that restarts has its vote on record, and so proposes nothing else in that view.
//
// In mode Fast, the votes include those of all Grounds.
//
// The record must hold the notarization under every finalize vote. Without it an anchor could neither nullify the view
// nor prove how it ended, and could not answer for its Pledge.
func (e *Engine) Restore(own []Vote, certs []Certificate) {
	var known Output
	e.restored = new(Output)
	for _, c := range certs {
		e.certificate(c, &known)
	}
	e.view = max(e.view, e.ended+1)
	for _, v := range own {
		if v.Anchor == e.cfg.Self {
			e.view = max(e.view, v.View)
		}
	}
	for _, v := range own {
		e.vote(&v, e.restored)
		if v.Kind == Finalize {
			i := slices.IndexFunc(certs, func(c Certificate) bool {
				return c.Subject == Subject{Kind: Notarize, View: v.View, Block: v.Block}
			})
			if i >= 0 {
				e.pledged(certs[i])
			}
		}
	}
	for _, f := range e.restored.Faults { // those of others stand on record with what they signed
		must.Hold(f.First.Anchor != e.cfg.Self, "the votes on record contradict each other (P7)")
	}
	for seat := range e.heard {
		e.heard[seat] = e.view
	}
}

// View returns the current view.
func (e *Engine) View() aweigh.View { return e.view }

// Final returns the view of the last final block, 0 if there is none yet.
func (e *Engine) Final() aweigh.View { return e.final }

// Heard returns the highest view in which an anchor has voted, as far as this engine knows; 0 if there is none.
func (e *Engine) Heard(a aweigh.AnchorID) aweigh.View {
	if seat, ok := e.cfg.Weights.Seat(a); ok {
		return e.heard[seat]
	}
	return 0
}

// Leader returns the anchor that leads a view.
func (e *Engine) Leader(v aweigh.View) aweigh.AnchorID {
	if r := e.rounds[v]; r != nil {
		return r.leader
	}
	return Leader(e.cfg.Leaders, e.cfg.Seed, v)
}

// Certificate returns the certificate that the engine holds for a kind and view, zero if there is none.
func (e *Engine) Certificate(k Kind, v aweigh.View) Certificate {
	if r := e.rounds[v]; r != nil && k.Valid() {
		return r.cert(k)
	}
	return Certificate{}
}

// Pledge returns the notarization of the highest view for which this anchor signed finalize, zero if there is none. An
// anchor answers a linearizable read with it, unless a final block is higher (P23). It outlives its view: the block
// may have become final at another anchor, however long ago.
func (e *Engine) Pledge() Certificate { return e.pledge }

// pledged notes that finalize was signed on a notarization.
func (e *Engine) pledged(c Certificate) {
	if c.Subject.View > e.pledge.Subject.View {
		e.pledge = c
	}
}

// Step takes inputs, in order, and returns the output. Without inputs it does only the work due at the instant
// now. Instants must not decrease from call to call.
func (e *Engine) Step(now aweigh.Instant, inputs ...Input) Output {
	var out Output
	if e.restored != nil {
		out, e.restored = *e.restored, nil
	}
	e.now = now
	for _, in := range inputs {
		switch in := in.(type) {
		case Proposal:
			e.propose(in, &out)
		case Vote:
			e.vote(&in, &out)
		case Certificate:
			e.certificate(in, &out)
		case Verdict:
			e.verdict(in)
		case Work:
			e.work = bool(in)
		case Link:
			e.link(in)
		}
	}
	e.advance(now, &out)
	e.act(now, &out)
	e.time(now, &out)
	if len(out.Final) > 0 { // what this step began to sign may lie below by now, where no record is kept (P8)
		out.Sign = slices.DeleteFunc(out.Sign, func(s Subject) bool { return s.View < e.final })
	}
	if len(out.Certified) > 1 {
		slices.SortStableFunc(out.Certified, func(a, b Certificate) int {
			return cmp.Compare(a.Subject.View, b.Subject.View)
		})
	}
	return out
}

// round returns the record of a view.
func (e *Engine) round(v aweigh.View) *round {
	r := e.rounds[v]
	if r == nil {
		r = &round{view: v, leader: e.Leader(v)}
		r.seat, _ = e.cfg.Weights.Seat(r.leader)
		e.rounds[v] = r
		at, _ := slices.BinarySearch(e.order, v)
		e.order = slices.Insert(e.order, at, v)
	}
	return r
}
