package etcdcompat

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// A step is one thing that a program does. Exactly one field is set.
type step struct {
	Range    *etcdserverpb.RangeRequest
	Put      *etcdserverpb.PutRequest
	Delete   *etcdserverpb.DeleteRangeRequest
	Txn      *etcdserverpb.TxnRequest
	Compact  *etcdserverpb.CompactionRequest
	Lease    *leaseStep
	Watch    *etcdserverpb.WatchCreateRequest
	Cancel   *etcdserverpb.WatchCancelRequest
	Progress bool
	Node     int // which node is asked, where there are several
}

// back marks revisions that a program can only know when it runs: it stands for
// the newest revision plus what lies above it.
const back = -1 << 40

// newest is the newest revision plus d, once the program runs.
func newest(d int64) int64 { return back + d }

// resolve replaces what newest left.
func resolve(rev *int64, current int64) {
	if *rev < back/2 {
		*rev = max(1, current+*rev-back)
	}
}

// generator makes programs. Everything comes from the seed.
type generator struct {
	r      *rand.Rand
	prefix string
	local  bool // reads may be answered by the node asked alone
}

// program is the steps for a seed, on keys that begin with a prefix.
func program(seed uint64, prefix string, local bool) []step {
	g := &generator{r: rand.New(rand.NewPCG(seed, 1)), prefix: prefix, local: local}
	steps := make([]step, 10+g.r.IntN(40))
	for i := range steps {
		steps[i] = g.step()
		steps[i].Node = g.r.IntN(1 << 20)
	}
	return steps
}

func (g *generator) chance(percent int) bool { return g.r.IntN(100) < percent }

func (g *generator) step() step {
	switch n := g.r.IntN(100); {
	case n < 30:
		return step{Put: g.put()}
	case n < 50:
		return step{Range: g.rangeRequest()}
	case n < 60:
		return step{Delete: g.del()}
	case n < 80:
		t := g.txn(0)
		if puts, toEnd := mixes(t); puts && toEnd {
			return step{Range: g.rangeRequest()}
		}
		return step{Txn: t}
	case n < 83:
		return step{Compact: &etcdserverpb.CompactionRequest{Revision: g.revision(), Physical: g.chance(20)}}
	case n < 91:
		return step{Lease: g.lease()}
	case n < 96:
		return step{Watch: g.watch()}
	case n < 98:
		return step{Cancel: &etcdserverpb.WatchCancelRequest{WatchId: int64(g.r.IntN(4))}}
	}
	return step{Progress: true}
}

// suffixes are few, so that steps meet, and lie close together.
var suffixes = []string{"", "a", "a\x00", "aa", "ab", "b", "b\xff", "\xff\xff"}

func (g *generator) key() []byte {
	if g.chance(2) {
		return nil
	}
	return []byte(g.prefix + suffixes[g.r.IntN(len(suffixes))])
}

func (g *generator) end(key []byte) []byte {
	switch g.r.IntN(8) {
	case 0, 1, 2:
		return nil
	case 3:
		return []byte{0}
	case 4:
		return g.key()
	case 5:
		return append(append([]byte(nil), key...), 0)
	}
	return []byte(g.prefix + "\xff\xff\xff")
}

func (g *generator) value() []byte {
	return []byte([]string{"", "0", "1", "one", "\x00\xff"}[g.r.IntN(5)])
}

// revision is the newest one, one that was, or one that is still to come.
func (g *generator) revision() int64 {
	switch g.r.IntN(10) {
	case 0:
		return newest(1 + int64(g.r.IntN(3)))
	case 1:
		return newest(0)
	case 2:
		return 1
	}
	return newest(-int64(g.r.IntN(12)))
}

func (g *generator) put() *etcdserverpb.PutRequest {
	p := &etcdserverpb.PutRequest{Key: g.key(), Value: g.value(), PrevKv: g.chance(40)}
	if g.chance(10) {
		p.IgnoreValue = true
		if g.chance(90) {
			p.Value = nil
		}
	}
	p.IgnoreLease = g.chance(8)
	if g.chance(20) {
		p.Lease = g.leaseID()
	}
	return p
}

func (g *generator) del() *etcdserverpb.DeleteRangeRequest {
	key := g.key()
	return &etcdserverpb.DeleteRangeRequest{Key: key, RangeEnd: g.end(key), PrevKv: g.chance(50)}
}

func (g *generator) rangeRequest() *etcdserverpb.RangeRequest {
	key := g.key()
	r := &etcdserverpb.RangeRequest{Key: key, RangeEnd: g.end(key)}
	if g.chance(40) {
		r.Limit = int64(g.r.IntN(5)) - 1
	}
	if g.chance(40) {
		r.Revision = g.revision()
	}
	if g.chance(40) {
		r.SortOrder = etcdserverpb.RangeRequest_SortOrder(g.r.IntN(3))
		r.SortTarget = etcdserverpb.RangeRequest_SortTarget(g.r.IntN(5))
	}
	if g.chance(2) {
		r.SortTarget = 7
	}
	r.KeysOnly, r.CountOnly = g.chance(15), g.chance(15)
	r.Serializable = g.local && g.chance(30)
	for _, bound := range []*int64{&r.MinModRevision, &r.MaxModRevision, &r.MinCreateRevision, &r.MaxCreateRevision} {
		if g.chance(8) {
			*bound = g.revision()
		}
	}
	return r
}

func (g *generator) txn(depth int) *etcdserverpb.TxnRequest {
	t := &etcdserverpb.TxnRequest{}
	for range g.r.IntN(3) {
		t.Compare = append(t.Compare, g.compare())
	}
	reads := depth == 0 && g.chance(25) // such a transaction is not decided, but read
	t.Success, t.Failure = g.ops(depth, reads), g.ops(depth, reads)
	return t
}

// mixes reports whether a transaction puts, and whether it deletes to the end of
// the keys. Where both hit one key and a compaction follows, etcd 3.6.16 ends with
// "range failed to find revision pair"; and where a put keeps a value or a lease,
// nodes alone refuse it (docs/etcd.md).
func mixes(t *etcdserverpb.TxnRequest) (puts, toEnd bool) {
	for _, op := range slices.Concat(t.Success, t.Failure) {
		puts = puts || op.GetRequestPut() != nil
		if d := op.GetRequestDeleteRange(); d != nil {
			toEnd = toEnd || string(d.RangeEnd) == "\x00"
		}
		if inner := op.GetRequestTxn(); inner != nil {
			p, e := mixes(inner)
			puts, toEnd = puts || p, toEnd || e
		}
	}
	return puts, toEnd
}

func (g *generator) ops(depth int, reads bool) (ops []*etcdserverpb.RequestOp) {
	for range g.r.IntN(4) {
		op := &etcdserverpb.RequestOp{}
		switch n := g.r.IntN(100); {
		case reads:
			op.Request = &etcdserverpb.RequestOp_RequestRange{RequestRange: g.rangeRequest()}
		case n < 35:
			op.Request = &etcdserverpb.RequestOp_RequestPut{RequestPut: g.put()}
		case n < 70:
			op.Request = &etcdserverpb.RequestOp_RequestRange{RequestRange: g.rangeRequest()}
		case n < 88:
			op.Request = &etcdserverpb.RequestOp_RequestDeleteRange{RequestDeleteRange: g.del()}
		case n < 99 && depth < 2:
			op.Request = &etcdserverpb.RequestOp_RequestTxn{RequestTxn: g.txn(depth + 1)}
		}
		ops = append(ops, op)
	}
	return ops
}

func (g *generator) compare() *etcdserverpb.Compare {
	c := &etcdserverpb.Compare{
		Key: g.key(), Target: etcdserverpb.Compare_CompareTarget(g.r.IntN(5)), Result: etcdserverpb.Compare_CompareResult(g.r.IntN(4)),
	}
	if g.chance(25) {
		c.RangeEnd = g.end(c.Key)
	}
	of := c.Target
	if g.chance(5) { // a number under another name
		of = etcdserverpb.Compare_CompareTarget(g.r.IntN(5))
	}
	switch of {
	case etcdserverpb.Compare_VERSION:
		c.TargetUnion = &etcdserverpb.Compare_Version{Version: int64(g.r.IntN(4))}
	case etcdserverpb.Compare_CREATE:
		c.TargetUnion = &etcdserverpb.Compare_CreateRevision{CreateRevision: g.revision()}
	case etcdserverpb.Compare_MOD:
		c.TargetUnion = &etcdserverpb.Compare_ModRevision{ModRevision: g.revision()}
	case etcdserverpb.Compare_VALUE:
		c.TargetUnion = &etcdserverpb.Compare_Value{Value: g.value()}
	case etcdserverpb.Compare_LEASE:
		c.TargetUnion = &etcdserverpb.Compare_Lease{Lease: g.leaseID() * int64(g.r.IntN(2))}
	}
	return c
}

func (g *generator) watch() *etcdserverpb.WatchCreateRequest {
	key := g.key()
	w := &etcdserverpb.WatchCreateRequest{Key: key, RangeEnd: g.end(key), PrevKv: g.chance(50), Fragment: g.chance(20), ProgressNotify: g.chance(20)}
	if !g.local || g.chance(60) {
		w.StartRevision = g.revision()
	}
	if g.chance(3) {
		w.StartRevision = -5
	}
	if g.chance(30) {
		w.WatchId = int64(g.r.IntN(4))
	}
	for f := range etcdserverpb.WatchCreateRequest_FilterType(2) {
		if g.chance(15) {
			w.Filters = append(w.Filters, f)
		}
	}
	return w
}

// String is for people who look at a program that failed.
func (s step) String() string {
	switch {
	case s.Range != nil:
		return fmt.Sprintf("range    %v", s.Range)
	case s.Put != nil:
		return fmt.Sprintf("put      %v", s.Put)
	case s.Delete != nil:
		return fmt.Sprintf("delete   %v", s.Delete)
	case s.Txn != nil:
		return fmt.Sprintf("txn      %v", s.Txn)
	case s.Lease != nil:
		return fmt.Sprintf("lease    %v", s.Lease)
	case s.Compact != nil:
		return fmt.Sprintf("compact  %v", s.Compact)
	case s.Watch != nil:
		return fmt.Sprintf("watch    %v", s.Watch)
	case s.Cancel != nil:
		return fmt.Sprintf("cancel   %v", s.Cancel)
	}
	return "progress"
}
