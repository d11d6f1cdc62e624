package sim

import (
	"testing"
	"time"

	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/sim/scenario"
)

// healedWorld is one whose faults and clients are over, and which has settled.
func healedWorld(t *testing.T) *World {
	w := newWorld(t, scenario.Scenario{Network: scenario.Network{Anchors: 4}, Stop: 2 * time.Second})
	w.startClients()
	w.Run(w.Scenario.Stop, nil)
	w.heal()
	if s := w.settling(); !w.Run(time.Minute, s.done) {
		t.Fatal("requests are open after a minute")
	}
	return w
}

// TestRequestsWithoutReplyAreSeen takes the reply to a read away.
func TestRequestsWithoutReplyAreSeen(t *testing.T) {
	w := healedWorld(t)
	n := w.Nodes[1]
	n.Read(func(machine.Reply) { t.Error("answered") })
	delete(n.requests, requestID{number: n.asked})
	n.expect(request{requestID: requestID{number: n.asked + 1}, what: "read"})
	s := w.settling()
	if w.Run(time.Minute, s.done) {
		t.Fatal("all is settled, and one read was not answered")
	}
	s.demand(time.Minute)
	if len(w.watch.broken) != 1 || w.watch.broken[0].Invariant != "settled" || w.watch.broken[0].Node != 1 {
		t.Fatalf("%v", w.watch.broken)
	}
}

// TestNetworksThatAreNeverQuietAreSeen: a node asks for one block again and again.
func TestNetworksThatAreNeverQuietAreSeen(t *testing.T) {
	for _, every := range []time.Duration{time.Hour, 10 * time.Millisecond} {
		w := healedWorld(t)
		var again func()
		again = func() {
			w.Nodes[0].Send(machine.Packet{To: w.Nodes[1].Peer, Frame: machine.Frame(machine.CatchUp{From: 1 << 40})})
			w.at(every, again)
		}
		w.at(every, again)
		err := w.waitForQuiet(func(within time.Duration, done func() bool) error {
			w.Run(within, done)
			return nil
		})
		if broken := len(w.watch.broken) > 0; err != nil || broken != (every < time.Second) {
			t.Errorf("every %v: %v, %v", every, w.watch.broken, err)
		}
	}
}
