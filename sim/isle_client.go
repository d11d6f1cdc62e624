package sim

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// isleKeys is how many keys of a partition clients of islands and of the scope quarrel about.
const isleKeys = 12

// provisionalMark begins the values that clients of islands write, and no other client.
const provisionalMark = "isle "

func (w *World) isleKey(prefix []byte, i int) []byte {
	return fmt.Appendf(nil, "%sk%d", prefix, i%isleKeys)
}

// isleTxn is puts and deletions of keys of a partition, each at most once, and now and then a compare of one.
func (w *World) isleTxn(prefix []byte, mark string) (t scope.Txn) {
	r, first := w.isle, w.isle.IntN(isleKeys)
	op := func() scope.Op {
		key := w.isleKey(prefix, first)
		first++
		if w.isles.made++; r.IntN(4) == 0 {
			return scope.Op{Kind: scope.OpDelete, Key: key}
		}
		return scope.Op{Kind: scope.OpPut, Key: key, Value: fmt.Appendf(nil, "%s%d", mark, w.isles.made)}
	}
	for range 1 + r.IntN(3) {
		t.Success = append(t.Success, op())
	}
	if r.IntN(4) == 0 {
		t.Compare = []scope.Compare{{Key: w.isleKey(prefix, r.IntN(isleKeys)), Target: scope.OnVersion, Relation: scope.Relation(1 + r.IntN(3)), Number: int64(r.IntN(3))}}
		t.Failure = append(t.Failure, op())
	}
	return t
}

// isleNonce tells requests apart.
func (w *World) isleNonce() []byte {
	return binary.BigEndian.AppendUint64([]byte("isle"), w.isle.Uint64())
}

// request asks for something at a member of the island, of a kind that islands refuse now and then.
func (c *isle) request() {
	w, r := c.World, c.isle
	p := c.members[r.IntN(len(c.members))]
	if !p.sees() || p.liar != nil || c.closed[c.of.Nodes[p.Index]] {
		return
	}
	c.asked++
	t := w.isleTxn(c.prefix, fmt.Sprintf("%s%d: ", provisionalMark, c.number))
	m := w.mutation(t, w.isleNonce())
	switch r.IntN(24) {
	case 0:
		m.Class, m.Content = scope.Compact, canon.Encode(scope.Compaction{Revision: p.state().Head().Revision})
	case 1:
		m.Class, m.Content = scope.Lease, canon.Encode(scope.LeaseRequest{Kind: scope.LeaseGrant, IDs: []int64{1}, TTL: 10, Asked: p.local()})
	case 2:
		t.Success = append(t.Success, scope.Op{Kind: scope.OpPut, Key: []byte("/elsewhere")})
		m.Content = canon.Encode(t)
	}
	p.reserve(100, m, func(r machine.Reply) {
		if r.Outcome != nil {
			w.log(p, "done", "provisionally: %s %s", r.Outcome.Code, r.Outcome.Reason)
		}
	})
}

// askOnIsleKeys asks for provisional changes, and for changes in the scope on the same keys.
func (w *World) askOnIsleKeys() {
	if !w.firing || w.Scenario.Load.Isles == 0 {
		return
	}
	for _, c := range w.isles.all {
		for range w.isle.IntN(4) {
			if c.asked < w.Scenario.Load.Isles {
				c.request()
			}
		}
	}
	n := w.Nodes[w.isle.IntN(len(w.Nodes))]
	if n.machine == nil || n.liar != nil || w.isle.IntN(6) > 0 {
		return
	}
	parts := w.Genesis.Policy.Partitions
	m := w.mutation(w.isleTxn(parts[w.isle.IntN(len(parts))].Prefix, "scope "), w.isleNonce())
	votes := w.Scenario.Approval.Motions == 0 && w.isle.IntN(6) == 0 // the recount of motions knows nothing of these
	m.Patient = votes
	b, err := scope.SignReserving(100, n.author, w.Genesis.Policy.Limits, m)
	must.OK(err, "signing a write")
	n.propose(machine.Submit{Bundle: b}, func(r machine.Reply) {
		if r.Outcome != nil && r.Outcome.Code == scope.Pending && votes {
			w.watch.reach("put to the vote")
			w.at(time.Duration(w.isle.Int64N(int64(2*time.Second))), func() { w.approve(r.Mutation) })
		}
	})
}
