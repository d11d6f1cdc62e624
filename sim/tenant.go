package sim

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
)

// tenant is a client that holds a lease with two keys, keeps it alive for a while,
// and then leaves it, or begins anew with one that is gone.
type tenant struct {
	w    *World
	id   int64
	ttl  int64 // seconds
	at   *Node
	made uint64 // requests so far
}

// tenants starts those of the scenario, at the nodes in turn.
func (w *World) tenants(hosts []*Node) {
	for i := range w.Scenario.Load.Leases {
		t := &tenant{w: w, id: int64(i + 1), ttl: scope.MinLeaseTTL + w.ask.Int64N(3), at: hosts[i%len(hosts)]}
		w.At(time.Duration(w.ask.Int64N(int64(w.Scenario.Stop))), t.grant)
	}
}

// ask proposes a mutation, and hears of it if it applied.
func (t *tenant) ask(class scope.Class, content any, then func(node.Reply)) {
	t.made++
	nonce := binary.BigEndian.AppendUint64(fmt.Appendf(nil, "lease %d/", t.id), t.made)
	m := t.w.mutation(scope.Txn{}, nonce)
	m.Class, m.Content = class, canon.Encode(content)
	t.at.Submit(m, func(r node.Reply) {
		if r.Refused == nil && then != nil {
			then(r)
		}
	})
}

func (t *tenant) grant() {
	if !t.w.firing {
		return
	}
	t.ask(scope.Lease, scope.LeaseRequest{Kind: scope.LeaseGrant, IDs: []int64{t.id}, TTL: t.ttl, Asked: t.at.local()}, nil)
	put := func(name string) scope.Op {
		return scope.Op{Kind: scope.OpPut, Key: fmt.Appendf(nil, "/lease%d/%s", t.id, name), Lease: t.id}
	}
	t.ask(scope.Write, scope.Txn{Success: []scope.Op{put("a"), put("b")}}, nil)
	t.later()
}

// later keeps the lease alive when a third of its time is over, mostly.
func (t *tenant) later() {
	w := t.w
	wait := time.Duration(t.ttl) * time.Second / 3
	if w.ask.IntN(4) == 0 { // the lease will be over
		w.At(3*wait+time.Duration(w.ask.Int64N(int64(2*time.Second))), t.grant)
		return
	}
	w.At(wait, func() {
		if !w.firing {
			return
		}
		t.ask(scope.Lease, scope.LeaseRequest{Kind: scope.LeaseKeepAlive, IDs: []int64{t.id}, Asked: t.at.local()}, nil)
		t.later()
	})
}
