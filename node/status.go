package node

import (
	"context"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
)

// Status returns the machine's status. It is as of now, or as of its last change if the machine is too busy to answer
// or does not run.
func (n *Replica) Status() machine.Status { return n.statusWithin(time.Second) }

// CatchingUp reports whether this node knows that its state is old. It costs nothing, and may be a step late.
func (n *Replica) CatchingUp() bool {
	s := n.runner.stand.Load()
	return s.Far || s.Known > s.State.Height() || n.fetching.Load() != nil
}

func (n *Replica) statusWithin(d time.Duration) machine.Status {
	return n.seenWithin(d, aweigh.Hash{}).Status
}

// seenWithin returns the machine's status and what it knows of a mutation. If the machine is too busy to answer, the
// status is the last one, and no mutation is reported as on disk.
func (n *Replica) seenWithin(d time.Duration, mutation aweigh.Hash) seen {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	s, err := n.see(ctx, mutation)
	if err != nil {
		return seen{Status: n.runner.stand.Load().Status()}
	}
	return s
}

// Reach holds the anchors that take part in decisions, as seen from this node, and what that allows.
type Reach struct {
	Anchors []aweigh.AnchorID                // that sign, this node included if it is one
	Missing []aweigh.AnchorID                // the others
	Says    map[aweigh.AnchorID]AnchorReport // of all
	Weight  uint64                           // of those that sign
	Answers uint64                           // weight of those that answer reads: those that sign, or whose clock is off
	Needed  uint64                           // the largest threshold that a decision has to meet
	Reads   uint64                           // weight of the answers that a linearizable read needs
	Total   uint64
	// Failures is how many of those that sign may still stop, the
	// heaviest first, before nothing can be decided; -1 if nothing can be now.
	Failures int
}

// Reach returns how this node sees the anchors now.
func (n *Replica) Reach() Reach { return n.reach(n.Status()) }

// reach counts the anchors that are connected and report that they sign. Anchors that listen (P9) wait for a quorum;
// they count if the anchors that sign are no quorum without them.
func (n *Replica) reach(s machine.Status) Reach {
	says := n.anchorStates(s)
	r := reachOf(&s, says, false)
	if r.Failures < 0 {
		r = reachOf(&s, says, true)
	}
	return r
}

// anchorStates returns what each anchor reports of itself, or that it is away: no connection (p2p.Host closes those of
// members that give no sign of life).
func (n *Replica) anchorStates(s machine.Status) map[aweigh.AnchorID]AnchorReport {
	connected := make(map[peer.ID]bool)
	for _, p := range n.host.Peers() {
		connected[p.ID] = true
	}
	now, all := time.Now(), make(map[aweigh.AnchorID]AnchorReport, len(s.Roster.Anchors))
	for _, a := range s.Roster.Anchors {
		id, peer := a.Key.ID(), machine.Peer(a.Peer)
		says := AnchorReport{State: AnchorAway}
		if at, err := n.called.id(peer); err != nil {
		} else if n.called.of(at) == n.of.Peer() {
			if says = n.report(&s); s.Self != id && says.State != AnchorUnseated {
				says = AnchorReport{State: AnchorKeyless}
			}
		} else if connected[at] {
			says = n.of.states.reportFrom(at, n.id, now)
		}
		all[id] = says
	}
	return all
}

// reachOf returns the reach that follows from the anchors' reports.
func reachOf(s *machine.Status, says map[aweigh.AnchorID]AnchorReport, listeners bool) Reach {
	var shares []quorum.Share
	r := Reach{Total: s.Roster.Weights.Total(), Says: says}
	for _, a := range s.Roster.Anchors {
		id := a.Key.ID()
		if says[id].State == AnchorClock {
			r.Answers += s.Roster.Weights.Of(id)
		}
		if at := says[id].State; at != AnchorSigns && !(listeners && at == AnchorListens) {
			r.Missing = append(r.Missing, id)
			continue
		}
		r.Anchors = append(r.Anchors, id)
		if s.Roster.Weights.Of(id) == 0 { // on probation or standby
			continue
		}
		r.Weight += s.Roster.Weights.Of(id)
		shares = append(shares, quorum.Share{Anchor: id, Weight: s.Roster.Weights.Of(id)})
	}
	r.Answers += r.Weight
	fast := s.Rules.FastBounds(s.Roster.Weights)
	r.Needed = max(s.Rules.Notarize.Threshold(r.Total), s.Rules.Finalize.Threshold(r.Total), fast.Leave)
	r.Reads = machine.ReadWeight(s.Rules, r.Total, fast)
	r.Failures = failures(shares, r.Weight, r.Needed, max(s.Rules.Notarize.MinAnchors, s.Rules.Finalize.MinAnchors))
	return r
}

// failures counts how many of the shares, the heaviest first, can be taken
// away while the rest weighs at least needed.
func failures(shares []quorum.Share, weight, needed uint64, anchors uint32) int {
	for n := -1; ; n++ {
		if weight < needed || len(shares) < int(anchors) || len(shares) == 0 {
			return n
		}
		heaviest := 0
		for i, s := range shares {
			if s.Weight > shares[heaviest].Weight {
				heaviest = i
			}
		}
		weight -= shares[heaviest].Weight
		shares = append(shares[:heaviest:heaviest], shares[heaviest+1:]...)
	}
}
