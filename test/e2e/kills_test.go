package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// Bounds of one fault.
const (
	downMin  = 200 * time.Millisecond
	downMax  = 3 * time.Second
	calmMax  = 700 * time.Millisecond // between two faults
	backSoon = 30 * time.Second       // a node has caught up after its fault
	stillMax = 15 * time.Second       // with a quorum, somebody's write is acknowledged
)

// TestKillsLoseNothing: while nodes are killed, paused and cut off, never more
// at a time than may fail, clients are told the truth, and the network decides.
func TestKillsLoseNothing(t *testing.T) {
	t.Parallel()
	t.Run("bft", func(t *testing.T) { killsLoseNothing(t, newNetwork(t, 4, true)) })
	t.Run("crash", func(t *testing.T) { killsLoseNothing(t, newNetwork(t, 3, true, "--mode", "crash")) })
}

func killsLoseNothing(t *testing.T, n *network) {
	n.start()
	rng := drawn(t, 1)

	h := newHistory()
	stop := make(chan struct{})
	clients := h.work(n, rng, 8, 5, stop)
	faults := disturb(t, n, h, rng, *length)
	close(stop)
	clients.Wait()

	t.Logf("%d kills, %d pauses, %d times held, %d times cut off in %s", faults[0], faults[1], faults[2], faults[3], *length)
	if h.gap > stillMax {
		t.Errorf("no write was acknowledged for %s, although a quorum was there", h.gap)
	}
	h.verify(t, n)
}

var faultNames = [...]string{"killed", "paused", "held", "cut off"}

// disturb does one fault after the other, and waits after each until its victim
// has caught up.
func disturb(t *testing.T, n *network, h *history, rng *rand.Rand, length time.Duration) (count [4]int) {
	end := time.NewTimer(length)
	defer end.Stop()
	between := func(a, b time.Duration) bool { // false at the end
		wait := time.NewTimer(a + time.Duration(rng.Int64N(int64(b-a))))
		defer wait.Stop()
		select {
		case <-wait.C:
			return true
		case <-end.C:
			return false
		}
	}
	for going := true; going; {
		victim := rng.IntN(len(n.nodes))
		p := n.nodes[victim]
		what := rng.IntN(len(count))
		count[what]++
		hit := time.Since(h.start)
		var heal func()
		switch what {
		case 0:
			p.signal(sigKill)
			heal = p.start
		case 1:
			p.signal(sigPause)
			heal = func() { p.signal(sigGo) }
		case 2:
			n.isolate(victim, held)
			heal = func() { n.isolate(victim, open) }
		case 3:
			n.isolate(victim, cut)
			heal = func() { n.isolate(victim, open) }
		}
		going = between(downMin, downMax)
		heal()
		began := time.Now()
		healed := time.Since(h.start)
		if err := eventually(backSoon, p.ready); err != nil {
			t.Errorf("%s is not back %s after fault %d: %v", p.name, time.Since(began), what, err)
			return count
		}
		if err := eventually(backSoon, func(ctx context.Context) error { return levelWith(ctx, n, p) }); err != nil {
			t.Errorf("%s has not caught up %s after fault %d: %v", p.name, time.Since(began), what, err)
			return count
		}
		t.Logf("%7.3f s: %s %s for %s, caught up after %s", hit.Seconds(), p.name, faultNames[what],
			(healed - hit).Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
		going = going && between(0, calmMax)
	}
	return count
}

// levelWith objects while a node is behind the height that the others had.
func levelWith(ctx context.Context, n *network, p *process) error {
	mine, err := p.status(ctx)
	if err != nil {
		return err
	}
	for _, other := range n.nodes {
		s, err := other.status(ctx)
		if err != nil {
			return err
		}
		if mine.Header.Height+20 < s.Header.Height {
			return fmt.Errorf("height %d, %s is at %d", mine.Header.Height, other.name, s.Header.Height)
		}
	}
	return nil
}
