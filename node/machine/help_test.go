package machine

import (
	"fmt"
	"testing"
)

// TestFewHelpedPeersAreRemembered: what a machine keeps of peers that it helped is bounded, however many ask.
func TestFewHelpedPeersAreRemembered(t *testing.T) {
	var help nextHelp
	for i := range 3 * MaxHelped {
		help.may(Peer(fmt.Sprint(i)), 1, MaxHelped)
	}
	if n := len(help); n == 0 || n > MaxHelped {
		t.Errorf("%d were helped, at most %d", n, MaxHelped)
	}
}
