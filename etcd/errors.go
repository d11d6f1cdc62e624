package etcd

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/aweigh/aweigh/etcd/auth"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
)

// Errors whose codes and texts are etcd's: its clients compare them.
var (
	errKeyNotFound     = status.Error(codes.InvalidArgument, "etcdserver: key not found")
	errTooLarge        = status.Error(codes.InvalidArgument, "etcdserver: request is too large")
	errTooManyRequests = auth.ErrTooManyRequests
	errNoSpace         = status.Error(codes.ResourceExhausted, "etcdserver: "+strings.TrimPrefix(scope.ErrNoSpace.Error(), "scope: "))
	errSlowRequest     = status.Error(codes.DeadlineExceeded, "aweigh: many requests arrive at once, and this one was not complete in time; try again")
	errNoLeader        = status.Error(codes.Unavailable, noLeader)
	errStopped         = status.Error(codes.Unavailable, "etcdserver: server stopped")
	errTimeout         = status.Error(codes.Unavailable, "etcdserver: request timed out")
	errCorrupt         = status.Error(codes.DataLoss, "etcdserver: corrupt cluster")
	errDenied          = auth.ErrDenied
	errSpans           = status.Error(codes.InvalidArgument, "aweigh: the keys belong to several scopes, and each decides for itself; send one transaction for each (aweigh scope tree shows them)")
	errNotHeld         = status.Error(codes.FailedPrecondition, "aweigh: this node does not hold the scope of these keys, and passes on ranges, deletes, transactions, puts and watches; connect to a node that holds it, or start this one with --follow and its prefix")
	errWatchCanceled   = status.Error(codes.Canceled, "etcdserver: watch canceled")
)

const (
	noLeader          = "etcdserver: no leader"
	revisionCompacted = "etcdserver: mvcc: required revision has been compacted"
)

// texts are the errors whose text in package scope is etcd's after the colon.
var texts = []struct {
	err  error
	code codes.Code
}{
	{scope.ErrEmptyKey, codes.InvalidArgument},
	{scope.ErrTooManyOps, codes.InvalidArgument},
	{scope.ErrDuplicateKey, codes.InvalidArgument},
	{scope.ErrValueProvided, codes.InvalidArgument},
	{scope.ErrLeaseProvided, codes.InvalidArgument},
	{scope.ErrSortOption, codes.InvalidArgument},
	{scope.ErrKeyNotFound, codes.InvalidArgument},
	{scope.ErrLeaseNotFound, codes.NotFound},
	{scope.ErrLeaseExists, codes.FailedPrecondition},
	{scope.ErrLeaseTTL, codes.OutOfRange},
	{scope.ErrCompacted, codes.OutOfRange},
	{scope.ErrFutureRevision, codes.OutOfRange},
	{scope.ErrNoSpace, codes.ResourceExhausted},
}

// others are the errors that etcd has other words for.
var others = []struct{ err, as error }{
	{errTooMuchJSON, errGatewayAnswer},
	{scope.ErrDenied, errDenied},
	{scope.ErrReach, errDenied},
	{scope.ErrTooMuch, errTooLarge},
	{scope.ErrLeaseFull, errTooLarge},
	{scope.ErrManyLeases, errTooManyRequests},
	{scope.ErrQuotaSpace, errNoSpace},
	{scope.ErrQuota, errTooManyRequests},
	{machine.ErrBusy, errTooManyRequests},
	{node.ErrSpans, errSpans},
	{node.ErrNotHeld, errNotHeld},
	{referral.ErrMute, errTimeout},
	{scope.ErrElsewhere, errTimeout}, // it has just gone to a scope that this node is about to follow
	{node.ErrStopped, errStopped},
	{node.ErrInstalling, errNoLeader}, // this node is not in a state to answer; another is
	{scope.ErrCorrupt, errCorrupt},
}

// whyTrailer is the trailer with this program's text of an error that has
// etcd's words, and the advice.
const whyTrailer = "aweigh-error"

// statusFor puts an error of the node into etcd's words. The rest goes into a
// trailer of the caller's context.
func statusFor(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	told := toStatus(ctx, err)
	// Only the trailer is lost if it cannot be set.
	_ = grpc.SetTrailer(ctx, metadata.Pairs(whyTrailer, printable(err.Error())))
	return told
}

// printable replaces what no value of a trailer may hold.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
}

func toStatus(ctx context.Context, err error) error {
	if _, ok := status.FromError(err); ok {
		return err
	}
	if ctx.Err() != nil { // the client's own deadline, or it gave up
		return status.FromContextError(ctx.Err()).Err()
	}
	var undecided *node.UndecidedError
	if errors.As(err, &undecided) || errors.Is(err, node.ErrUnread) {
		return errTimeout
	}
	for _, t := range texts {
		if errors.Is(err, t.err) {
			return status.Error(t.code, "etcdserver: "+strings.TrimPrefix(t.err.Error(), "scope: "))
		}
	}
	for _, o := range others {
		if errors.Is(err, o.err) {
			return o.as
		}
	}
	if why := scope.FailureIn(err); why != "" { // etcd has no word for it: the state or the policy forbids it
		return status.Error(codes.FailedPrecondition, "aweigh: "+why)
	}
	return status.Error(codes.Unknown, "aweigh: "+err.Error())
}

// failure reports why a mutation that is final did not apply; nil if it did.
func failure(r machine.Receipt) error {
	switch r.Code {
	case scope.Applied:
		return nil
	case scope.Duplicate, scope.Failed:
		return scope.Failure(r.Reason)
	case scope.Exceeded:
		return scope.ErrTooMuch
	}
	return errTimeout // it came too late to be executed
}
