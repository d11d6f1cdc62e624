package etcd

import (
	"bytes"
	"slices"

	"google.golang.org/protobuf/proto"

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
	legs            []*node.Leg
	start           int64 // the revision asked for, 0 for none
	next            int64 // nothing was delivered from here on
	prev, parts     bool
	noPut, noDelete bool
	progress        bool
	quiet           bool // nothing was sent since progress was told last
	most            int  // changes that it reads from the store at a time, about
}

// How many changes a watch that lags reads at a time: from few to many, so that
// large values do not fill the memory and small ones do not take long.
const (
	firstMost  = 64
	highMost   = 4096
	smallBatch = 1 << 20 // bytes, below which it reads more the next time
	largeBatch = 4 << 20 // bytes, above which it reads less
)

// newWatch is the watch that a request asks for, without legs yet, or why there can be
// none.
func newWatch(r *etcdpb.WatchCreateRequest) (x *watch, why string) {
	x = &watch{
		id: r.WatchId, key: r.Key, end: r.RangeEnd, start: r.StartRevision, next: r.StartRevision,
		prev: r.PrevKv, parts: r.Fragment, progress: r.ProgressNotify, quiet: true, most: firstMost,
		noPut:    slices.Contains(r.Filters, etcdpb.WatchCreateRequest_NOPUT),
		noDelete: slices.Contains(r.Filters, etcdpb.WatchCreateRequest_NODELETE),
	}
	if len(x.key) == 0 {
		x.key = everything // the least key
	}
	switch {
	case x.start < 0:
		return nil, revisionCompacted
	case len(x.end) > 0 && !scope.ToEnd(x.end) && bytes.Compare(x.key, x.end) >= 0:
		return nil, "mvcc: watcher range is empty"
	}
	return x, ""
}

// pick is those of the events that the watch wants, in etcd's form.
func (x *watch) pick(events []scope.Event) (out []*etcdpb.Event) {
	for i := range events {
		e := &events[i]
		gone := e.Class == lineage.Delete
		if gone && x.noDelete || !gone && x.noPut || !scope.Within(e.Kv.Key, x.key, x.end) {
			continue
		}
		event := &etcdpb.Event{Kv: kvOf(&e.Kv)}
		if gone {
			event.Type = etcdpb.Event_DELETE
			event.Kv = &etcdpb.KeyValue{Key: e.Kv.Key, ModRevision: e.Kv.ModRevision}
		}
		if x.prev && e.Prev != nil && e.Kv.ModRevision > x.bare() {
			event.PrevKv = kvOf(e.Prev)
		}
		out = append(out, event)
	}
	return out
}

// bare is up to where what was there before was compacted when the watch was opened.
func (x *watch) bare() (at int64) {
	for _, l := range x.legs {
		at = max(at, l.Bare)
	}
	return at
}

// adapt chooses how many changes to read at a time, by what the last ones took.
func (x *watch) adapt(events []scope.Event) {
	size := 0
	for i := range events {
		size += sizeOf(&events[i])
	}
	switch {
	case size > largeBatch:
		x.most = max(1, x.most/4)
	case size < smallBatch:
		x.most = min(highMost, x.most*4)
	}
}

// sendParts sends an answer, in parts if it is large and the watch asked for that.
func (x *watch) sendParts(r *etcdpb.WatchResponse, send func(*etcdpb.WatchResponse) error) error {
	if !x.parts || len(r.Events) < 2 || proto.Size(r) < maxReceived {
		return send(r)
	}
	for rest := r.Events; len(rest) > 0; {
		n, size := 0, 0
		for n < len(rest) && (n == 0 || size+proto.Size(rest[n]) < maxReceived-partSlack) {
			size += proto.Size(rest[n]) + partEach
			n++
		}
		part := &etcdpb.WatchResponse{Header: r.Header, WatchId: r.WatchId, Events: rest[:n], Fragment: n < len(rest)}
		if err := send(part); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// What a part takes besides its events, and each event besides itself, in bytes.
const (
	partSlack = 1 << 10
	partEach  = 8
)
