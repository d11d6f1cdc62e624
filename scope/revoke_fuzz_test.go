package scope

import (
	"errors"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/quorum"
)

// FuzzRevocation checks every order that decodes against a scope that can be revoked, as a node does that
// gets a proposal, with all statements about it believed; an order that passes must be executable.
func FuzzRevocation(f *testing.F) {
	r := newRealm(f, func(p *Policy) { p.Children.Notice = time.Hour })
	r.delegate(r.decision("/b/", quorum.BFT, "a", "b"))
	founded, err := r.state.Delegations()
	if err != nil || len(founded) != 1 {
		f.Fatalf("founded %v, %v", founded, err)
	}
	_, g, _, err := r.state.Delegated([]byte("/b/"))
	if err != nil {
		f.Fatal(err)
	}
	c := &realm{world: r.child(g), keys: r.keys, names: r.names, away: r.away}
	for _, mode := range []quorum.Mode{quorum.BFT, quorum.Crash} {
		d := r.decision("/b/", mode, "b", "c")
		f.Add(canon.Encode(Revocation{Child: *d.Child, Height: 9, Time: r.now, Entry: 70}))
	}
	f.Add(canon.Encode(Revocation{}))
	c.now = c.now.Add(2 * time.Hour)
	h := c.next(nil, nil).Header
	f.Fuzz(func(t *testing.T, raw []byte) {
		var order Revocation
		if canon.Decode(raw, &order) != nil {
			return
		}
		b := NewBlock(h, nil, Evidence{Revocation: &order})
		if err := c.state.CheckRevocation(b, &order); err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		res, err := c.state.Execute(b)
		if err != nil {
			t.Fatal(err)
		}
		next := res.State(nothing{})
		if due, err := next.Due(c.now.Add(time.Second)); err != nil || !due {
			t.Fatalf("the epoch does not end: %v", err)
		}
		e, err := next.Epoch()
		if err != nil {
			t.Fatal(err)
		}
		ledger, err := c.state.Ledger()
		if err != nil {
			t.Fatal(err)
		}
		u, err := next.yield(e, &order.Child, nil, ledger, nil)
		if err != nil {
			t.Fatalf("nobody can be weighed: %v", err)
		}
		roster, err := u.terms.roster()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := u.terms.Policy.Rules.Check(roster.Weights); err != nil {
			t.Fatal(err)
		}
	})
}
