package node

import (
	"time"

	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes/box"
)

// Bounds are how much a Machine keeps, does in one step and gives in one answer, and how long it waits. They are its
// own: nodes may have different ones. Production runs with DefaultBounds, and simulations with smaller ones, so that
// what happens at a bound happens often. What all nodes of a scope must have alike is scope.Bounds; see Network.Within.
//
// The tag of a field says which value is the least that makes sense. The reasons for the default values stand at the
// constants.
type Bounds struct {
	Quorum quorum.Bounds

	// Of blocks and proposals.
	Wanted     int `least:"1"`    // blocks, and proposals, whose content is missing
	Names      int `least:"16"`   // in one Want: fewer, and a view is over before the bundles of a block are there
	Reply      int `least:"4096"` // bytes that one question makes this node send; likewise
	Blocks     int `least:"1"`    // in one answer to CatchUp
	OpenBlocks int `least:"2"`
	OpenEmpty  int `least:"256"` // more than views pass while no quorum is there
	Undo       int `least:"1"`   // bytes

	// Of the pool.
	Pool       int `least:"65536"` // bytes of mutations that may wait: fewer, and one may not fit
	Reoffer    int `least:"1"`
	HandOut    int `least:"1"`
	Repeatable int `least:"1"` // units

	// Of peers and epochs.
	SomeAtATime int `least:"1"`
	Helped      int `least:"1"`
	EarlyBytes  int `least:"1"`
	Proofs      int `least:"1"`
	Held        int `least:"1"`
	Reads       int `least:"1"`

	// Of final blocks that stay.
	DropsAtOnce int           `least:"1"`
	DropAgain   time.Duration `least:"1ms"`
	DropLater   time.Duration `least:"1ms"`

	// Of ballots on motions.
	Box       box.Limits
	Due       int `least:"1"`
	Known     int `least:"1"`
	CastBytes int `least:"1"`
	Sessions  int `least:"1"`

	// How long to wait.
	KeepAfter    time.Duration `least:"1ms"`
	PollEvery    time.Duration `least:"100ms"`
	MeetPatience time.Duration `least:"100ms"`
	MeetOften    time.Duration `least:"100ms"`
	MeetSeldom   time.Duration `least:"100ms"`
	OrderSoon    time.Duration `least:"10ms"`
	OrderLate    time.Duration `least:"10ms"`
}

// DefaultBounds are those of a Machine that is given no others.
func DefaultBounds() Bounds {
	return Bounds{
		Quorum: quorum.DefaultBounds(),
		Wanted: maxWanted, Names: maxNames, Reply: maxReply, Blocks: maxBlocks, OpenBlocks: maxOpenBlocks, OpenEmpty: maxOpenEmpty, Undo: maxUndo,
		Pool: maxPool, Reoffer: maxReoffer, HandOut: maxHandOut, Repeatable: repeatableUnits,
		SomeAtATime: someAtATime, Helped: maxHelped, EarlyBytes: maxEarlyBytes, Proofs: maxProofs, Held: maxHeld, Reads: maxReads,
		DropsAtOnce: dropsAtOnce, DropAgain: dropAgain, DropLater: dropLater,
		Box: box.DefaultLimits, Due: maxDue, Known: maxKnown, CastBytes: maxCastBytes, Sessions: maxSessions,
		KeepAfter: keepAfter, PollEvery: pollEvery, MeetPatience: meetPatience, MeetOften: meetOften, MeetSeldom: meetSeldom,
		OrderSoon: leastPatience, OrderLate: mostPatience,
	}
}

// defaults are shared by all machines that have no others. Nothing changes them.
var defaults = DefaultBounds()

// Within lets the machines of the scope keep to other bounds on what blocks lead to. It returns the network.
func (n *Network) Within(b *scope.Bounds) *Network {
	n.bounds = b
	return n
}
