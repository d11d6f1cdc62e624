package admission

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aweigh/aweigh/node/machine"
)

// from is an event of a peer with a number, so that order shows.
func from(p machine.Peer, n int) machine.Arrived {
	return machine.Arrived{From: p, Message: machine.Ask{Round: uint64(n)}}
}

// TestOnePeerDoesNotFillTheIntake: a peer that floods waits, in number and in
// bytes, and what others send is taken with the next batch all the same.
func TestOnePeerDoesNotFillTheIntake(t *testing.T) {
	in := NewIntake(anchors{})
	n := 0
	for in.Offer("flood", from("flood", n), 100) {
		n++
	}
	if n != peerEvents {
		t.Errorf("%d events of one peer wait, the limit is %d", n, peerEvents)
	}
	if !in.Offer("quiet", from("quiet", 0), 100) {
		t.Fatal("no room for another peer")
	}
	if batch := in.Take(nil, 4); batch[1].(machine.Arrived).From != "quiet" {
		t.Errorf("took %v", batch)
	}
	in = NewIntake(anchors{})
	for n = 0; in.Offer("large", from("large", n), 1<<20); n++ {
	}
	if n != peerBytes>>20 {
		t.Errorf("%d MiB of one peer wait, the limit is %d", n, peerBytes>>20)
	}
	for p := 0; in.Offer(machine.Peer(fmt.Sprint(p)), from("x", 0), peerBytes); p++ {
	}
	if got := in.lanes[1].bytes; got > laneBytes {
		t.Errorf("%d bytes of non-members wait, the limit is %d", got, laneBytes)
	}
}

// most is how many events one step takes.
const most = 1024

// TestAnchorsComeFirst: however much waits of non-members, anchors' messages are in
// the next batch, and few of theirs.
func TestAnchorsComeFirst(t *testing.T) {
	in := NewIntake(anchors{"anchor": true})
	for p := range 8 {
		for k := range 1000 {
			in.Offer(machine.Peer(fmt.Sprint(p)), from("stranger", k), 1)
		}
	}
	for k := range 100 {
		in.Offer("anchor", from("anchor", k), 1)
	}
	batch := in.Take(nil, most)
	if len(batch) != 100+nonMembersAtOnce {
		t.Errorf("%d events in a batch", len(batch))
	}
	for k := range 100 {
		if batch[k] != machine.Event(from("anchor", k)) {
			t.Fatalf("event %d is %v", k, batch[k])
		}
	}
	if len(in.ready) != 1 {
		t.Error("no reader learns that more waits")
	}
}

// TestIntakeLosesNothing: many peers put more than fits while a runner takes, and
// all of it comes out, each peer's in order.
func TestIntakeLosesNothing(t *testing.T) {
	const peers, each = 8, 3000
	in := NewIntake(anchors{"p0": true, "p1": true})
	var putting sync.WaitGroup
	for p := range peers {
		putting.Add(1)
		go func() {
			defer putting.Done()
			name := machine.Peer(fmt.Sprint("p", p))
			for k := range each {
				in.Put(name, from(name, k), 20_000)
			}
		}()
	}
	next := make(map[machine.Peer]uint64)
	for got := 0; got < peers*each; {
		select {
		case <-in.ready:
		case <-time.After(10 * time.Second):
			t.Fatalf("%d of %d events came", got, peers*each)
		}
		for _, ev := range in.Take(nil, most) {
			a := ev.(machine.Arrived)
			if round := a.Message.(machine.Ask).Round; round != next[a.From] {
				t.Fatalf("%s: event %d instead of %d", a.From, round, next[a.From])
			}
			next[a.From]++
			got++
		}
	}
	putting.Wait()
	in.Close()
	if in.Put("p0", from("p0", 0), 1) {
		t.Error("a closed intake took something")
	}
}
