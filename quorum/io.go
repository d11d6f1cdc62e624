package quorum

import (
	"time"

	"github.com/aweigh/aweigh"
)

// Timing holds the periods of an Engine. Zero fields take the defaults.
type Timing struct {
	// View is how long a view may take before an anchor gives up on it, while
	// views succeed. Default 1 s.
	View time.Duration
	// MaxView bounds the growth of that period while views fail (P19). Default 16 s.
	MaxView time.Duration
	// Offer is the period at which votes and certificates that others may lack are offered again while there is work
	// (P17). It never grows. Default 250 ms.
	Offer time.Duration
	// Settle is how long a leader without mutations waits for the block before
	// it to become final, before it proposes an empty one. Default 100 ms.
	Settle time.Duration
}

func (t Timing) withDefaults() Timing {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&t.View, time.Second)
	def(&t.MaxView, 16*time.Second)
	def(&t.Offer, 250*time.Millisecond)
	def(&t.Settle, 100*time.Millisecond)
	return t
}

// Config describes an Engine's epoch.
type Config struct {
	Self    aweigh.AnchorID // the anchor that this engine votes for; zero for an observer
	Weights Weights
	Leaders Weights // the anchors that lead views, in proportion to these weights; all by default
	Rules   Rules
	Seed    aweigh.Hash // of the epoch, for Leader
	Root    aweigh.Hash // the block that the epoch starts from; it counts as final at view 0
	Timing  Timing
	Bounds  Bounds // DefaultBounds by default
}

// Input is one event: Proposal, Vote, Certificate, Verdict, Work or Link. What comes from others must have been
// verified.
type Input interface{ input() }

// Proposal announces the block that the leader of a view proposes. Vote is the leader's own vote for it. Parent must
// be the one that the block itself names.
type Proposal struct {
	Vote       Vote
	Parent     aweigh.Hash
	ParentView aweigh.View // in which the parent was notarized, 0 for the root; for people and logs
}

// Verdict answers Output.Check: whether the block of a proposal is valid.
type Verdict struct {
	View  aweigh.View
	Block aweigh.Hash
	Valid bool
}

// Work states whether this node knows of mutations that no proposal has. The engine keeps the last
// value.
type Work bool

// Link states whether this node is connected to another anchor. The engine does not wait for a leader that is known
// to be out of reach. That is a decision of this node alone, and does not affect safety, since an anchor may nullify
// a view unless it has signed finalize. Until the first Link of an anchor, the engine assumes that it is within
// reach.
type Link struct {
	Anchor aweigh.AnchorID
	Up     bool
}

func (Proposal) input()    {}
func (Vote) input()        {}
func (Certificate) input() {}
func (Verdict) input()     {}
func (Work) input()        {}
func (Link) input()        {}

// Slot is a view in which this anchor leads and is to propose a block now.
type Slot struct {
	View       aweigh.View
	Parent     aweigh.Hash
	ParentView aweigh.View
	Proof      []Certificate // the parent's certificate, if it has one, and the nullifications between (P12)
}

// Ground is all that an engine of mode Fast holds of others' nullify ballots of a view, with the leader's votes for
// blocks of the view. It takes the place of an earlier Ground of the view.
type Ground struct {
	View  aweigh.View
	Votes []Vote
}

// Fault is two conflicting votes of one anchor (P36).
type Fault struct{ First, Second Vote }

// Offer repeats an anchor's votes and certificates of its open views (P17), so that nothing depends on one delivery.
// Idle anchors make no offers on their own: a node that receives an Offer with a lower View or Final than its own
// answers with its Holdings, and a node that connects to a peer asks for them.
type Offer struct {
	View         aweigh.View // the sender's current view
	Final        aweigh.View // the sender's last final view
	Votes        []Vote
	Certificates []Certificate
	Propose      aweigh.View // repeat the own proposal of this view, 0: none
}

// Output is what must be done after a step, in the order of the fields. All of Sign, Certified and Grounds must be
// durable before any of it is sent: after a restart, an anchor could not account for a finalize vote without the
// notarization on record.
type Output struct {
	Sign      []Subject      // sign, make durable, send to all, and feed back as own Votes
	Build     *Slot          // build a block, sign notarize for it, make both durable, send and feed back the Proposal
	Check     []Proposal     // check these blocks; feed back a Verdict for each
	Certified []Certificate  // first seen or formed in this step, ordered by view; pass on (P11)
	Grounds   []Ground       // ballots on which what is signed rests; they must be durable as well (mode Fast)
	Passed    []aweigh.View  // views that nullify ballots ended without a block, where no certificate does (mode Fast)
	Final     []Certificate  // with a higher view than all before: finalizations, and notarizations that decide
	Faults    []Fault        // at most one for each anchor and view
	Offer     *Offer         // send to all
	Wake      aweigh.Instant // step again at this instant if nothing happens before; 0: never
}
