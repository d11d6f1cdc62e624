package etcd

import (
	"slices"

	"github.com/aweigh/aweigh/etcd/auth"
	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
)

// watch is one watch of a stream. All that it has to remember is the revision
// that it needs next, so that it can be as slow as it likes.
type watch struct {
	id              int64
	key, end        []byte
	segments        []*node.WatchSegment
	by              auth.Grant // what it was permitted by
	start           int64      // the revision asked for, 0 for none
	next            int64      // nothing was delivered from here on
	prev, parts     bool
	noPut, noDelete bool
	progress        bool
	quiet           bool          // nothing was sent since progress was told last
	most            int           // changes that it finds in the store at a time, about
	found           []node.Change // that are to be delivered
	after           int64         // nothing was found from here on
	within          bool          // a part of a revision was delivered, and more follows
}

// How many changes a watch that lags finds at a time: from few to many, so that what a loan has no
// room for is not looked for again and again.
const (
	firstMost = 64
	highMost  = 1024
)

// watched are the keys that a request asks to watch.
func watched(r *etcdpb.WatchCreateRequest) (key, end []byte) {
	if len(r.Key) == 0 {
		return everything, r.RangeEnd // from the least key on
	}
	return r.Key, r.RangeEnd
}

// newWatch is the watch that a request asks for, without segments yet, or why there can be
// none.
func newWatch(r *etcdpb.WatchCreateRequest) (x *watch, why string) {
	key, end := watched(r)
	x = &watch{
		id: r.WatchId, key: key, end: end, start: r.StartRevision, next: r.StartRevision,
		prev: r.PrevKv, parts: r.Fragment, progress: r.ProgressNotify, quiet: true, most: firstMost,
		noPut:    slices.Contains(r.Filters, etcdpb.WatchCreateRequest_NOPUT),
		noDelete: slices.Contains(r.Filters, etcdpb.WatchCreateRequest_NODELETE),
	}
	switch {
	case x.start < 0:
		return nil, revisionCompacted
	case emptyRange(x.key, x.end):
		return nil, "mvcc: watcher range is empty"
	}
	return x, ""
}

// wants reports whether the watch is to hear of an event.
func (x *watch) wants(e *scope.Event) bool {
	gone := e.Class == lineage.Delete
	return !(gone && x.noDelete || !gone && x.noPut)
}

// bare is up to where what was there before was compacted when the watch was opened.
func (x *watch) bare() (at int64) {
	for _, l := range x.segments {
		at = max(at, l.Bare)
	}
	return at
}

// adapt chooses how many changes to find at a time, by whether a loan left some of the last ones.
func (x *watch) adapt(left bool) {
	if left {
		x.most = max(1, x.most/4)
	} else {
		x.most = min(highMost, x.most*4)
	}
}
