package etcdcompat

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// watches is one stream of watches, and what came on it.
type watches struct {
	conn   *grpc.ClientConn
	stream etcdserverpb.Watch_WatchClient

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when something came
	failed  error
	order   []*seen // in the order of their creation
	open    map[int64]*seen
	created []string // answers to creation
	gone    map[int64]string
	told    int64 // revision of the newest progress of all
}

// seen is what one watch saw.
type seen struct {
	request *etcdserverpb.WatchCreateRequest
	id      int64
	lines   []string
	last    int64 // revision
	part    bool  // the next answer continues the last
	over    bool
}

func openWatches(ctx context.Context, conn *grpc.ClientConn) (*watches, error) {
	stream, err := etcdserverpb.NewWatchClient(conn).Watch(ctx)
	if err != nil {
		return nil, err
	}
	w := &watches{conn: conn, stream: stream, changed: make(chan struct{}), open: make(map[int64]*seen), gone: make(map[int64]string)}
	go func() {
		for {
			resp, err := stream.Recv()
			w.mu.Lock()
			if err == nil {
				err = w.take(resp)
			}
			if w.failed == nil {
				w.failed = err
			}
			close(w.changed)
			w.changed = make(chan struct{})
			w.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return w, nil
}

// take notes one response, and says what no system may send.
func (w *watches) take(r *etcdserverpb.WatchResponse) error {
	revision := r.Header.Revision
	switch {
	case r.Created:
		w.created = append(w.created, fmt.Sprintf("watch %d revision %d canceled %v %q", r.WatchId, revision, r.Canceled, r.CancelReason))
		if !r.Canceled {
			x := &seen{id: r.WatchId}
			w.open[r.WatchId] = x
			w.order = append(w.order, x)
		}
		return nil
	case r.WatchId == -1:
		w.told = revision
		return nil
	}
	x := w.open[r.WatchId]
	switch {
	case x != nil && x.over && r.Canceled: // the client has cancelled what is compacted
		delete(w.open, r.WatchId)
		return nil
	case x == nil:
		return fmt.Errorf("an answer for watch %d, which is not open: %v", r.WatchId, r)
	case r.Canceled:
		x.over = true
		if r.CompactRevision == 0 {
			delete(w.open, r.WatchId)
		}
		line := fmt.Sprintf("canceled, compacted %d %q", r.CompactRevision, r.CancelReason)
		if r.CompactRevision == 0 {
			line += fmt.Sprintf(" revision %d", revision)
		}
		w.gone[r.WatchId] = line
		x.lines = append(x.lines, line)
		return nil
	}
	for i, e := range r.Events {
		rev := e.Kv.ModRevision
		if rev < x.last || i == 0 && rev == x.last && !x.part || rev > revision {
			return fmt.Errorf("watch %d: revision %d after %d in an answer as of %d", r.WatchId, rev, x.last, revision)
		}
		x.last = rev
		x.lines = append(x.lines, eventLine(e))
	}
	x.part = r.Fragment
	return nil
}

// until waits until something holds, and nudges meanwhile.
func (w *watches) until(ctx context.Context, holds func() bool, nudge func() error) error {
	for {
		w.mu.Lock()
		done, err, changed := holds(), w.failed, w.changed
		w.mu.Unlock()
		if err != nil || done {
			return err
		}
		select {
		case <-changed:
			continue
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
		if nudge != nil {
			if err := nudge(); err != nil {
				return err
			}
		}
	}
}

// create opens a watch. One that starts at what is compacted is closed again, by
// the system and then by the client, as etcd's client does: until it has, etcd
// tells nothing of the progress of the others.
func (w *watches) create(ctx context.Context, r *etcdserverpb.WatchCreateRequest, compacted int64) (line string, err error) {
	w.mu.Lock()
	n := len(w.created)
	w.mu.Unlock()
	err = w.stream.Send(&etcdserverpb.WatchRequest{RequestUnion: &etcdserverpb.WatchRequest_CreateRequest{CreateRequest: r}})
	if err != nil {
		return "", err
	}
	err = w.until(ctx, func() bool {
		if len(w.created) <= n {
			return false
		}
		line = w.created[n]
		return true
	}, nil)
	w.mu.Lock()
	i := len(w.order) - 1
	if err != nil || i < 0 || w.order[i].request != nil {
		w.mu.Unlock()
		return line, err
	}
	x := w.order[i]
	x.request = r
	w.mu.Unlock()
	if r.StartRevision <= 0 || r.StartRevision >= compacted {
		return line, nil
	}
	if err := w.until(ctx, func() bool { return x.over }, nil); err != nil {
		return line, err
	}
	if err := w.sendCancel(x.id); err != nil {
		return line, err
	}
	return line, w.until(ctx, func() bool { return w.open[x.id] != x }, nil)
}

func (w *watches) sendCancel(id int64) error {
	return w.stream.Send(&etcdserverpb.WatchRequest{RequestUnion: &etcdserverpb.WatchRequest_CancelRequest{
		CancelRequest: &etcdserverpb.WatchCancelRequest{WatchId: id},
	}})
}

// cancel ends a watch, if it is open.
func (w *watches) cancel(ctx context.Context, r *etcdserverpb.WatchCancelRequest) (line string, err error) {
	w.mu.Lock()
	x := w.open[r.WatchId]
	w.mu.Unlock()
	if err = w.sendCancel(r.WatchId); x == nil || err != nil {
		return "nothing to cancel", err
	}
	err = w.until(ctx, func() bool { line = w.gone[r.WatchId]; return x.over }, nil)
	return line, err
}

// latestStart is the greatest revision that an open watch starts from.
func (w *watches) latestStart() (start int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, x := range w.open {
		start = max(start, x.request.GetStartRevision())
	}
	return start
}

// await waits until the system says that all up to a revision was delivered.
func (w *watches) await(ctx context.Context, revision int64) error {
	return w.until(ctx, func() bool { return len(w.open) == 0 || w.told >= revision }, func() error {
		return w.stream.Send(&etcdserverpb.WatchRequest{RequestUnion: &etcdserverpb.WatchRequest_ProgressRequest{
			ProgressRequest: &etcdserverpb.WatchProgressRequest{},
		}})
	})
}

// lines is what every watch saw, in the order of their creation.
func (w *watches) lines() (lines []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, x := range w.order {
		lines = append(lines, fmt.Sprintf("watch %d of %v saw\n    %s", x.id, x.request, strings.Join(x.lines, "\n    ")))
	}
	return append(lines, fmt.Sprintf("open at the end: %v", slices.Sorted(maps.Keys(w.open))))
}
