package p2p

import (
	"errors"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/peer"
	"golang.org/x/time/rate"
)

// Scores of pubsub (GossipSub v1.1) have no merits here, only faults: a message
// that was rejected, a broken promise, and other blame. They fade within
// seconds to minutes. Addresses do not count: sites look alike behind NAT.
const (
	gossipFrom   = -20 // below, a peer gets no gossip
	publishTo    = -40 // below, it is sent nothing
	graylistFrom = -80 // below, all that it sends is thrown away unread

	rejectedWeight = -20 // times the square of the messages rejected
	rejectedDecay  = 0.9
	brokenWeight   = -10 // times the square of the promises broken above brokenFree
	brokenFree     = 6
	brokenDecay    = 0.8
	blamedWeight   = -10 // times what Host.Blame has collected
	unadmitted     = 4.1 // as much blame keeps a peer that is not admitted just below publishTo

	scoreEvery  = time.Second
	scoreMemory = 10 * time.Minute // of peers that went
)

// score is how pubsub judges peers.
func (g *gossip) score(topics []string) (*pubsub.PeerScoreParams, *pubsub.PeerScoreThresholds) {
	params := &pubsub.PeerScoreParams{
		SkipAtomicValidation:      true, // unset parameters have no effect
		Topics:                    make(map[string]*pubsub.TopicScoreParams, len(topics)),
		AppSpecificScore:          g.blame,
		AppSpecificWeight:         blamedWeight,
		BehaviourPenaltyWeight:    brokenWeight,
		BehaviourPenaltyThreshold: brokenFree,
		BehaviourPenaltyDecay:     brokenDecay,
		DecayInterval:             scoreEvery,
		DecayToZero:               0.1,
		RetainScore:               scoreMemory,
	}
	for _, t := range topics {
		params.Topics[t] = &pubsub.TopicScoreParams{
			SkipAtomicValidation: true, TopicWeight: 1, TimeInMeshQuantum: time.Second,
			InvalidMessageDeliveriesWeight: rejectedWeight, InvalidMessageDeliveriesDecay: rejectedDecay,
		}
	}
	return params, &pubsub.PeerScoreThresholds{
		SkipAtomicValidation: true,
		GossipThreshold:      gossipFrom, PublishThreshold: publishTo, GraylistThreshold: graylistFrom,
	}
}

// blame is what pubsub holds against a peer: what the host blames it for, and that it is not admitted.
func (g *gossip) blame(id peer.ID) float64 {
	points := g.h.blames.of(id)
	if r := g.h.peers.find(id); r != nil && !r.admitted.Load() {
		points += unadmitted
	}
	return points
}

// newPackets limits how many of one peer's packets are read: twice as many as
// an honest node passes on, as it looks at GossipMessages a second itself.
func newPackets(cfg Config) *rate.Limiter {
	return rate.NewLimiter(2*rate.Limit(cfg.GossipMessages), 4*cfg.GossipMessages)
}

// errExcess makes pubsub throw a packet away.
var errExcess = errors.New("p2p: more gossip than any honest node sends")

// inspect runs before pubsub looks at a packet: packets dropped here are
// neither hashed nor remembered.
func (g *gossip) inspect(from peer.ID, rpc *pubsub.RPC) error {
	r := g.h.peers.find(from)
	c := rpc.GetControl()
	n := 1 + len(rpc.GetPublish()) + len(rpc.GetSubscriptions())/16 +
		len(c.GetIhave()) + len(c.GetIwant()) + len(c.GetGraft()) + len(c.GetPrune()) + len(c.GetIdontwant())
	now := time.Now()
	switch known := r != nil; {
	case known && !r.packets.AllowN(now, n):
		g.h.Blame(from)
	case known && g.h.dialer.isMember(from), g.others.AllowN(now, n):
		return nil
	}
	g.h.count.GossipExcess.Add(1)
	return errExcess
}
