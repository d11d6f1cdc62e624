package oidc

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/aweigh/aweigh/internal/authn/testissuer"
	"github.com/aweigh/aweigh/internal/testwait"
)

// TestKeysRotate: a token by a new key is accepted though the node saw the key never, and one by a withdrawn key is
// refused from the next fetch on, also where its verdict is kept.
func TestKeysRotate(t *testing.T) {
	i := testissuer.New(t)
	for _, id := range []string{"first", "second", "third"} {
		i.Key(id, "ES256")
	}
	i.Publish("first")
	n := start(t, quick, Issuer{URL: i.URL, CA: i.CA})
	sign := func(id string) string { return i.Sign(id, i.Claims(network.String(), n.clock.now(), nil)) }
	first, alice := sign("first"), "oidc:"+i.URL+"#alice"
	if got := n.ask(t, first); got != alice {
		t.Fatal(got)
	}
	i.Publish("first", "second")
	if got := n.ask(t, sign("second")); got != alice {
		t.Error(got)
	}
	fetches := i.Fetches()
	for range 10 {
		if got := n.ask(t, first) + n.ask(t, sign("second")); got != alice+alice {
			t.Error(got)
		}
	}
	if i.Fetches() != fetches {
		t.Errorf("%d fetches for keys that are known", i.Fetches()-fetches)
	}
	i.Publish("second", "third")
	if got := n.ask(t, sign("third")); got != alice {
		t.Error(got)
	}
	if got := n.ask(t, first); got != "key" {
		t.Errorf("a token by a withdrawn key: %s", got)
	}
}

// TestKeysWithoutIDs: a token that names no key is checked against all, and against newer ones if none has signed it.
func TestKeysWithoutIDs(t *testing.T) {
	i := testissuer.New(t)
	for _, id := range []string{"a", "b", "c"} {
		i.Key(id, "ES256")
	}
	i.PublishWithoutIDs("a", "b")
	n := start(t, quick, Issuer{URL: i.URL, CA: i.CA})
	sign := func(id string) string {
		return testissuer.SignWith(t, jose.ES256, i.Private(id), "", i.Claims(network.String(), n.clock.now(), nil))
	}
	alice := "oidc:" + i.URL + "#alice"
	if got := n.ask(t, sign("b")); got != alice {
		t.Error(got)
	}
	if got := n.ask(t, sign("c")); got != "signature" {
		t.Error(got)
	}
	i.PublishWithoutIDs("c")
	if got := n.ask(t, sign("c")); got != alice {
		t.Error(got)
	}
}

// TestInventedKeysCauseFewFetches: tokens with invented key IDs make a node ask the issuer once in a while, and callers
// whose keys are known do not wait.
func TestInventedKeysCauseFewFetches(t *testing.T) {
	i := testissuer.New(t)
	i.Key("a", "ES256")
	i.Key("invented", "ES256")
	i.Publish("a")
	p := quick
	p.apart = time.Hour
	n := start(t, p, Issuer{URL: i.URL, CA: i.CA})
	claims := i.Claims(network.String(), n.clock.now(), nil)
	if got := n.ask(t, i.Sign("a", claims)); got != "oidc:"+i.URL+"#alice" {
		t.Fatal(got)
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if got := n.ask(t, i.Sign("invented", claims)); got != "key" {
				t.Error(got)
			}
		})
	}
	all.Wait()
	if f := i.Fetches(); f != 1 {
		t.Errorf("%d fetches", f)
	}
}

// TestOneFetchServesAllThatWait: requests that need the same new key share a fetch.
func TestOneFetchServesAllThatWait(t *testing.T) {
	i := testissuer.New(t)
	i.Key("a", "ES256")
	i.Key("b", "ES256")
	i.Publish("a")
	n := start(t, quick, Issuer{URL: i.URL, CA: i.CA})
	testwait.Until(t, "no keys", func() bool { return n.Status()[0].Keys == 1 })
	hold, held := make(chan struct{}), make(chan struct{})
	var once sync.Once
	i.Answer(func(http.ResponseWriter, *http.Request) bool { once.Do(func() { close(held) }); <-hold; return false })
	i.Publish("b")
	token := i.Sign("b", i.Claims(network.String(), n.clock.now(), nil))
	const callers = 20
	results := make(chan string, callers)
	for range callers {
		go func() { results <- n.ask(t, token) }()
	}
	<-held
	close(hold)
	for range callers {
		if got := <-results; got != "oidc:"+i.URL+"#alice" {
			t.Error(got)
		}
	}
	if f := i.Fetches(); f > 3 { // the first, one, and one for callers that came after its begin
		t.Errorf("%d fetches", f)
	}
}

// TestOutages: a node starts while its issuer is down, and finds the keys once it is up; keys that it has outlast an
// outage, until they are too old.
func TestOutages(t *testing.T) {
	i := testissuer.New(t)
	i.Key("a", "RS256")
	i.Key("b", "RS256")
	i.Publish("a")
	i.SetDown(true)
	p := quick
	p.wait = 10 * time.Millisecond
	n := start(t, p, Issuer{URL: i.URL, CA: i.CA})
	sign := func(id string) string { return i.Sign(id, i.Claims(network.String(), n.clock.now(), nil)) }
	alice := "oidc:" + i.URL + "#alice"
	if got := n.ask(t, sign("a")); got != "unavailable" {
		t.Error(got)
	}
	testwait.Until(t, "no failures are reported", func() bool { s := n.Status()[0]; return s.Failed > 2 && s.Err != nil && s.Fetched.IsZero() })
	i.SetDown(false)
	testwait.Until(t, "the keys did not come", func() bool { return n.ask(t, sign("a")) == alice })
	if s := n.Status()[0]; s.Failed != 0 || s.Err != nil || s.Keys != 1 || s.Fetched.IsZero() {
		t.Errorf("the state is %+v", s)
	}
	i.SetDown(true)
	if got := n.ask(t, sign("a")); got != alice {
		t.Errorf("during an outage: %s", got)
	}
	if got := n.ask(t, sign("b")); got != "unavailable" {
		t.Errorf("a new key during an outage: %s", got)
	}
	if !strings.Contains(n.log.String(), "Failed:1") {
		t.Errorf("nothing was reported:\n%s", n.log)
	}
	k := n.issuers[0]
	k.mu.Lock()
	k.set = &keySet{k.set.keys, time.Now().Add(-p.keep - time.Second)}
	k.mu.Unlock()
	n.clock.add(verdictFor)
	if got := n.ask(t, sign("a")); got != "unavailable" {
		t.Errorf("with keys that are too old: %s", got)
	}
}

// TestKeysAreFetchedAgain: a key that is withdrawn is noticed without any token that needs another.
func TestKeysAreFetchedAgain(t *testing.T) {
	i := testissuer.New(t)
	i.Key("a", "ES256")
	i.Key("b", "ES256")
	i.Publish("a")
	p := quick
	p.refresh, p.apart = 5*time.Millisecond, time.Hour
	n := start(t, p, Issuer{URL: i.URL, CA: i.CA})
	token := i.Sign("a", i.Claims(network.String(), n.clock.now(), nil))
	if got := n.ask(t, token); got != "oidc:"+i.URL+"#alice" {
		t.Fatal(got)
	}
	i.Publish("b")
	testwait.Until(t, "the withdrawn key is in use", func() bool { return n.ask(t, token) == "key" })
}
