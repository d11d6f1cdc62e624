package scope

import (
	"errors"
	"strings"
)

// ErrInvalid is wrapped by errors that are the sender's fault.
var ErrInvalid = errors.New("scope: invalid")

// ErrCorrupt is wrapped by errors about a store that holds what no execution
// wrote. It is this node's own fault: stop.
var ErrCorrupt = errors.New("scope: the store does not hold the state it should")

// What a transaction can be refused for before it is ordered. The texts after
// the colon are etcd's.
var (
	ErrEmptyKey      = errors.New("scope: key is not provided")
	ErrTooManyOps    = errors.New("scope: too many operations in txn request")
	ErrDuplicateKey  = errors.New("scope: duplicate key given in txn request")
	ErrValueProvided = errors.New("scope: value is provided")
	ErrLeaseProvided = errors.New("scope: lease is provided")
	ErrSortOption    = errors.New("scope: invalid sort option")
)

// What an ordered mutation, or a read, can fail for. The texts after the colon
// are etcd's.
var (
	ErrKeyNotFound    = errors.New("scope: key not found")
	ErrLeaseNotFound  = errors.New("scope: requested lease not found")
	ErrCompacted      = errors.New("scope: mvcc: required revision has been compacted")
	ErrFutureRevision = errors.New("scope: mvcc: required revision is a future revision")
	ErrTooMuch        = errors.New("scope: the ranges of the transaction hold too much; use smaller ones, or read outside of a transaction")
)

// failures are the errors that a Reason can stand for.
var failures = []error{ErrKeyNotFound, ErrLeaseNotFound, ErrCompacted, ErrFutureRevision, ErrTooMuch,
	ErrUnnamed, ErrApproval, ErrNamed, ErrAliases, ErrRedirects, ErrUntil, ErrNoVersion}

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
	return errors.New("scope: " + why)
}
