package scope

import (
	"errors"
	"fmt"
	"strings"

	"github.com/aweigh/aweigh/internal/refusal"
)

// ErrInvalid is wrapped by errors that are the sender's fault.
var ErrInvalid = refusal.New(refusal.Invalid, "scope: invalid")

// ErrCorrupt is wrapped by errors about a store that holds what no execution
// wrote. It is this node's own fault: stop.
var ErrCorrupt = refusal.New(refusal.Internal, "scope: the store does not hold the state it should")

// What a transaction can be refused for before it is ordered. The texts after
// the colon are etcd's.
var (
	ErrEmptyKey      = errors.New("scope: key is not provided")
	ErrTooManyOps    = errors.New("scope: too many operations in txn request")
	ErrDuplicateKey  = errors.New("scope: duplicate key given in txn request")
	ErrValueProvided = errors.New("scope: value is provided")
	ErrLeaseProvided = errors.New("scope: lease is provided")
	ErrSortOption    = errors.New("scope: invalid sort option")
	ErrLeaseTTL      = errors.New("scope: too large lease TTL")
)

// What an ordered mutation, or a read, can fail for. The texts after the colon
// are etcd's.
var (
	ErrKeyNotFound    = errors.New("scope: key not found")
	ErrLeaseNotFound  = errors.New("scope: requested lease not found")
	ErrLeaseExists    = errors.New("scope: lease already exists")
	ErrLeaseFull      = errors.New("scope: the lease has as many keys, or bytes, attached as one may; grant another")
	ErrManyLeases     = errors.New("scope: there are as many leases as a scope may have; attach more keys to fewer")
	ErrCompacted      = errors.New("scope: mvcc: required revision has been compacted")
	ErrFutureRevision = errors.New("scope: mvcc: required revision is a future revision")
	ErrTooMuch        = errors.New("scope: the ranges of the transaction hold too much; use smaller ones, or read outside of a transaction")
)

// failures are the errors that a Reason can stand for.
var failures = []error{ErrKeyNotFound, ErrLeaseNotFound, ErrLeaseExists, ErrLeaseFull, ErrManyLeases, ErrCompacted, ErrFutureRevision, ErrTooMuch,
	ErrUnnamed, ErrNamed, ErrAliases, ErrRedirects, ErrUntil, ErrNoVersion, ErrElsewhere, ErrClass, ErrSignal, ErrAccessChanged, ErrAccessAuthor, ErrNoSpace, ErrReach,
	ErrSent, ErrTransfers, ErrTransferUntil, ErrSendLeased, ErrSendAliases, ErrSendGrant, ErrSendHere, ErrNoTransfers,
	ErrManyApprovals, ErrLeased, ErrGuarded, ErrNoReader, ErrNoSecond, ErrPatient, ErrVoid}

// FailureIn is the reason of a failure that an error wraps, as Failure takes it; "" if it
// wraps none.
func FailureIn(err error) string {
	for _, f := range failures {
		if errors.Is(err, f) {
			return reason(f)
		}
	}
	return ""
}

// Reason is the text of an error from which Failure makes it again.
func Reason(err error) string { return reason(err) }

// reason is the text under which a failure stands on record.
func reason(err error) string { return strings.TrimPrefix(err.Error(), "scope: ") }

// Failure is the error that a recorded reason stands for: one of the errors
// above if the reason is theirs, so that errors.Is finds it, or a new one. It
// is nil for no reason.
func Failure(why string) error {
	if why == "" {
		return nil
	}
	for _, err := range failures {
		if reason(err) == why {
			return err
		}
	}
	if err := quotaFailure(why); err != nil {
		return err
	}
	if isDenial(why) {
		return fmt.Errorf("%w%s", ErrDenied, strings.TrimPrefix(why, reason(ErrDenied)))
	}
	return errors.New("scope: " + why)
}
