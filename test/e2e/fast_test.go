package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestNetworkChangesToOneRound: a running network changes from mode bft to fast. One anchor is killed, and the other
// three make blocks final in one round of votes. All are killed at once, and nothing acknowledged is lost. Then the
// network changes back. Proofs of blocks of each mode hold in the other, from the network's identity alone.
func TestNetworkChangesToOneRound(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, 4, false)
	n.start()
	n.put(0, "/bft")
	n.mode("fast", 0, 1, 2)
	n.put(0, "/fast/all")
	n.nodes[3].signal(sigKill)
	for i := range 12 {
		n.put(i%3, fmt.Sprint("/fast/three/", i))
	}
	if quick := n.quick(); quick == 0 {
		t.Error("no block was final in one round of votes")
	} else {
		t.Logf("%d of 12 proofs are of one round", quick)
	}
	if n.oneRound("/bft") {
		t.Error("one round of votes made a block final in mode bft")
	}
	for _, p := range n.nodes[:3] {
		p.signal(sigKill)
	}
	n.start()
	n.agreed(30 * time.Second)
	for _, key := range []string{"/bft", "/fast/all", "/fast/three/11"} {
		if got := n.must("get", key, "--api", n.nodes[3].api, "-o", "value"); got != "v\n" {
			t.Errorf("%s is %q after the restart", key, got)
		}
	}
	n.mode("bft", 1, 2, 3)
	n.put(0, "/bft/again")
	if n.oneRound("/bft/again") || n.quick() == 0 {
		t.Error("the proofs changed with the mode")
	}
	n.agreed(20 * time.Second)
}

// mode sets the root's mode by the approval of some anchors, and waits until all nodes are in an epoch of it.
func (n *network) mode(mode string, by ...int) {
	n.t.Helper()
	for _, i := range by {
		n.must("policy", "set", "--mode", mode, "--api", n.nodes[i].api)
	}
	for _, p := range n.nodes {
		until(n.t, 30*time.Second, p.name+" is in mode "+mode, func(ctx context.Context) error {
			s, err := p.status(ctx)
			if err == nil && (s.Mode != mode || (s.OneRound > 0) != (mode == "fast")) {
				err = fmt.Errorf("mode %s in epoch %d, %d decides in one round", s.Mode, s.Header.Epoch, s.OneRound)
			}
			return err
		})
	}
}

// quick counts the writes after the kill of which the proof is of one round.
func (n *network) quick() (quick int) {
	n.t.Helper()
	for i := range 12 {
		if n.oneRound(fmt.Sprint("/fast/three/", i)) {
			quick++
		}
	}
	return quick
}

// oneRound verifies a key's proof by the network's identity, and reports whether one round of votes made its block
// final.
func (n *network) oneRound(key string) bool {
	n.t.Helper()
	if n.id == "" {
		var s struct {
			Header struct{ Network string }
		}
		status := n.must("status", "--api", n.nodes[0].api, "-o", "json")
		if err := json.Unmarshal([]byte(status), &s); err != nil {
			n.t.Fatal(err)
		}
		n.id = s.Header.Network
	}
	return strings.Contains(n.must("why", key, "--api", n.nodes[0].api, "--network", n.id), "in one round of votes")
}
