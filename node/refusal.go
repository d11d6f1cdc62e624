package node

import (
	"errors"

	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
	"github.com/aweigh/aweigh/votes/box"
	"github.com/aweigh/aweigh/votes/reconcile"
)

// Refusal is why input was refused, as a class: few, so that they can be counted.
type Refusal uint8

// The classes, from what only a liar or a broken program sends down to what an
// honest node may send at a bad moment.
const (
	Malformed Refusal = iota // no frame, not in canonical form, or not what such a frame holds
	Oversized                // more items than is taken
	Forged                   // a signature, signer or weight that does not hold
	Invalid                  // authentic, but its content breaks the rules
	Foreign                  // of another network or scope
	Early                    // a block ahead of this node's clock: one of the two is wrong
	Stale                    // of another epoch, or expired
	Unasked                  // an answer to no question
	Full                     // there is no room for it now

	Refusals // how many classes there are
)

// String is the class in words.
func (r Refusal) String() string {
	return [Refusals]string{"malformed", "oversized", "forged", "invalid", "wrong network", "clock", "stale", "not asked for", "limits"}[r]
}

// Blame reports whether no honest node sends such input.
func (r Refusal) Blame() bool { return r <= Foreign }

// ErrOversized is returned for frames that hold more items than is taken.
var ErrOversized = errors.New("node: oversized")

// dropped is the note that input of a peer was refused for a reason.
func dropped(from Peer, err error) Dropped {
	return Dropped{From: from, Class: refusalOf(err), Why: err.Error()}
}

// refusalOf sorts errors of decoding and verifying; the most telling goes first,
// since some wrap several.
func refusalOf(err error) Refusal {
	for _, c := range []struct {
		err   error
		class Refusal
	}{
		{ErrOversized, Oversized}, {scope.ErrEarly, Early},
		{votes.ErrForged, Forged}, {votes.ErrTooLight, Forged}, {votes.ErrStranger, Forged},
		{votes.ErrForeign, Foreign}, {votes.ErrOtherScope, Foreign},
		{votes.ErrStale, Stale}, {votes.ErrAhead, Stale}, {ErrNotTaken, Stale},
		{ErrBusy, Full}, {box.ErrFull, Full}, {box.ErrVoterFull, Full}, {box.ErrClosed, Stale},
		{reconcile.ErrTopic, Foreign}, {reconcile.ErrProtocol, Unasked}, {reconcile.ErrLimit, Full}, // of a session that was begun anew
		{scope.ErrInvalid, Invalid},
	} {
		if errors.Is(err, c.err) {
			return c.class
		}
	}
	return Malformed
}
