package node

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aweigh/aweigh"
)

// from is an event of a peer with a number, so that order shows.
func from(p Peer, n int) Arrived { return Arrived{From: p, Message: Ask{Round: uint64(n)}} }

// TestOnePeerDoesNotFillTheIntake: a peer that floods waits, in number and in
// bytes, and what others send is taken with the next batch all the same.
func TestOnePeerDoesNotFillTheIntake(t *testing.T) {
	in := newIntake(rollOf(nil))
	n := 0
	for in.offer("flood", from("flood", n), 100) {
		n++
	}
	if n != peerEvents {
		t.Errorf("%d events of one peer wait, the limit is %d", n, peerEvents)
	}
	if !in.offer("quiet", from("quiet", 0), 100) {
		t.Fatal("no room for another peer")
	}
	if batch := in.take(nil, 4); batch[1].(Arrived).From != "quiet" {
		t.Errorf("took %v", batch)
	}
	in = newIntake(rollOf(nil))
	for n = 0; in.offer("large", from("large", n), 1<<20); n++ {
	}
	if n != peerBytes>>20 {
		t.Errorf("%d MiB of one peer wait, the limit is %d", n, peerBytes>>20)
	}
	for p := 0; in.offer(Peer(fmt.Sprint(p)), from("x", 0), peerBytes); p++ {
	}
	if got := in.lanes[1].bytes; got > laneBytes {
		t.Errorf("%d bytes of strangers wait, the limit is %d", got, laneBytes)
	}
}

// TestAnchorsComeFirst: however much waits of strangers, anchors' messages are in
// the next batch, and few of theirs.
func TestAnchorsComeFirst(t *testing.T) {
	in := newIntake(rollOf(map[Peer]aweigh.AnchorID{"anchor": {}}))
	for p := range 8 {
		for k := range 1000 {
			in.offer(Peer(fmt.Sprint(p)), from("stranger", k), 1)
		}
	}
	for k := range 100 {
		in.offer("anchor", from("anchor", k), 1)
	}
	batch := in.take(nil, maxBatch)
	if len(batch) != 100+strangersAtOnce {
		t.Errorf("%d events in a batch", len(batch))
	}
	for k := range 100 {
		if batch[k] != Event(from("anchor", k)) {
			t.Fatalf("event %d is %v", k, batch[k])
		}
	}
	if len(in.ready) != 1 {
		t.Error("nobody is told that more waits")
	}
}

// TestIntakeLosesNothing: many peers put more than fits while a runner takes, and
// all of it comes out, each peer's in order.
func TestIntakeLosesNothing(t *testing.T) {
	const peers, each = 8, 3000
	in := newIntake(rollOf(map[Peer]aweigh.AnchorID{"p0": {}, "p1": {}}))
	var putting sync.WaitGroup
	for p := range peers {
		putting.Add(1)
		go func() {
			defer putting.Done()
			name := Peer(fmt.Sprint("p", p))
			for k := range each {
				in.put(name, from(name, k), 20_000)
			}
		}()
	}
	next := make(map[Peer]uint64)
	for got := 0; got < peers*each; {
		select {
		case <-in.ready:
		case <-time.After(10 * time.Second):
			t.Fatalf("%d of %d events came", got, peers*each)
		}
		for _, ev := range in.take(nil, maxBatch) {
			a := ev.(Arrived)
			if round := a.Message.(Ask).Round; round != next[a.From] {
				t.Fatalf("%s: event %d instead of %d", a.From, round, next[a.From])
			}
			next[a.From]++
			got++
		}
	}
	putting.Wait()
	in.close()
	if in.put("p0", from("p0", 0), 1) {
		t.Error("a closed intake took something")
	}
}

// TestStrangersShareOneBudget: many identities get no more than the budget of all
// strangers, and anchors do not wait for them.
func TestStrangersShareOneBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		anchors := map[Peer]aweigh.AnchorID{"a": {}, "b": {}, "c": {}, "d": {}}
		a := newAccounts(rollOf(anchors), newStrangers())
		bundle := append([]byte{tagBundle}, make([]byte, 300)...)
		let := 0
		for k := range 10_000 {
			if a.wait(Peer(fmt.Sprint("stranger", k%500)), bundle) == 0 {
				let++
			}
		}
		if most := allStrangers/(len(anchors)*signatureCost) + 50; let > most {
			t.Errorf("%d bundles of strangers at once, at most %d should be", let, most)
		}
		if d := a.wait("a", bundle); d > 0 {
			t.Errorf("an anchor waits %v for strangers", d)
		}
		for range 20_000 {
			a.wait("b", bundle)
		}
		if a.wait("b", bundle) == 0 || a.wait("c", bundle) > 0 {
			t.Error("a flooding anchor does not wait, or another waits for it")
		}
	})
}

// TestAnswersAreOwed: whoever asks for blocks or ballots waits until what it got
// before is within its rate.
func TestAnswersAreOwed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for tag, question := range map[byte][]byte{
			tagBlocks: frame(tagCatchUp, CatchUp{From: 1}),
			tagMeet:   frame(tagMeet, Meeting{Part: GoesOn}),
		} {
			a := newAccounts(rollOf(nil), newStrangers())
			if d := a.wait("p", question); d > 0 {
				t.Fatalf("%s: the first question waits %v", kinds[tag], d)
			}
			for range 10 {
				a.gave("p", append([]byte{tag}, make([]byte, 6<<20)...))
			}
			if d := a.wait("p", question); d < time.Second {
				t.Errorf("%s: after 60 MiB the next question waits %v", kinds[tag], d)
			}
			if d := a.wait("q", question); d > 0 {
				t.Errorf("%s: another peer waits %v", kinds[tag], d)
			}
		}
	})
}

// TestEveryFrameHasACost: a frame costs at least its decoding, and one that holds
// more signatures costs more.
func TestEveryFrameHasACost(t *testing.T) {
	a := newAccounts(rollOf(map[Peer]aweigh.AnchorID{"a": {}}), newStrangers())
	for tag := range kinds {
		for _, anchor := range []bool{true, false} {
			short, long := a.cost([]byte{tag}, anchor), a.cost(append([]byte{tag}, make([]byte, 1<<20)...), anchor)
			if short < frameCost || long < short {
				t.Errorf("%s, anchor %v: %d µs for a byte, %d for a MiB", kinds[tag], anchor, short, long)
			}
		}
	}
	if offer := a.cost(append([]byte{tagOffer}, make([]byte, 1<<20)...), true); offer < 100*signatureCost {
		t.Errorf("an anchor's offer of a MiB costs %d µs", offer)
	}
}

// rollOf is a roll of anchors and nothing else.
func rollOf(anchors map[Peer]aweigh.AnchorID) *roll {
	r := new(roll)
	r.call(&term{anchors: anchors})
	return r
}

// TestVotesHaveABudgetOfTheirOwn: an anchor that floods with ballots, or with
// offers that are passed over, waits long before it has taken what the writes of
// its clients may take.
func TestVotesHaveABudgetOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAccounts(rollOf(map[Peer]aweigh.AnchorID{"a": {}, "b": {}}), newStrangers())
		ballot, offer := append([]byte{tagBallot}, make([]byte, 300)...), append([]byte{tagOffer}, make([]byte, 140_000)...)
		let := 0
		for let < 10_000 && a.wait("a", ballot) == 0 {
			let++
		}
		if most := anchorVotes/signatureCost + 50; let > most || let < most/2 {
			t.Errorf("%d ballots at once, %d may be", let, most)
		}
		if d := a.wait("a", append([]byte{tagBundle}, make([]byte, 300)...)); d > 0 {
			t.Errorf("what its clients write waits %v for its ballots", d)
		}
		for let = 0; let < 10_000 && a.passed("b", offer) == 0; let++ {
		}
		if let > 2*anchorVotes*bytesUnread/len(offer) {
			t.Errorf("%d offers of %d bytes are passed over at once", let, len(offer))
		}
	})
}
