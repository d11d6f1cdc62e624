package node

import (
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
)

// AnchorState says whether an anchor signs in a scope, and if not, why. An anchor reports values up to AnchorStopped,
// and AnchorClock, of itself; a node that asks it determines the others. The numbers do not change.
type AnchorState uint8

const (
	AnchorUnknown  AnchorState = 0 // it has said nothing yet
	AnchorSigns    AnchorState = 1
	AnchorListens  AnchorState = 2  // P9: it has not heard a quorum since its start
	AnchorSilenced AnchorState = 3  // P9: it lost its record, and signs nothing in this epoch
	AnchorBehind   AnchorState = 4  // it fetches final blocks, or a snapshot
	AnchorKeyless  AnchorState = 5  // its node runs without the key that it votes with
	AnchorUnseated AnchorState = 6  // its node does not know of its seat yet
	AnchorStopped  AnchorState = 7  // its node does not run the scope: the state or the disk is broken
	AnchorMute     AnchorState = 8  // it is connected, and does not answer
	AnchorAway     AnchorState = 9  // it is not connected
	AnchorRefuses  AnchorState = 10 // it does not let this node read the scope
	AnchorClock    AnchorState = 11 // its node found its clock off, so that it cannot take part, or soon not
)

// anchorStateNames holds the states in words, for programs.
var anchorStateNames = [...]string{
	"unknown", "signing", "listening", "silenced", "catching-up", "keyless", "unseated", "stopped", "mute", "away", "refusing",
	"clock",
}

// String returns one word for programs. The words do not change.
func (s AnchorState) String() string {
	if int(s) < len(anchorStateNames) {
		return anchorStateNames[s]
	}
	return fmt.Sprintf("state-%d", uint8(s))
}

// ParseAnchorState is the inverse of String. It returns AnchorUnknown for the words of later versions.
func ParseAnchorState(text string) AnchorState {
	for i, name := range anchorStateNames {
		if name == text {
			return AnchorState(i)
		}
	}
	return AnchorUnknown
}

// AnchorReport is what an anchor reports of itself in a scope.
type AnchorReport struct {
	_     struct{} `cbor:",toarray"`
	State AnchorState
	Until aweigh.Epoch // of AnchorSilenced: it signs again from this epoch on
}

// String returns a short text, for tables and lists.
func (s AnchorReport) String() string {
	if s.State == AnchorSilenced {
		return fmt.Sprintf("silenced until epoch %d", s.Until)
	}
	return s.State.String()
}

// Words returns a text for people, as the end of a sentence that begins with the anchor's name.
func (s AnchorReport) Words() string {
	switch s.State {
	case AnchorSigns:
		return "signs"
	case AnchorListens:
		return "listens: it signs nothing until it has answers of a quorum"
	case AnchorSilenced:
		return fmt.Sprintf("lost its record, and signs nothing before epoch %d", s.Until)
	case AnchorBehind:
		return "is catching up"
	case AnchorKeyless:
		return "runs without the key that it votes with"
	case AnchorUnseated:
		return "does not know of its seat yet"
	case AnchorStopped:
		return "does not run this scope: see its log"
	case AnchorRefuses:
		return "does not let this node read: it needs an invite (aweigh join FILE)"
	case AnchorClock:
		return "has a wrong clock, so it takes no part or refuses what clients submit: synchronize it (NTP) and restart it"
	case AnchorMute:
		return "is connected, and does not answer"
	case AnchorAway:
		return "is not connected"
	}
	return "did not report yet if it signs"
}

// A node is asked for the state of its anchor in some scopes, and answers in their order.
type (
	stateAsk struct {
		_      struct{} `cbor:",toarray"`
		Scopes []aweigh.ScopeID
	}
	stateAnswer struct {
		_   struct{} `cbor:",toarray"`
		All []AnchorReport
	}
)

// askState begins the request. A stateAsk follows.
const askState = "anchor-state/1"

const (
	maxStates      = 256     // scopes of one question
	maxStateAnswer = 8 << 10 // bytes
)

// reportOf returns the state of this node's anchor according to its status alone. behind says that it has lacked blocks
// for too long, off that its clock differs from those of most other anchors.
func reportOf(s *machine.Status, behind, off bool) AnchorReport {
	switch {
	case s.Self.IsZero():
		return AnchorReport{State: AnchorKeyless}
	case s.Lost:
		return AnchorReport{State: AnchorSilenced, Until: s.Epoch + 1}
	case behind:
		return AnchorReport{State: AnchorBehind}
	case off:
		return AnchorReport{State: AnchorClock}
	case s.Listening:
		return AnchorReport{State: AnchorListens}
	}
	return AnchorReport{State: AnchorSigns}
}
