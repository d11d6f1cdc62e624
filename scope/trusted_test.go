package scope

import (
	"errors"
	"strings"
	"testing"
)

// TestOldKeysForkHistoryAndThePinShowsIt: the founders' keys, which were stolen after
// some of the founders had left, sign another history from the genesis on. It verifies
// from the network's identity alone; nothing in it is false. A roster that is known to
// have been in force lately tells them apart.
func TestOldKeysForkHistoryAndThePinShowsIt(t *testing.T) {
	history := func(away string) (*realm, Ancestry) {
		r := newRealm(t, nil)
		if away != "" {
			r.away[r.id(away)] = true
		}
		for range 4 {
			r.turn()
		}
		for range 2 {
			r.add(r.next(nil, nil))
		}
		return r, Ancestry{Genesis: r.g, Handovers: r.hands, Head: r.final()}
	}
	real, honest := history("d")
	_, forged := history("")
	network := real.g.Hash()
	for _, a := range []Ancestry{honest, forged} {
		if _, err := a.Verify(network); err != nil {
			t.Fatalf("the test shows nothing: %v", err)
		}
	}
	pin := TrustedOf(real.epoch())
	if again, err := ParseTrusted(pin.String()); err != nil || again != pin {
		t.Errorf("%s is read as %s, %v", pin, again, err)
	}
	if err := pin.In(honest.Root()); err != nil {
		t.Errorf("the real history: %v", err)
	}
	if err := pin.In(forged.Root()); !errors.Is(err, ErrProof) || !strings.Contains(err.Error(), "another history") {
		t.Errorf("the forged history: %v", err)
	}
	short := honest
	short.Handovers = honest.Handovers[:2]
	if err := pin.In(short.Root()); !errors.Is(err, ErrProof) || !strings.Contains(err.Error(), "newer") {
		t.Errorf("a history that ends before the pin: %v", err)
	}
	first, err := real.g.Epoch()
	if err != nil {
		t.Fatal(err)
	}
	if err := TrustedOf(first).In(forged.Root()); err != nil { // which is why the pin must be recent
		t.Errorf("pinned by the founders: %v", err)
	}
	for _, bad := range []string{"", ":", "1", "x:" + pin.Roster.String(), "01:" + pin.Roster.String(), "-1:" + pin.Roster.String(), "1:00", pin.String() + "0", "1:" + strings.Repeat("0", 64)} {
		if got, err := ParseTrusted(bad); err == nil {
			t.Errorf("%q is read as %s", bad, got)
		}
	}
}
