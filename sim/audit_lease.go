package sim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// leases reads the final blocks and the lineage of a node: no lease ends before the time that the blocks
// promised, its keys are deleted together, at one revision, except those whose deletion takes approval then,
// and in the end no lease is left that is over.
func (x *watch) leases(n *Node) {
	if x.w.Scenario.Load.Leases == 0 || x.w.number > 0 {
		return
	}
	state := n.state()
	head, log := state.Head(), state.Lineage()
	t := tenure{
		n: n, asked: make(map[aweigh.Hash]asking), keys: make(map[string]held),
		lasts: make(promised), over: make(map[int64]bool), revokes: make(map[aweigh.Hash]int64),
	}
	history, next := machine.History{Reader: n.Disk, Scope: x.w.Genesis.Hash()}, int64(0)
	for at := aweigh.Height(1); at <= head.Height; at++ {
		b, err := history.Block(at)
		must.OK(err, "reading a block")
		if int(b.Header.Epoch) >= len(x.w.epochs) {
			return // no node began that epoch, which is a breach already
		}
		t.policy = &x.w.epochs[b.Header.Epoch].Policy
		t.block(state, b)
		for ; next < head.LineageSize; next++ {
			e, _, err := log.Entry(next)
			must.OK(err, "reading an entry")
			if e.Height > at {
				break
			}
			t.entry(&b.Header, &e)
		}
		t.close(&b.Header)
		t.promise(state, b)
	}
	t.left(state)
}

// tenure follows through the final blocks which keys leases hold, and how long they last at least. It goes by
// what blocks ask for, by the policy that was in force, and by the lineage alone as to when a mutation took
// effect and when a key went.
type tenure struct {
	n      *Node
	policy *scope.Policy // of the block's epoch
	asked  map[aweigh.Hash]asking
	keys   map[string]held // that a lease has held at some time
	lasts  promised
	over   map[int64]bool // leases that ended and were not granted since
	ending *lastEnd       // whose entries are being read

	revokes map[aweigh.Hash]int64 // the lease that a mutation asks to revoke
}

// asking is a transaction, and the height of its block.
type asking struct {
	*scope.Txn
	height aweigh.Height
}

// held is a key as it was written last.
type held struct {
	lease int64 // that holds it; 0: none
	value string
	there bool
}

// lastEnd is the end of a lease, and the revisions at which it changed keys.
type lastEnd struct {
	lease   int64
	revoked bool
	at      []int64
}

// promised is the leases' ends that the blocks so far promise.
type promised map[int64]promise

type promise struct {
	lasts time.Duration  // from a request on: the TTL and half as much again
	until aweigh.Instant // it lasts at least
}

func (t *tenure) holds(ok bool, format string, args ...any) {
	t.n.world.holds(Leases, t.n, ok, format, args...)
}

func (t *tenure) reach(goal string) { t.n.world.watch.reach(goal) }

// guards reports whether the deletion of a key takes approval.
func (t *tenure) guards(key string) bool { return takes(t.policy, key, true) }

// block notes the requests of a block. A lease that holds no key under approval when the block begins can
// be revoked: the block attaches none.
func (t *tenure) block(s *scope.State, b *scope.Block) {
	at := b.Header.Height
	for _, c := range b.Bundles {
		for i := range c.Mutations() {
			m := &c.Mutations()[i]
			if m.Class == scope.Write {
				t.asked[m.ID] = asking{m.Txn, at}
			}
			if m.Lease == nil || m.Lease.Kind != scope.LeaseRevoke {
				continue
			}
			t.revokes[m.ID] = m.Lease.IDs[0]
			r, there, err := s.Outcome(m.ID)
			must.OK(err, "reading an outcome")
			if there && r.Height == at && errors.Is(scope.Failure(r.Reason), scope.ErrGuarded) {
				id := m.Lease.IDs[0]
				keys := t.of(id)
				some := slices.ContainsFunc(keys, t.guards)
				t.holds(some, "lease %d was not revoked at height %d, and holds %q", id, at, keys)
				t.reach("revocation refused")
			}
		}
	}
}

// of is the keys of a lease.
func (t *tenure) of(lease int64) (keys []string) {
	for _, key := range slices.Sorted(maps.Keys(t.keys)) {
		if t.keys[key].lease == lease {
			keys = append(keys, key)
		}
	}
	return keys
}

// entry takes up what happened to a key. Leases of programs are left to the model of execution.
func (t *tenure) entry(h *scope.Header, e *lineage.Entry) {
	id, revoked := endOf(e.Reason)
	if id >= programLease {
		return
	}
	if t.ending != nil && (t.ending.lease != id || t.ending.revoked != revoked) {
		t.close(h)
	}
	key := string(e.Key)
	was, known := t.keys[key]
	switch {
	case id != 0:
		if t.ending == nil {
			t.ending = &lastEnd{lease: id, revoked: revoked}
		}
		asked := !revoked || t.revokes[e.Mutation] == id
		t.holds(asked, "at height %d lease %d was revoked by %s, which did not ask for it", h.Height, id, e.Mutation.Short())
		gone, guarded := e.Class == lineage.Delete, t.guards(key)
		stays := guarded && !revoked
		t.holds(was.lease == id, "at height %d lease %d ended and took %q of lease %d", h.Height, id, key, was.lease)
		t.holds(!gone || !guarded, "at height %d lease %d deleted %q, which takes approval", h.Height, id, key)
		t.holds(gone || stays, "at height %d lease %d ended and left %q, which is to go", h.Height, id, key)
		t.ending.at = append(t.ending.at, e.Revision)
		if t.keys[key] = (held{}); !gone {
			t.keys[key] = held{value: was.value, there: true}
			t.reach("key outlived its lease")
		}
	case e.Class == lineage.Delete && known:
		t.keys[key] = held{}
	case e.Class == lineage.Insert || e.Class == lineage.Update:
		by := t.asked[e.Mutation]
		op := by.put(key)
		if op == nil || op.Lease == 0 && !known || op.Lease >= programLease {
			return
		}
		t.keys[key] = held{op.Lease, string(op.Value), true}
		may := op.Lease == 0 || !t.guards(key)
		t.holds(may, "at height %d lease %d got %q, whose deletion takes approval", h.Height, op.Lease, key)
		if op.Lease != 0 && by.height < h.Height {
			t.reach("motion attached a key")
		}
	}
}

// put is the put of a transaction under a key, nil if there is none. Tenants' transactions
// have no conditions.
func (a asking) put(key string) *scope.Op {
	if a.Txn == nil {
		return nil
	}
	i := slices.IndexFunc(a.Success, func(op scope.Op) bool { return op.Kind == scope.OpPut && string(op.Key) == key })
	if i < 0 {
		return nil
	}
	return &a.Success[i]
}

// endOf is the lease by whose end a key went or stayed, as the lineage has it; 0: by none.
func endOf(reason string) (lease int64, revoked bool) {
	if _, err := fmt.Sscanf(reason, "lease %x expired", &lease); err == nil {
		return lease, false
	}
	if _, err := fmt.Sscanf(reason, "lease %x was revoked", &lease); err == nil {
		return lease, true
	}
	return 0, false
}

// close looks at the end of a lease whose entries were read.
func (t *tenure) close(h *scope.Header) {
	e := t.ending
	if t.ending = nil; e == nil {
		return
	}
	left, once := t.of(e.lease), slices.Min(e.at) == slices.Max(e.at)
	t.holds(len(left) == 0, "lease %d ended at height %d, and still holds %q", e.lease, h.Height, left)
	t.holds(once, "lease %d ended at height %d, and its keys went at the revisions %v", e.lease, h.Height, e.at)
	p, known := t.lasts[e.lease]
	delete(t.lasts, e.lease)
	t.over[e.lease] = true
	if e.revoked {
		t.reach("lease revoked")
		return
	}
	t.reach("lease ended")
	if known {
		early := p.until.Sub(h.Time)
		t.holds(early <= 0, "lease %d ended %v before its time, at height %d", e.lease, early, h.Height)
	}
}

// promise takes up a block's promises about leases.
func (t *tenure) promise(s *scope.State, b *scope.Block) {
	for _, c := range b.Bundles {
		for i := range c.Mutations() {
			if m := &c.Mutations()[i]; m.Lease != nil {
				r, there, err := s.Outcome(m.ID)
				must.OK(err, "reading an outcome")
				applied := there && r.Code == scope.Applied && r.Height == b.Header.Height
				t.lasts.hear(m.Lease, b.Header.Time, applied, !there)
				if m.Lease.Kind == scope.LeaseGrant && (applied || !there) {
					delete(t.over, m.Lease.IDs[0])
				}
			}
		}
	}
}

// hear takes the promise of a request that applied, or whose receipt is
// forgotten. A lease that never had keys ends unseen; a later grant of it is a
// new promise.
func (p promised) hear(r *scope.LeaseRequest, at aweigh.Instant, applied, unknown bool) {
	id, from := r.IDs[0], max(at, r.Asked)
	was, known := p[id]
	switch {
	case unknown || applied && r.Kind == scope.LeaseRevoke:
		delete(p, id)
	case applied && r.Kind == scope.LeaseGrant:
		lasts := time.Duration(r.TTL+(r.TTL+1)/2) * time.Second
		p[id] = promise{lasts, from.Add(lasts)}
	case applied && known:
		p[id] = promise{was.lasts, max(was.until, from.Add(was.lasts))}
	}
}

// left checks the state in the end: no lease whose time is over or that ended, and the keys as they
// were written last.
func (t *tenure) left(s *scope.State) {
	all, err := s.Leases()
	must.OK(err, "reading the leases")
	for _, id := range all {
		g, _, err := s.Lease(id)
		must.OK(err, "reading a lease")
		now := s.Head().Time
		b := &t.n.world.Scenario.Bounds.Scope
		waits := b.ExpireLeases != 0 || b.ExpireKeys != 0 || b.ExpireBytes != 0 // a block may leave some to the next
		t.holds(g.Expires > now || waits, "lease %d is there %v after its time", id, now.Sub(g.Expires))
		t.holds(!t.over[id], "lease %d is there after its end", id)
	}
	for _, key := range slices.Sorted(maps.Keys(t.keys)) {
		want := t.keys[key]
		v, there := t.n.get(key)
		is := held{v.Lease, string(v.Value), there}
		t.holds(is == want, "%q is %+v in the end, and by the blocks %+v", key, is, want)
		t.holds(want.lease == 0 || slices.Contains(all, want.lease), "lease %d is gone, and holds %q", want.lease, key)
	}
}
