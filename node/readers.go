package node

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/p2p"
	"github.com/aweigh/aweigh/scope"
)

// A scope's policy says which peers may read (P48), and each node enforces it where it gives something to a peer:
// frames, answers to requests, gossip. It takes from every peer as before: a node whose state is old knows no readers
// that came later, and has to catch up from them. In a scope below, "any" is every peer that may read the root scope.

// readers remembers which peers may read a scope: frames cannot wait for the store.
type readers struct {
	mu       sync.Mutex
	known    map[machine.Peer]*reader
	admitted map[peer.ID]bool // by the host, and connected; of the root scope
	looks    bool             // a task looks up which peers the state lists
	again    bool             // it has to do so once more
}

// reader is what is remembered of a peer.
type reader struct {
	epoch  *scope.Epoch
	rights scope.Readers // of the epoch
	listed bool          // as it was looked up last
	looked bool
}

// maxReaders bounds the peers that are remembered; most are members, as a host has p2p.Config.MaxPeers peers. It
// also bounds the peers that are admitted and not connected.
const maxReaders = 4096

// keyOf returns the identity of a peer's key, zero if its name holds none.
func keyOf(p machine.Peer) (id aweigh.Hash) {
	if key, ok := scope.PeerKey(string(p)); ok {
		id = key.ID()
	}
	return id
}

// of returns what is remembered of a peer. r.mu is held.
func (r *readers) of(p machine.Peer, e *scope.Epoch) *reader {
	x := r.known[p]
	if x == nil {
		if r.known == nil || len(r.known) >= maxReaders {
			r.known = make(map[machine.Peer]*reader)
		}
		x = new(reader)
		r.known[p] = x
	}
	if x.epoch != e {
		rights := e.Readers(keyOf(p))
		if !slices.EqualFunc(x.rights.Lists(), rights.Lists(), bytes.Equal) {
			x.listed, x.looked = false, false
		}
		x.epoch, x.rights = e, rights
	}
	return x
}

// member reports whether a peer reads as an anchor: of the scope, or of those that an order names which the scope has
// yet to carry out.
func (n *Replica) member(p machine.Peer) bool {
	if n.epochs.Anchor(p) {
		return true
	}
	if n.ordered.Load() == nil {
		return false
	}
	o := n.order(n.LastHead())
	return o != nil && slices.ContainsFunc(o.Child.Anchors, func(a scope.Anchor) bool { return machine.Peer(a.Peer) == p })
}

// within reports whether the network lets a peer in at all.
func (n *Replica) within(p machine.Peer) bool { return n == n.of.root || n.of.root.mayRead(p) }

// noteRefusals notes whether so many anchors do not let this node read the scope that the others cannot bring anything
// new. Then watches of the scope end with that reason.
func (n *Replica) noteRefusals() {
	s := n.runner.stand.Load().Status()
	var refusing uint64
	for id, says := range n.anchorStates(s) { // order-free: a sum
		if says.State == AnchorRefuses {
			refusing += s.Roster.Weights.Of(id)
		}
	}
	total := s.Roster.Weights.Total()
	refused := total > 0 && refusing >= total-s.Rules.Mode.FaultBudget(total)
	if !n.refused.Swap(refused) && refused {
		n.hasChanged()
	}
}

// mayRead reports whether a peer may read all of the scope, as far as this node remembers. A peer that was not looked
// up yet may not, and is looked up.
func (n *Replica) mayRead(p machine.Peer) bool {
	if n.member(p) {
		return true
	}
	r := &n.readers
	r.mu.Lock()
	x := r.of(p, n.epochs.epoch())
	all, listed := x.rights.All(), x.listed
	if !all && !x.looked && len(x.rights.Lists()) > 0 {
		n.startListing()
	}
	r.mu.Unlock()
	if all {
		return n.within(p)
	}
	return listed
}

// withinNow is within by the newest state.
func (n *Replica) withinNow(p machine.Peer) (bool, error) {
	if n == n.of.root {
		return true, nil
	}
	return n.of.root.mayReadNow(p)
}

// mayReadNow is mayRead by the newest state.
func (n *Replica) mayReadNow(p machine.Peer) (bool, error) {
	if n.member(p) {
		return true, nil
	}
	r := &n.readers
	r.mu.Lock()
	x := *r.of(p, n.epochs.epoch())
	current := x.looked && !r.looks && !r.again
	r.mu.Unlock()
	switch {
	case x.rights.All():
		return n.withinNow(p)
	case len(x.rights.Lists()) == 0:
		return false, nil
	case current:
		return x.listed, nil
	}
	found, err := n.listed(p)
	return found[p], err
}

// rights returns what the policy lets a peer read without being listed.
func (n *Replica) rights(p machine.Peer) scope.Readers {
	n.readers.mu.Lock()
	defer n.readers.mu.Unlock()
	return n.readers.of(p, n.epochs.epoch()).rights
}

// refuses returns why a peer may not have what it asks for: some keys, or with none everything.
func (n *Replica) refuses(p machine.Peer, keys referral.Ranges) error {
	may, err := n.mayReadNow(p)
	if may || err != nil {
		return err
	}
	return n.refusesPartial(p, keys)
}

// refusesPartial is refuses for a peer that may not read everything.
func (n *Replica) refusesPartial(p machine.Peer, keys referral.Ranges) error {
	rights := n.rights(p)
	if keys == nil || !rights.Some() {
		return scope.ErrNoReader
	}
	some, every := false, true
	keys(func(key, end []byte) bool {
		some, every = true, len(key) > 0 && rights.Read(key, end)
		return every
	})
	may, err := n.withinNow(p)
	if err == nil && !(may && some && every) {
		err = scope.ErrNoReader
	}
	return err
}

// excludes returns why a peer has no part in the scope: it may not read all of it, and is no author; nor may it read
// some keys, if these count.
func (n *Replica) excludes(p machine.Peer, someKeys bool) error {
	if n.epochs.epoch().Rights(keyOf(p)).None() && !(someKeys && n.rights(p).Some()) {
		return n.refuses(p, nil)
	}
	if may, err := n.withinNow(p); may || err != nil {
		return err
	}
	return n.refuses(p, nil)
}

// noteListed notes that the newest state lists a peer.
func (n *Replica) noteListed(p machine.Peer) {
	n.readers.mu.Lock()
	defer n.readers.mu.Unlock()
	x := n.readers.of(p, n.epochs.epoch())
	x.listed, x.looked = true, true
	n.startListing()
}

// startListing starts the task that looks up which peers are listed, unless it runs. n.readers.mu is held.
func (n *Replica) startListing() {
	r := &n.readers
	r.again = true
	if !r.looks {
		r.looks = n.of.tasks.start("readers", n.refreshListed)
	}
}

// relist looks the remembered peers up again, and in another epoch also those that were anchors.
func (n *Replica) relist(epoch bool) {
	n.readers.mu.Lock()
	defer n.readers.mu.Unlock()
	if len(n.readers.known) > 0 || epoch && len(n.readers.admitted) > 0 {
		n.startListing()
	}
}

// lookPause is how long the task waits before it looks again when the state could not be read.
const lookPause = 250 * time.Millisecond

// refreshListed looks up which of the remembered peers are listed, for as long as that changes, and disconnects those
// that the host has admitted and that may not read any more. While the state cannot be read, none is listed.
func (n *Replica) refreshListed(ctx context.Context) {
	r := &n.readers
	for {
		r.mu.Lock()
		if !r.again || ctx.Err() != nil || n.stopped() {
			r.looks = false
			r.mu.Unlock()
			return
		}
		r.again = false
		for id := range r.admitted { // order-free: likewise
			if p := n.called.of(id); !n.member(p) {
				r.of(p, n.epochs.epoch())
			}
		}
		var peers []machine.Peer
		for p := range r.known { // order-free: each is looked up on its own
			if x := r.of(p, n.epochs.epoch()); len(x.rights.Lists()) > 0 {
				peers = append(peers, p)
			}
		}
		r.mu.Unlock()
		found, err := n.listed(peers...)
		if err != nil {
			n.log.Debug("readers not looked up", "error", err)
			found = nil
		}
		r.mu.Lock()
		for _, p := range peers {
			if x := r.known[p]; x != nil {
				x.listed, x.looked = found[p], true
			}
		}
		var revoked []peer.ID
		if err != nil {
			r.again = true
		} else {
			for id := range r.admitted { // order-free: each is judged on its own
				p := n.called.of(id)
				if n.member(p) {
					continue // nothing is remembered of it
				}
				x := r.of(p, n.epochs.epoch())
				judged := x.looked || len(x.rights.Lists()) == 0
				if judged && !x.rights.All() && !x.listed {
					revoked = append(revoked, id)
					delete(r.admitted, id)
				}
			}
		}
		r.mu.Unlock()
		for _, id := range revoked { // so its gossip ends
			n.log.Info("disconnected a peer that may not read any more", "peer", id)
			n.host.Disconnect(id)
		}
		if err != nil {
			select {
			case <-time.After(lookPause):
			case <-ctx.Done():
			}
		}
	}
}

// listed returns which of some peers the state lists.
func (n *Replica) listed(peers ...machine.Peer) (found map[machine.Peer]bool, err error) {
	if len(peers) == 0 {
		return nil, nil
	}
	lists := n.epochs.epoch().Readers(aweigh.Hash{}).Lists() // the same for all
	s, err := n.views.own()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.views.release(s)) }()
	found = make(map[machine.Peer]bool)
	for _, p := range peers {
		for _, list := range lists {
			at, err := s.Range(scope.Listing(list, string(p)), nil, scope.Range{CountOnly: true})
			if err != nil {
				return nil, err
			}
			found[p] = found[p] || at.Count > 0
		}
	}
	return found, nil
}

// named reports whether a peer may read the scope because the policy names or lists it, as far as this node remembers.
func (n *Replica) named(p machine.Peer) bool {
	n.readers.mu.Lock()
	defer n.readers.mu.Unlock()
	e := n.epochs.epoch()
	x := n.readers.of(p, e)
	return x.listed || x.rights.All() && !e.Policy.Open()
}

// admits tells the host to which peers it may give gossip and addresses.
func (n *Node) admits(id peer.ID) bool {
	if n.root == nil {
		return false
	}
	if p := n.called.of(id); !n.root.mayRead(p) { // it may not have been looked up
		if may, err := n.root.mayReadNow(p); err != nil || !may {
			return false
		}
	}
	n.root.readers.admit(id, n.host.Peers)
	return true
}

// admit notes that the host admits a peer. A peer may have parted while it was judged: so of too many peers, those stay
// that are connected.
func (r *readers) admit(id peer.ID, connected func() []p2p.PeerInfo) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.admitted == nil {
		r.admitted = make(map[peer.ID]bool)
	}
	if r.admitted[id] = true; len(r.admitted) <= maxReaders {
		return
	}
	all := r.admitted
	r.admitted = map[peer.ID]bool{id: true}
	for _, p := range connected() {
		if all[p.ID] {
			r.admitted[p.ID] = true
		}
	}
}

// parted forgets a peer that is no longer connected.
func (r *readers) parted(id peer.ID, p machine.Peer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.admitted, id)
	delete(r.known, p)
}
