package machine

import (
	"errors"

	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
	"github.com/aweigh/aweigh/votes/box"
	"github.com/aweigh/aweigh/votes/reconcile"
)

// Refusal is a class of reasons to refuse input. There are few classes, so that they can be counted.
type Refusal uint8

// The classes, ordered from input that only a liar or a broken program sends to input that an honest node may send at
// a bad moment.
const (
	Malformed Refusal = iota // no frame, not in canonical form, or not the content that the tag requires
	Oversized                // more items than are accepted
	Forged                   // a signature, signer or weight that does not hold
	Invalid                  // authentic, but its content breaks the rules
	Foreign                  // of another network or scope
	Early                    // a block ahead of this node's clock: one of the two is wrong
	Stale                    // of another epoch, or expired
	Unasked                  // an answer that was not asked for
	Full                     // there is no room for it now

	Refusals // the number of classes
)

// String returns the class in words.
func (r Refusal) String() string {
	return [Refusals]string{"malformed", "oversized", "forged", "invalid", "wrong network", "clock", "stale", "not asked for", "limits"}[r]
}

// Blame reports whether an honest node never sends such input.
func (r Refusal) Blame() bool { return r <= Foreign }

// ErrOversized is wrapped by errors about frames that hold more items than are accepted.
var ErrOversized = errors.New("node: oversized")

// DroppedFrame returns the note that input of a peer was refused because of err.
func DroppedFrame(from Peer, err error) Dropped {
	return Dropped{From: from, Class: RefusalOf(err), Why: err.Error()}
}

// RefusalOf returns the class of an error of decoding or verifying. Some errors wrap several others; the most specific
// one decides.
func RefusalOf(err error) Refusal {
	for _, c := range []struct {
		err   error
		class Refusal
	}{
		{ErrOversized, Oversized}, {scope.ErrEarly, Early}, {scope.ErrSuperseded, Stale},
		{votes.ErrForged, Forged}, {votes.ErrTooLight, Forged}, {votes.ErrStranger, Forged},
		{votes.ErrForeign, Foreign}, {votes.ErrOtherScope, Foreign},
		{votes.ErrStale, Stale}, {votes.ErrAhead, Stale}, {ErrNotTaken, Stale},
		{ErrBusy, Full}, {box.ErrFull, Full}, {box.ErrVoterFull, Full}, {box.ErrClosed, Stale},
		// Of a session that was begun anew.
		{reconcile.ErrTopic, Foreign}, {reconcile.ErrProtocol, Unasked}, {reconcile.ErrLimit, Full},
		{scope.ErrInvalid, Invalid},
	} {
		if errors.Is(err, c.err) {
			return c.class
		}
	}
	return Malformed
}
