package machine

import (
	"time"

	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes/box"
)

// Bounds limits how much a Machine keeps, does in one step and sends in one answer, and how long it waits. Nodes of
// one network may have different Bounds. Production runs with DefaultBounds; simulations run with smaller ones, so
// that a bound is reached often. The limits that all nodes of a scope must share are in scope.Bounds; see
// Network.Within.
//
// The tag of a field is the least value that makes sense. The constants explain the default values.
type Bounds struct {
	Quorum quorum.Bounds

	// Of blocks and proposals.
	Wanted     int `least:"1"`    // blocks, and proposals, whose content is missing
	Names      int `least:"16"`   // in one Want; with fewer, a view ends before the bundles of a block have arrived
	Reply      int `least:"4096"` // bytes that one question makes this node send; likewise
	Blocks     int `least:"1"`    // in one answer to CatchUp
	OpenBlocks int `least:"2"`
	OpenEmpty  int `least:"256"` // more than the views that pass while there is no quorum
	Undo       int `least:"1"`   // bytes

	// Of the pool.
	Pool       int `least:"65536"` // bytes of mutations that may wait; with fewer, one mutation may not fit
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

// DefaultBounds returns the bounds of a Machine whose MachineConfig sets none.
func DefaultBounds() Bounds {
	return Bounds{
		Quorum: quorum.DefaultBounds(),
		Wanted: maxWanted, Names: MaxNames, Reply: maxReply, Blocks: MaxBlocks, OpenBlocks: MaxOpenBlocks, OpenEmpty: maxOpenEmpty, Undo: maxUndo,
		Pool: maxPool, Reoffer: maxReoffer, HandOut: maxHandOut, Repeatable: repeatableUnits,
		SomeAtATime: someAtATime, Helped: MaxHelped, EarlyBytes: maxEarlyBytes, Proofs: maxProofs, Held: maxHeld, Reads: maxReads,
		DropsAtOnce: dropsAtOnce, DropAgain: dropAgain, DropLater: dropLater,
		Box: box.DefaultLimits, Due: maxDue, Known: maxKnown, CastBytes: maxCastBytes, Sessions: maxSessions,
		KeepAfter: KeepAfter, PollEvery: PollEvery, MeetPatience: meetPatience, MeetOften: meetOften, MeetSeldom: meetSeldom,
		OrderSoon: leastPatience, OrderLate: mostPatience,
	}
}

// defaults is shared by all machines whose MachineConfig sets no bounds. It is never modified.
var defaults = DefaultBounds()

// Within makes the states of the scope use b instead of the default bounds. It returns n.
func (n *Network) Within(b *scope.Bounds) *Network {
	n.bounds = b
	return n
}
