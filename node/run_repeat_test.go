package node

import (
	"testing"
	"time"
)

// sentTo keeps the frames that a runner sends.
type sentTo struct{ frames [][]byte }

func (s *sentTo) Send(_ Peer, f []byte) { s.frames = append(s.frames, f) }
func (s *sentTo) Gossip(f []byte)       { s.frames = append(s.frames, f) }
func (s *sentTo) Followed() bool        { return true }

// TestRepeatsAreBounded: of what only repeats, a node sends so much and no more, however
// many scopes there are; of all else, everything.
func TestRepeatsAreBounded(t *testing.T) {
	all := newRepeats()
	to := new(sentTo)
	var runners []*runner
	for range 100 {
		runners = append(runners, &runner{carrier: to, repeats: &all})
	}
	const each = 100
	for range each {
		for _, r := range runners {
			r.Send(Packet{Frame: []byte("again"), Again: true})
			r.Send(Packet{Frame: []byte("first")})
		}
	}
	again, first := 0, 0
	for _, f := range to.frames {
		if string(f) == "again" {
			again++
		} else {
			first++
		}
	}
	if left := int(all.left.Load()); first != 100*each || again < repeatsAtOnce || again > 2*repeatsAtOnce+300 || again+left != 100*each {
		t.Errorf("%d were sent, %d repeated, %d left out", first, again, left)
	}
	// A scope that repeats all the time leaves each other its own.
	all.limit.ReserveN(time.Now(), repeatsAtOnce)
	all.limit.ReserveN(time.Now(), repeatsAtOnce)
	quiet := runner{carrier: to, repeats: &all}
	quiet.Send(Packet{Frame: []byte("quiet"), Again: true})
	if string(to.frames[len(to.frames)-1]) != "quiet" {
		t.Error("a scope repeats nothing because others do")
	}
	alone := runner{carrier: to}
	alone.Send(Packet{Frame: []byte("again"), Again: true})
	if string(to.frames[len(to.frames)-1]) != "again" {
		t.Error("without a bound, it was left out")
	}
}
