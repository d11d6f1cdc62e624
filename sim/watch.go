package sim

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/internal/refusal"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/sim/scenario"
	"github.com/aweigh/aweigh/votes"
)

// watch sees everything that happens in a world, and holds it to the invariants.
type watch struct {
	time blockTime
	w    *World
	*findings
	within bool   // the faulty weigh no more than the budget
	lost   bool   // they weigh more, in a scope below the root's: nothing is promised there
	faulty uint64 // weight, in the epoch in which it was the largest part of total
	total  uint64
	budget uint64

	final     map[aweigh.Height]aweigh.Hash   // at the first node, which may lie once no node is excused
	seen      map[aweigh.Height]aweigh.Hash   // at the first node that does not lie
	finalAt   map[aweigh.Height]time.Duration // first
	ballots   map[said]*tally                 // raw, as signed
	first     []func()                        // ballots of the next epoch, signed in the step that began it
	highest   map[aweigh.Epoch]aweigh.View    // of a finalization that the raw ballots make
	signed    map[ballotSlot]quorum.Subject   // by nodes that are not excused
	proposals map[place]aweigh.Hash
	headers   map[aweigh.Hash]scope.Header // of all blocks that were proposed
	follower  follower
	evidence  evidence
	top       aweigh.Height                 // final at any node that is not excused
	digests   map[aweigh.Height]aweigh.Hash // of the state at a height, at the first such node
	called    map[called]aweigh.UID
	nullified map[place]bool
	lastFinal aweigh.Instant

	standing standing // of the anchors, by epoch
	conduct  conduct  // of the anchors, in the newest epoch
	ending   ends
	pauses   pauses
	posed    map[aweigh.Hash]bool // mutations of those that pose as others
	motions  recount
	counted  aweigh.Height // up to which findings.written counts
	exec     execution
	believed []belief // of verified readers, in blocks that no honest node is known to have yet
	read     bool     // the lineage, in the end
	outgrown bool     // the faulty came to weigh more than the budget
	history
}

// place is one view of one epoch.
type place struct {
	epoch aweigh.Epoch
	view  aweigh.View
}

// said is a subject of one epoch.
type said struct {
	epoch aweigh.Epoch
	quorum.Subject
}

// ballotSlot is what one anchor may fill only once.
type ballotSlot struct {
	anchor int
	place
	kind quorum.Kind
}

// tally is the raw ballots on one subject.
type tally struct {
	by             map[int]bool
	weight, honest uint64
	least          uint64 // of one signer
}

// mostBreaches bounds the breaches kept.
const mostBreaches = 64

func (x *watch) open(w *World) {
	*x = watch{
		w: w, findings: &w.findings, final: make(map[aweigh.Height]aweigh.Hash), seen: make(map[aweigh.Height]aweigh.Hash), finalAt: make(map[aweigh.Height]time.Duration), ballots: make(map[said]*tally), highest: make(map[aweigh.Epoch]aweigh.View),
		signed: make(map[ballotSlot]quorum.Subject), proposals: make(map[place]aweigh.Hash), called: make(map[called]aweigh.UID),
		nullified: make(map[place]bool), posed: make(map[aweigh.Hash]bool), digests: make(map[aweigh.Height]aweigh.Hash), evidence: make(evidence),
		history: history{outcomes: make(map[aweigh.Hash]scope.Receipt)},
	}
	x.weigh()
	x.within = x.faulty <= x.budget
	x.lost = !x.within && w.number > 0
	x.standing.open(w)
	x.motions.open()
	x.openExecution()
	x.conduct.attention = attentionOf(&w.Scenario.Bounds.Scope)
}

// weigh is the weight of the faulty in the newest epoch. It keeps the largest
// share that they had in any.
func (x *watch) weigh() (faulty uint64) {
	w := x.w
	for _, n := range w.Nodes {
		if n.Face == 0 && !n.honest() {
			faulty += w.weight(n)
		}
	}
	if total := w.weights.Total(); x.total == 0 || faulty*x.total > x.faulty*total {
		x.faulty, x.total, x.budget = faulty, total, w.rules.Mode.FaultBudget(total)
	}
	return faulty
}

// over reports whether there is nothing more to learn from the run.
func (x *watch) over() bool {
	if len(x.w.Scenario.Expect) > 0 {
		return len(x.expected) == 0
	}
	return len(x.broken) > 0 || x.outgrown
}

// The invariants, by their place in Invariants.
const (
	Agreement = iota
	Validity
	Certificates
	Ballots
	Rosters
	Honour
	Accountability
	Lineage
	Identity
	Linearizable
	Durable
	Acceptance
	Classified
	Caps
	Churn
	Standings
	Third
	Ending
	Bounded
	Sound
	Leases
	Motions
	Conflicts
	Closed
	Boxes
	Isolation
	Handover
	Referred
	Obeyed
	Islands
	Execution
	Access
	Genuine
	Stores
	Settled
	Verified
)

// breach records that an invariant broke, at a node or, if n is nil, in the
// network as a whole.
func (w *World) breach(invariant int, n *Node, format string, args ...any) {
	x := &w.watch
	if x.lost {
		return
	}
	b := Breach{Invariant: scenario.Invariants[invariant].Name, At: w.Now(), Scope: w.number, Node: -1, Text: fmt.Sprintf(format, args...)}
	if n != nil {
		b.Node = n.number()
		w.log(n, "broken", "%s: %s", b.Invariant, b.Text)
	}
	w.say("BROKEN %s", b)
	x.verdicts[invariant].Broken++
	delete(x.expected, b.Invariant)
	if len(x.broken) < mostBreaches {
		x.broken = append(x.broken, b)
	}
}

// holds counts one look at an invariant, and records a breach unless ok.
func (w *World) holds(invariant int, n *Node, ok bool, format string, args ...any) {
	if w.watch.lost {
		return
	}
	w.watch.verdicts[invariant].Checks++
	if !ok {
		w.breach(invariant, n, format, args...)
	}
}

// said looks at a frame that a node's machine means to send.
func (x *watch) said(n *Node, f *frame) {
	w := x.w
	x.tells(n, f)
	x.apart(n, f)
	switch machine.FrameKind(f.raw) {
	case "ballot":
		if b, ok := f.open().(votes.Ballot); ok {
			x.ballot(n, b.Domain.Epoch, b.Subject)
		}
	case "proposal":
		if p, ok := f.open().(machine.Proposal); ok {
			s := quorum.Subject{Kind: w.voteKind(p.Header.Epoch), View: p.Header.View, Block: p.Header.Hash()}
			at := place{p.Header.Epoch, s.View}
			if b, ok := x.proposals[at]; ok && b != s.Block {
				x.reach("two proposals")
			}
			x.proposals[at] = s.Block
			x.proposed(p.Header)
			x.ballot(n, at.epoch, s)
			x.ending.proposed(w, n, p)
			x.time.sees(w, p)
		}
	case "block":
		x.given(f)
	}
}

// guardSpace begins the keys under which a node records what it signed.
const guardSpace = 'g'

// wrote looks at a node's records of its signatures: a node that dies before
// it sends a ballot may send it in its next life.
func (x *watch) wrote(n *Node, ops []kv.Op, starts bool) {
	for _, op := range ops {
		if !op.Delete && len(op.Key) > 0 && op.Key[0] == guardSpace {
			x.forgets(n, op)
			x.silent(n, op, starts)
			if b, err := votes.DecodeBallot(op.Value); err == nil && n.key != nil && b.Anchor == n.anchorID() && b.Domain.Scope == x.w.id {
				x.ballot(n, b.Domain.Epoch, b.Subject)
			}
		}
	}
}

// onRecord looks at the record with which a node starts.
func (x *watch) onRecord(n *Node) {
	n.lost = 0
	err := n.Disk.Scan([]byte{guardSpace}, []byte{guardSpace + 1}, false, func(k, v []byte) bool {
		x.wrote(n, []kv.Op{kv.Set(k, v)}, true)
		return true
	})
	must.OK(err, "reading what a node signed")
	x.rule(n, true) // in an earlier life, of which a failing disk may have told nothing
}

// ballot counts an anchor's raw ballot, and holds the anchor to one for a slot,
// over all of its lives (P7).
func (x *watch) ballot(n *Node, epoch aweigh.Epoch, s quorum.Subject) {
	w, who := x.w, n.number()
	if int(epoch) >= len(w.epochs) { // a liar's invention, or sent before its epoch is noted
		if int(epoch) == len(w.epochs) {
			x.first = append(x.first, func() { x.ballot(n, epoch, s) })
		}
		return
	}
	t := x.ballots[said{epoch, s}]
	if t == nil {
		t = &tally{by: make(map[int]bool)}
		x.ballots[said{epoch, s}] = t
	}
	if weights := w.epochs[epoch].Roster.Weights; !t.by[who] && n.key != nil && weights.Of(n.anchorID()) > 0 {
		t.by[who] = true
		weight := weights.Of(n.anchorID())
		t.weight += weight
		if t.least == 0 || weight < t.least {
			t.least = weight
		}
		if n.honest() {
			t.honest += weight
		}
		if decides(w.epochs[epoch], s, t.weight) {
			x.highest[epoch] = max(x.highest[epoch], s.View)
		}
	}
	if n.excused() {
		return
	}
	var against quorum.Subject // on record, and in conflict with this one
	for _, k := range []quorum.Kind{s.Kind, quorum.Nullify, quorum.Finalize} {
		if old, ok := x.signed[ballotSlot{who, place{epoch, s.View}, k}]; ok && old.Conflicts(s) {
			against = old
		}
	}
	w.holds(Ballots, n, against == quorum.Subject{}, "signed %v and %v", against, s)
	x.follower.waiting = append(x.follower.waiting, recorded{n: n, epoch: epoch, subject: s})
	x.signed[ballotSlot{who, place{epoch, s.View}, s.Kind}] = s
}

// noted takes a machine's note.
func (x *watch) noted(n *Node, note machine.Note) {
	w := x.w
	switch note := note.(type) {
	case machine.Finalized:
		n.Height = note.Height
		w.log(n, "final", "%d view %d %s (%d)", note.Height, note.View, note.Block.Short(), note.Mutations)
		if !n.excused() {
			x.finalized(n, note)
		}
	case machine.Nullified:
		w.log(n, "nullified", "view %d", note.View)
		if !n.excused() {
			x.nullified[place{n.machine.Epoch().Number, note.View}] = true
			x.reach("nullified view")
		}
	case machine.EpochBegan:
		e := note.Epoch
		w.log(n, "epoch", "%d of %d anchors that weigh %d", e.Number, len(e.Roster.Anchors), e.Roster.Weights.Total())
		if !n.excused() {
			x.epoch(n, e)
			x.enters(n, e.Number)
		}
	case machine.Listened:
		x.listened(n, note.View)
	case machine.Faulted:
		at := w.anchors[note.Proof.Anchor()]
		w.log(n, "proof", "against n%d", at)
		if !n.excused() {
			w.holds(Honour, n, !w.Nodes[at].honest() && x.within, "a proof of fault against node %d: %v and %v",
				at, note.Proof.First.Subject, note.Proof.Second.Subject)
		}
	case machine.LostState:
		w.log(n, "lost", "its record in view %d", note.View)
		if n.liar != nil {
			n.liar.clean()
		} else {
			if !n.excused() {
				w.breach(Durable, n, "lost the record of what it signed, though its disk is whole")
			}
			x.reach("lost record")
		}
	case machine.Behind:
		if !n.excused() {
			x.reach("catch up")
		}
		w.at(0, n.probe)
	case machine.Dropped:
		w.log(n, "dropped", "%s", note.Why)
		if from := w.byPeer[note.From]; len(from) > 0 && !n.excused() && note.Class.Blame() && !from[0].excused() && !from[0].crosses {
			w.breach(Acceptance, n, "drops what %s sent, as no honest node would send it: %s", from[0], note.Why)
		}
		if !n.excused() {
			w.holds(Classified, n, note.Class != refusal.Internal, "drops input for a reason without a class: %s", note.Why)
		}
		switch {
		case n.excused():
		case strings.Contains(note.Why, scope.ErrEarly.Error()):
			x.reach("skewed clock")
			x.reach("refused proposal")
		case strings.HasPrefix(note.Why, "scope: invalid"):
			x.reach("refused proposal")
		case strings.HasPrefix(note.Why, "a certificate that does not hold"):
			x.reach("forged certificate dropped")
		case strings.Contains(note.Why, "may not vote on motion"):
			x.reach("barred voter")
		case strings.HasPrefix(note.Why, "box: full"):
			x.reach("full box")
		}
	}
}

// epoch holds nodes to one roster and policy for an epoch.
func (x *watch) epoch(n *Node, e *scope.Epoch) {
	w := x.w
	if int(e.Number) == len(w.epochs) {
		w.enter(e)
		for _, count := range x.first {
			count()
		}
		x.first = nil
		x.reach("epoch change")
		if e.Number > 0 && w.epochs[e.Number-1].Policy.Rules.Mode != e.Policy.Rules.Mode {
			x.reach("mode changed")
		}
		switch first, now := len(w.Genesis.Policy.Authors), len(e.Policy.Authors); {
		case now < first:
			x.reach("entry taken away")
		case e.Number > 0 && len(w.epochs[e.Number-1].Policy.Authors) < now:
			x.reach("entry given back")
		}
		if w.firing && w.faultsActive() {
			x.reach("epoch change under fire")
		}
		w.at(0, w.probeLagging)
		x.standing.enter(w, n, e)
		w.homeward(e)
		x.ending.began(w)
		x.pauses.began(w)
		if faulty := x.weigh(); x.within && faulty > w.rules.Mode.FaultBudget(w.weights.Total()) { // the promise ends here
			x.outgrown, x.lost = w.number == 0, w.number > 0
			w.log(n, "outgrown", "the faulty weigh %d of %d", faulty, w.weights.Total())
		}
		return
	}
	w.holds(Rosters, n, int(e.Number) < len(w.epochs) && e.Domain() == w.epochs[e.Number].Domain(), "another roster or policy in epoch %d", e.Number)
}

// refused looks at a frame that its receiver refused.
func (x *watch) refused(from, to *Node, f *frame, err error) {
	if to.excused() {
		return
	}
	other := errors.Is(err, votes.ErrStale) || errors.Is(err, votes.ErrAhead) || !to.seats(from) // of another epoch than the receiver's
	if !other && !from.excused() && !from.crosses {
		x.w.breach(Acceptance, to, "an honest %s from %s is refused: %v", machine.FrameKind(f.raw), from, err)
	}
	x.w.holds(Classified, to, refusal.Of(err) != refusal.Internal, "refuses a frame for a reason without a class: %v", err)
	x.refusal[reason(err)]++
	x.reach("refused frame")
	if f.forged {
		x.reach("forgery refused")
	}
	x.w.say("%s refuses %s from %s: %v", to, describe(f), from, err)
}

// heard looks at a frame that a node took in.
func (x *watch) heard(from, to *Node, f *frame) {
	if from.liar != nil && machine.FrameKind(f.raw) == "proposal" { // which may have been changed after it was sent
		if p, ok := f.open().(machine.Proposal); ok {
			x.proposed(p.Header)
		}
	}
	if from.key != nil && machine.FrameKind(f.raw) == "offer" && to.term.listened < 2 {
		if o, ok := f.open().(machine.Offer); ok && o.Answer {
			to.term.hears(from.anchorID())
		}
	}
	if !from.excused() && !to.excused() && !x.lost {
		x.verdicts[Acceptance].Checks++
	}
	if !x.within && !to.excused() {
		x.evidence.add(f, x.w.voteKind)
	}
	if x.w.events%512 == 0 && !to.excused() {
		x.bounded(to)
	}
}
