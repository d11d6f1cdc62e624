package model_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

// Keys with zero bytes, with 0xff, and prefixes of one another: what an encoding that does not keep order stumbles over.
var someKeys = []string{"a", "a\x00", "a\x00\x00", "a\x00\x01", "a\x00\xff", "a\x01", "ab", "b", "\x00", "\x00\x01", "\xff", "\xff\xff"}

func drawKey(t *rapid.T) []byte { return []byte(rapid.SampledFrom(someKeys).Draw(t, "key")) }

func drawEnd(t *rapid.T) []byte {
	return []byte(rapid.SampledFrom(append([]string{"", "", "\x00"}, someKeys...)).Draw(t, "end"))
}

func drawRange(t *rapid.T, rev int64) scope.Range {
	near := rapid.Int64Range(0, rev+1)
	r := scope.Range{
		Limit:     rapid.Int64Range(0, 4).Draw(t, "limit"),
		Sort:      scope.SortBy(rapid.IntRange(0, int(scope.ByValue)).Draw(t, "sort")),
		Order:     scope.Order(rapid.IntRange(0, int(scope.Descending)).Draw(t, "order")),
		KeysOnly:  rapid.Bool().Draw(t, "keys only"),
		CountOnly: rapid.IntRange(0, 4).Draw(t, "count only") == 0,
	}
	switch rapid.IntRange(0, 5).Draw(t, "bound") {
	case 0:
		r.MinMod = near.Draw(t, "min mod")
	case 1:
		r.MaxMod = near.Draw(t, "max mod")
	case 2:
		r.MinCreate, r.MaxCreate = near.Draw(t, "min create"), near.Draw(t, "max create")
	}
	if rapid.Bool().Draw(t, "old") {
		r.Revision = near.Draw(t, "revision")
	}
	return r
}

func drawOp(t *rapid.T, rev int64, depth int) scope.Op {
	most := 9
	if depth > 1 {
		most = 7
	}
	switch n := rapid.IntRange(0, most).Draw(t, "op"); {
	case n < 4:
		op := scope.Op{Kind: scope.OpPut, Key: drawKey(t), Prev: rapid.Bool().Draw(t, "prev")}
		switch rapid.IntRange(0, 9).Draw(t, "put") {
		case 0:
			op.IgnoreValue = true
		case 1:
			op.IgnoreLease, op.Value = true, []byte("kept lease")
		case 2, 3, 4:
			op.Lease, op.Value = drawLease(t), []byte(rapid.SampledFrom([]string{"", "leased"}).Draw(t, "value"))
		default:
			op.Value = []byte(rapid.SampledFrom([]string{"", "1", "2", "\x00", "long enough"}).Draw(t, "value"))
		}
		return op
	case n < 6:
		return scope.Op{Kind: scope.OpDelete, Key: drawKey(t), End: drawEnd(t), Prev: rapid.Bool().Draw(t, "prev")}
	case n < 8:
		op := scope.Op{Kind: scope.OpRange, Key: drawKey(t), End: drawEnd(t)}
		if r := drawRange(t, rev); r != (scope.Range{}) {
			op.Range = &r
		}
		return op
	default:
		inner := drawTxn(t, rev, depth+1)
		return scope.Op{Kind: scope.OpTxn, Txn: &inner}
	}
}

func drawTxn(t *rapid.T, rev int64, depth int) (x scope.Txn) {
	for range rapid.IntRange(0, 2).Draw(t, "compares") {
		c := scope.Compare{
			Target:   scope.Target(rapid.IntRange(1, 5).Draw(t, "target")),
			Relation: scope.Relation(rapid.IntRange(1, 4).Draw(t, "relation")),
			Key:      drawKey(t),
		}
		if rapid.IntRange(0, 3).Draw(t, "ranged") == 0 {
			c.End = drawEnd(t)
		}
		if c.Target == scope.OnValue {
			c.Value = []byte(rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "value"))
		} else {
			c.Number = rapid.Int64Range(0, 4).Draw(t, "number")
		}
		x.Compare = append(x.Compare, c)
	}
	for range rapid.IntRange(0, 4).Draw(t, "success") {
		x.Success = append(x.Success, drawOp(t, rev, depth))
	}
	for range rapid.IntRange(0, 2).Draw(t, "failure") {
		x.Failure = append(x.Failure, drawOp(t, rev, depth))
	}
	return x
}

var someLeases = []int64{-7, 1, 2}

func drawLease(t *rapid.T) int64 { return rapid.SampledFrom(someLeases).Draw(t, "lease") }

func drawLeaseRequest(t *rapid.T, w *world) scope.LeaseRequest {
	r := scope.LeaseRequest{Kind: scope.LeaseKind(rapid.SampledFrom([]int{1, 1, 2, 3}).Draw(t, "request")), IDs: []int64{drawLease(t)}}
	if r.Kind == scope.LeaseGrant {
		r.TTL = rapid.SampledFrom([]int64{-1, 1, 3, 10, 1000}).Draw(t, "ttl")
	}
	if r.Kind == scope.LeaseKeepAlive && rapid.Bool().Draw(t, "all") {
		r.IDs = someLeases
	}
	if r.Kind != scope.LeaseRevoke {
		r.Asked = w.now.Add(time.Duration(rapid.Int64Range(-9, 9).Draw(t, "asked")) * time.Second)
	}
	return r
}

// drawNaming is a naming of what is there, or nearly: some are refused.
func drawNaming(t *rapid.T, w *world) scope.Naming {
	n := scope.Naming{Kind: scope.NameKind(rapid.IntRange(int(scope.Bind), int(scope.Rollback)).Draw(t, "naming")), Key: drawKey(t)}
	res, err := w.state.Range([]byte{0}, []byte{0}, scope.Range{})
	must(t, err)
	n.Object, n.From, n.Revision = aweigh.NewUID(aweigh.Hash{1}, 0), []byte("a"), 1
	if len(res.Kvs) > 0 && rapid.IntRange(0, 4).Draw(t, "there") > 0 {
		v := rapid.SampledFrom(res.Kvs).Draw(t, "alias")
		n.Key, n.Object, n.From, n.Revision, n.Sub = v.Key, v.UID, v.Key, v.ModRevision, v.Sub
	}
	events, _, err := w.state.Events(max(1, w.state.Compacted()), 1<<62, []byte{0}, []byte{0}, 1<<30)
	must(t, err)
	if len(events) > 0 && rapid.Bool().Draw(t, "old version") {
		v := rapid.SampledFrom(events).Draw(t, "event").Kv
		n.Object, n.From, n.Revision, n.Sub = v.UID, v.Key, v.ModRevision, v.Sub
	}
	if n.Kind < scope.Fork {
		n.From, n.Revision, n.Sub = nil, 0, 0
	}
	if n.Kind == scope.Bind || n.Kind == scope.Move || n.Kind == scope.Fork {
		n.To = []byte(rapid.SampledFrom(someKeys).Filter(func(k string) bool { return k != string(n.Key) }).Draw(t, "to"))
	}
	if n.Kind == scope.Move && rapid.Bool().Draw(t, "redirected") {
		n.Until = w.now.Add(time.Duration(rapid.IntRange(0, 8).Draw(t, "until")) * time.Second)
	}
	if n.Kind <= scope.Unbind && rapid.Bool().Draw(t, "whichever") {
		n.Object = aweigh.UID{}
	}
	if n.Kind == scope.Fork {
		n.Key = nil
	}
	return n
}

// drawMutation is a well-formed mutation.
func drawMutation(t *rapid.T, w *world, rev int64) scope.Mutation {
	switch rapid.IntRange(0, 9).Draw(t, "class") {
	case 0:
		return w.mutation(scope.Compact, scope.Compaction{Revision: rapid.Int64Range(0, rev+1).Draw(t, "compaction")})
	case 1, 2:
		return w.mutation(scope.Lease, drawLeaseRequest(t, w))
	case 3, 4:
		return w.mutation(scope.Name, drawNaming(t, w))
	}
	x := drawTxn(t, rev, 0)
	if x.Check(w.g.Policy.Limits) != nil {
		return w.ops(scope.Op{Kind: scope.OpPut, Key: drawKey(t), Value: []byte("simple")})
	}
	return w.mutation(scope.Write, x)
}

// TestStatesAreTheModels runs random programs, and compares every outcome, the lineage, and all that can be read.
func TestStatesAreTheModels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		var past []scope.Mutation
		for range rapid.IntRange(1, 12).Draw(t, "blocks") {
			var muts []scope.Mutation
			if w.nonce == 0 { // mostly there are leases to attach keys to
				for _, id := range someLeases {
					muts = append(muts, w.mutation(scope.Lease, scope.LeaseRequest{Kind: scope.LeaseGrant, IDs: []int64{id}, TTL: 10}))
				}
			}
			for range rapid.IntRange(0, 4).Draw(t, "mutations") {
				muts = append(muts, drawMutation(t, w, w.state.Head().Revision+2))
			}
			if len(past) > 0 && rapid.Bool().Draw(t, "again") {
				muts = append(muts, rapid.SampledFrom(past).Draw(t, "past"))
			}
			past = append(past, muts...)
			w.step(rapid.SampledFrom([]time.Duration{time.Nanosecond, time.Second, 4 * time.Second, time.Minute, 3 * time.Minute}).Draw(t, "later"), muts...)
			w.whole(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") })
		}
	})
}
