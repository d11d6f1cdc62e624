package node

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/p2p"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/votes"
)

// Status is the machine's own. It is as of now, or as of its last change if the
// machine is too busy to say, or does not run.
func (n *Part) Status() Status { return n.statusWithin(time.Second) }

// CatchingUp reports whether this node knows that its state is old. It costs
// nothing, and may be a step late.
func (n *Part) CatchingUp() bool {
	s := n.runner.stand.Load()
	return s.far || s.known > s.state.Height() || n.fetching.Load() != nil
}

func (n *Part) statusWithin(d time.Duration) Status { return n.seenWithin(d, aweigh.Hash{}).Status }

// seenWithin is what the machine says of itself and of a mutation. One that is too busy
// to say is as it was last, and says of no mutation that it is on disk.
func (n *Part) seenWithin(d time.Duration, mutation aweigh.Hash) seen {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	s, err := n.see(ctx, mutation)
	if err != nil {
		return seen{Status: n.runner.stand.Load().status()}
	}
	return s
}

// Name is what people call this node.
func (n *Part) Name() string { return n.cfg.Name }

// Peer is this node's libp2p peer ID.
func (n *Part) Peer() Peer { return Peer(n.host.ID().String()) }

// Addrs are the full multiaddrs at which others can reach this node.
func (n *Part) Addrs() []string { return n.host.Addrs() }

// Peers are the nodes of this network that this node is connected with.
func (n *Part) Peers() []p2p.PeerInfo { return n.host.Peers() }

// NetworkStats are the network's counters since the start.
func (n *Part) NetworkStats() p2p.Stats { return n.host.Stats() }

// Reach says which anchors take part in deciding, as seen from here, and what that allows.
type Reach struct {
	Anchors []aweigh.AnchorID              // that sign, this node included if it is one
	Missing []aweigh.AnchorID              // the others
	Says    map[aweigh.AnchorID]AnchorSays // of all
	Weight  uint64                         // of those that sign
	Needed  uint64                         // the largest threshold that a decision has to meet
	Reads   uint64                         // weight of the answers that a linearizable read needs
	Total   uint64
	// Failures is how many of those that sign may still stop, the
	// heaviest first, before nothing can be decided; -1 if nothing can be now.
	Failures int
}

// Reach is how this node sees the anchors now.
func (n *Part) Reach() Reach { return n.reach(n.Status()) }

// reach counts the anchors that are connected and say that they sign. Those that listen
// (P9) wait for a quorum: they count while those that sign are none without them.
func (n *Part) reach(s Status) Reach {
	says := n.said(s)
	r := reachOf(&s, says, false)
	if r.Failures < 0 {
		r = reachOf(&s, says, true)
	}
	return r
}

// said is what each anchor says of itself, or is found to be.
func (n *Part) said(s Status) map[aweigh.AnchorID]AnchorSays {
	connected := make(map[peer.ID]bool)
	for _, p := range n.host.Peers() {
		connected[p.ID] = true
	}
	now, all := time.Now(), make(map[aweigh.AnchorID]AnchorSays, len(s.Roster.Anchors))
	for _, a := range s.Roster.Anchors {
		id, peer := a.Key.ID(), Peer(a.Peer)
		says := AnchorSays{State: AnchorAway}
		if at, err := n.called.id(peer); err != nil {
		} else if n.called.of(at) == n.Peer() {
			if says = n.says(&s); s.Self != id && says.State != AnchorUnseated {
				says = AnchorSays{State: AnchorKeyless}
			}
		} else if connected[at] {
			says = n.of.states.says(at, n.id, now)
		}
		all[id] = says
	}
	return all
}

// reachOf is the reach that follows from what the anchors say.
func reachOf(s *Status, says map[aweigh.AnchorID]AnchorSays, listeners bool) Reach {
	var shares []quorum.Share
	r := Reach{Total: s.Roster.Weights.Total(), Says: says}
	for _, a := range s.Roster.Anchors {
		id := a.Key.ID()
		if at := says[id].State; at != AnchorSigns && !(listeners && at == AnchorListens) {
			r.Missing = append(r.Missing, id)
			continue
		}
		r.Anchors = append(r.Anchors, id)
		if s.Roster.Weights.Of(id) == 0 { // on probation
			continue
		}
		r.Weight += s.Roster.Weights.Of(id)
		shares = append(shares, quorum.Share{Anchor: id, Weight: s.Roster.Weights.Of(id)})
	}
	r.Needed = max(s.Rules.Notarize.Threshold(r.Total), s.Rules.Finalize.Threshold(r.Total))
	r.Reads = readWeight(s.Rules, r.Total)
	r.Failures = failures(shares, r.Weight, r.Needed, max(s.Rules.Notarize.MinAnchors, s.Rules.Finalize.MinAnchors))
	return r
}

// failures counts how many of the shares, the heaviest first, can be taken
// away while the rest weighs at least needed.
func failures(shares []quorum.Share, weight, needed uint64, anchors uint32) int {
	for n := -1; ; n++ {
		if weight < needed || len(shares) < int(anchors) || len(shares) == 0 {
			return n
		}
		heaviest := 0
		for i, s := range shares {
			if s.Weight > shares[heaviest].Weight {
				heaviest = i
			}
		}
		weight -= shares[heaviest].Weight
		shares = append(shares[:heaviest:heaviest], shares[heaviest+1:]...)
	}
}

// libp2pKey is an Ed25519 key in libp2p's form.
func libp2pKey(k votes.PrivateKey) (crypto.PrivKey, error) {
	name, digits, _ := strings.Cut(k.Encode(), ":")
	seed, err := hex.DecodeString(digits)
	if err != nil || name != "ed25519" || len(seed) != 32 {
		return nil, fmt.Errorf("node: a node's identity is an ed25519 key, not %s", name)
	}
	return crypto.UnmarshalEd25519PrivateKey(append(seed, k.Public().Bytes...))
}

// PeerOfKey is the libp2p peer ID of an Ed25519 key.
func PeerOfKey(k votes.PublicKey) (Peer, error) {
	if err := k.Check(); err != nil || k.Scheme != votes.Ed25519 {
		return "", fmt.Errorf("node: a node's identity is an ed25519 key, not %s: %w", k.Scheme, err)
	}
	key, err := crypto.UnmarshalEd25519PublicKey(k.Bytes)
	if err != nil {
		return "", err
	}
	id, err := peer.IDFromPublicKey(key)
	return Peer(id.String()), err
}

// PeerOf is the libp2p peer ID that belongs to an identity.
func PeerOf(k votes.PrivateKey) (Peer, error) {
	key, err := libp2pKey(k)
	if err != nil {
		return "", err
	}
	id, err := peer.IDFromPrivateKey(key)
	return Peer(id.String()), err
}
