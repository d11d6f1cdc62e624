package edge

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// faults befall the world until ctx ends: nodes are killed, stopped and cut off, disks become slow
// and full and lose a sync.
func (w *world) faults(ctx context.Context) {
	r := w.chance.of("faults").stream()
	for range w.plan.Faults {
		if !rest(ctx, time.Duration(r.Int64N(int64(2*w.plan.Length)/int64(w.plan.Faults)))) {
			return
		}
		s, d := w.seats[r.IntN(len(w.seats))], time.Duration(200+r.IntN(6000))*time.Millisecond
		switch r.IntN(7) {
		case 0, 1:
			w.down(ctx, s, true, d, "kills")
		case 2:
			w.down(ctx, s, false, d, "restarts")
		case 3:
			w.count("cuts", 1)
			w.net.cutOff(d, w.some(r)...)
		case 4:
			w.count("slow disks", 1)
			s.disk.set(time.Duration(r.IntN(300))*time.Millisecond, false)
			w.later(ctx, d, func() { s.disk.set(0, false) })
		case 5:
			w.count("full disks", 1)
			s.disk.set(0, true)
			w.fresh(ctx, s, d)
		case 6:
			w.count("lost syncs", 1)
			s.disk.loseSync()
			w.fresh(ctx, s, d)
		}
	}
}

// some are up to half of all nodes.
func (w *world) some(r *rand.Rand) (ids []peer.ID) {
	for _, i := range r.Perm(len(w.seats))[:1+r.IntN(max(1, len(w.seats)/2))] {
		ids = append(ids, w.seats[i].id)
	}
	return ids
}

// fresh ends a node's life and the faults of its disk later, and begins another life at once.
func (w *world) fresh(ctx context.Context, s *seat, d time.Duration) {
	w.later(ctx, d, func() {
		s.disk.set(0, false)
		s.stop(true)
		w.start(s)
	})
}

// down ends a node's life, and begins another one later.
func (w *world) down(ctx context.Context, s *seat, killed bool, d time.Duration, what string) {
	if s.node() == nil {
		return
	}
	w.count(what, 1)
	s.stop(killed)
	w.later(ctx, d, func() { w.start(s) })
}

// later does something when some time has passed, unless ctx ends before.
func (w *world) later(ctx context.Context, d time.Duration, do func()) {
	w.busy.Go(func() {
		if rest(ctx, d) {
			do()
		}
	})
}

// heal ends all faults.
func (w *world) heal() {
	w.busy.Wait()
	w.net.heal()
	for _, s := range w.seats {
		s.disk.set(0, false)
		s.mu.Lock()
		l := s.life
		s.mu.Unlock()
		if l != nil && l.failing() { // its disk was full, and nothing was written since
			s.stop(true)
		}
		w.start(s)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.healed = time.Now()
}
