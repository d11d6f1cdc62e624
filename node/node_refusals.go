package node

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"golang.org/x/time/rate"
)

// refusals tells of refused input. Whoever sends it decides how much there is, so
// of each class that no honest node sends the log has one warning a minute, and
// of all no more than some details a second; the counters have the rest.
type refusals struct {
	classes [Refusals]struct {
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

func (r *refusals) log(log *slog.Logger, d Dropped) {
	if r.detail.Allow() {
		log.Debug("input refused", "peer", d.From, "class", d.Class, "why", d.Why)
	}
	if !d.Class.Blame() {
		return
	}
	c := &r.classes[d.Class]
	c.since.Add(1)
	now, last := time.Now().UnixNano(), c.last.Load()
	if now-last >= int64(refusalsEvery) && c.last.CompareAndSwap(last, now) {
		log.Warn("input refused that no honest node sends", "class", d.Class, "times", c.since.Swap(0),
			"last-peer", d.From, "last-why", d.Why)
	}
}

// refuse notes what a peer sent in vain, and blames it for what no honest node
// sends.
func (n *Part) refuse(from peer.ID, err error) {
	n.note(dropped(Peer(from.String()), err))
	if refusalOf(err).Blame() {
		n.host.Blame(from)
	}
}
