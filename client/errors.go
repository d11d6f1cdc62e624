package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"syscall"
	"time"

	"connectrpc.com/connect"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
)

var (
	// ErrUndecided means that a write was not final when the client stopped
	// waiting, and may still become so. To make the same request again, with
	// the same Once, to the same node is safe. See Undecided.
	ErrUndecided = errors.New("client: not committed yet")
	// ErrUnreachable means that no node could be asked. Nothing was changed.
	ErrUnreachable = errors.New("client: the node cannot be reached")
	// ErrUnread means that the node could not reach enough anchors for a
	// linearizable read. A serializable one would be answered.
	ErrUnread = errors.New("client: no quorum for a linearizable read")
	// ErrBusy means that the node has no room for the request. Nothing was changed.
	ErrBusy = errors.New("client: the node is busy")
	// ErrNotFound means that there is no such key, or whatever else was asked for.
	ErrNotFound = errors.New("client: key not found")
	// ErrFailed means that a write was ordered but could not be executed. It
	// changed nothing and never will.
	ErrFailed = errors.New("client: the write failed")
	// ErrDenied means that a scope's policy does not allow the caller to do that.
	// Nothing was changed.
	ErrDenied = errors.New("client: denied")
	// ErrPending means that a write was ordered and waits for approval. See Pending.
	ErrPending = errors.New("client: it waits for approval")
	// ErrOnItsWay means that an object was sent to another scope, which had not decided yet when the client stopped
	// waiting.
	ErrOnItsWay = errors.New("client: it is on its way to another scope")
	// ErrCompacted means that the revision was dropped by a compaction.
	ErrCompacted = errors.New("client: the revision has been compacted")
	// ErrFuture means that the revision does not exist yet.
	ErrFuture = errors.New("client: the revision is in the future")
	// ErrInvalid means that the request makes no sense or is out of limits.
	ErrInvalid = errors.New("client: invalid request")
	// ErrExpired means that the time by which a write had to be ordered has passed. This request changed nothing;
	// one before it with the same nonce may have.
	ErrExpired = errors.New("client: the request has expired")
	// ErrNoIsland means that no island decides on the keys: nothing was decided provisionally.
	ErrNoIsland = errors.New("client: no island decides on the keys")
	// ErrNotHeld means that the node does not hold the scope, and cannot pass the request on.
	ErrNotHeld = errors.New("client: the node does not hold the scope")
)

// Undecided wraps ErrUndecided and holds what is known of the write.
type Undecided struct {
	Mutation   []byte    // its identity, if the node returned it
	ValidUntil time.Time // it can become final until then; zero if unknown
	Once       *aweighv1.Once
	Node       string // address of the node that may have taken it
	Cause      error
}

// Error implements error.
func (u *Undecided) Error() string { return u.Cause.Error() }

// Unwrap gives ErrUndecided and the cause.
func (u *Undecided) Unwrap() []error { return []error{ErrUndecided, u.Cause} }

// Gone means that the nodes of a watch went away. It wraps ErrUnreachable.
type Gone struct {
	Next  int64 // the revision from which to continue
	Cause error
}

// Error implements error.
func (g *Gone) Error() string {
	return fmt.Sprintf("client: the node went away; the watch continues from revision %d: %s", g.Next, g.Cause)
}

// Unwrap gives the cause.
func (g *Gone) Unwrap() error { return g.Cause }

// kinds are the errors that a Problem's reason stands for.
var kinds = map[string]error{
	"undecided": ErrUndecided, "failed": ErrFailed, "pending": ErrPending, "unread": ErrUnread, "compacted": ErrCompacted,
	"future": ErrFuture, "not_found": ErrNotFound, "invalid": ErrInvalid, "expired": ErrExpired, "not_held": ErrNotHeld, "busy": ErrBusy, "stopped": ErrUnreachable,
	"denied": ErrDenied, "no_island": ErrNoIsland, "on_its_way": ErrOnItsWay,
}

// failure is an error of a call, with the node's Problem.
type failure struct {
	kind    error // one of this package's, or nil
	text    string
	problem *aweighv1.Problem // nil if the error did not come from a node
	sent    bool              // the request may have reached the node
	refused bool              // it certainly had no effect
	foreign bool              // the server is not a node's API
	cause   error
}

// Error implements error.
func (f *failure) Error() string { return f.text }

// Unwrap gives the kind and the cause.
func (f *failure) Unwrap() []error {
	if f.kind == nil {
		return []error{f.cause}
	}
	return []error{f.kind, f.cause}
}

// strange is the status of what serves HTTP, and not the API of a node.
var strange = regexp.MustCompile(`\b(404|405|415|501)\b`)

// system is how the errors of package net begin: with the operation, the addresses, and the system call.
var system = regexp.MustCompile(`\b(?:dial|read|write) (?:tcp|unix) \S+: (?:connect: |read: |write: )?`)

// translate gives an error of a call its kind.
func translate(err error) error {
	f := &failure{text: err.Error(), sent: true, cause: err}
	var none *noToken
	if errors.As(err, &none) {
		f.kind, f.sent, f.text = ErrToken, false, none.Error()
		return f
	}
	var e *connect.Error
	if !errors.As(err, &e) {
		return f
	}
	f.text = e.Message()
	for _, d := range e.Details() {
		if v, valueErr := d.Value(); valueErr == nil {
			if p, ok := v.(*aweighv1.Problem); ok {
				f.problem, f.kind = p, kinds[p.Reason]
				return f
			}
		}
	}
	if why := uncertified(err); why != "" {
		f.kind, f.refused, f.sent, f.text = ErrUnreachable, true, false, "client: "+why
		return f
	}
	for _, broke := range []error{io.ErrUnexpectedEOF, syscall.EPIPE, syscall.ECONNRESET} { // it went away in the middle
		if errors.Is(err, broke) {
			f.kind, f.foreign = ErrUnreachable, true
			f.text = fmt.Sprintf("client: the node went away, or no node's API is at this address, or one with TLS (https://): %s", broke)
			return f
		}
	}
	if strings.Contains(f.text, "http2: frame too large") || strings.Contains(f.text, "http2: client conn could not be established") || strings.Contains(f.text, "malformed HTTP") {
		f.kind, f.refused, f.foreign = ErrUnreachable, true, true
		f.text = "client: no node's API is at this address, which answers with something else than HTTP/2; see api-listen of the node"
		return f
	}
	if status := strange.FindString(f.text); status != "" && !connect.IsWireError(err) {
		f.kind, f.refused, f.foreign = ErrUnreachable, true, true
		f.text = fmt.Sprintf("client: no node's API is at this address, which answers with HTTP %s; a node's port for clients of etcd is another one (api-listen, not etcd-listen)", status)
		return f
	}
	switch e.Code() {
	case connect.CodeDeadlineExceeded:
		f.text, f.cause = "client: no answer in time", errors.Join(context.DeadlineExceeded, err)
		return f
	case connect.CodeCanceled:
		f.text, f.cause = "client: cancelled", errors.Join(context.Canceled, err)
		return f
	case connect.CodeInvalidArgument, connect.CodeResourceExhausted, connect.CodeUnimplemented, connect.CodeNotFound:
		f.kind, f.refused = ErrInvalid, true // by the server, before it came to the node
	case connect.CodeUnavailable:
		f.kind = ErrUnreachable
		var op *net.OpError
		f.sent = !errors.As(err, &op) || op.Op != "dial"
		f.text = fmt.Sprintf("%s: %s", ErrUnreachable, system.ReplaceAllString(e.Message(), ""))
		if op != nil && op.Op == "dial" && op.Net == "unix" {
			f.text = fmt.Sprintf("%s: %s", ErrUnreachable, unconnected(op))
		}
	}
	return f
}

// named adds the address to an error of one at which no node's API is.
func (e *endpoint) named(err error) error {
	var f *failure
	if errors.As(err, &f) && f.foreign {
		return fmt.Errorf("%s: %w", e.address, err)
	}
	return err
}

// unknown reports whether a write that failed so may have been taken by the
// node without an answer: the connection broke, time ran out, or the node stopped.
func unknown(err error) bool {
	var f *failure
	return errors.As(err, &f) && f.sent && !f.refused && (f.problem == nil || f.problem.Reason == "stopped")
}

// notTaken reports whether a write that failed so has certainly not been taken.
func notTaken(err error) bool {
	var f *failure
	return errors.As(err, &f) && (!f.sent || f.kind == ErrBusy)
}
