package etcd

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

const (
	// noWait is the metadata with which a client asks not to wait for approval.
	noWait = "aweigh-no-wait"
	// motionHeader is the metadata that names the motion which a write opened.
	motionHeader = "aweigh-motion"
)

// approved waits until the motion that a write opened is carried, and answers as if
// the write had applied at once. What etcd's clients know nothing of, they need not.
func (s *kvServer) approved(ctx context.Context, t scope.Txn, r machine.Receipt) (machine.Receipt, error) {
	id := hex.EncodeToString(r.Mutation[:])
	_ = grpc.SendHeader(ctx, metadata.Pairs(motionHeader, id)) // a client that does not get it asks the node
	if md, _ := metadata.FromIncomingContext(ctx); len(md.Get(noWait)) > 0 {
		return r, status.Errorf(codes.FailedPrecondition, "aweigh: it waits for approval as motion %s; see aweigh motion show", id)
	}
	var last node.Motion
	waiting, cancel := within(ctx)
	defer cancel()
	err := s.node.AwaitMotion(waiting, r.Mutation[:], func(m node.Motion, _ scope.Head) error {
		if m.Draft == nil { // a view may be older than the answer
			last = m
		}
		return nil
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		// Not DeadlineExceeded: the Go client of etcd would send the write once more.
		return r, status.Error(codes.FailedPrecondition, waits(id, &last))
	}
	if err != nil {
		return r, fmt.Errorf("waiting for motion %s: %w", id, err)
	}
	end := last.Ending
	if end.Fate != scope.Carried {
		return r, status.Errorf(codes.FailedPrecondition, "aweigh: motion %s was not carried, and nothing changed: %s", id, end)
	}
	r.Code, r.Revision, r.Height, r.Succeeded = scope.Applied, end.Revision, end.Height, end.Succeeded
	ops := t.Failure
	if r.Succeeded {
		ops = t.Success
	}
	r.Responses, err = s.reconstructed(ctx, ops, last.Opening, r.Revision)
	return r, err
}

// waits is the text for a client about what its write waits for. m is its motion, without an opening if that
// is not known yet.
func waits(id string, m *node.Motion) string {
	until := ""
	switch {
	case m.Approved > 0: // whatever its deadline
		return fmt.Sprintf("aweigh: it is approved as motion %s, and waits for its turn; see aweigh motion show", id)
	case m.Opening != nil:
		until = fmt.Sprintf(" until %s", m.Opening.Deadline.Time().Format(time.RFC3339))
	}
	return fmt.Sprintf("aweigh: it waits for approval as motion %s, and may apply%s; see aweigh motion show", id, until)
}

// tell is how long before a client's deadline it gets the motion that its write waits for:
// later, it would only get that time is up.
const tell = 500 * time.Millisecond

// gatewayWaits is how long a call by the JSON gateway waits whose client named no time (by Grpc-Timeout): HTTP/1 has no
// header before the answer that could name the motion.
const gatewayWaits = 5 * time.Second

// within is a context that ends in time to tell the client.
func within(ctx context.Context) (context.Context, context.CancelFunc) {
	at, ok := ctx.Deadline()
	switch {
	case !ok && byGateway(ctx):
		return context.WithTimeout(ctx, gatewayWaits)
	case !ok:
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, at.Add(-min(tell, time.Until(at)/4)))
}

// reconstructed is the responses of operations that a motion carried: it found what
// it had found when it opened, so they can be told from the state before and after,
// except where a read stands between two changes of what it reads.
func (s *kvServer) reconstructed(ctx context.Context, ops []scope.Op, mo *scope.Motion, revision int64) (all []scope.Response, err error) {
	untold := func(why any) error {
		return status.Errorf(codes.FailedPrecondition, "aweigh: motion %s was carried in revision %d; the results of its operations are not available (%v), read the keys", mo.ID(), revision, why)
	}
	err = s.look(ctx, (&scope.Txn{Success: ops}).Ranges, false, func(v *node.View) error {
		n := 0
		for i := range ops {
			op := &ops[i]
			resp := scope.Response{Kind: op.Kind, Revision: revision}
			switch op.Kind {
			case scope.OpPut, scope.OpDelete:
				if op.Kind == scope.OpDelete {
					resp.Deleted = mo.Found(n)
				}
				n++
				if op.Prev {
					before, err := v.Range(op.Key, op.End, scope.Range{Revision: revision - 1})
					if err != nil {
						return untold(err)
					}
					resp.Prev = before.Kvs
				}
			case scope.OpRange:
				var how scope.Range
				if op.Range != nil {
					how = *op.Range
				}
				switch {
				case how.Revision != 0:
				case !changes(ops[i+1:], op):
					how.Revision = revision
				case !changes(ops[:i], op):
					how.Revision = revision - 1
				default:
					return untold("one reads between two changes")
				}
				if resp.Range, err = v.Range(op.Key, op.End, how); err != nil {
					return untold(err)
				}
			default: // no record has the branch of a transaction within
				return untold("there is a transaction in it")
			}
			all = append(all, resp)
		}
		return nil
	})
	return all, err
}

// changes reports whether any of the operations changes what another one reads.
func changes(ops []scope.Op, read *scope.Op) bool {
	return slices.ContainsFunc(ops, func(op scope.Op) bool {
		return op.Kind != scope.OpRange && scope.Overlap(op.Key, op.End, read.Key, read.End)
	})
}
