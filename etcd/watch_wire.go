package etcd

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
)

// delivery is an etcdpb.WatchResponse with events whose content is on loan. Its encoding refers to
// large values and does not copy them, so that a value which many streams send is in memory
// once. The loan is returned when gRPC has written the last of it.
type delivery struct {
	head   *etcdpb.WatchResponse // all but the events
	events []*scope.Event
	prev   bool
	bare   int64 // events up to here are told without what they replaced
	loan   *node.Loan
	parts  atomic.Int32 // that are not written yet, and one while it is being sent
}

const (
	sharedFrom = 4 << 10   // bytes of a value that is referred to; smaller ones are copied
	partBytes  = 256 << 10 // of a value, in one buffer
)

// Get is for mem.BufferPool, and never called.
func (*delivery) Get(n int) *[]byte { b := make([]byte, n); return &b }

// Put implements mem.BufferPool: a part was written, or thrown away.
func (d *delivery) Put(*[]byte) {
	d.loan.Moved()
	if d.parts.Add(-1) == 0 {
		d.loan.Return()
	}
}

// lendOut sends a delivery.
func (w *watchStream) lendOut(d *delivery) error {
	d.parts.Store(1)
	defer d.Put(nil)
	return w.lend(d)
}

// encode is the message as gRPC takes it.
func (d *delivery) encode() (mem.BufferSlice, error) {
	size := proto.Size(d.head)
	for _, e := range d.events {
		n, _ := d.sizes(e)
		size += protowire.SizeTag(fieldEvents) + protowire.SizeBytes(n) - d.shared(e)
	}
	run, err := proto.MarshalOptions{}.MarshalAppend(make([]byte, 0, size), d.head)
	if err != nil {
		return nil, err
	}
	d.loan.Take(size)
	x := wire{of: d, run: run}
	for _, e := range d.events {
		n, kv := d.sizes(e)
		x.length(fieldEvents, n)
		if e.Class == lineage.Delete {
			x.number(fieldType, int64(etcdpb.Event_DELETE))
		}
		x.length(fieldKv, kv)
		x.pair(saidOf(e))
		if p := d.before(e); p != nil {
			x.length(fieldPrev, sizeOfPair(p))
			x.pair(p)
		}
	}
	x.flush()
	return x.out, nil
}

// wire is a message in the making: run holds what is copied, and out what is done.
type wire struct {
	of   *delivery
	run  []byte
	from int // of run, what is not in out
	out  mem.BufferSlice
}

// length begins a field of so many bytes.
func (x *wire) length(field protowire.Number, n int) {
	x.run = protowire.AppendVarint(protowire.AppendTag(x.run, field, protowire.BytesType), uint64(n))
}

// number is a field that is left out if it is 0, as in proto3.
func (x *wire) number(field protowire.Number, n int64) {
	if n != 0 {
		x.run = protowire.AppendVarint(protowire.AppendTag(x.run, field, protowire.VarintType), uint64(n))
	}
}

// bytes is a field that is left out if it is empty. A large one is referred to.
func (x *wire) bytes(field protowire.Number, b []byte) {
	if len(b) == 0 {
		return
	}
	if x.length(field, len(b)); len(b) < sharedFrom {
		x.run = append(x.run, b...)
		return
	}
	for x.flush(); len(b) > 0; {
		n := min(len(b), partBytes)
		x.out = append(x.out, x.of.buffer(b[:n:n]))
		b = b[n:]
	}
}

func (x *wire) flush() {
	if end := len(x.run); x.from < end {
		x.out = append(x.out, x.of.buffer(x.run[x.from:end:end]))
		x.from = end
	}
}

func (x *wire) pair(v *scope.KeyValue) {
	x.bytes(fieldKey, v.Key)
	x.number(fieldCreate, v.CreateRevision)
	x.number(fieldMod, v.ModRevision)
	x.number(fieldVersion, v.Version)
	x.bytes(fieldValue, v.Value)
	x.number(fieldLease, v.Lease)
}

// buffer is a part of the message. gRPC says when it has written one, unless it is small.
func (d *delivery) buffer(b []byte) mem.Buffer {
	if mem.IsBelowBufferPoolingThreshold(cap(b)) {
		return mem.SliceBuffer(b)
	}
	d.parts.Add(1)
	return mem.NewBuffer(&b, d)
}

// saidOf is what is said of a key now: of one that was deleted, as in etcd, the name and the revision.
func saidOf(e *scope.Event) *scope.KeyValue {
	if e.Class == lineage.Delete {
		return &scope.KeyValue{Key: e.Kv.Key, ModRevision: e.Kv.ModRevision}
	}
	return &e.Kv
}

// before is what is said of what an event replaced, nil for nothing.
func (d *delivery) before(e *scope.Event) *scope.KeyValue {
	if !d.prev || e.Kv.ModRevision <= d.bare {
		return nil
	}
	return e.Prev
}

// sizes are those of an event and of its pair, encoded.
func (d *delivery) sizes(e *scope.Event) (event, pair int) {
	pair = sizeOfPair(saidOf(e))
	event = protowire.SizeTag(fieldKv) + protowire.SizeBytes(pair)
	if e.Class == lineage.Delete {
		event += protowire.SizeTag(fieldType) + protowire.SizeVarint(uint64(etcdpb.Event_DELETE))
	}
	if p := d.before(e); p != nil {
		event += protowire.SizeTag(fieldPrev) + protowire.SizeBytes(sizeOfPair(p))
	}
	return event, pair
}

// shared is how many bytes of an event are referred to.
func (d *delivery) shared(e *scope.Event) (n int) {
	if e.Class != lineage.Delete && len(e.Kv.Value) >= sharedFrom {
		n = len(e.Kv.Value)
	}
	if p := d.before(e); p != nil && len(p.Value) >= sharedFrom {
		n += len(p.Value)
	}
	return n
}

// Fields of etcd's WatchResponse, Event and KeyValue.
const (
	fieldEvents = 11

	fieldType = 1
	fieldKv   = 2
	fieldPrev = 3

	fieldKey     = 1
	fieldCreate  = 2
	fieldMod     = 3
	fieldVersion = 4
	fieldValue   = 5
	fieldLease   = 6
)

func sizeOfPair(v *scope.KeyValue) (n int) {
	for _, b := range [][]byte{v.Key, v.Value} {
		if len(b) > 0 {
			n += protowire.SizeTag(fieldKey) + protowire.SizeBytes(len(b))
		}
	}
	for _, x := range []int64{v.CreateRevision, v.ModRevision, v.Version, v.Lease} {
		if x != 0 {
			n += protowire.SizeTag(fieldKey) + protowire.SizeVarint(uint64(x))
		}
	}
	return n
}

// cutter ends the connection of a stream's client, or of a client of the gateway.
func (s *service) cutter(ctx context.Context) func() {
	address := peerOf(ctx)
	return func() { s.conns.cut(address) }
}
