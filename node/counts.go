package node

import (
	"sync/atomic"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/refusal"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// Counts are totals of a node since its start, except where a field says "now".
type Counts struct {
	Blocks    uint64 // final
	Mutations uint64 // in final blocks, failed ones included
	Refused   [refusal.Classes]uint64
	Anchors   []AnchorCounts // in the order of the roster

	Commits   Latencies // from a client's mutation to its outcome
	Undecided uint64    // mutations whose clients stopped waiting
	// IslandsRefused counts the islands of this anchor of which the scope takes no more.
	IslandsRefused uint64
	Unread         uint64    // frames and requests of peers that may not read the scope
	GivingWay      float64   // changes a second to which scopes that give way to others are limited now; 0: no limit
	GaveWay        uint64    // changes that waited for it
	Reads          Latencies // linearizable
	Unanswered     uint64    // linearizable reads whose clients stopped waiting

	Sent, Received map[string]Traffic // by kind of frame

	Watches MemoryCounts // the memory that they hold
	Answers MemoryCounts // to ranges
	Copies  CopyCounts   // of keys of scopes that are not held

	Events, Submits int // waiting for the machine now
}

// AnchorCounts is what a node counted about one anchor.
type AnchorCounts struct {
	ID        aweigh.AnchorID
	Name      string // differs from that of every other anchor
	Weight    uint64 // in this epoch; 0: on probation or standby
	Nullified uint64 // of the views that it led
	// Ahead is by how much the block of its last direct proposal was ahead of this node's clock when it arrived,
	// negative if it was behind. Heard is false before the first one.
	Ahead time.Duration
	Heard bool
}

// Traffic counts what was handed to the network, or came from it.
type Traffic struct{ Frames, Bytes uint64 }

// measured holds the counters of one scope and its anchors, and of the whole node. No part of it needs a lock, because
// it is updated for every frame.
type measured struct {
	*inAll
	inScope atomic.Uint64 // mutations in final blocks of this scope
	roster  atomic.Pointer[anchorMeasures]
}

// inAll is what a node counts in all scopes together.
type inAll struct {
	blocks, mutations     atomic.Uint64
	refused               [refusal.Classes]atomic.Uint64
	commits, reads        latency
	undecided, unanswered atomic.Uint64
	islandsRefused        atomic.Uint64
	unread                atomic.Uint64 // frames and requests of peers that may not read
	sent, received        [256]traffic  // by tag
}

// anchorMeasures are those of one roster.
type anchorMeasures struct {
	of  *scope.Roster
	all []*anchorMeasure // in the order of the roster
}

// by returns the counters of an anchor, nil if it has no seat.
func (m *anchorMeasures) by(a aweigh.AnchorID) *anchorMeasure {
	if m == nil {
		return nil
	}
	if seat, ok := m.of.Seat(a); ok {
		return m.all[seat]
	}
	return nil
}

type traffic struct{ frames, bytes atomic.Uint64 }

// count counts a frame. Frames of unknown kinds share one counter.
func count(by *[256]traffic, frame []byte) {
	t := &by[0]
	if machine.FrameKind(frame) != "" {
		t = &by[frame[0]]
	}
	t.frames.Add(1)
	t.bytes.Add(uint64(len(frame)))
}

// anchorMeasure is what is known of one anchor.
type anchorMeasure struct {
	id        aweigh.AnchorID
	peer      machine.Peer
	name      string
	nullified atomic.Uint64
	clock     clockOf
}

// newMeasured makes room for the roster of an epoch.
func newMeasured(e *scope.Epoch, all *inAll) *measured {
	m := &measured{inAll: all}
	m.reseat(e)
	return m
}

// reseat makes room for every anchor of an epoch, under a unique name, since two anchors may have been given the same
// name. Anchors that stay keep their counters.
func (m *measured) reseat(e *scope.Epoch) {
	r, old := &e.Roster, m.roster.Load()
	now := &anchorMeasures{of: &e.Roster, all: make([]*anchorMeasure, 0, len(r.Anchors))}
	taken := make(map[string]bool, len(r.Anchors))
	for _, x := range r.Anchors {
		a := &anchorMeasure{id: x.Key.ID(), peer: machine.Peer(x.Peer), name: x.Name}
		switch {
		case a.name == "":
			a.name = a.id.Short()
		case taken[a.name]:
			a.name += " " + a.id.Short()
		}
		taken[a.name] = true
		if was := old.by(a.id); was != nil && was.name == a.name {
			a = was
		}
		now.all = append(now.all, a)
	}
	m.roster.Store(now)
}

// of returns the counters of an anchor, nil if it has no seat.
func (m *measured) of(a aweigh.AnchorID) *anchorMeasure { return m.roster.Load().by(a) }

// name returns an anchor's name, or its short ID.
func (m *measured) name(a aweigh.AnchorID) string {
	if x := m.of(a); x != nil {
		return x.name
	}
	return a.Short()
}

// Counts returns the counters as of now.
func (n *Replica) Counts() Counts {
	m := n.measured
	c := Counts{
		Blocks: m.blocks.Load(), Mutations: m.mutations.Load(),
		Commits: m.commits.snapshot(), Undecided: m.undecided.Load(), Unread: m.unread.Load(), IslandsRefused: m.islandsRefused.Load(),
		Reads: m.reads.snapshot(), Unanswered: m.unanswered.Load(),
		Sent: totals(&m.sent), Received: totals(&m.received),
		Events: len(n.runner.events) + n.intake.Waiting(), Submits: len(n.runner.submits), Watches: n.of.WatchMemory(),
		Answers: n.of.answers.Counts(), Copies: n.of.Copies(),
	}
	c.GivingWay, c.GaveWay = n.of.sharing.Held()
	for i := range c.Refused {
		c.Refused[i] = m.refused[i].Load()
	}
	roster := m.roster.Load()
	for _, a := range roster.all {
		ahead, heard := a.clock.last()
		c.Anchors = append(c.Anchors, AnchorCounts{
			ID: a.id, Name: a.name, Weight: roster.of.Weights.Of(a.id), Nullified: a.nullified.Load(), Ahead: ahead, Heard: heard,
		})
	}
	return c
}

// totals returns the counters of every kind of frame, including kinds that were not seen.
func totals(by *[256]traffic) map[string]Traffic {
	out := make(map[string]Traffic)
	for tag := range by {
		if kind := machine.FrameKind([]byte{byte(tag)}); kind != "" {
			out[kind] = Traffic{by[tag].frames.Load(), by[tag].bytes.Load()}
		}
	}
	out["unknown"] = Traffic{by[0].frames.Load(), by[0].bytes.Load()}
	return out
}

// Dropped returns how many inputs were refused since the start.
func (n *Node) Dropped() (total uint64) {
	for i := range n.counted.refused {
		total += n.counted.refused[i].Load()
	}
	return total
}
