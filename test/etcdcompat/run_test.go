package etcdcompat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc/status"
)

// runner runs one program against one system, and writes down what it hears.
type runner struct {
	*system
	ctx      context.Context
	prefix   string
	revision int64 // the newest heard of
	opened   bool  // a watch, since sync
	lines    []string
	watches  *watches
}

// run gives the answers to a program, one line for each step, and one for each
// watch at the end.
func run(ctx context.Context, s *system, prefix string, steps []step) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	r := &runner{system: s, ctx: ctx, prefix: prefix}
	if err := r.fence(0); err != nil {
		return nil, err
	}
	var err error
	if r.watches, err = openWatches(ctx, s.conn(len(steps))); err != nil {
		return nil, err
	}
	for i, x := range steps {
		line, err := r.step(x)
		if err != nil {
			return r.lines, fmt.Errorf("step %d, %v: %w", i, x, err)
		}
		r.lines = append(r.lines, line)
	}
	if err := r.sync(); err != nil {
		return r.lines, err
	}
	r.lines = append(r.lines, r.watches.lines()...)
	if err := r.revokeAll(); err != nil {
		return r.lines, err
	}
	_, err = etcdserverpb.NewKVClient(s.conn(0)).DeleteRange(ctx, &etcdserverpb.DeleteRangeRequest{Key: []byte("p"), RangeEnd: []byte("q")})
	return r.lines, err
}

func (r *runner) step(x step) (string, error) {
	kv := etcdserverpb.NewKVClient(r.conn(x.Node))
	switch {
	case x.Range != nil:
		q := clone(x.Range)
		r.resolveRange(q)
		return answer(kv.Range(r.ctx, q))
	case x.Put != nil:
		return r.wrote(answer(kv.Put(r.ctx, clone(x.Put))))
	case x.Delete != nil:
		return r.wrote(answer(kv.DeleteRange(r.ctx, clone(x.Delete))))
	case x.Txn != nil:
		q := clone(x.Txn)
		r.resolveTxn(q)
		return r.wrote(answer(kv.Txn(r.ctx, q)))
	case x.Lease != nil:
		return r.wrote(r.lease(x))
	case x.Compact != nil:
		q := clone(x.Compact)
		resolve(&q.Revision, r.revision)
		if err := r.sync(); err != nil { // else it is chance what watches see of what went
			return "", err
		}
		line, err := answer(kv.Compact(r.ctx, q))
		if strings.HasPrefix(line, "header") {
			r.compacted = q.Revision
		}
		return line, err
	case x.Watch != nil:
		q := clone(x.Watch)
		resolve(&q.StartRevision, r.revision)
		r.opened = true
		if err := r.catchUp(); err != nil {
			return "", err
		}
		return r.watches.create(r.ctx, q, r.compacted)
	case x.Cancel != nil:
		if err := r.sync(); err != nil {
			return "", err
		}
		return r.watches.cancel(r.ctx, x.Cancel)
	}
	return "", r.sync()
}

// wrote learns the newest revision, and drops it from answers that fail.
func (r *runner) wrote(line string, err error) (string, error) {
	if err != nil {
		return line, err
	}
	resp, err := etcdserverpb.NewKVClient(r.conn(0)).Range(r.ctx, &etcdserverpb.RangeRequest{Key: []byte(r.prefix), CountOnly: true})
	if err == nil {
		r.revision = resp.Header.Revision
	}
	return line, err
}

// catchUp has the node that serves the watches come up to date, as it need not be
// after another one answered.
func (r *runner) catchUp() error {
	_, err := etcdserverpb.NewKVClient(r.watches.conn).Range(r.ctx, &etcdserverpb.RangeRequest{Key: []byte(r.prefix), CountOnly: true})
	return err
}

// fence writes until the revision is reached, once if it is 0.
func (r *runner) fence(revision int64) error {
	for {
		resp, err := etcdserverpb.NewKVClient(r.conn(0)).Put(r.ctx, &etcdserverpb.PutRequest{Key: []byte("q-fence")})
		if err != nil {
			return err
		}
		if r.revision = resp.Header.Revision; r.revision >= revision {
			return nil
		}
	}
}

// sync waits until every watch has all that happened. A system says so of no
// watch that waits for the future, so that comes first. After a watch was opened,
// only what is told of a revision that came later is about it too.
func (r *runner) sync() error {
	start := r.watches.latestStart()
	if r.opened {
		start = max(start, r.revision+1)
	}
	if r.opened = false; start > r.revision {
		if err := r.fence(start); err != nil {
			return err
		}
	}
	return r.watches.await(r.ctx, r.revision)
}

func (r *runner) resolveRange(q *etcdserverpb.RangeRequest) {
	for _, rev := range []*int64{&q.Revision, &q.MinModRevision, &q.MaxModRevision, &q.MinCreateRevision, &q.MaxCreateRevision} {
		resolve(rev, r.revision)
	}
}

func (r *runner) resolveTxn(q *etcdserverpb.TxnRequest) {
	for _, c := range q.Compare {
		switch c := c.TargetUnion.(type) {
		case *etcdserverpb.Compare_CreateRevision:
			resolve(&c.CreateRevision, r.revision)
		case *etcdserverpb.Compare_ModRevision:
			resolve(&c.ModRevision, r.revision)
		}
	}
	for _, op := range slices.Concat(q.Success, q.Failure) {
		switch op := op.Request.(type) {
		case *etcdserverpb.RequestOp_RequestRange:
			r.resolveRange(op.RequestRange)
		case *etcdserverpb.RequestOp_RequestTxn:
			r.resolveTxn(op.RequestTxn)
		}
	}
}

type message interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
	String() string
	GetHeader() *etcdserverpb.ResponseHeader
}

// clone is a deep copy, because steps run twice.
func clone[M any, P interface {
	*M
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}](m P) P {
	raw, err := m.Marshal()
	if err != nil {
		panic(err)
	}
	var out P = new(M)
	if err := out.Unmarshal(raw); err != nil {
		panic(err)
	}
	return out
}

// answer is an answer, or an error of the system's, as text without what names a
// member or a term. Another error is one of the test's.
func answer[M message](m M, err error) (string, error) {
	if err != nil {
		s, ok := status.FromError(err)
		if !ok || errors.Is(err, context.DeadlineExceeded) {
			return "", err
		}
		return fmt.Sprintf("%v: %s", s.Code(), s.Message()), nil
	}
	anonymous(m.GetHeader())
	return m.String(), nil
}

func anonymous(h *etcdserverpb.ResponseHeader) {
	h.ClusterId, h.MemberId, h.RaftTerm = 0, 0, 0
}

func eventLine(e *mvccpb.Event) string {
	if e.PrevKv == nil {
		return fmt.Sprintf("%v %v", e.Type, e.Kv)
	}
	return fmt.Sprintf("%v %v before: %v", e.Type, e.Kv, e.PrevKv)
}
