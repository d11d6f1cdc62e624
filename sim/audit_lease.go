package sim

import (
	"bytes"
	"fmt"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
)

// promised is what the blocks so far promise of leases.
type promised map[int64]promise

type promise struct {
	ttl   time.Duration
	until aweigh.Instant // it lasts at least
}

// leases reads the final blocks and the lineage of a node: no lease ends before
// what the blocks promised is over, its keys go together, at one revision, and what
// is over in the end is gone.
func (x *watch) leases(n *Node) {
	if x.w.Scenario.Load.Leases == 0 || x.w.number > 0 {
		return
	}
	state := n.state()
	head := state.Head()
	gone, lasts := x.leaseEnds(n, state), make(promised)
	history := node.History{Reader: n.Disk, Scope: x.w.Genesis.Hash()}
	for at := aweigh.Height(1); at <= head.Height; at++ {
		b, err := history.Block(at)
		must.OK(err, "reading a block")
		for id := range int64(x.w.Scenario.Load.Leases + 1) {
			keys := gone[end{at, id}]
			p, known := lasts[id]
			if len(keys) == 0 || !known {
				continue
			}
			x.leaseEnded(n, end{at, id}, b.Header.Time, p, keys)
			delete(lasts, id)
		}
		for _, c := range b.Bundles {
			for i := range c.Mutations() {
				if m := &c.Mutations()[i]; m.Lease != nil {
					r, there, err := state.Outcome(m.ID)
					must.OK(err, "reading an outcome")
					lasts.hear(m.Lease, b.Header.Time, there && r.Code == scope.Applied && r.Height == at, !there)
				}
			}
		}
	}
	left, err := state.Leases()
	must.OK(err, "reading the leases")
	for _, id := range left {
		g, _, err := state.Lease(id)
		must.OK(err, "reading a lease")
		x.w.holds(Leases, n, g.Expires > head.Time, "lease %d is there %v after its time", id, head.Time.Sub(g.Expires))
	}
}

// leaseEnded looks at the end of a lease, whose keys went at these revisions.
func (x *watch) leaseEnded(n *Node, e end, at aweigh.Instant, p promise, keys []int64) {
	x.reach("lease ended")
	x.w.holds(Leases, n, at >= p.until, "lease %d ended %v before its time, at height %d", e.lease, p.until.Sub(at), e.height)
	x.w.holds(Leases, n, len(keys) == 2 && keys[0] == keys[1], "lease %d ended at height %d, and its keys went at the revisions %v", e.lease, e.height, keys)
}

// hear takes the promise of a request that applied, or of which nobody knows any
// more whether it did. A lease that never had keys ends unseen; who is granted it
// then is promised anew.
func (p promised) hear(r *scope.LeaseRequest, at aweigh.Instant, applied, unknown bool) {
	id, from := r.IDs[0], max(at, r.Asked)
	was, known := p[id]
	switch {
	case unknown:
		delete(p, id)
	case applied && r.Kind == scope.LeaseGrant:
		ttl := time.Duration(r.TTL) * time.Second
		p[id] = promise{ttl, from.Add(ttl)}
	case applied && known:
		p[id] = promise{was.ttl, max(was.until, from.Add(was.ttl))}
	}
}

// end names the end of a lease by the block that made it.
type end struct {
	height aweigh.Height
	lease  int64
}

// leaseEnds is the revisions at which the keys of leases that expired went. None went whose deletion
// takes approval by the policy of the world, which none changes.
func (x *watch) leaseEnds(of *Node, s *scope.State) map[end][]int64 {
	approvals := x.w.Genesis.Policy.Approvals
	out := make(map[end][]int64)
	log := s.Lineage()
	for i := range s.Head().LineageSize {
		e, _, err := log.Entry(i)
		must.OK(err, "reading an entry")
		var id int64
		if n, _ := fmt.Sscanf(e.Reason, "lease %x expired", &id); n == 1 && e.Class == lineage.Delete {
			out[end{e.Height, id}] = append(out[end{e.Height, id}], e.Revision)
			for i := range approvals {
				a := &approvals[i]
				x.w.holds(Leases, of, !bytes.HasPrefix(e.Key, a.Prefix) || a.Matter != scope.Changes && a.Matter != scope.Deletions,
					"lease %d deleted %q at height %d, which takes approval", id, e.Key, e.Height)
			}
		}
	}
	return out
}
