package machine_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/votes"
)

// FuzzEveryKind gives bodies to Check under every tag there is: what it takes has
// one encoding, a stranger gets no further than an anchor, and nothing panics.
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
			_, stranger := checker.Check("stranger", frame)
			if known := machine.FrameKind(frame) != ""; !known && (anchor == nil || !errors.Is(anchor, machine.ErrFrame)) {
				t.Fatalf("tag %q: %v", tag, anchor)
			}
			if stranger == nil && anchor != nil && !errors.Is(anchor, votes.ErrForged) && tag != 'o' {
				t.Fatalf("tag %q: a stranger may, an anchor may not: %v", tag, anchor)
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
