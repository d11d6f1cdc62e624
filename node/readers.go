package node

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
)

// A scope's policy says which peers may read (P48), and each node enforces it where it gives something to a peer:
// frames, answers to requests, gossip. It takes from every peer as before: a node whose state is old knows no readers
// that came later, and has to catch up from them. In a scope below, "any" is every peer that may read the root scope
// or is an anchor that this node knows.

// readers remembers which peers the scope's state lists. Blocks change that, and frames cannot wait for the store.
type readers struct {
	mu     sync.Mutex
	listed map[machine.Peer]bool // of those that were looked up
	let    map[peer.ID]bool      // that the host was told to admit, and that are connected; of the root scope
	looks  bool                  // a task looks them up
	again  bool                  // it has to do so once more
}

// maxLooked bounds the peers that are remembered; most are no strangers, as a host has p2p.Config.MaxPeers peers.
const maxLooked = 4096

// readersOf returns what the policy lets a peer read.
func (n *Replica) readersOf(p machine.Peer) scope.Readers {
	var id aweigh.Hash // of no key
	if key, ok := scope.PeerKey(string(p)); ok {
		id = key.ID()
	}
	return n.epochs.epoch().Readers(id)
}

// member reports whether a peer reads as an anchor: of the scope, or of those that are ordered to govern it.
func (n *Replica) member(p machine.Peer) bool {
	if n.epochs.Anchor(p) {
		return true
	}
	o := n.ordered.Load()
	return o != nil && slices.ContainsFunc(o.Child.Anchors, func(a scope.Anchor) bool { return machine.Peer(a.Peer) == p })
}

// lets reports whether a peer may read all of the scope, as far as this node remembers. A peer that was not looked up
// yet may not, and is looked up.
func (n *Replica) lets(p machine.Peer) bool {
	if n.member(p) {
		return true
	}
	r := n.readersOf(p)
	if r.All() {
		return n.within(p)
	}
	if len(r.Lists()) == 0 {
		return false
	}
	n.readers.mu.Lock()
	listed, known := n.readers.listed[p]
	n.readers.mu.Unlock()
	if !known {
		n.lookUp(p)
	}
	return listed
}

// within reports whether the network lets a peer in at all.
func (n *Replica) within(p machine.Peer) bool { return n == n.of.root || n.of.knows(p) }

// knows reports whether a peer may read the root scope, or is an anchor of a scope that this node holds.
func (n *Node) knows(p machine.Peer) bool {
	if n.root.lets(p) {
		return true
	}
	id, err := n.called.id(p)
	if err != nil {
		return false
	}
	n.met.mu.Lock()
	defer n.met.mu.Unlock()
	return len(n.met.in[id]) > 0
}

// lookUp has the listed peers looked up, and p with them.
func (n *Replica) lookUp(p machine.Peer) {
	r := &n.readers
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listed == nil || len(r.listed) >= maxLooked {
		r.listed = make(map[machine.Peer]bool)
	}
	r.listed[p] = false
	n.lookAgain()
}

// lookAgain starts the task that looks them up, unless it runs. n.readers.mu is held.
func (n *Replica) lookAgain() {
	r := &n.readers
	r.again = true
	if !r.looks {
		r.looks = n.of.tasks.Go("readers", func(context.Context) { n.lookThemUp() })
	}
}

// relist looks the listed peers up again, after a block, or in another epoch all that were let in.
func (n *Replica) relist(epoch bool) {
	n.readers.mu.Lock()
	defer n.readers.mu.Unlock()
	if len(n.readers.listed) > 0 || epoch && len(n.readers.let) > 0 {
		n.lookAgain()
	}
}

// lookThemUp looks up which of the remembered peers are listed, for as long as that changes.
func (n *Replica) lookThemUp() {
	r := &n.readers
	for {
		r.mu.Lock()
		if !r.again {
			r.looks = false
			r.mu.Unlock()
			return
		}
		r.again = false
		peers := make([]machine.Peer, 0, len(r.listed))
		for p := range r.listed { // order-free: each is looked up on its own
			peers = append(peers, p)
		}
		r.mu.Unlock()
		found, err := n.listed(peers...)
		if err != nil {
			n.log.Debug("readers not looked up", "error", err)
			found = nil // none of them is let in
		}
		r.mu.Lock()
		for _, p := range peers {
			if _, connected := r.listed[p]; connected {
				r.listed[p] = found[p]
			}
		}
		let := slices.Collect(maps.Keys(r.let))
		r.mu.Unlock()
		for _, id := range let {
			if may, err := n.letsNow(n.called.of(id)); err == nil && !may {
				n.dismiss(id)
			}
		}
	}
}

// listed returns which of some peers the state lists.
func (n *Replica) listed(peers ...machine.Peer) (map[machine.Peer]bool, error) {
	s, err := n.views.own()
	if err != nil {
		return nil, err
	}
	found := make(map[machine.Peer]bool)
	for _, p := range peers {
		for _, list := range n.readersOf(p).Lists() {
			at, err := s.Range(scope.Listing(list, string(p)), nil, scope.Range{CountOnly: true})
			if err != nil {
				return nil, errors.Join(err, n.views.release(s))
			}
			found[p] = found[p] || at.Count > 0
		}
	}
	return found, n.views.release(s)
}

// letsNow is lets by the newest state.
func (n *Replica) letsNow(p machine.Peer) (bool, error) {
	if n.member(p) {
		return true, nil
	}
	switch r := n.readersOf(p); {
	case r.All():
		return n.within(p), nil
	case len(r.Lists()) == 0:
		return false, nil
	}
	n.readers.mu.Lock()
	listed, known := n.readers.listed[p]
	known = known && !n.readers.looks && !n.readers.again
	n.readers.mu.Unlock()
	if known {
		return listed, nil
	}
	found, err := n.listed(p)
	return found[p], err
}

// refuses returns why a peer may not have what it asks for: some keys, or with none everything.
func (n *Replica) refuses(p machine.Peer, keys referral.Ranges) error {
	may, err := n.letsNow(p)
	if may || err != nil {
		return err
	}
	if r := n.readersOf(p); keys != nil && n.within(p) {
		may = true
		keys(func(key, end []byte) bool {
			may = may && len(key) > 0 && r.Read(key, end)
			return may
		})
	}
	if !may {
		return scope.ErrNoReader
	}
	return nil
}

// dismiss ends the connection of a peer that may not read the root scope any more: so gossip ends, too.
func (n *Replica) dismiss(id peer.ID) {
	n.readers.mu.Lock()
	delete(n.readers.let, id)
	n.readers.mu.Unlock()
	n.log.Info("disconnected a peer that may not read any more", "peer", id)
	n.host.Disconnect(id)
}

// admits tells the host to which peers it may give gossip and addresses.
func (n *Node) admits(id peer.ID) bool {
	if n.root == nil || !n.root.lets(n.called.of(id)) {
		return false
	}
	r := &n.root.readers
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.let == nil {
		r.let = make(map[peer.ID]bool)
	}
	r.let[id] = true
	return true
}

// parted forgets a peer that is no longer connected.
func (r *readers) parted(id peer.ID, p machine.Peer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.let, id)
	delete(r.listed, p)
}
