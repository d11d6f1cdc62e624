package etcd

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
)

const (
	// leastProving bounds how often a watch proves its range anew without a hint.
	leastProving = 500 * time.Millisecond
	// hintRetry is how long a watch waits for hints again that ended.
	hintRetry = time.Second
	// lightProgress is how often a watch that asked for it gets its progress, as in etcd.
	lightProgress = 10 * time.Minute
)

// follow proves a range anew when it may have changed, and at least twice within the age that is permitted, until ctx
// ends. So a node that gives no hints hides a change no longer than one that gives none at all.
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
	again := time.NewTicker(max(x.light.atMost/2, leastProving))
	defer again.Stop()
	for {
		select {
		case <-hinted:
		case <-again.C:
		case <-ctx.Done():
			return
		}
		if _, err := x.fetch(ctx); err != nil && ctx.Err() == nil {
			x.light.log.Warn("a range that a watch follows is not proven", "key", string(x.key), "err", err)
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
// two proofs a watch gets the last. A deletion has the least revision that it can have had.
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
	next   atomic.Int64 // what comes before was delivered; 0 until the watch is created
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
		if errors.Is(err, context.Canceled) {
			return errWatchCanceled
		}
		if err != nil {
			return lightStatus(w.stream.Context(), err)
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
		return w.send(&etcdpb.WatchResponse{Header: w.header(x.next.Load() - 1), WatchId: x.id, Canceled: true})
	case *etcdpb.WatchRequest_ProgressRequest:
		through := int64(0)
		for _, x := range w.all { // order-free: the least
			if next := x.next.Load(); next == 0 {
				return nil // it is still to be created
			} else if through == 0 || next-1 < through {
				through = next - 1
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
	case w.watches.Load() >= maxWatches:
		why = "etcdserver: too many requests"
	}
	if why != "" {
		return w.send(&etcdpb.WatchResponse{Header: w.header(0), WatchId: noWatch, Created: true, Canceled: true, CancelReason: why})
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
	of := w.rangeOf(x.key, x.end, 1)
	w.tasks.Go(func() {
		defer w.watches.Add(-1)
		defer w.left(of)
		defer cancel()
		if err := w.run(ctx, x, of); err != nil && ctx.Err() == nil {
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
	next := x.start
	if next == 0 {
		next = is.revision + 1
	}
	x.next.Store(next)
	if err := w.send(&etcdpb.WatchResponse{Header: w.header(is.revision), WatchId: x.id, Created: true}); err != nil {
		return err
	}
	progress := time.NewTicker(lightProgress)
	defer progress.Stop()
	for {
		events, through, changed, ok := of.since(next)
		if !ok {
			return w.send(&etcdpb.WatchResponse{Header: w.header(0), WatchId: x.id, Canceled: true, CompactRevision: through + 1})
		}
		if err := of.stale(w.atMost); err != nil {
			return err
		}
		if out := x.told(events); len(out) > 0 {
			if err := w.send(&etcdpb.WatchResponse{Header: w.header(through), WatchId: x.id, Events: out}); err != nil {
				return err
			}
		}
		next = max(next, through+1)
		x.next.Store(next)
		select {
		case <-changed:
		case <-progress.C:
			if x.progress {
				if err := w.send(&etcdpb.WatchResponse{Header: w.header(next - 1), WatchId: x.id}); err != nil {
					return err
				}
			}
		case <-ctx.Done():
			return nil
		}
	}
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
			told = &etcdpb.Event{Type: etcdpb.Event_DELETE, Kv: &etcdpb.KeyValue{Key: e.Kv.Key, ModRevision: e.Kv.ModRevision}}
		}
		if x.prev && e.Prev != nil {
			told.PrevKv = kvOf(e.Prev)
		}
		out = append(out, told)
	}
	return out
}
