package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"connectrpc.com/connect"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

func TestErrorsOfTheNodeHaveCodesAndReasons(t *testing.T) {
	for _, c := range []struct {
		err    error
		code   connect.Code
		reason string
	}{
		{&node.UndecidedError{Reachable: 1, Needed: 3, Cause: context.DeadlineExceeded}, connect.CodeUnavailable, Undecided},
		{&node.UndecidedError{Reachable: 3, Needed: 3, Cause: context.DeadlineExceeded}, connect.CodeDeadlineExceeded, Undecided},
		{fmt.Errorf("%w: %w", node.ErrUnread, context.DeadlineExceeded), connect.CodeUnavailable, Unread},
		{errors.Join(node.ErrStopped, errors.New("disk")), connect.CodeUnavailable, Stopped},
		{fmt.Errorf("%w: of /a/", node.ErrNotHeld), connect.CodeFailedPrecondition, NotHeld},
		{machine.ErrBusy, connect.CodeResourceExhausted, Busy},
		{fmt.Errorf("%w: the entry a", scope.ErrRate), connect.CodeResourceExhausted, Busy},
		{machine.ErrNotTaken, connect.CodeInvalidArgument, Invalid},
		{fmt.Errorf("put: %w", scope.ErrInvalid), connect.CodeInvalidArgument, Invalid},
		{fmt.Errorf("%w: %w", scope.ErrInvalid, scope.ErrDuplicateKey), connect.CodeInvalidArgument, Invalid},
		{scope.ErrEmptyKey, connect.CodeInvalidArgument, Invalid},
		{scope.ErrCompacted, connect.CodeOutOfRange, Compacted},
		{scope.ErrFutureRevision, connect.CodeOutOfRange, Future},
		{fmt.Errorf("%w: /a", scope.ErrKeyNotFound), connect.CodeNotFound, NotFound},
		{context.Canceled, connect.CodeCanceled, ""},
		{context.DeadlineExceeded, connect.CodeDeadlineExceeded, ""},
		{scope.ErrLeased, connect.CodeFailedPrecondition, Failed},
		{scope.ErrCorrupt, connect.CodeInternal, ""},
	} {
		checkProblem(t, problem(c.err), c.code, c.reason)
	}
	if problem(nil) != nil {
		t.Error("an error for none")
	}
}

func TestOutcomesThatDidNotApplyAreErrors(t *testing.T) {
	receipt := func(code scope.Code, reason string) machine.Receipt {
		return machine.Receipt{Outcome: scope.Outcome{Code: code, Reason: reason}}
	}
	for _, ok := range []machine.Receipt{receipt(scope.Applied, ""), receipt(scope.Duplicate, "")} {
		if err := failure(ok); err != nil {
			t.Errorf("%v: %v", ok.Code, err)
		}
	}
	checkProblem(t, failure(receipt(scope.Failed, "key not found")), connect.CodeFailedPrecondition, Failed)
	checkProblem(t, failure(receipt(scope.Duplicate, "key not found")), connect.CodeFailedPrecondition, Failed)
	checkProblem(t, failure(receipt(scope.Failed, "mvcc: required revision is a future revision")), connect.CodeOutOfRange, Future)
	for _, why := range []error{scope.ErrRate, scope.ErrQuotaSpace, scope.ErrQuota} {
		r := receipt(scope.Failed, strings.TrimPrefix(why.Error(), "scope: ")+": the entry a")
		checkProblem(t, failure(r), connect.CodeResourceExhausted, Failed)
	}
	checkProblem(t, failure(receipt(scope.Expired, "")), connect.CodeAborted, Failed)
	checkProblem(t, failure(receipt(scope.Refused, "")), connect.CodeInvalidArgument, Invalid)
}

func checkProblem(t *testing.T, err error, code connect.Code, reason string) {
	t.Helper()
	if got := connect.CodeOf(err); got != code {
		t.Errorf("%v has code %v, want %v", err, got, code)
	}
	var e *connect.Error
	if !errors.As(err, &e) {
		t.Fatalf("%v is no error of the API", err)
	}
	got := ""
	for _, d := range e.Details() {
		v, _ := d.Value()
		got = v.(*aweighv1.Problem).Reason
	}
	if got != reason {
		t.Errorf("%v has reason %q, want %q", err, got, reason)
	}
}
