package sim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// leaseClient is a client that holds a lease with two keys, keeps it alive for a while,
// and then leaves it, or begins anew with one that is gone. Where a policy guards some
// keys, it attaches one of them as well, if it may, and revokes the lease now and then.
type leaseClient struct {
	w    *World
	id   int64
	ttl  int64 // seconds
	at   *Node
	made uint64 // requests so far
}

// startLeaseClients starts those of the scenario, at the nodes in turn.
func (w *World) startLeaseClients(hosts []*Node) {
	for i := range w.Scenario.Load.Leases {
		t := &leaseClient{w: w, id: int64(i + 1), ttl: scope.MinLeaseTTL + w.ask.Int64N(3), at: hosts[i%len(hosts)]}
		w.at(w.drawTime(w.ask), t.grant)
	}
}

// ask proposes a mutation, and gets the answer if it applied.
func (t *leaseClient) ask(class scope.Class, content any, then func(machine.Reply)) {
	t.made++
	nonce := binary.BigEndian.AppendUint64(fmt.Appendf(nil, "lease %d/", t.id), t.made)
	m := t.w.mutation(scope.Txn{}, nonce)
	m.Class, m.Content = class, canon.Encode(content)
	var units int64
	if r, ok := content.(scope.LeaseRequest); ok && r.Kind == scope.LeaseRevoke {
		units = 100 // its keys are deleted
	}
	t.at.reserve(units, m, func(r machine.Reply) {
		if r.Refused == nil && then != nil {
			then(r)
		}
	})
}

func (t *leaseClient) grant() {
	if !t.w.firing {
		return
	}
	t.ask(scope.Lease, scope.LeaseRequest{Kind: scope.LeaseGrant, IDs: []int64{t.id}, TTL: t.ttl, Asked: t.at.local()}, nil)
	t.ask(scope.Write, scope.Txn{Success: []scope.Op{t.put("a"), t.put("b")}}, nil)
	if guarded(&t.w.Scenario) {
		t.keep()
	}
	t.later()
}

// put attaches a key of the tenant's own.
func (t *leaseClient) put(name string) scope.Op {
	return scope.Op{Kind: scope.OpPut, Key: fmt.Appendf(nil, "/lease%d/%s", t.id, name), Lease: t.id}
}

// keep attaches a key that is guarded at some time. If it is now, the tenant puts it without the lease, and
// attaches another instead: where that takes approval, it is given.
func (t *leaseClient) keep() {
	key, value := fmt.Appendf(nil, "%s%d", guardedPrefix, t.id), fmt.Appendf(nil, "%d", t.made)
	op := scope.Op{Kind: scope.OpPut, Key: key, Value: value, Lease: t.id}
	t.ask(scope.Write, scope.Txn{Success: []scope.Op{op}}, func(r machine.Reply) {
		if !t.w.firing || !errors.Is(scope.Failure(r.Outcome.Reason), scope.ErrLeased) {
			return
		}
		op.Lease = 0
		t.ask(scope.Write, scope.Txn{Success: []scope.Op{op, t.put("c")}}, func(r machine.Reply) {
			if r.Outcome.Code == scope.Pending {
				t.w.approve(r.Mutation)
			}
		})
	})
}

// later keeps the lease alive when a third of its time is over, mostly.
func (t *leaseClient) later() {
	w := t.w
	wait := time.Duration(t.ttl) * time.Second / 3
	if w.ask.IntN(4) == 0 { // the lease will be over
		w.atBusy(3*wait*3/2+time.Duration(w.ask.Int64N(int64(2*time.Second))), t.grant)
		return
	}
	if guarded(&w.Scenario) && w.ask.IntN(3) == 0 {
		w.atBusy(wait, t.revoke)
		return
	}
	w.atBusy(wait, func() {
		if !w.firing {
			return
		}
		t.ask(scope.Lease, scope.LeaseRequest{Kind: scope.LeaseKeepAlive, IDs: []int64{t.id}, Asked: t.at.local()}, nil)
		t.later()
	})
}

// revoke ends the lease before its time, if that may be, and begins anew.
func (t *leaseClient) revoke() {
	if t.w.firing {
		t.ask(scope.Lease, scope.LeaseRequest{Kind: scope.LeaseRevoke, IDs: []int64{t.id}}, nil)
		t.w.atBusy(time.Duration(t.w.ask.Int64N(int64(4*time.Second))), t.grant)
	}
}
