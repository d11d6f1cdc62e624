package etcd

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/internal/requestlog"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
)

// Watches is what the API needs of a node to serve watches.
type Watches interface {
	WatchSegments(ctx context.Context, key, end []byte, from int64) (segments []*node.WatchSegment, newest, compacted int64, err error)
	Follow(ctx context.Context, l *node.WatchSegment, from int64) ([]*node.WatchSegment, error)
	Watch(ctx context.Context, key, end []byte, from int64, deliver func(node.Changes) error) error
	Borrower(cut func()) *node.Borrower
	Load(ctx context.Context, b *node.Borrower, changes []node.Change, prev, split bool) (
		l *node.Loan, rest []node.Change, err error)
	ClosedTimestamp(ctx context.Context) int64
}

// watchServer implements etcd's Watch.
type watchServer struct {
	etcdpb.UnimplementedWatchServer
	*service
}

// watchStream is one stream of watches. One goroutine owns it and does all sending; a
// second one only receives.
type watchStream struct {
	*service
	ctx      context.Context
	send     func(*etcdpb.WatchResponse) error
	lend     func(*delivery) error // sends what is on loan
	borrower *node.Borrower
	byID     map[int64]*watch
	all      []*watch // those that are delivered to, in the order in which they were created
	nextID   int64
	asked    question // for the progress of all watches
	held     bool     // a watch waits for a scope to close
}

// Watch implements etcdpb.WatchServer.
func (s *watchServer) Watch(stream grpc.BidiStreamingServer[etcdpb.WatchRequest, etcdpb.WatchResponse]) error {
	w := s.newStream(stream.Context(), stream.Send, func(d *delivery) error { return stream.SendMsg(d) })
	defer w.close()
	requests, failed := receive(stream)
	err := w.run(requests, failed)
	if errors.Is(err, context.Canceled) {
		return errWatchCanceled
	}
	return toStatus(w.ctx, err)
}

// newStream is a stream that sends what it says and what it has on loan. It is to be closed.
func (s *service) newStream(ctx context.Context, send func(*etcdpb.WatchResponse) error, lend func(*delivery) error) *watchStream {
	return &watchStream{service: s, ctx: ctx, send: send, lend: lend, borrower: s.node.Borrower(s.cutter(ctx)), byID: make(map[int64]*watch)}
}

// close ends the watches, and returns what is on loan.
func (w *watchStream) close() {
	w.watches.Add(int64(-len(w.byID)))
	for _, x := range slices.Clone(w.all) {
		w.stop(x)
	}
	w.borrower.Close()
}

// receive hands over the requests of a stream. It ends with the stream's context,
// which ends when the handler returns.
func receive(stream grpc.BidiStreamingServer[etcdpb.WatchRequest, etcdpb.WatchResponse]) (<-chan *etcdpb.WatchRequest, <-chan error) {
	requests, failed := make(chan *etcdpb.WatchRequest), make(chan error, 1)
	go func() {
		for {
			r, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return // it has nothing more to ask, and still listens
			}
			if err != nil {
				failed <- err
				return
			}
			select {
			case requests <- r:
			case <-stream.Context().Done():
				return
			}
		}
	}()
	return requests, failed
}

// noLeaderFor is for how many looks in a row no quorum may be in reach before a
// stream that requires a leader is ended, as in etcd.
const noLeaderFor = 3

// run serves the stream until it ends.
func (w *watchStream) run(requests <-chan *etcdpb.WatchRequest, failed <-chan error) error {
	// Watches that were created together need not all speak at once.
	progress := time.NewTicker(w.progressEvery + rand.N(w.progressEvery/10+1))
	defer progress.Stop()
	tokens := time.NewTicker(tokenLook)
	defer tokens.Stop()
	var looks <-chan time.Time
	if requiresLeader(w.ctx) {
		t := time.NewTicker(time.Second)
		defer t.Stop()
		looks = t.C
	}
	for missed := 0; ; {
		changed := w.node.Changed() // before reading, so that nothing falls in between
		if err := w.judge(); err != nil {
			return err
		}
		more, err := w.deliver()
		if err != nil && !errors.Is(err, node.ErrInstalling) { // then the state comes anew, and so does a change
			return err
		}
		if w.asked.open && !more {
			if err := w.progressAll(); err != nil {
				return err
			}
		}
		var at <-chan struct{} = changed
		if more {
			at = ready
		}
		var again <-chan time.Time
		if w.held {
			again = time.After(node.CloseEvery)
		}
		select {
		case r := <-requests:
			err = w.request(r)
		case err = <-failed:
		case <-at:
			err = nil
		case <-again:
			err = nil
		case <-progress.C:
			err = w.progressEach()
		case <-tokens.C:
			err = tokenEnded(w.ctx)
		case <-looks:
			err = nil
			if missed++; w.hasLeader() {
				missed = 0
			} else if missed >= noLeaderFor {
				err = errNoLeader
			}
		case <-w.ctx.Done():
			err = w.ctx.Err()
		case <-w.stopping:
			err = errStopped
		}
		if err != nil {
			return err
		}
	}
}

// ready is closed.
var ready = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// fewWatches is how many watches read the store each for themselves: that looks
// at no content but theirs. More share a feed, which reads all content once.
const fewWatches = 8

// deliver sends every watch what is new for it, and reports whether there is more
// to read at once.
func (w *watchStream) deliver() (more bool, err error) {
	w.held = false
	r := reading{watchStream: w, shared: w.watches.Load() > fewWatches, recent: make(map[*source]window)}
	for _, x := range slices.Clone(w.all) { // a watch that is compacted leaves
		if err := r.watch(x); err != nil {
			return false, err
		}
	}
	return r.more, nil
}

// give sends a watch a loan of what was found for it, those that it wants, and moves it on. more
// says that something is left.
func (w *watchStream) give(x *watch) (more bool, err error) {
	if len(x.found) == 0 {
		x.next = x.after
		return false, nil
	}
	l, rest, err := w.node.Load(w.ctx, w.borrower, x.found, x.prev, x.parts)
	if errors.Is(err, scope.ErrCompacted) {
		compacted, err := w.bottom(x)
		return false, cmp.Or(err, w.compacted(x, compacted))
	}
	if err != nil {
		return false, err
	}
	last := int64(0) // if it has no event, nothing is left either
	if n := len(l.Events); n > 0 {
		last = l.Events[n-1].Kv.ModRevision
	}
	x.adapt(len(rest) > 0)
	d := &delivery{loan: l, prev: x.prev, bare: x.bare(), events: slices.DeleteFunc(l.Events, func(e *scope.Event) bool { return !x.wants(e) })}
	through, part := last, false
	switch x.found = rest; {
	case len(rest) == 0:
		x.found = nil
		x.next, through = x.after, x.after-1
	case rest[0].Revision == last:
		x.next, part = last, true
	default:
		x.next = last + 1
	}
	if len(d.events) == 0 && (part || !x.within) { // a fragment is followed by another one in any case
		l.Return()
		return len(rest) > 0, nil
	}
	if may, err := w.mayStill(x); !may {
		l.Return()
		return false, err
	}
	x.quiet, x.within = false, part
	d.head = &etcdpb.WatchResponse{Header: w.header(w.newest(through)), WatchId: x.id, Fragment: part}
	return len(rest) > 0, w.lendOut(d)
}

// bottom is up to which revision the changes are gone that a watch was to deliver.
func (w *watchStream) bottom(x *watch) (compacted int64, err error) {
	err = w.sources.of(x.found[0].Part).look(w.ctx, func(v *node.View) error {
		compacted = v.Head().Compacted
		return nil
	})
	return compacted, err
}

// newest is the store's revision, as far as this node knows it, for the header of an answer that tells of no more than
// a revision: as in etcd, also while a watch catches up. What tells of progress has that revision itself.
func (w *watchStream) newest(revision int64) int64 {
	return max(revision, w.node.Root().LastHead().Revision)
}

// request does what a client asks for.
func (w *watchStream) request(r *etcdpb.WatchRequest) error {
	switch r := r.GetRequestUnion().(type) {
	case *etcdpb.WatchRequest_CreateRequest:
		return w.create(r.CreateRequest)
	case *etcdpb.WatchRequest_CancelRequest:
		x := w.byID[r.CancelRequest.GetWatchId()]
		if x == nil {
			return nil
		}
		w.stop(x)
		delete(w.byID, x.id)
		w.watches.Add(-1)
		return w.send(&etcdpb.WatchResponse{Header: w.header(w.newest(x.next - 1)), WatchId: x.id, Canceled: true})
	case *etcdpb.WatchRequest_ProgressRequest:
		w.asked.ask(w.node.ClosedTimestamp(w.ctx))
	}
	return nil
}

// noWatch is the number in an answer that is about no single watch.
const noWatch = -1

func (w *watchStream) create(r *etcdpb.WatchCreateRequest) error {
	x, why := newWatch(r)
	var newest, compacted int64
	by, err := w.holds(w.ctx, r)
	w.note(w.ctx, watchMethod, r, cmp.Or(err, requestlog.ErrBegun))
	if err != nil {
		why = err.Error()
	} else if x != nil {
		x.by = by
	}
	if why == "" {
		x.segments, newest, compacted, err = w.node.WatchSegments(w.ctx, x.key, x.end, x.start)
		if errors.Is(err, referral.ErrMute) { // the stream's other watches go on
			why, err = err.Error(), nil
		}
	} else {
		err = w.sources.of(w.node.Root()).look(w.ctx, func(v *node.View) error {
			newest = v.Head().Revision
			return nil
		})
	}
	if err != nil {
		return err
	}
	if why == "" && x.start == 0 {
		x.next = newest + 1
	}
	switch {
	case why != "":
	case x.id != 0 && w.byID[x.id] != nil:
		why = "mvcc: duplicate watch ID provided on the WatchStream"
	case w.watches.Load() >= maxWatches:
		why = "etcdserver: too many requests"
	}
	if why != "" {
		if x != nil {
			node.Stop(x.segments)
		}
		return w.send(&etcdpb.WatchResponse{
			Header: w.header(newest), WatchId: noWatch, Created: true, Canceled: true, CancelReason: why,
		})
	}
	if x.id == 0 {
		for w.byID[w.nextID] != nil {
			w.nextID++
		}
		x.id = w.nextID
		w.nextID++
	}
	w.byID[x.id] = x
	w.all = append(w.all, x)
	w.watches.Add(1)
	err = w.send(&etcdpb.WatchResponse{Header: w.header(newest), WatchId: x.id, Created: true})
	if err == nil && x.next < compacted {
		err = w.compacted(x, compacted)
	}
	return err
}

// compacted reports that what a watch needs next is gone. Its number stays
// taken until the client cancels it, as in etcd.
func (w *watchStream) compacted(x *watch, revision int64) error {
	w.stop(x)
	return w.send(&etcdpb.WatchResponse{Header: w.header(0), WatchId: x.id, Canceled: true, CompactRevision: revision})
}

// stop ends deliveries to a watch.
func (w *watchStream) stop(x *watch) {
	node.Stop(x.segments)
	node.Drop(x.found)
	x.found = nil
	w.all = slices.DeleteFunc(w.all, func(y *watch) bool { return y == x })
}
