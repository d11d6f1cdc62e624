package scope

import (
	"fmt"
	"slices"

	"github.com/aweigh/aweigh"
)

// Readers are the peers to which nodes give what a scope holds: entries of its policy that permit VerbRead (P48).
// Blocks do not depend on them: each node asks before it answers a peer.
type Readers struct {
	entries []*Author // about the peer
	all     bool      // one of them covers every key
	lists   [][]byte
}

// Listing is the key that admits a peer, named by its libp2p peer ID, where a policy has the list: the peer may read
// for as long as the key exists.
func Listing(list []byte, peer string) []byte {
	return slices.Concat(list, []byte("peers/"), []byte(peer))
}

// Ticket is the key of an invite with a name, where a policy has the list.
func Ticket(list []byte, name string) []byte {
	return slices.Concat(list, []byte("invites/"), []byte(name))
}

// reads reports whether an entry permits reading and nothing else.
func (a *Author) reads() bool { return len(a.Verbs) == 1 && a.Verbs[0] == VerbRead }

// Readers returns what a peer may read in the epoch whose node has a key with this ID.
func (e *Epoch) Readers(peer aweigh.Hash) (r Readers) {
	_, anchor := e.seats[peer]
	for i := range e.Policy.Authors {
		a := &e.Policy.Authors[i]
		switch {
		case !a.has(VerbRead):
		case a.Who == OnList:
			r.lists = append(r.lists, a.List)
		case a.Who == Anyone || a.Who == Anchors && anchor || a.Who == OneKey && e.keys[i] == peer:
			r.entries = append(r.entries, a)
			r.all = r.all || len(a.Prefixes) == 0
		}
	}
	return r
}

// All reports whether the peer may read every key of the scope without being listed.
func (r Readers) All() bool { return r.all }

// Some reports whether the peer may read some keys of the scope without being listed.
func (r Readers) Some() bool { return len(r.entries) > 0 }

// Lists are where the policy lists more peers that may read every key.
func (r Readers) Lists() [][]byte { return r.lists }

// Read reports whether some entry covers a range of keys, in the sense of Op.
func (r Readers) Read(key, end []byte) bool {
	return r.all || slices.ContainsFunc(r.entries, func(a *Author) bool { return a.covers(key, end) })
}

// Open reports whether the policy lets every peer read every key.
func (p *Policy) Open() bool {
	return slices.ContainsFunc(p.Authors, func(a Author) bool {
		return a.Who == Anyone && a.has(VerbRead) && len(a.Prefixes) == 0
	})
}

// List is where the policy lists observers; nil if it lists none.
func (p *Policy) List() []byte {
	for i := range p.Authors {
		if p.Authors[i].Who == OnList {
			return p.Authors[i].List
		}
	}
	return nil
}

// ErrNoReader is the answer to peers that the policy does not let read. It wraps ErrDenied.
var ErrNoReader = fmt.Errorf("%w: the policy does not let this node read", ErrDenied)
