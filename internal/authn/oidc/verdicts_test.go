package oidc

import (
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/authn"
	"github.com/aweigh/aweigh/internal/authn/testissuer"
)

// TestVerdictsEnd: a verdict ends with its token, and after a minute.
func TestVerdictsEnd(t *testing.T) {
	i := testissuer.New(t)
	i.Key("a", "ES256")
	i.Publish("a")
	n := start(t, quick, Issuer{URL: i.URL, CA: i.CA})
	now := n.clock.now()
	alice := "oidc:" + i.URL + "#alice"
	token := i.Sign("a", i.Claims(network.String(), now, map[string]any{"exp": now.Add(10 * time.Second).Unix()}))
	long := i.Sign("a", i.Claims(network.String(), now, nil))
	if got := n.ask(t, token) + n.ask(t, long); got != alice+alice {
		t.Fatal(got)
	}
	i.SetDown(true)
	k := n.issuers[0]
	k.mu.Lock()
	k.set = nil // from here on, only verdicts help
	k.mu.Unlock()
	n.issuers[0].periods.wait = 0
	if got := n.ask(t, token) + n.ask(t, long); got != alice+alice {
		t.Error(got)
	}
	n.clock.add(-time.Second)
	if got := n.ask(t, long); got != "unavailable" {
		t.Errorf("by a clock before the verdict: %s", got)
	}
	n.clock.add(verdictFor)
	if got := n.ask(t, long); got != alice {
		t.Error(got)
	}
	n.clock.add(time.Second)
	if got := n.ask(t, long); got != "unavailable" {
		t.Errorf("after a minute: %s", got)
	}
	v := newVerdicts()
	id := authn.Identity{Kind: authn.OIDC, Name: "x"}
	v.put([32]byte{}, id, now, now.Add(time.Second), 0)
	if _, ok := v.get([32]byte{}, now.Add(time.Second)); ok {
		t.Error("the verdict outlives its token")
	}
	for x := range maxVerdicts + 10 {
		v.put([32]byte{byte(x), byte(x >> 8), 1}, id, now, now.Add(time.Hour), 0)
	}
	if v.all.Len() != maxVerdicts {
		t.Errorf("%d verdicts are kept", v.all.Len())
	}
}
