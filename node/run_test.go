package node

import (
	"testing"

	"github.com/aweigh/aweigh/node/admission"
	"github.com/aweigh/aweigh/node/machine"
)

// sentTo keeps the frames that a runner sends.
type sentTo struct{ frames [][]byte }

func (s *sentTo) Send(_ machine.Peer, f []byte) { s.frames = append(s.frames, f) }
func (s *sentTo) Gossip(f []byte)               { s.frames = append(s.frames, f) }
func (s *sentTo) Followed() bool                { return true }

// TestRunnersRepeatWhatTheyMay: repetitions have a limit, what is sent for the first time has none.
func TestRunnersRepeatWhatTheyMay(t *testing.T) {
	to := new(sentTo)
	r := runner{carrier: to, repeats: admission.NewRepeats().Scope()}
	const each = 10_000
	for range each {
		r.Send(machine.Packet{Frame: []byte("again"), Again: true})
		r.Send(machine.Packet{Frame: []byte("first")})
	}
	again, first := 0, 0
	for _, f := range to.frames {
		if string(f) == "again" {
			again++
		} else {
			first++
		}
	}
	if first != each || again == 0 || again > each/2 {
		t.Errorf("of %d each, %d were sent and %d repeated", each, first, again)
	}
}
