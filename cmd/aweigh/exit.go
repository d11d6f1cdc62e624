package main

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"github.com/aweigh/aweigh/alias"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/audit"
	"github.com/aweigh/aweigh/internal/authn/device"
	"github.com/aweigh/aweigh/internal/authn/oidc"
	"github.com/aweigh/aweigh/internal/backup"
	"github.com/aweigh/aweigh/internal/config"
	"github.com/aweigh/aweigh/internal/daemon"
	"github.com/aweigh/aweigh/internal/founding"
	"github.com/aweigh/aweigh/internal/home"
	"github.com/aweigh/aweigh/internal/policytext"
	"github.com/aweigh/aweigh/internal/replay"
	"github.com/aweigh/aweigh/internal/running"
	"github.com/aweigh/aweigh/internal/signer"
	"github.com/aweigh/aweigh/internal/socket"
	"github.com/aweigh/aweigh/internal/tiles"
	"github.com/aweigh/aweigh/internal/token"
	"github.com/aweigh/aweigh/internal/witness"
	"github.com/aweigh/aweigh/internal/wysiwys"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/fsck"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
	"github.com/aweigh/aweigh/store/diskstore"
	"github.com/aweigh/aweigh/votes"
	"github.com/aweigh/aweigh/votes/box"
)

// The exit codes. They are part of the interface: scripts depend on them.
const (
	exitOK          = 0
	exitError       = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitCompare     = 4
	exitUndecided   = 5
	exitUnreachable = 6
	exitUnverified  = 7
	exitStore       = 8
	exitUnwell      = 9
	exitPending     = 10
	exitBusy        = 11
	exitHidden      = 12
	exitProvisional = 13
	exitOnItsWay    = 14
	exitInterrupted = 130
)

const exitHelp = `Exit codes:
  0  done
  1  another error
  2  the command line, a setting or a request makes no sense, or a file or a key of the
     ssh-agent is not there, or a file is a directory or of another kind than the one that
     the command reads
  3  there is no such key, object, scope, motion, decision or anchor, or a revision is
     compacted or in the future
  4  a condition did not hold, a rule of the policy denied it, a write was ordered and
     failed or its time had passed, a decision is void, superseded, rejected or expired,
     a login was denied or not done in time, or it would change nothing: nothing changed
  5  not committed yet, and may still commit: repeating with the same --nonce is safe
  6  no node, too few anchors or witnesses, or no issuer of a login, can be reached, or no
     node proves the block of --block
  7  a proof, a trail, a ballot, a token, a replay, a backup, a store or the file of
     "checkpoint --since" does not hold, or is not one, or a witness signed another history
  8  the node's disk failed, or its store is damaged
  9  "doctor" found a failing check
  10 ordered, and it waits for approval as a motion: nothing changed yet; of "auth can-i":
     the author may do it, with approval
  11 a node takes no more at the moment, and did nothing; try again later
  12 the content to sign has a part that this version cannot show: nothing was signed
  13 an island decided provisionally: no decision of the scope yet
  14 an alias is on its way to another scope, which has not decided yet
  130 a signal interrupted it before it was done`

// errUsage is wrapped by errors about the command line.
var errUsage = errors.New("usage")

// errKey is wrapped where a key or a prefix is not written as one, by errors that give it as it should be. No help text
// says more.
var errKey = errors.New("usage")

// errSignal is wrapped where a signal ended a command that says how far it came.
var errSignal = errors.New("interrupted")

// errUnconfirmed is wrapped where a flag is to confirm what a command would do. No help text says more.
var errUnconfirmed = errors.New("not confirmed")

// errLarge is wrapped where a file is larger than any that the command reads.
var errLarge = errors.New("this is not what the command reads")

// errState is wrapped where a command would change nothing, or cannot, as things stand.
var errState = errors.New("nothing changed")

// errLate is context.DeadlineExceeded for people.
var errLate error = late{}

type late struct{}

func (late) Error() string { return "no answer in time" }
func (late) Unwrap() error { return context.DeadlineExceeded }

// errAbsent is wrapped where something is not there that is no key.
var errAbsent = errors.New("not found")

// codes sorts errors by exit code, the first that fits.
var codes = []struct {
	err  error
	code int
}{
	{diskstore.ErrDamaged, exitStore},
	{store.ErrFailed, exitStore},
	{diskstore.ErrNoRoom, exitStore},
	{votes.ErrRecord, exitStore},
	{backup.ErrSigner, exitUnverified},
	{token.ErrToken, exitUnverified},
	{errOld, exitUnverified},
	{fsck.ErrForged, exitUnverified},
	{node.ErrOtherHistory, exitUnverified},
	{fsck.ErrUnvouched, exitUnverified},
	{backup.ErrBroken, exitUnverified},
	{backup.ErrNone, exitUnverified},
	{backup.ErrName, exitUsage},
	{tiles.ErrHead, exitUnverified},
	{tiles.ErrDamaged, exitUnverified},
	{tiles.ErrOther, exitUsage},
	{witness.ErrSplit, exitUnverified},
	{witness.ErrPolicy, exitUsage},
	{errUnwell, exitUnwell},
	{wysiwys.ErrHidden, exitHidden},
	{errProvisional, exitProvisional},
	{errPointless, exitCompare},
	{errState, exitCompare},
	{errConflict, exitCompare},
	{errOtherKind, exitUsage},
	{signer.ErrNoKey, exitUsage},
	{errSignal, exitInterrupted},
	{errUnconfirmed, exitUsage},
	{errContrary, exitCompare},
	{errUsage, exitUsage},
	{errKey, exitUsage},
	{config.ErrConfig, exitUsage},
	{node.ErrConfig, exitUsage},
	{daemon.ErrSettings, exitUsage},
	{founding.ErrAnchors, exitUsage},
	{founding.ErrGenesis, exitUsage},
	{home.ErrNone, exitUsage},
	{socket.ErrLong, exitUsage},
	{policytext.ErrSyntax, exitUsage},
	{scope.ErrProof, exitUnverified},
	{errLarge, exitUnverified},
	{audit.ErrTrail, exitUnverified},
	{votes.ErrMalformed, exitUnverified},
	{votes.ErrForged, exitUnverified},
	{votes.ErrNotInRoster, exitUnverified},
	{votes.ErrForeign, exitUnverified},
	{votes.ErrOtherScope, exitUnverified},
	{votes.ErrBallotFileLimit, exitUnverified},
	{box.ErrFileName, exitUnverified},
	{errUnsound, exitUnverified},
	{errOtherMotion, exitUnverified},
	{replay.ErrMismatch, exitUnverified},
	{errUnclaimed, exitUnverified},
	{client.ErrPending, exitPending},
	{client.ErrOnItsWay, exitOnItsWay},
	{errFewer, exitCompare},
	{errNotCarried, exitCompare},
	{errRefused, exitCompare},
	{client.ErrDenied, exitCompare},
	{node.ErrNotAdmitted, exitCompare},
	{client.ErrToken, exitCompare},
	{device.ErrNone, exitCompare},
	{device.ErrDenied, exitCompare},
	{device.ErrExpired, exitCompare},
	{oidc.ErrIssuer, exitUsage},
	{client.ErrCondition, exitCompare},
	{client.ErrUndecided, exitUndecided},
	{client.ErrBusy, exitBusy},
	{client.ErrNotFound, exitNotFound},
	{client.ErrCompacted, exitNotFound},
	{client.ErrFuture, exitNotFound},
	{errAbsent, exitNotFound},
	{client.ErrFailed, exitCompare},
	{client.ErrExpired, exitCompare},
	{client.ErrInvalid, exitUsage},
	{client.ErrNoIsland, exitCompare},
	{client.ErrNotHeld, exitUsage},
	{client.ErrUnread, exitUnreachable},
	{client.ErrUnreachable, exitUnreachable},
	{errFew, exitUnreachable},
	{witness.ErrFew, exitUnreachable},
	{errIssuer, exitUnreachable},
	{running.ErrNone, exitUnreachable},
	{running.ErrMany, exitUsage},
	{context.DeadlineExceeded, exitUnreachable},
	{fs.ErrNotExist, exitUsage},
	{syscall.EISDIR, exitUsage},
	{syscall.ENOTDIR, exitUsage},
}

// exitCode is the code for an error; one from before a command started is about
// the command line.
func exitCode(err error, started bool) int {
	if err == nil {
		return exitOK
	}
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	var syntax *alias.SyntaxError
	if !started || errors.As(err, &syntax) {
		return exitUsage
	}
	return exitError
}
