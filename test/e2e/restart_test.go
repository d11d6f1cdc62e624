package e2e

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestRestartContinues: all nodes at once are stopped, or killed, while clients
// write, and everything acknowledged is there afterwards.
func TestRestartContinues(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		rounds int
		end    func(t *testing.T, n *network)
	}{
		{"stopped", 2, stopAll},
		{"killed", 4, killAll},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNetwork(t, 4, false)
			n.start()
			h := newHistory()
			rounds := c.rounds
			if !thorough() {
				rounds = (rounds + 1) / 2
			}
			for round := range rounds {
				stop := make(chan struct{})
				clients := h.workAs(round*8, n, rand.New(rand.NewPCG(uint64(round), 2)), 8, 5, stop)
				timer := time.NewTimer(time.Second + time.Duration(round)*100*time.Millisecond)
				<-timer.C // under load for a while
				c.end(t, n)
				began := time.Now()
				n.start()
				t.Logf("all are back in %s", time.Since(began).Round(time.Millisecond))
				close(stop)
				clients.Wait()
			}
			h.verify(t, n)
		})
	}
}

// stopAll asks the nodes to stop one after the other, which takes each out of
// the work of its clients.
func stopAll(t *testing.T, n *network) {
	for _, p := range n.nodes {
		began := time.Now()
		if code := p.signal(sigTerm); code != 0 {
			t.Errorf("%s: exit code %d; see %s", p.name, code, p.log())
		}
		t.Logf("%s stopped in %s", p.name, time.Since(began).Round(time.Millisecond))
	}
}

func killAll(_ *testing.T, n *network) {
	for _, p := range n.nodes {
		p.shoot(sigKill)
	}
	for _, p := range n.nodes {
		p.signal(sigKill)
	}
}
