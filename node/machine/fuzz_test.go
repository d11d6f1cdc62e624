package machine_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/aweigh/aweigh/internal/refusal"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/votes"
)

// FuzzEveryKind gives bodies to Check under every tag there is: what it takes has
// one encoding, a non-member gets no further than an anchor, and nothing panics.
func FuzzEveryKind(f *testing.F) {
	n := newNetwork(f, "fuzz")
	seen := make(map[byte]bool)
	for _, frame := range n.traffic(f) {
		if !seen[frame[0]] {
			seen[frame[0]] = true
			f.Add(frame[1:])
		}
	}
	f.Add([]byte{})
	checker := n.machines[0].Checker()
	f.Fuzz(func(t *testing.T, body []byte) {
		for tag := range 256 {
			tag := byte(tag)
			frame := append([]byte{tag}, body...)
			_, anchor := checker.Check(n.peers[1], frame)
			_, nonMember := checker.Check("stranger", frame)
			if known := machine.FrameKind(frame) != ""; !known && (anchor == nil || !errors.Is(anchor, machine.ErrFrame)) {
				t.Fatalf("tag %q: %v", tag, anchor)
			}
			if nonMember == nil && anchor != nil && !errors.Is(anchor, votes.ErrForged) && tag != 'o' {
				t.Fatalf("tag %q: a non-member may, an anchor may not: %v", tag, anchor)
			}
			for _, err := range []error{anchor, nonMember} {
				if err != nil && refusal.Of(err) == refusal.Internal {
					t.Fatalf("tag %q is refused without a class: %v", tag, err)
				}
			}
			if anchor != nil {
				continue
			}
			content, err := machine.Parse(frame)
			if err != nil {
				t.Fatalf("tag %q is checked, and does not parse: %v", tag, err)
			}
			if !bytes.Equal(machine.Frame(content), frame) {
				t.Fatalf("tag %q: a %T with two encodings", tag, content)
			}
		}
	})
}

// TestEveryRefusalOfAFrameHasAClass damages frames of all kinds at each place and cuts them off there.
func TestEveryRefusalOfAFrameHasAClass(t *testing.T) {
	n := newNetwork(t, "classes")
	checker := n.machines[0].Checker()
	refused := make(map[refusal.Class]int)
	check := func(f []byte) {
		for _, from := range []machine.Peer{n.peers[1], "stranger"} {
			if _, err := checker.Check(from, f); err != nil {
				c := refusal.Of(err)
				if refused[c]++; c == refusal.Internal {
					t.Fatalf("a frame %q is refused without a class: %v", f[:1], err)
				}
			}
		}
	}
	seen := make(map[byte]bool)
	for _, f := range n.traffic(t) {
		if seen[f[0]] {
			continue
		}
		seen[f[0]] = true
		for i := range f {
			check(f[:i])
			for bit := 0; bit < 8; bit += testshort.Cases(5, 1, 1) {
				g := bytes.Clone(f)
				g[i] ^= 1 << bit
				check(g)
			}
		}
	}
	for _, c := range []refusal.Class{refusal.Malformed, refusal.Forged, refusal.Invalid, refusal.Foreign, refusal.Stale} {
		if refused[c] == 0 {
			t.Errorf("no frame was refused as %v: %v", c, refused)
		}
	}
}
