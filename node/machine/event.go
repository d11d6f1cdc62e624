package machine

import (
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/refusal"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// Peer is a libp2p peer ID in its text form.
type Peer string

// Event is one thing that happened to a node: Submit, Read, HandIn, Arrived,
// Met, Parted, Keyed, Ordered or Stepwise.
type Event interface{ event() }

// Submit is a bundle that this node admitted, for a client of its own or for a peer that does not hold the scope. Each
// of its mutations is answered by a Reply, unless it expires first.
type Submit struct {
	Bundle *scope.CheckedBundle
	From   Peer // "": a client of this node
	Again  bool // sent before and may have been applied: it is not refused
}

// Read asks for a Reply once this node's state is as new as any write that was
// acknowledged anywhere before the Read (P23).
type Read struct{ ID uint64 }

// Arrived is a message from another node that a Checker has decoded and verified.
type Arrived struct {
	From    Peer
	Message Message
}

// Met says that a connection with a peer of this network was made.
type Met struct{ Peer Peer }

// Parted says that the last connection with a peer was lost.
type Parted struct{ Peer Peer }

// Keyed gives a key to a node without an anchor key. The key signs from the next epoch on, if it has a seat there.
type Keyed struct{ Key votes.PrivateKey }

// HandIn brings verified ballots on motions from this node's own clients. It is answered by a Reply whose Read is ID.
// Own is set if the ballots are in the name of this node's anchor, which must not contradict itself.
type HandIn struct {
	ID      uint64
	Ballots []votes.CheckedMotionBallot
	Own     bool
}

// Stepwise says that no snapshot is available, so that the machine must fetch all blocks.
type Stepwise struct{}

func (HandIn) event()   {}
func (Keyed) event()    {}
func (Stepwise) event() {}
func (Submit) event()   {}
func (Read) event()     {}
func (Arrived) event()  {}
func (Met) event()      {}
func (Parted) event()   {}

// Effects is what a Step wants done, in the order of the fields. If Sync is set, nothing in Send, Gossip or Reply may
// leave before Write is durable. Sync is set whenever this node signed something. It need not be set for what this
// node merely learned, such as that a block is final: a quorum has that on record.
type Effects struct {
	Write  []kv.Op
	Sync   bool
	Send   []Packet
	Gossip [][]byte
	Reply  []Reply
	Notes  []Note
	Wake   aweigh.Instant // step again at this instant at the latest; 0: never
}

// Packet is a frame for one peer.
type Packet struct {
	To    Peer
	Frame []byte
	Again bool // repeats what To may have heard (P17): the runner may drop it, as if it were lost
}

// Reply answers a Submit, a Read or a HandIn. To a Submit, it carries the outcome of one mutation or the reason why
// the mutation was not taken.
type Reply struct {
	Mutation aweigh.Hash
	Bundle   aweigh.Hash // the bundle that exceeded, which concerns only requests that wait for it; else zero
	Outcome  *scope.Outcome
	Refused  error
	Height   aweigh.Height // of the mutation's block, or the height that a Read waited for
	Epoch    aweigh.Epoch  // of the mutation's block; for a mutation applied before the Submit, the current epoch
	Read     uint64
	Now      aweigh.Instant // for a Read: the latest of the clocks of this node and of the anchors that answered
	Cast     []Casting      // of a HandIn
}

// ErrBusy refuses a request for which there is no room.
var ErrBusy = refusal.New(refusal.Full, "node: too many requests are waiting; try again later")

// ErrNotTaken refuses a mutation that cannot be applied. Errors that wrap it give the reason.
var ErrNotTaken = refusal.New(refusal.Stale, "node: the mutation is not taken")

var (
	ErrOtherScope = fmt.Errorf("%w: it belongs to another scope", ErrNotTaken)
	errTooLong    = fmt.Errorf("%w: it is valid for longer than the policy's limits.valid_for by this node's clock, or the clock of its author is ahead", ErrNotTaken)
	errPatient    = fmt.Errorf("%w: it waits for approval alone, and the policy asks for none", ErrNotTaken)
	errTooPatient = fmt.Errorf("%w: it is valid for longer than the policy's limits.pending", ErrNotTaken)
)

// ExpiredError refuses a mutation whose ValidUntil has passed. It wraps ErrNotTaken.
type ExpiredError struct {
	Time aweigh.Instant // of the scope's newest block that is known here
}

// Error returns the same text at every node, so that a comparison of answers finds them equal.
func (e *ExpiredError) Error() string {
	return ErrNotTaken.Error() + ": it has expired, or the clock of its author or of this node is wrong"
}

// Unwrap returns ErrNotTaken.
func (e *ExpiredError) Unwrap() error { return ErrNotTaken }

// Note is something that operators or metrics may want to know. Notes are the only way in which the machine reports;
// the code around it turns them into logs, metrics and events.
type Note interface{ note() }

// Finalized: a block became final and was applied.
type Finalized struct {
	Epoch     aweigh.Epoch
	Height    aweigh.Height
	View      aweigh.View
	Block     aweigh.Hash
	Proposer  aweigh.AnchorID
	Mutations int
	Revision  int64
}

// Dropped: input was refused; Why is the text of the error.
type Dropped struct {
	From  Peer
	Class refusal.Class
	Why   string
}

// Faulted: an anchor provably broke the rules.
type Faulted struct{ Proof votes.Equivocation }

// LostState: this node's own record is older than ballots that it signed before (P9); it signs nothing more in this
// epoch.
type LostState struct{ View aweigh.View }

// Listened: this anchor has heard a quorum since its start, and signs from View on (P9).
type Listened struct{ View aweigh.View }

// EpochBegan: another epoch began; Seated is set if this node has a seat in its roster.
type EpochBegan struct {
	Epoch  *scope.Epoch
	Seated bool
}

// Installed: a snapshot replaced the state; this node holds blocks from Height on.
type Installed struct {
	Height aweigh.Height
}

// Behind: this node asks Peer for final blocks from height From on; an empty Peer means that it waits for a snapshot.
type Behind struct {
	From aweigh.Height
	Peer Peer
}

// Nullified: a view ended without a block.
type Nullified struct {
	View   aweigh.View
	Leader aweigh.AnchorID
}

func (Finalized) note()  {}
func (Dropped) note()    {}
func (Faulted) note()    {}
func (LostState) note()  {}
func (Listened) note()   {}
func (Installed) note()  {}
func (EpochBegan) note() {}
func (Behind) note()     {}
func (Nullified) note()  {}
