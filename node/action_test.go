package node

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// actors is a cluster whose root lets the nodes of some anchors pay, and whose child
// below /user/ has rules of its own.
func actors(t *testing.T) (*cluster, context.Context) {
	root := scope.OpenPolicy(quorum.BFT)
	root.Actions = action.Table{
		{Verb: "bless", Class: action.Claim},
		{Verb: "pay", Class: action.Write, When: "caller.anchor != 'n1' && object.key.startsWith('/user/') && !object.exists"},
	}
	c := startClusterUnder(t, 4, root, func(int, *Node) {})
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	child := scope.OpenPolicy(quorum.BFT)
	child.Actions = action.Table{
		{Verb: "own", Class: action.Claim},
		{Verb: "pay", Class: action.Write, When: "object.version < 1"},
		{Verb: "wave", Class: action.Signal, When: "caller.anchor != 'n2'"},
	}
	c.delegateUnder(ctx, "", "/user/", child, 0, 1, 2, 3)
	return c, ctx
}

func doing(verb string, class action.Class, key, value string) scope.Action {
	return scope.Action{Verb: verb, Class: class, Key: []byte(key), Value: []byte(value)}
}

// TestEveryScopeOnTheWayIsAsked: one that denies is named, with its rule; one without
// a rule about the verb does not object; the one that decides must know it.
func TestEveryScopeOnTheWayIsAsked(t *testing.T) {
	testshort.Skip(t)
	c, ctx := actors(t)
	once := c.nodes[0].root.filled(Once{})
	r, err := c.nodes[0].Act(ctx, doing("pay", action.Write, "/user/elizabeth", "10"), once)
	if err != nil || r.Code != scope.Applied {
		t.Fatalf("%s %s, %v", r.Code, r.Reason, err)
	}
	if got := c.value(ctx, 2, "/user/elizabeth"); got != "10" {
		t.Errorf("paid %q", got)
	}
	// It would be denied by now, but it is the same request.
	if r, err = c.nodes[0].Act(ctx, doing("pay", action.Write, "/user/elizabeth", "10"), once); err != nil || r.Code == scope.Failed {
		t.Errorf("repeated: %s %s, %v", r.Code, r.Reason, err)
	}
	var d *Denial
	_, err = c.nodes[1].Act(ctx, doing("pay", action.Write, "/user/philip", "10"), Once{})
	if !errors.As(err, &d) || !errors.Is(err, scope.ErrDenied) || d.By.Decides || d.By.Scope != c.nodes[0].root.Genesis().Hash() || !strings.Contains(err.Error(), "pay (write) when caller.anchor != 'n1'") {
		t.Errorf("the root denies: %v", err)
	}
	for name, a := range map[string]scope.Action{
		"the child's rule":                 doing("pay", action.Write, "/user/elizabeth", "11"),
		"the root knows it, not the child": doing("bless", action.Claim, "/user/elizabeth", ""),
	} {
		r, err := c.nodes[0].Act(ctx, a, Once{})
		if err != nil || r.Code != scope.Failed || !errors.Is(scope.Failure(r.Reason), scope.ErrDenied) {
			t.Errorf("%s: %s %s, %v", name, r.Code, r.Reason, err)
		}
	}
	if r, err = c.nodes[3].Act(ctx, doing("own", action.Claim, "/user/elizabeth", ""), Once{}); err != nil || r.Code != scope.Applied {
		t.Errorf("a claim: %s %s, %v", r.Code, r.Reason, err)
	}
	l, _, err := c.nodes[3].Lineage(ctx, []byte("/user/elizabeth"), 10)
	if err != nil || len(l.Entries) != 2 || l.Entries[0].Reason != "own" {
		t.Errorf("history %+v, %v", l, err)
	}
	if _, err := c.nodes[0].Act(ctx, doing("wave", action.Signal, "/user/elizabeth", ""), Once{}); !errors.Is(err, ErrVerdict) {
		t.Errorf("a signal is ordered: %v", err)
	}
	if p, _, err := c.nodes[0].Prove(ctx, []byte("/user/elizabeth")); err != nil {
		t.Errorf("a proof of what was paid: %v", err)
	} else if _, err := p.Verify(c.nodes[0].root.Genesis().Hash()); err != nil {
		t.Errorf("a proof of what was paid: %v", err)
	}

	there, err := c.nodes[0].In("/user/")
	if err != nil {
		t.Fatal(err)
	}
	if said, err := there.Judge(ctx, ActionQuery{Verb: "pay", Key: []byte("/user/philip")}, true); err != nil || len(said) != 1 || !said[0].Decides {
		t.Errorf("the child alone: %+v, %v", said, err)
	}
	if said, err := there.Judge(ctx, ActionQuery{Verb: "write", Key: []byte("/site")}, true); !errors.Is(err, scope.ErrElsewhere) {
		t.Errorf("a key of another scope: %+v, %v", said, err)
	}
	said, err := c.nodes[0].Judge(ctx, ActionQuery{Verb: "pay", Key: []byte("/user/philip")}, true)
	if err != nil || len(said) != 2 || Denied(said) != nil || said[0].Decides || !said[1].Decides || said[1].Class != action.Write {
		t.Errorf("%+v, %v", said, err)
	}
	said, err = c.nodes[0].Judge(ctx, ActionQuery{Verb: "nod", Key: []byte("/user/philip"), Try: &action.Rule{Verb: "nod", Class: action.Claim, When: "caller.anchor == 'n3'"},
		Caller: machine.AuthorOf(machine.Peer(c.nodes[3].peerID))}, false)
	if err != nil || len(said) != 2 || Denied(said) != nil {
		t.Errorf("a rule that is tried as another: %+v, %v", said, err)
	}
}

// TestSignalsReachWatchersElsewhere: a signal that one node takes comes to those who
// watch its key at others, once, and none that a scope denies.
func TestSignalsReachWatchersElsewhere(t *testing.T) {
	c, ctx := actors(t)
	got := make(chan Signal, 100)
	begun := make(chan struct{})
	watch, unwatch := context.WithCancel(ctx)
	ended := make(chan error)
	go func() {
		ended <- c.nodes[3].WatchSignals(watch, []byte("/user/"), []byte("/user0"), func() error { close(begun); return nil }, func(x Signal, lost uint64) error {
			got <- x
			return nil
		})
	}()
	<-begun
	var x Signal
	for x.Verb == "" { // gossip is not there at once
		if _, err := c.nodes[0].Signal(ctx, "wave", []byte("/user/elizabeth"), []byte("hello"), Once{}); err != nil {
			t.Fatal(err)
		}
		select {
		case x = <-got:
		case <-time.After(200 * time.Millisecond):
		}
	}
	if string(x.Value) != "hello" || string(x.Key) != "/user/elizabeth" || x.Author != machine.AuthorOf(machine.Peer(c.nodes[0].peerID)) {
		t.Errorf("%+v", x)
	}
	if to, err := c.nodes[3].Signal(ctx, "wave", []byte("/user/elizabeth"), nil, Once{}); err != nil || to != 1 {
		t.Errorf("where it is watched: %d, %v", to, err)
	}
	if to, err := c.nodes[3].Signal(ctx, "wave", []byte("/user/philip"), nil, Once{}); err != nil || to != 1 {
		t.Errorf("within the range: %d, %v", to, err)
	}
	var d *Denial
	if _, err := c.nodes[2].Signal(ctx, "wave", []byte("/user/elizabeth"), nil, Once{}); !errors.As(err, &d) || !d.By.Decides {
		t.Errorf("a signal that is denied: %v", err)
	}
	if _, err := c.nodes[0].Signal(ctx, "own", []byte("/user/elizabeth"), nil, Once{}); !errors.Is(err, ErrVerdict) {
		t.Errorf("a claim that is signalled: %v", err)
	}
	if _, err := c.nodes[0].Signal(ctx, "wave", []byte("/user/elizabeth"), make([]byte, maxSignal+1), Once{}); !errors.Is(err, scope.ErrInvalid) {
		t.Errorf("a signal without bound: %v", err)
	}

	// What a node should not have passed on stops at the next.
	p, err := c.nodes[2].In("/user/")
	if err != nil {
		t.Fatal(err)
	}
	there, err := c.nodes[3].In("/user/")
	if err != nil {
		t.Fatal(err)
	}
	sealed := func(verb string, class action.Class, valid time.Duration) *scope.CheckedBundle {
		m := p.mutation(scope.Act, canon.Encode(doing(verb, class, "/user/elizabeth", "")), p.filled(Once{ValidUntil: p.runner.now().Add(valid)}))
		b, err := scope.Sign(p.cfg.Identity, p.Limits(), m)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	forged := func(verb string, class action.Class, valid time.Duration) bool {
		b := sealed(verb, class, valid)
		return isSignal(b) && there.heard(b)
	}
	if _, err := c.nodes[0].Submit(ctx, sealed("wave", action.Signal, time.Second).Raw()); !errors.Is(err, scope.ErrSignal) {
		t.Errorf("a signal is ordered: %v", err)
	}
	if forged("wave", action.Signal, time.Second) || forged("nod", action.Signal, time.Second) || forged("pay", action.Signal, time.Second) {
		t.Error("a node passes on what its state denies")
	}
	unwatch()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestSlowWatchersLoseSignalsAndKnow: who does not take signals holds up nobody, and
// learns how many it lost.
func TestSlowWatchersLoseSignalsAndKnow(t *testing.T) {
	var s signals
	l := &listener{key: []byte("k"), waiting: make(chan Signal, 2)}
	if err := s.add(l); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		to, err := s.give(Signal{Mutation: aweigh.Hash{byte(i)}, Key: []byte("k")}, 10)
		if want := 1; (i < 2) != (to == want) || err != nil {
			t.Errorf("signal %d to %d, %v", i, to, err)
		}
	}
	if _, err := s.give(Signal{Mutation: aweigh.Hash{1}, Key: []byte("k")}, 10); !errors.Is(err, errHeard) {
		t.Error("delivered twice")
	}
	for want := uint64(3); len(l.waiting) > 0; want = 0 {
		x := <-l.waiting
		if got := s.took(l, &x); got != want {
			t.Errorf("lost %d, not %d", got, want)
		}
	}
	for i := range signalsSeen {
		s.give(Signal{Mutation: aweigh.Hash{9, byte(i), byte(i >> 8)}}, 10)
	}
	if _, err := s.give(Signal{Mutation: aweigh.Hash{7}}, 10); !errors.Is(err, machine.ErrBusy) || len(s.seen) != signalsSeen {
		t.Errorf("%d signals are remembered", len(s.seen))
	}
	if _, err := s.give(Signal{Mutation: aweigh.Hash{8}, At: 11}, 20); err != nil || len(s.seen) != 1 {
		t.Errorf("%v, %d remembered when all are over", err, len(s.seen))
	}
	for err := error(nil); err == nil; {
		if err = s.add(&listener{}); err != nil && (!errors.Is(err, machine.ErrBusy) || len(s.listeners) != maxListeners) {
			t.Errorf("%d watch: %v", len(s.listeners), err)
		}
	}
}

// TestSignalsThatWaitAreBoundedInBytes: watchers that take nothing do not make a node hold more
// than its bound, and what they take, or leave behind, is free again.
func TestSignalsThatWaitAreBoundedInBytes(t *testing.T) {
	var s signals
	var all []*listener
	for range 1024 {
		l := &listener{key: []byte("k"), waiting: make(chan Signal, signalsWait)}
		if err := s.add(l); err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
	}
	given := 0
	give := func() int {
		given++
		to, err := s.give(Signal{Mutation: aweigh.Hash{byte(given), byte(given >> 8)}, Key: []byte("k"), Value: make([]byte, maxSignal)}, 10)
		if err != nil {
			t.Fatal(err)
		}
		return to
	}
	waits := func() (bytes int) {
		for _, l := range all {
			bytes += len(l.waiting) * maxSignal
		}
		return bytes
	}
	for range 10 {
		give()
	}
	if held := waits(); held > signalsBytes || held < signalsBytes/2 {
		t.Errorf("%d MiB wait for watchers", held>>20)
	}
	first := all[0]
	if len(first.waiting) == 0 {
		first = all[1]
	}
	for len(first.waiting) > 0 {
		x := <-first.waiting
		s.took(first, &x)
	}
	if to := give(); to == 0 {
		t.Error("there is no room after a watcher took what waited for it")
	}
	for _, l := range all {
		s.drop(l)
	}
	if all = nil; s.bytes != 0 {
		t.Errorf("%d bytes are counted when all are gone", s.bytes)
	}
}

// TestSignalsNeedAnEntry: a node gives and takes signals of authors alone whose entry in the policy permits the verb on
// the key, and none by a token.
func TestSignalsNeedAnEntry(t *testing.T) {
	var alice, stranger votes.PrivateKey
	for _, key := range []*votes.PrivateKey{&alice, &stranger} {
		var err error
		if *key, err = votes.GenerateKey(votes.Ed25519, rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	policy := scope.DefaultPolicy(quorum.BFT)
	policy.Actions = action.Table{{Verb: "wave", Class: action.Signal}}
	policy.Authors = []scope.Author{
		{Name: "alice", Who: scope.OneKey, Key: alice.Public(), Verbs: []string{"wave"}, Prefixes: [][]byte{[]byte("/user/")}},
		{Name: "anchors", Who: scope.Anchors, Verbs: []string{scope.VerbPut}},
	}
	n := startClusterUnder(t, 1, policy, func(int, *Node) {}).nodes[0]
	if to, err := n.Signal(t.Context(), "wave", []byte("/user/x"), nil, Once{}); !errors.Is(err, scope.ErrDenied) {
		t.Errorf("an anchor's node whose entry is to put alone: %d, %v", to, err)
	}
	heard := func(key votes.PrivateKey, at string, grants ...[]byte) bool {
		t.Helper()
		m := n.root.mutation(scope.Act, canon.Encode(doing("wave", action.Signal, at, "")), n.root.filled(Once{}))
		m.Author, m.Grants = aweigh.Hash{}, grants
		b, err := scope.Sign(key, n.root.Limits(), m)
		if err != nil {
			t.Fatal(err)
		}
		return isSignal(b) && n.root.heard(b)
	}
	g, err := scope.SignGrant(alice.Signer(), scope.Grant{
		Scope: n.root.id, To: stranger.Public(), Name: "ci", NotAfter: n.root.time().Add(time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	if heard(stranger, "/user/x") || heard(alice, "/prod/deploy") || heard(stranger, "/user/x", g.Encode()) {
		t.Error("a signal without an entry, or by a token, is taken")
	}
	if !heard(alice, "/user/x") {
		t.Error("a signal with an entry is not taken")
	}
}
