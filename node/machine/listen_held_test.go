package machine

import (
	"testing"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
)

// TestHeldSubjectsOfLowViewsGiveWay: an anchor that listens is asked to give up its view, and then to finalize blocks
// of earlier views. The first is what the others may need, and the engine does not ask for it again.
func TestHeldSubjectsOfLowViewsGiveWay(t *testing.T) {
	var l startupBarrier
	last := quorum.Subject{Kind: quorum.Nullify, View: 4, Block: quorum.NoBlock}
	l.hold(last, 2)
	for v := range 3 {
		l.hold(quorum.Subject{Kind: quorum.Finalize, View: aweigh.View(1 + v), Block: quorum.NoBlock}, 2)
	}
	if len(l.held) != 2 || l.held[0] != last || l.held[1].View != 3 {
		t.Errorf("held: %v", l.held)
	}
}
