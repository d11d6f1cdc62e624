package etcd

import (
	"context"
	"encoding/hex"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/aweigh/aweigh/node"
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
func (s *kvServer) approved(ctx context.Context, t scope.Txn, r node.Receipt) (node.Receipt, error) {
	id := hex.EncodeToString(r.Mutation[:])
	_ = grpc.SendHeader(ctx, metadata.Pairs(motionHeader, id)) // whoever does not hear it asks the node
	if md, _ := metadata.FromIncomingContext(ctx); len(md.Get(noWait)) > 0 {
		return r, status.Errorf(codes.FailedPrecondition, "aweigh: it waits for approval as motion %s; see aweigh motion show", id)
	}
	var last node.Motion
	err := s.node.AwaitMotion(ctx, r.Mutation[:], func(m node.Motion, _ scope.Head) error {
		last = m
		return nil
	})
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

// reconstructed is the responses of operations that a motion carried: it found what
// it had found when it opened, so they can be told from the state before and after.
func (s *kvServer) reconstructed(ctx context.Context, ops []scope.Op, mo *scope.Motion, revision int64) (all []scope.Response, err error) {
	err = s.look(ctx, false, func(v *node.View) error {
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
						return err
					}
					resp.Prev = before.Kvs
				}
			case scope.OpRange:
				var how scope.Range
				if op.Range != nil {
					how = *op.Range
				}
				if how.Revision == 0 {
					how.Revision = revision
				}
				if resp.Range, err = v.Range(op.Key, op.End, how); err != nil {
					return err
				}
			default: // of a transaction within nobody noted the branch
				return status.Errorf(codes.FailedPrecondition, "aweigh: motion %s was carried in revision %d; what its inner transactions did is not told, read the keys", mo.ID(), revision)
			}
			all = append(all, resp)
		}
		return nil
	})
	return all, err
}
