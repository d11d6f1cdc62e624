package node

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
)

const (
	// noticeSoon is when a node checks itself again while something changes.
	noticeSoon = time.Second
	// noticeLate is when it does so at the latest: no event reports that another anchor signs nothing.
	noticeLate = 10 * time.Second
	// noticeStart is how long anchors may take to connect before their absence is worth a warning.
	noticeStart = 5 * time.Second
)

// notice logs the changes of state that an operator wants in the log: which anchors are within reach, whether they are
// a quorum, and whether this node is behind.
type notice struct {
	n      *Replica
	began  time.Time
	reach  []aweigh.AnchorID
	quorum bool // at the last look
	told   bool // whether anything was said of the quorum yet
	behind bool // said so
}

// wakeWatcher makes the notice look soon.
func (n *Replica) wakeWatcher() {
	select {
	case n.woken <- struct{}{}:
	default:
	}
}

// watchSelf runs until ctx ends or the machine stops.
func (n *Replica) watchSelf(ctx context.Context) {
	w := notice{n: n, began: time.Now()}
	timer := time.NewTimer(noticeSoon)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.runner.replies.done:
			return
		case <-n.woken:
		case <-timer.C:
		}
		s, err := n.look(ctx)
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, ErrStopped) {
				return
			}
			continue
		}
		again := noticeLate
		if silent := w.n.of.silent(ctx); w.look(s) || silent { // of all scopes: the root's part alone watches
			again = noticeSoon
		}
		timer.Reset(again)
	}
}

// look compares the present state with what was logged, and reports whether to look again soon.
func (w *notice) look(s machine.Status) (soon bool) {
	r := w.n.reach(s)
	w.anchors(s, r)
	w.decides(r)
	return w.catchUp(s) || !w.told
}

func (w *notice) anchors(s machine.Status, r Reach) {
	for _, a := range r.Anchors {
		if !slices.Contains(w.reach, a) && a != s.Self {
			w.n.log.Info("anchor in reach", "anchor", w.n.measured.name(a), "weight", r.Weight, "needed", r.Needed)
		}
	}
	for _, a := range w.reach {
		if !slices.Contains(r.Anchors, a) && a != s.Self {
			w.n.log.Info("anchor out of reach", "anchor", w.n.measured.name(a), "why", "it "+r.Says[a].Words(), "weight", r.Weight, "needed", r.Needed)
		}
	}
	w.reach = r.Anchors
}

func (w *notice) decides(r Reach) {
	quorum := r.Failures >= 0
	switch {
	case w.told && quorum == w.quorum:
	case quorum:
		w.told = true
		w.n.log.Info("quorum in reach", "weight", r.Weight, "needed", r.Needed, "may-fail", r.Failures)
	case w.told || time.Since(w.began) > noticeStart:
		w.told = true
		w.n.log.Warn("no quorum in reach: nothing can be decided until anchors return",
			"weight", r.Weight, "needed", r.Needed, "missing", w.n.absent(r))
	}
	w.quorum = quorum
}

// catchUp logs that this node is behind if that lasts, so that one late block is not logged.
func (w *notice) catchUp(s machine.Status) (soon bool) {
	n := w.n
	since := n.behindSince.Load()
	switch {
	case s.Behind && since == nil:
		now := time.Now()
		n.behindSince.Store(&now)
	case s.Behind && !w.behind && (time.Since(*since) > 2*noticeSoon || s.Known > s.Head.Height+farBehind):
		w.behind = true
		n.log.Info("behind: fetching final blocks", "height", s.Head.Height, "known", s.Known)
	case !s.Behind:
		n.behindSince.Store(nil)
		if w.behind {
			w.behind = false
			n.log.Info("caught up", "height", s.Head.Height, "took", time.Since(*since).Round(time.Millisecond))
		}
	}
	return s.Behind
}
