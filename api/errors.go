package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/action"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
	"github.com/aweigh/aweigh/votes/box"
)

// Reasons of a Problem.
const (
	Undecided = "undecided"
	Failed    = "failed"
	Pending   = "pending"
	Unread    = "unread"
	Compacted = "compacted"
	Future    = "future"
	NotFound  = "not_found"
	Invalid   = "invalid"
	Expired   = "expired"
	NotHeld   = "not_held" // this node does not hold the scope, and another may
	Busy      = "busy"
	Stopped   = "stopped"
	Denied    = "denied"
	NoIsland  = "no_island"
	OnItsWay  = "on_its_way"
)

// problems maps errors to codes, the most specific first.
var problems = []struct {
	err    error
	code   connect.Code
	reason string
}{
	{node.ErrStopped, connect.CodeUnavailable, Stopped},
	{node.ErrUnread, connect.CodeUnavailable, Unread},
	{node.ErrInstalling, connect.CodeUnavailable, Unread}, // another node may answer
	{node.ErrOnItsWay, connect.CodeDeadlineExceeded, OnItsWay},
	{node.ErrNoIsland, connect.CodeFailedPrecondition, NoIsland},
	{node.ErrNoAnchor, connect.CodeFailedPrecondition, Invalid},
	{node.ErrUnseated, connect.CodeFailedPrecondition, Invalid},
	{node.ErrSeated, connect.CodeFailedPrecondition, Invalid},
	{machine.ErrNoMotion, connect.CodeNotFound, NotFound},
	{node.ErrNoScope, connect.CodeNotFound, NotFound},
	{scope.ErrDenied, connect.CodePermissionDenied, Denied},
	{node.ErrVerdict, connect.CodeInvalidArgument, Invalid},
	{action.ErrRule, connect.CodeInvalidArgument, Invalid},
	{scope.ErrNoSpace, connect.CodeResourceExhausted, Failed},
	{scope.ErrRate, connect.CodeResourceExhausted, Busy}, // refused before it was ordered
	{scope.ErrQuota, connect.CodeResourceExhausted, Failed},
	{scope.ErrElsewhere, connect.CodeInvalidArgument, Invalid},
	{scope.ErrSignal, connect.CodeInvalidArgument, Invalid},
	{node.ErrNotHeld, connect.CodeFailedPrecondition, NotHeld},
	{referral.ErrMute, connect.CodeUnavailable, Unread},
	{node.ErrSpans, connect.CodeInvalidArgument, Invalid},
	{node.ErrManyMotions, connect.CodeInvalidArgument, Invalid},
	{machine.ErrContrary, connect.CodeFailedPrecondition, Failed},
	{box.ErrFull, connect.CodeResourceExhausted, Busy},
	{box.ErrVoterFull, connect.CodeResourceExhausted, Busy},
	{box.ErrClosed, connect.CodeFailedPrecondition, Invalid},
	{votes.ErrNotInRoster, connect.CodePermissionDenied, Invalid},
	{node.ErrNoBackup, connect.CodeFailedPrecondition, Invalid},
	{node.ErrCopying, connect.CodeResourceExhausted, Busy},
	{machine.ErrBusy, connect.CodeResourceExhausted, Busy},
	{machine.ErrNotTaken, connect.CodeInvalidArgument, Invalid},
	{scope.ErrCompacted, connect.CodeOutOfRange, Compacted},
	{node.ErrOlder, connect.CodeOutOfRange, Unread},
	{scope.ErrFutureRevision, connect.CodeOutOfRange, Future},
	{scope.ErrKeyNotFound, connect.CodeNotFound, NotFound},
	{scope.ErrNoVersion, connect.CodeNotFound, NotFound},
	{scope.ErrLongRange, connect.CodeInvalidArgument, Invalid},
	{scope.ErrFar, connect.CodeOutOfRange, Invalid},
	{node.ErrNoObject, connect.CodeNotFound, NotFound},
	{node.ErrAmbiguous, connect.CodeInvalidArgument, Invalid},
	{node.ErrUID, connect.CodeInvalidArgument, Invalid},
	{scope.ErrInvalid, connect.CodeInvalidArgument, Invalid},
	{scope.ErrNoReader, connect.CodePermissionDenied, Denied},
	{node.ErrInvited, connect.CodeAlreadyExists, Failed},
	{node.ErrNoList, connect.CodeFailedPrecondition, Invalid},
	{scope.ErrEmptyKey, connect.CodeInvalidArgument, Invalid},
	{errRequest, connect.CodeInvalidArgument, Invalid},
	{context.DeadlineExceeded, connect.CodeDeadlineExceeded, ""},
	{context.Canceled, connect.CodeCanceled, ""},
}

// problem turns an error of the node into one of the API.
func problem(err error) error {
	if err == nil {
		return nil
	}
	var known *connect.Error
	if errors.As(err, &known) {
		return known // of a stream whose caller has lost the right to it
	}
	var u *node.UndecidedError
	if errors.As(err, &u) {
		code := connect.CodeDeadlineExceeded
		if u.Reachable < u.Needed {
			code = connect.CodeUnavailable
		}
		return detailed(code, err, &aweighv1.Problem{
			Reason: Undecided, Mutation: u.Mutation[:], ValidUntilNs: int64(u.ValidUntil),
		})
	}
	var x *machine.ExpiredError
	if errors.As(err, &x) {
		return detailed(connect.CodeInvalidArgument, fmt.Errorf("%w: the newest block of the scope is of %s", err, x.Time.Time().Format(time.RFC3339)),
			&aweighv1.Problem{Reason: Expired, ValidUntilNs: int64(x.Time)})
	}
	for _, p := range problems {
		if errors.Is(err, p.err) {
			return detailed(p.code, err, &aweighv1.Problem{Reason: p.reason})
		}
	}
	if scope.FailureIn(err) != "" { // the state or the policy forbids it
		return detailed(connect.CodeFailedPrecondition, err, &aweighv1.Problem{Reason: Failed})
	}
	return connect.NewError(connect.CodeInternal, err)
}

func detailed(code connect.Code, err error, p *aweighv1.Problem) error {
	e := connect.NewError(code, err)
	if d, detailErr := connect.NewErrorDetail(p); detailErr == nil && p.Reason != "" {
		e.AddDetail(d)
	}
	return e
}

// failure reports why a mutation that is final did not apply; nil if it did.
func failure(r machine.Receipt) error {
	switch r.Code {
	case scope.Applied:
		return nil
	case scope.Pending:
		return detailed(connect.CodeFailedPrecondition, fmt.Errorf("api: it waits for approval as motion %s", r.Mutation.Short()),
			&aweighv1.Problem{Reason: Pending, Mutation: bytesOf(r.Mutation)})
	case scope.Duplicate, scope.Failed:
		if r.Reason == "" {
			return nil
		}
		why, code, reason := scope.Failure(r.Reason), connect.CodeFailedPrecondition, Failed
		if errors.Is(why, scope.ErrNoSpace) {
			code, why = connect.CodeResourceExhausted, fmt.Errorf("%w: the scope of these keys holds as much as its policy allows (aweigh scope ls); delete and compact, or raise limits.scope_bytes", why)
		}
		if errors.Is(why, scope.ErrQuota) {
			code = connect.CodeResourceExhausted
		}
		if errors.Is(why, scope.ErrDenied) || errors.Is(why, scope.ErrReach) {
			code, reason = connect.CodePermissionDenied, Denied
		}
		switch { // as of reads
		case errors.Is(why, scope.ErrCompacted):
			code, reason = connect.CodeOutOfRange, Compacted
		case errors.Is(why, scope.ErrFutureRevision):
			code, reason = connect.CodeOutOfRange, Future
		}
		return detailed(code, why, &aweighv1.Problem{Reason: reason, Mutation: bytesOf(r.Mutation)})
	case scope.Exceeded:
		return detailed(connect.CodeAborted, fmt.Errorf("api: the bundle reserves less than the mutation costs; it changed nothing, and never will: %w", scope.ErrTooMuch),
			&aweighv1.Problem{Reason: Failed, Mutation: bytesOf(r.Mutation)})
	case scope.Expired:
		return detailed(connect.CodeAborted, errors.New("api: the request expired before it could be ordered; it changed nothing"),
			&aweighv1.Problem{Reason: Failed, Mutation: bytesOf(r.Mutation)})
	}
	return detailed(connect.CodeInvalidArgument, errors.New("api: the request is valid for longer than the policy allows, or for another scope"),
		&aweighv1.Problem{Reason: Invalid, Mutation: bytesOf(r.Mutation)})
}

func bytesOf(h aweigh.Hash) []byte { return h[:] }
