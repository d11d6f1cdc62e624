package etcd

import (
	"time"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/node"
)

// question is a request for the progress of a stream. The zero value is none.
type question struct {
	open  bool
	again bool      // it was asked once more meanwhile
	at    time.Time // when
	goal  int64     // the newest revision that the client may know, with several scopes maybe of a scope without a watch
}

func (q *question) ask(goal int64) {
	if q.open { // were the goal moved, a busy scope could keep a quiet one from ever getting there
		q.again = true
		return
	}
	*q = question{open: true, at: time.Now(), goal: goal}
}

// closeWithin is how long the answer waits for scopes to close. One that cannot decide
// does not keep the client from hearing how far its watches are.
const closeWithin = 2 * time.Second

// progressAll answers a request for the progress of the stream: all changes up to
// the revision were delivered, to every watch. As in etcd, there is no answer while
// a watch waits for a revision that does not exist yet; and none without watches.
//
// A client that asks often has a revision, and waits for its watches to get there, as
// Kubernetes does with each consistent list. With several scopes it may be another's;
// then those of the watches are asked to close.
func (w *watchStream) progressAll() error {
	if len(w.all) == 0 {
		w.asked = question{}
		return nil
	}
	revision := w.all[0].next - 1
	for _, x := range w.all {
		revision = min(revision, x.next-1)
	}
	for _, x := range w.all {
		if x.start > max(revision, w.asked.goal) {
			w.asked = question{}
			return nil
		}
	}
	if revision < w.asked.goal && time.Since(w.asked.at) < closeWithin {
		for _, x := range w.all {
			node.Close(w.ctx, x.segments, w.asked.goal)
		}
		w.held = true
		return nil
	}
	again := w.asked.again
	w.asked = question{}
	if again {
		w.asked.ask(w.node.ClosedTimestamp(w.ctx))
		w.held = true
	}
	for _, x := range w.all {
		if x.start > revision {
			return nil
		}
	}
	return w.send(&etcdpb.WatchResponse{Header: w.header(revision), WatchId: noWatch})
}

// progressEach tells those that asked for it, and heard nothing since the last
// time, how far they are.
func (w *watchStream) progressEach() error {
	for _, x := range w.all {
		if x.progress && x.quiet && x.start < x.next {
			if err := w.send(&etcdpb.WatchResponse{Header: w.header(x.next - 1), WatchId: x.id}); err != nil {
				return err
			}
		}
		x.quiet = true
	}
	return nil
}
