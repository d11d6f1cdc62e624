package p2p

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/peer"
	"golang.org/x/time/rate"
)

// ErrTopic is returned for a topic that is empty, too long or not joined, or data that is too long.
var ErrTopic = errors.New("p2p: bad topic or gossip too long")

const (
	buckets     = 64 // pubsub topics that all topics share
	topicPrefix = 2  // bytes that hold a topic's length in a message

	// pubsub's queues hold 32 messages by default, and what does not fit is lost.
	validationQueue = 1024
	validationsMax  = 256 // handlers at once; each holds a message of up to MaxGossip
	outboundQueue   = 1024

	// A topic's mesh is built and mended at heartbeats; until the first one, a
	// host that joined does not pass on what others publish. Half of pubsub's
	// second, with twice its history.
	heartbeat   = 500 * time.Millisecond
	historyKept = 10
	historyTold = 6

	// seenTime is for how long a message that comes again is a duplicate, even
	// when it is published here. It must outlast a message's travels, and be
	// short enough for nodes that offer the same bytes again after a loss.
	seenTime = 10 * time.Second
)

// gossip spreads messages by gossipsub. Many topics share few pubsub topics, as
// pubsub announces each of its topics to each peer and fails beyond some
// thousands. A message carries its own topic; those that arrive for topics not
// joined here are passed on unread.
//
// pubsub's validators are the delivery: they run before a message is passed
// on, and once per message. Buckets are joined as relays, without a
// subscription, so there is no subscription queue to overflow.
type gossip struct {
	h      *Host
	pubsub *pubsub.PubSub
	total  *rate.Limiter // messages that are looked at, of all peers
	others *rate.Limiter // packets of all peers that are no members

	mu      sync.RWMutex
	joined  map[Topic]bool
	members [buckets]int // topics joined, by bucket
	topics  [buckets]*pubsub.Topic
	cancels [buckets]pubsub.RelayCancelFunc
}

// newGossip starts pubsub.
func newGossip(h *Host) (*gossip, error) {
	g := &gossip{
		h: h, joined: make(map[Topic]bool), others: newPackets(h.cfg),
		total: rate.NewLimiter(rate.Limit(h.cfg.GossipMessages), 2*h.cfg.GossipMessages),
	}
	names := make([]string, buckets)
	for i := range names {
		names[i] = g.bucketName(i)
	}
	params := pubsub.DefaultGossipSubParams()
	params.HeartbeatInterval = heartbeat
	params.HistoryLength, params.HistoryGossip = historyKept, historyTold
	var err error
	g.pubsub, err = pubsub.NewGossipSub(h.ctx, provenOnly{h.host, h},
		pubsub.WithLogger(h.cfg.Log),
		pubsub.WithGossipSubParams(params),
		pubsub.WithMessageSignaturePolicy(pubsub.StrictNoSign), // contents that need a signature have one inside
		pubsub.WithNoAuthor(),
		pubsub.WithMessageIdFn(func(m *pb.Message) string {
			id := sha256.Sum256(m.Data)
			return string(id[:])
		}),
		pubsub.WithSubscriptionFilter(pubsub.WrapLimitSubscriptionFilter(
			pubsub.NewAllowlistSubscriptionFilter(names...), 2*buckets)),
		pubsub.WithMaxMessageSize(h.cfg.MaxGossip+1024), // and room for pubsub's envelope
		pubsub.WithValidateQueueSize(validationQueue),
		pubsub.WithValidateThrottle(validationsMax),
		pubsub.WithValidateWorkers(runtime.GOMAXPROCS(0)),
		pubsub.WithPeerOutboundQueueSize(outboundQueue),
		pubsub.WithSeenMessagesTTL(seenTime),
		pubsub.WithFloodPublish(true),
		pubsub.WithPeerScore(g.score(names)),
		pubsub.WithAppSpecificRpcInspector(g.inspect),
		pubsub.WithRawTracer(tracer{count: &h.count}),
	)
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		if err := g.pubsub.RegisterTopicValidator(name, g.deliver, pubsub.WithValidatorConcurrency(validationsMax)); err != nil {
			return nil, err
		}
		if g.topics[i], err = g.pubsub.Join(name); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// bucketName is the pubsub topic of a bucket, which no other network has.
func (g *gossip) bucketName(i int) string {
	return fmt.Sprintf("%s/gossip/1/%d", Protocols(g.h.cfg.Network), i)
}

// bucket is where a topic belongs.
func bucket(t Topic) int {
	sum := sha256.Sum256([]byte(t))
	return int(sum[0]) % buckets
}

// Join subscribes to topics: their messages go to Handler.Gossip. Topics that
// are joined already stay joined.
func (h *Host) Join(topics ...Topic) error {
	g := h.gossip
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, t := range topics {
		if len(t) == 0 || len(t) > maxTopic {
			return fmt.Errorf("%w: %q", ErrTopic, t)
		}
		if g.joined[t] {
			continue
		}
		b := bucket(t)
		if g.members[b] == 0 {
			cancel, err := g.topics[b].Relay()
			if err != nil {
				return fmt.Errorf("p2p: join %q: %w", t, err)
			}
			g.cancels[b] = cancel
		}
		g.members[b]++
		g.joined[t] = true
	}
	return nil
}

// Publish spreads data to the hosts that joined topic; this one need not have.
// It does not come back to this host's handler. Data published or received in
// the last ten seconds is not spread again.
func (h *Host) Publish(topic Topic, data []byte) error {
	message, err := packGossip(topic, data)
	if err != nil {
		return err
	}
	if len(message) > h.cfg.MaxGossip {
		return fmt.Errorf("%w: %d bytes for %q", ErrTopic, len(message), topic)
	}
	if !h.enter() {
		return ErrClosed
	}
	defer h.leave()
	if err := h.gossip.topics[bucket(topic)].Publish(h.ctx, message); err != nil {
		return fmt.Errorf("p2p: publish to %q: %w", topic, err)
	}
	h.count.GossipPublished.Add(1)
	return nil
}

// Hears are the peers to which gossip of a topic may go, which need not have joined it: topics share buckets.
// Through them it may reach others.
func (h *Host) Hears(topic Topic) []peer.ID {
	if !h.enter() {
		return nil
	}
	defer h.leave()
	return slices.DeleteFunc(h.gossip.topics[bucket(topic)].ListPeers(), func(id peer.ID) bool {
		r := h.peers.find(id)
		return r == nil || !h.admits(r)
	})
}

// deliver is pubsub's validator for every bucket.
func (g *gossip) deliver(_ context.Context, from peer.ID, m *pubsub.Message) pubsub.ValidationResult {
	h := g.h
	if from == h.ID() {
		return pubsub.ValidationAccept
	}
	if !h.enter() {
		return pubsub.ValidationIgnore
	}
	defer h.leave()
	if r := h.peers.find(from); r != nil && !r.gossip.Allow() || !g.total.Allow() {
		h.count.GossipDropped.Add(1)
		return pubsub.ValidationIgnore
	}
	topic, data, err := unpackGossip(m.Data)
	if err != nil || m.GetTopic() != g.bucketName(bucket(topic)) {
		h.count.GossipRejected.Add(1)
		h.Blame(from)
		return pubsub.ValidationReject
	}
	g.mu.RLock()
	joined := g.joined[topic]
	g.mu.RUnlock()
	if !joined {
		h.count.GossipRelayed.Add(1)
		return pubsub.ValidationAccept
	}
	h.count.GossipReceived.Add(1)
	verdict := Ignore
	if h.cfg.Handler.Gossip != nil {
		verdict = h.cfg.Handler.Gossip(from, topic, data)
	}
	switch verdict {
	case Accept:
		return pubsub.ValidationAccept
	case Reject:
		h.count.GossipRejected.Add(1)
		return pubsub.ValidationReject
	}
	h.count.GossipIgnored.Add(1)
	return pubsub.ValidationIgnore
}

// packGossip puts a topic before data: its length in two bytes, big endian, then itself.
func packGossip(topic Topic, data []byte) ([]byte, error) {
	if len(topic) == 0 || len(topic) > maxTopic {
		return nil, fmt.Errorf("%w: %q", ErrTopic, topic)
	}
	message := make([]byte, 0, topicPrefix+len(topic)+len(data))
	message = binary.BigEndian.AppendUint16(message, uint16(len(topic)))
	message = append(message, topic...)
	return append(message, data...), nil
}

// unpackGossip reverses packGossip. The data is part of message.
func unpackGossip(message []byte) (Topic, []byte, error) {
	if len(message) < topicPrefix {
		return "", nil, ErrTopic
	}
	n := int(binary.BigEndian.Uint16(message))
	rest := message[topicPrefix:]
	if n == 0 || n > maxTopic || n > len(rest) {
		return "", nil, ErrTopic
	}
	return Topic(rest[:n]), rest[n:], nil
}
