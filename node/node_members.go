package node

import (
	"slices"
	"sync"

	"github.com/libp2p/go-libp2p/core/peer"
)

// members is who the anchors of a node's scopes are. There may be thousands of scopes, whose rosters
// change one at a time.
type members struct {
	mu sync.Mutex
	of map[*Part][]peer.ID // by part, in the order of its roster
	in map[peer.ID][]*Part // by member; never empty
}

func newMembers() members {
	return members{of: make(map[*Part][]peer.ID), in: make(map[peer.ID][]*Part)}
}

// changed notes who a part's members are now.
func (m *members) changed(p *Part) {
	now, before := p.members(), m.of[p]
	if slices.Equal(now, before) {
		return
	}
	for _, id := range before {
		if slices.Contains(now, id) {
			continue
		}
		m.in[id] = slices.DeleteFunc(m.in[id], func(o *Part) bool { return o == p })
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

// meetMembers names those whom this node stays connected with: the anchors of all its
// scopes, of which some may have others than before, and of those it is referred to and asks.
func (n *Node) meetMembers(changed ...*Part) {
	n.met.mu.Lock() // until the host knows: what is found last counts
	defer n.met.mu.Unlock()
	for _, p := range changed {
		n.met.changed(p)
	}
	homes := make(map[Peer]*accounts, len(n.met.in))
	all := n.foreigners.inUse()
	for id, parts := range n.met.in {
		homes[n.called.of(id)] = parts[0].budgets
		all = append(all, id)
	}
	n.strangers.homes.Store(&homes)
	n.announces.among(len(homes) + 1)
	slices.Sort(all)
	n.host.SetMembers(slices.Compact(all))
	n.states.ask()
}

// members are the nodes of the roster's other anchors.
func (n *Part) members() (ids []peer.ID) {
	for _, a := range n.roll.epoch().Roster.Anchors {
		id, err := n.called.id(Peer(a.Peer))
		switch {
		case err != nil:
			n.log.Warn("the roster names a bad peer", "anchor", a.Name, "peer", a.Peer, "error", err)
		case string(n.called.of(id)) != n.peerID: // the roster may have it in another form
			ids = append(ids, id)
		}
	}
	return ids
}
