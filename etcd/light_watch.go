package etcd

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
)

const (
	// leastProving bounds how often a watch proves its range anew without a hint.
	leastProving = 500 * time.Millisecond
	// leastGap is the least time between two proofs of a range that is watched. It doubles up to mostGap while hints
	// bring no change: nodes may say what they like.
	leastGap = 20 * time.Millisecond
	mostGap  = 500 * time.Millisecond
	// fetchRetry is how long a watch waits after a proof that failed, at most.
	fetchRetry = time.Second
	// hintRetry is how long a watch waits for hints again that ended.
	hintRetry = time.Second
	// lightProgress is how often a watch that asked for it gets its progress, as in etcd.
	lightProgress = 10 * time.Minute
)

// follow proves a range anew when it may have changed, and four times within the age that is permitted, until ctx ends.
func (x *provenRange) follow(ctx context.Context) {
	hinted := make(chan struct{}, 1)
	if hints := x.light.hints; hints != nil {
		x.light.background(func() {
			for ctx.Err() == nil {
				err := hints(ctx, x.key, x.end, func() {
					select {
					case hinted <- struct{}{}:
					default: // one is enough
					}
				})
				x.light.log.Debug("hints of changes ended", "err", err)
				select {
				case <-time.After(hintRetry):
				case <-ctx.Done():
				}
			}
		})
	}
	every, gap := max(x.light.atMost/4, leastProving), leastGap
	again := time.NewTimer(every)
	defer again.Stop()
	for last := int64(0); ; {
		hint := true
		select {
		case <-hinted:
		case <-again.C:
			hint = false
		case <-ctx.Done():
			return
		}
		again.Reset(every)
		is, err := x.fetch(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			x.light.log.Warn("a range that a watch follows is not proven", "key", string(x.key), "err", err)
			again.Reset(min(every, fetchRetry))
		case is.revision != last:
			last, gap = is.revision, leastGap
		case hint:
			gap = min(2*gap, mostGap)
		}
		select {
		case <-time.After(gap):
		case <-ctx.Done():
			return
		}
	}
}

// stale returns why the range was not proven for longer than some time, nil if it was.
func (x *provenRange) stale(atMost time.Duration) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.last == nil || time.Since(x.at) <= atMost {
		return nil
	}
	return x.last
}

// lightWatch implements etcd's Watch for a Light. An event shows what a proof showed. Of the changes of a key between
// two proofs a watch gets the last. A deletion has the revision after the last one that the range had.
type lightWatch struct {
	etcdpb.UnimplementedWatchServer
	*light
}

// lightStream is one stream of watches, each with a goroutine of its own.
type lightStream struct {
	*light
	ctx    context.Context
	cancel context.CancelCauseFunc // ends the stream
	tasks  sync.WaitGroup
	sends  sync.Mutex // held while a message is sent
	stream grpc.BidiStreamingServer[etcdpb.WatchRequest, etcdpb.WatchResponse]
	all    map[int64]*lightWatcher
	nextID int64
}

// lightWatcher is one watch of a lightStream.
type lightWatcher struct {
	*watch
	after  atomic.Int64 // up to which revision all was delivered; 0 until the watch is created, and -1 from its end on
	cancel context.CancelFunc
}

// Watch implements etcdpb.WatchServer.
func (s *lightWatch) Watch(stream grpc.BidiStreamingServer[etcdpb.WatchRequest, etcdpb.WatchResponse]) error {
	w := &lightStream{light: s.light, stream: stream, all: make(map[int64]*lightWatcher)}
	w.ctx, w.cancel = context.WithCancelCause(stream.Context())
	defer w.tasks.Wait()
	defer w.cancel(nil)
	requests, failed := receive(stream)
	for {
		var err error
		select {
		case r := <-requests:
			err = w.request(r)
		case err = <-failed:
		case <-w.ctx.Done():
			err = context.Cause(w.ctx)
		case <-s.ctx.Done():
			err = errStopped
		}
		if errors.Is(err, context.Canceled) && s.ctx.Err() == nil {
			return errWatchCanceled
		}
		if err != nil {
			return s.status(w.stream.Context(), err)
		}
	}
}

func (w *lightStream) send(r *etcdpb.WatchResponse) error {
	w.sends.Lock()
	defer w.sends.Unlock()
	return w.stream.Send(r)
}

func (w *lightStream) request(r *etcdpb.WatchRequest) error {
	switch r := r.RequestUnion.(type) {
	case *etcdpb.WatchRequest_CreateRequest:
		return w.create(r.CreateRequest)
	case *etcdpb.WatchRequest_CancelRequest:
		x := w.all[r.CancelRequest.GetWatchId()]
		if x == nil {
			return nil
		}
		x.cancel()
		delete(w.all, x.id)
		return w.send(&etcdpb.WatchResponse{Header: w.header(max(x.after.Load(), 0)), WatchId: x.id, Canceled: true})
	case *etcdpb.WatchRequest_ProgressRequest:
		through := int64(0)
		for _, x := range w.all { // order-free: the least
			after := x.after.Load()
			if after == 0 {
				return nil // it is still to be created
			}
			if after > 0 && (through == 0 || after < through) {
				through = after
			}
		}
		if through > 0 {
			return w.send(&etcdpb.WatchResponse{Header: w.header(through), WatchId: noWatch})
		}
	}
	return nil
}

func (w *lightStream) create(r *etcdpb.WatchCreateRequest) error {
	asked, why := newWatch(r)
	switch {
	case why != "":
	case asked.id != 0 && w.all[asked.id] != nil:
		why = "mvcc: duplicate watch ID provided on the WatchStream"
	case w.watches.Load() >= lightWatches:
		why = "etcdserver: too many requests"
	}
	var of *provenRange
	if why == "" {
		if of = w.followed(asked.key, asked.end); of == nil {
			why = "etcdserver: too many requests"
		}
	}
	if why != "" {
		return w.send(&etcdpb.WatchResponse{
			Header: w.header(0), WatchId: noWatch, Created: true, Canceled: true, CancelReason: why,
		})
	}
	if asked.id == 0 {
		for w.all[w.nextID] != nil {
			w.nextID++
		}
		asked.id = w.nextID
		w.nextID++
	}
	x := &lightWatcher{watch: asked}
	ctx, cancel := context.WithCancel(w.ctx)
	x.cancel = cancel
	w.all[x.id] = x
	w.watches.Add(1)
	w.tasks.Go(func() {
		defer w.watches.Add(-1)
		defer w.memory.left(of)
		defer cancel()
		err := w.run(ctx, x, of)
		created := x.after.Swap(-1) > 0
		if err == nil || ctx.Err() != nil {
			return
		}
		if w.lasting(err) != codes.OK { // the other watches go on
			err = w.send(&etcdpb.WatchResponse{
				Header: w.header(0), WatchId: x.id, Created: !created, Canceled: true, CancelReason: w.status(ctx, err).Error(),
			})
		}
		if err != nil {
			w.cancel(err)
		}
	})
	return nil
}

// run delivers to a watch until ctx ends.
func (w *lightStream) run(ctx context.Context, x *lightWatcher, of *provenRange) error {
	is, err := of.fetch(ctx)
	if err != nil {
		return err
	}
	conn := lightConnOf(w.stream.Context())
	known := x.start == 0 || conn.knows(of, x.start-1) && of.reached(x.start-1)
	conn.tell(of, is.revision)
	if err := w.send(&etcdpb.WatchResponse{Header: w.header(is.revision), WatchId: x.id, Created: true}); err != nil {
		return err
	}
	after := x.start - 1
	switch {
	case !known: // what it has seen is not known: it reads again
		return w.compacted(x, is.revision)
	case x.start == 0: // without progress, etcd's client begins anew with this revision, and not after it
		after = is.revision
		if err := w.send(&etcdpb.WatchResponse{Header: w.header(after), WatchId: x.id}); err != nil {
			return err
		}
	}
	x.after.Store(after)
	progress := time.NewTicker(lightProgress)
	defer progress.Stop()
	for {
		events, through, changed, ok := of.since(after)
		if !ok {
			return w.compacted(x, through)
		}
		if err := of.stale(w.atMost); err != nil {
			return err
		}
		if out := x.told(events); len(out) > 0 {
			if err := w.send(&etcdpb.WatchResponse{Header: w.header(through), WatchId: x.id, Events: out}); err != nil {
				return err
			}
		}
		after = through
		x.after.Store(after)
		select {
		case <-changed:
		case <-progress.C:
			if x.progress {
				if err := w.send(&etcdpb.WatchResponse{Header: w.header(after), WatchId: x.id}); err != nil {
					return err
				}
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// compacted tells a watch that what it needs is not remembered, and that the range has reached a revision.
func (w *lightStream) compacted(x *lightWatcher, reached int64) error {
	return w.send(&etcdpb.WatchResponse{
		Header: w.header(0), WatchId: x.id, Canceled: true, CompactRevision: reached + 1,
	})
}

// told are the events that the watch wants.
func (x *lightWatcher) told(events []scope.Event) (out []*etcdpb.Event) {
	for i := range events {
		e := &events[i]
		if !x.wants(e) {
			continue
		}
		told := &etcdpb.Event{Kv: kvOf(&e.Kv)}
		if e.Class == lineage.Delete {
			gone := &etcdpb.KeyValue{Key: e.Kv.Key, ModRevision: e.Kv.ModRevision}
			told = &etcdpb.Event{Type: etcdpb.Event_DELETE, Kv: gone}
		}
		if x.prev && e.Prev != nil {
			told.PrevKv = kvOf(e.Prev)
		}
		out = append(out, told)
	}
	return out
}
