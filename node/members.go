package node

import (
	"slices"
	"sync"

	"github.com/aweigh/aweigh/node/admission"
	"github.com/aweigh/aweigh/node/machine"

	"github.com/libp2p/go-libp2p/core/peer"
)

// members holds the anchors of a node's scopes. There may be thousands of scopes, whose rosters change one at a time.
type members struct {
	mu sync.Mutex
	of map[*Replica][]peer.ID // by part, in the order of its roster
	in map[peer.ID][]*Replica // by member; never empty
}

func newMembers() members {
	return members{of: make(map[*Replica][]peer.ID), in: make(map[peer.ID][]*Replica)}
}

// changed updates the members of a replica.
func (m *members) changed(p *Replica) {
	now, before := p.members(), m.of[p]
	if slices.Equal(now, before) {
		return
	}
	for _, id := range before {
		if slices.Contains(now, id) {
			continue
		}
		m.in[id] = slices.DeleteFunc(m.in[id], func(o *Replica) bool { return o == p })
		if len(m.in[id]) == 0 {
			delete(m.in, id)
		}
	}
	for _, id := range now {
		if !slices.Contains(before, id) && !slices.Contains(m.in[id], p) {
			m.in[id] = append(m.in[id], p)
		}
	}
	m.of[p] = now
}

// left forgets a replica that the node has no more.
func (m *members) left(p *Replica) {
	for _, id := range m.of[p] {
		m.in[id] = slices.DeleteFunc(m.in[id], func(o *Replica) bool { return o == p })
		if len(m.in[id]) == 0 {
			delete(m.in, id)
		}
	}
	delete(m.of, p)
}

// meetMembers gives the host the peers to which this node stays connected: the anchors of all its scopes, of which
// those in changed may have other anchors than before, and the anchors of foreign scopes that it asks.
func (n *Node) meetMembers(changed ...*Replica) {
	n.met.mu.Lock() // until the host knows: what is found last counts
	defer n.met.mu.Unlock()
	for _, p := range changed {
		n.met.changed(p)
	}
	homes := make(map[machine.Peer]*admission.Accounts, len(n.met.in))
	all := n.remotes.inUse()
	for id, parts := range n.met.in {
		homes[n.called.of(id)] = parts[0].budgets
		all = append(all, id)
	}
	n.nonMembers.SetHomes(homes)
	n.announces.Among(len(homes) + 1)
	slices.Sort(all)
	n.host.SetMembers(slices.Compact(all))
	n.states.ask()
}

// members returns the nodes of the roster's other anchors.
func (n *Replica) members() (ids []peer.ID) {
	for _, a := range n.epochs.epoch().Roster.Anchors {
		id, err := n.called.id(machine.Peer(a.Peer))
		switch {
		case err != nil:
			n.log.Warn("the roster names a bad peer", "anchor", a.Name, "peer", a.Peer, "error", err)
		case string(n.called.of(id)) != n.peerID: // the roster may have it in another form
			ids = append(ids, id)
		}
	}
	return ids
}
