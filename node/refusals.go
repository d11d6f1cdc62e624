package node

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/aweigh/aweigh/internal/refusal"
	"github.com/aweigh/aweigh/node/machine"

	"github.com/libp2p/go-libp2p/core/peer"
	"golang.org/x/time/rate"
)

// refusals logs refused input. Its senders decide how much there is, so the log has one warning a minute for each class
// that no honest node sends, and for refusals that are this node's own fault, and a bounded number of details a second
// for all classes; the counters have everything.
type refusals struct {
	classes [refusal.Classes]struct {
		last  atomic.Int64 // Unix nanoseconds of the last warning
		since atomic.Uint64
	}
	detail *rate.Limiter
}

const (
	refusalsEvery  = time.Minute
	refusalDetails = 20 // a second
)

func newRefusals() *refusals {
	return &refusals{detail: rate.NewLimiter(refusalDetails, refusalDetails)}
}

func (r *refusals) log(log *slog.Logger, d machine.Dropped) {
	if r.detail.Allow() {
		log.Debug("input refused", "peer", d.From, "class", d.Class, "why", d.Why)
	}
	internal := d.Class == refusal.Internal
	if !d.Class.Blame() && !internal {
		return
	}
	c := &r.classes[d.Class]
	c.since.Add(1)
	now, last := time.Now().UnixNano(), c.last.Load()
	if now-last < int64(refusalsEvery) || !c.last.CompareAndSwap(last, now) {
		return
	}
	if internal {
		log.Warn("input refused for a reason of this node's own: this is a bug", "times", c.since.Swap(0),
			"last-peer", d.From, "last-why", d.Why)
	} else {
		log.Warn("input refused that no honest node sends", "class", d.Class, "times", c.since.Swap(0),
			"last-peer", d.From, "last-why", d.Why)
	}
}

// refuse notes input of a peer that was refused, and blames the peer if no honest node sends such input.
func (n *Replica) refuse(from peer.ID, err error) {
	n.note(machine.DroppedFrame(machine.Peer(from.String()), err))
	if refusal.Of(err).Blame() {
		n.host.Blame(from)
	}
}
