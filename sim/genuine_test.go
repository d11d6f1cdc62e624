package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/forge"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/sim/scenario"
)

// frames are frames of each kind that are on their way in a world, such that hold a signature if some do.
func (w *World) frames(seen map[string]event, signed map[string]bool) {
	look := func(all heap) {
		for _, e := range all {
			if e.frame == nil || signed[machine.FrameKind(e.frame.raw)] {
				continue
			}
			kind := machine.FrameKind(e.frame.raw)
			signed[kind] = slices.ContainsFunc(forge.Open(e.frame.open(), quorum.Notarize).Sites, func(s *forge.Site) bool { return s.Class == forge.Bytes })
			seen[kind] = e
		}
	}
	look(w.queue.near)
	for _, slot := range w.queue.slots {
		look(w.queue.far[slot])
	}
}

// TestForgeriesAreSeen makes the watch forget which signatures were made: then every proof counts as forged.
func TestForgeriesAreSeen(t *testing.T) {
	w := newWorld(t, scenario.Scenario{
		Network: scenario.Network{Anchors: 5}, Load: scenario.Load{Clients: 4, Writes: 200, Reads: 100}, Stop: 6 * time.Second,
		Approval: scenario.Approval{Motions: 4, Keys: 2, Nodes: 1},
		Faults:   scenario.Faults{Loss: 250_000, Timed: []scenario.Fault{{Kind: "churn", Nodes: []int{4}, Rate: 4}}},
	})
	w.startClients()
	w.scheduleFaults()
	w.startMotions()
	seen, signed := make(map[string]event), make(map[string]bool)
	for w.Now() < w.Scenario.Stop {
		w.Run(time.Millisecond, nil)
		w.frames(seen, signed)
	}
	if x := w.watch.verdicts[Genuine]; x.Checks == 0 || x.Broken != 0 {
		t.Fatalf("nothing is forged: %+v, %v", x, w.watch.broken)
	}
	breaks := func(look func()) bool {
		w.events = 0 // the watch looks at some frames alone
		before := w.watch.verdicts[Genuine].Broken
		look()
		return w.watch.verdicts[Genuine].Broken > before
	}
	w.made = newSignatures()
	for _, kind := range machine.FrameKinds() {
		e, ok := seen[kind]
		if !ok {
			t.Errorf("no %s was sent", kind)
			continue
		}
		told := breaks(func() { w.watch.tells(e.from, e.frame) })
		passed := breaks(func() { w.watch.passes(e.from, w.Nodes[0], e.frame) })
		if want := signed[kind] && kind != "ballot"; told != want { // ballots are held to others in watch.ballot
			t.Errorf("%s: forged, and sent by an honest node: seen is %v", describe(e.frame), told)
		}
		switch kind {
		case "answer", "meeting": // the checks verify nothing in them
		default:
			if passed != signed[kind] {
				t.Errorf("%s: forged, and taken from a liar: not seen", describe(e.frame))
			}
		}
	}
	n := w.Nodes[0]
	if !breaks(func() { w.watch.recorded(n) }) || !breaks(func() { w.watch.genuine(n, n.Height-1) }) {
		t.Error("what is on record is forged, and nothing is seen")
	}
}

// TestCertificatesAreCountedAfresh holds the watch's own count to every way to forge a certificate.
func TestCertificatesAreCountedAfresh(t *testing.T) {
	w := newWorld(t, scenario.Scenario{Network: scenario.Network{Anchors: 7}})
	w.writes(t, "a", 4, w.Nodes...)
	f, err := machine.History{Reader: w.Nodes[0].Disk, Scope: w.id}.Finality(2)
	if err != nil || w.finality(f) != nil {
		t.Fatal(err, w.finality(f))
	}
	l := &liar{plan: &plan{w: w, rand: w.chance}, n: w.Nodes[6]}
	x := &forging{}
	k := x.ready(l)
	k.Keys = append(k.Keys, *l.n.key)
	for _, op := range forge.OperatorsOf(forge.Certificate) {
		for range 20 {
			m := forge.Open(f, quorum.Notarize)
			for _, s := range m.Sites {
				if s.Class != forge.Certificate || !k.Forge(m, s, op) {
					continue
				}
				if w.finality(m.Content().(scope.Finality)) == nil {
					t.Errorf("%s: not seen", op.Name)
				}
			}
		}
	}
}
