package etcd

import (
	"bytes"
	"context"

	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
)

// How many keys are read at a time, so that about pageBytes are held.
const (
	firstPage = 16
	mostPage  = 1 << 16
	pageBytes = 8 << 20
)

// keyspace is all keys, of all scopes, as of one revision.
type keyspace struct {
	revision int64
	read     func(from []byte, r scope.Range) (scope.RangeResult, error) // from a key to the end
}

// keyspaceOf is all keys as of a revision, 0 for the newest, given a view of the root scope's state; if the read is
// linearizable, nothing is missing that was acknowledged.
func (s *service) keyspaceOf(ctx context.Context, v *node.View, revision int64, linearizable bool) (all keyspace, err error) {
	h := v.Head()
	if h.Delegated == 0 { // the view stays as it is, whatever is compacted meanwhile
		if all.revision = revision; revision <= 0 {
			all.revision = h.Revision
		}
		all.read = func(from []byte, r scope.Range) (scope.RangeResult, error) { return v.Range(from, everything, r) }
		return all, nil
	}
	if all.revision = revision; revision <= 0 {
		if all.revision, err = s.node.Latest(ctx, everything, everything, linearizable); err != nil {
			return all, err
		}
	}
	all.read = func(from []byte, r scope.Range) (scope.RangeResult, error) {
		return s.node.Page(ctx, from, everything, r, pageBytes, true)
	}
	return all, nil
}

// each gives all keys, in their order, about pageBytes at a time. proceed is asked now and then, and its error ends the
// work.
func (all keyspace) each(proceed func() error, use func([]scope.KeyValue) error) error {
	from, page := everything, int64(firstPage)
	for {
		if err := proceed(); err != nil {
			return err
		}
		res, err := all.read(from, scope.Range{Revision: all.revision, Limit: page})
		if err != nil {
			return err
		}
		if err := use(res.Kvs); err != nil || !res.More || len(res.Kvs) == 0 {
			return err
		}
		size := int64(1)
		for i := range res.Kvs {
			size += int64(len(res.Kvs[i].Key) + len(res.Kvs[i].Value))
		}
		from = append(bytes.Clone(res.Kvs[len(res.Kvs)-1].Key), 0) // the first key after it
		page = max(1, min(page*4, page*pageBytes/size, mostPage))
	}
}
