package machine

import "testing"

// TestThoseThatWereMetHaveTheirTurnFirst: a node that starts while another is gone
// does not wait for that one, time and again.
func TestThoseThatWereMetHaveTheirTurnFirst(t *testing.T) {
	m := &Machine{peers: []Peer{"a", "b", "c", "d"}, away: make(map[Peer]bool)}
	turns := func() (all Peer) {
		for range 4 {
			all += m.turn()
		}
		return all
	}
	expect := func(when string, want Peer) {
		t.Helper()
		if got := turns(); got != want {
			t.Errorf("%s: %s have their turn, not %s", when, got, want)
		}
	}
	expect("before anyone was met", "bcda")
	m.away["b"], m.away["d"] = false, false
	expect("with b and d met", "bdbd")
	m.away["b"] = true
	expect("after b left", "dddd")
	m.away["d"] = true
	expect("after d left, too", "acac")
	m.away["a"], m.away["c"] = true, true
	expect("with nobody left", "")
}
