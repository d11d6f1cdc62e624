package votes

import (
	"errors"

	"github.com/aweigh/aweigh/internal/refusal"
)

// The reasons for which ballots, certificates and proofs are turned away, by
// what follows from them. Every error of a check wraps exactly one.
var (
	// ErrMalformed: no honest node sends this; blame the sender.
	ErrMalformed = refusal.New(refusal.Malformed, "votes: malformed")
	// ErrForged: a signature does not verify; blame the sender.
	ErrForged = refusal.New(refusal.Forged, "votes: bad signature")
	// ErrTooLight: the signers do not meet the rule; blame the sender.
	ErrTooLight = refusal.New(refusal.Forged, "votes: too little weight")
	// ErrNotInRoster: the signer is not in the roster; blame the sender.
	ErrNotInRoster = refusal.New(refusal.Forged, "votes: not in the roster")
	// ErrForeign: it belongs to another network; the peer has no business here.
	ErrForeign = refusal.New(refusal.Foreign, "votes: of another network")
	// ErrOtherScope: it belongs to another scope; look for its keyring.
	ErrOtherScope = refusal.New(refusal.Foreign, "votes: of another scope")
	// ErrStale: its epoch is over, or never was with this roster and policy; ignore it.
	ErrStale = refusal.New(refusal.Stale, "votes: stale")
	// ErrAhead: its epoch has not begun here; this node lags and should catch up.
	ErrAhead = refusal.New(refusal.Stale, "votes: ahead")
)

// The reasons for which a Guard does not sign.
var (
	// ErrConflict: the subject contradicts one that was signed (P7).
	ErrConflict = errors.New("votes: conflicts with a ballot signed before")
	// ErrTooOld: the record of that view is pruned, so the guard cannot tell.
	ErrTooOld = errors.New("votes: view is below the record")
	// ErrLostState: the record has lost ballots; nothing more is signed in this epoch (P9).
	ErrLostState = errors.New("votes: signing record has lost state")
	// ErrRecord: the stored record is damaged or of another key or domain.
	ErrRecord = refusal.New(refusal.Internal, "votes: unusable signing record")
)

// ErrKey is wrapped by every error about a key: its text, bytes or scheme, or
// its place in a Keyring.
var ErrKey = refusal.New(refusal.Malformed, "votes: bad key")
