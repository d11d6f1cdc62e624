package trust_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/trust"
)

// history is a scope that lives through epochs of random events.
type history struct {
	r       *rand.Rand
	o       *rand.Rand // of opinions
	p       trust.Params
	ledger  trust.Ledger
	weights quorum.Weights
	epoch   aweigh.Epoch
	names   int // given out so far
}

func newHistory(seed uint64, founding int) *history {
	h := &history{r: rand.New(rand.NewPCG(seed, 9)), o: rand.New(rand.NewPCG(seed, 50)), p: trust.DefaultParams(), names: founding}
	for i := range founding {
		h.ledger = h.ledger.Apply(h.p, founded(named(i), trust.Score(h.r.IntN(1_000_001))))
	}
	h.weights, _ = h.ledger.Next(h.p, 0, quorum.Weights{})
	return h
}

// live is one more epoch: it gives the evidence of the epoch, the ledger and
// weights before it, and goes on to the next.
func (h *history) live(t testing.TB) (events []trust.Evidence, before trust.Ledger, weights quorum.Weights) {
	blocks := uint32(h.r.IntN(100))
	any := func() aweigh.AnchorID { return named(h.r.IntN(h.names)) }
	for s := range h.ledger.All() {
		if !s.Seated {
			continue
		}
		timely := uint32(h.r.IntN(int(blocks) + 1))
		if h.r.IntN(3) > 0 {
			timely = blocks
		}
		late := uint32(h.r.IntN(int(blocks-timely) + 1))
		events = append(events, trust.Evidence{
			Anchor: s.Anchor, Kind: trust.Attended, Epoch: h.epoch,
			Record: trust.Attendance{Blocks: blocks, Timely: timely, Late: late, Led: uint32(h.r.IntN(9)), Nullified: uint32(h.r.IntN(3)),
				With: uint32(h.o.IntN(4)), Against: uint32(h.o.IntN(3)), Silent: uint32(h.o.IntN(2))},
		})
	}
	switch h.r.IntN(8) {
	case 0:
		events = append(events, admitted(named(h.names), any(), h.epoch))
		h.names++
	case 1:
		events = append(events, admitted(any(), any(), h.epoch))
	case 2:
		events = append(events, back(any(), h.epoch))
	case 3:
		if h.r.IntN(3) == 0 {
			events = append(events, caught(any(), h.epoch))
		}
	case 4:
		if h.r.IntN(3) == 0 {
			events = append(events, left(any(), h.epoch))
		}
	case 5:
		events = append(events, attested(any(), trust.Score(h.r.IntN(1_000_001))))
	}
	before, weights = h.ledger, h.weights
	ledger := h.ledger.Apply(h.p, events...)
	next, err := ledger.Next(h.p, h.epoch+1, h.weights)
	if err != nil {
		t.Fatalf("epoch %d: %v", h.epoch, err)
	}
	h.ledger, h.weights = ledger, next
	h.epoch++
	return events, before, weights
}

// TestHistoryHasOneOutcome pins scores and weights after long histories: every
// machine computes the same, whatever its word size.
func TestHistoryHasOneOutcome(t *testing.T) {
	for seed, want := range map[uint64]string{
		1: "35 anchors, ledger c594f575, 28 weigh 23669, weights 5189567f",
		2: "48 anchors, ledger 1c720be5, 28 weigh 24784, weights e3d0b787",
		3: "54 anchors, ledger 71160569, 38 weigh 33605, weights 633ef557",
	} {
		h := newHistory(seed, 4+3*int(seed))
		for range 500 {
			h.live(t)
		}
		got := fmt.Sprintf("%d anchors, ledger %s, %d weigh %d, weights %s", h.ledger.Len(), h.ledger.Digest().Short(), h.weights.Len(), h.weights.Total(), h.weights.Hash().Short())
		if got != want {
			t.Errorf("seed %d: %s, want %s", seed, got, want)
		}
	}
}

// TestEpochsKeepTheirPromises checks the promises of Next with random histories.
func TestEpochsKeepTheirPromises(t *testing.T) {
	free, bound := 0, 0
	for seed := range uint64(60) {
		h := newHistory(seed, 4+int(seed)%20)
		for range 60 {
			events, ledger, before := h.live(t)
			after, shares, err := h.ledger.NextExplained(h.p, h.epoch, before)
			if err != nil || after.Hash() != h.weights.Hash() {
				t.Fatalf("explained and unexplained differ: %v", err)
			}
			n := after.Len()
			var changed, fresh uint64
			calm := true // no anchor came or went, so that the caps were as tight before
			for _, s := range shares {
				old, now := before.Of(s.Anchor), after.Of(s.Anchor)
				changed += max(old, now) - min(old, now)
				if old == 0 && now > 0 {
					fresh++
				}
				if n >= 4 && uint64(h.p.ShareOf(n).Den)*now > uint64(h.p.ShareOf(n).Num)*after.Total() {
					t.Fatalf("%d of %d above %v", now, after.Total(), h.p.ShareOf(n))
				}
				if s.Weight != now || s.Capped > s.Raw || now > 0 && (s.Raw < h.p.Floor || s.Raw > h.p.Ceiling) {
					t.Fatalf("%+v", s)
				}
			}
			calm = fresh == 0 && before.Len() == n
			if calm {
				free++
				if changed > before.Total()/10 {
					t.Fatalf("seed %d, epoch %d: changes of %d, of %d", seed, h.epoch, changed, before.Total())
				}
				if 20*changed > before.Total() {
					bound++
				}
			}
			if again := ledger.Apply(h.p, events...); again.Digest() != h.ledger.Digest() {
				t.Fatal("replayed, the ledger differs")
			}
		}
	}
	if free < 1_000 || bound == 0 {
		t.Errorf("%d quiet epochs, %d with large changes: too tame", free, bound)
	}
}

// TestNamesAreNothing: a history whose anchors have other names, and so another
// order, has the same scores and weights.
func TestNamesAreNothing(t *testing.T) {
	other := func(a aweigh.AnchorID) aweigh.AnchorID {
		if a.IsZero() {
			return a
		}
		return aweigh.Sum([]byte("other"), a[:])
	}
	for seed := range uint64(10) {
		h := newHistory(seed, 5+int(seed))
		var twin trust.Ledger
		for s := range h.ledger.All() {
			twin = twin.Apply(h.p, founded(other(s.Anchor), s.Score))
		}
		weights, err := twin.Next(h.p, 0, quorum.Weights{})
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			events, _, _ := h.live(t)
			for i := range events {
				events[i].Anchor, events[i].Sponsor = other(events[i].Anchor), other(events[i].Sponsor)
			}
			twin = twin.Apply(h.p, events...)
			if weights, err = twin.Next(h.p, h.epoch, weights); err != nil {
				t.Fatal(err)
			}
			for s := range h.ledger.All() {
				if x, ok := twin.Standing(other(s.Anchor)); !ok || x.Score != s.Score || x.Blame != s.Blame || weights.Of(x.Anchor) != h.weights.Of(s.Anchor) {
					t.Fatalf("seed %d, epoch %d: %d weighs %d, and under another name %d weighs %d", seed, h.epoch,
						s.Score, h.weights.Of(s.Anchor), x.Score, weights.Of(x.Anchor))
				}
			}
		}
	}
}
