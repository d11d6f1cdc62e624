package node

import (
	"context"
	"crypto/rand"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/refusal"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
	"github.com/aweigh/aweigh/store/diskstore"
	"github.com/aweigh/aweigh/votes"
)

// elsewhere is a history with a new epoch after each block, as holders of old keys would feed one.
func elsewhere(t *testing.T) (*cluster, context.Context) {
	t.Helper()
	p := scope.OpenPolicy(quorum.BFT)
	p.EpochBlocks = 1
	c := startClusterUnder(t, 1, p, func(int, *Node) {})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	for c.nodes[0].root.epochs.epoch().Number < 4 {
		if r, err := c.nodes[0].Txn(ctx, putTxn("/a", "told"), Once{}); err != nil || r.Code != scope.Applied {
			t.Fatalf("%v, %v", r, err)
		}
	}
	return c, ctx
}

// epochOf is an epoch of a node's history.
func epochOf(t *testing.T, n *Node, number aweigh.Epoch) *scope.Epoch {
	t.Helper()
	e, err := n.root.genesis.Epoch()
	if err == nil {
		e, err = referral.Follow(n.cfg.Store, n.root.id, e, number, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// observed runs an observer that is fed by a node until ctx ends, and gives why it ended.
func observed(t *testing.T, by *Node, trusted scope.Trusted, look func(ctx context.Context, o *Node) error) (looked, ended error) {
	t.Helper()
	key, err := votes.GenerateKey(votes.Ed25519, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s, err := diskstore.Open(filepath.Join(t.TempDir(), "store"), diskstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	o, err := New(Config{
		Name: "observer", Genesis: *by.root.genesis, Identity: key, Store: s, Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Bootstrap: by.Addrs(), Trusted: trusted,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- o.Run(ctx) }()
	looked = look(ctx, o)
	if errors.Is(looked, errLeave) {
		cancel()
	}
	return looked, <-done
}

// errLeave ends an observer that would go on.
var errLeave = errors.New("seen")

// TestHistoriesOfOldKeysAreRefused: what does not come by the trusted roster is refused before anything of it is
// served, and taken by nodes that trust the genesis alone.
func TestHistoriesOfOldKeysAreRefused(t *testing.T) {
	c, _ := elsewhere(t)
	feeds := c.nodes[0]
	served := func(o *Node) bool {
		r, _, err := o.Range(context.Background(), []byte("/a"), nil, scope.Range{}, false)
		return err == nil && len(r.Kvs) > 0
	}
	arrives := func(ctx context.Context, o *Node) error {
		for !served(o) {
			select {
			case <-o.Changed():
			case <-time.After(10 * time.Millisecond):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return errLeave
	}
	for name, trusted := range map[string]scope.Trusted{"none": {}, "its own": scope.TrustedOf(epochOf(t, feeds, 3))} {
		var pin Pin
		if looked, ended := observed(t, feeds, trusted, func(ctx context.Context, o *Node) error {
			defer func() { pin = o.Pin() }()
			return arrives(ctx, o)
		}); !errors.Is(looked, errLeave) || ended != nil {
			t.Errorf("trusting %s: %v, ended %v", name, looked, ended)
		}
		want := Pin{Trusted: trusted, Reached: true}
		if !want.None() {
			want.Since = epochOf(t, feeds, 3).Time
		}
		if pin != want {
			t.Errorf("trusting %s: the pin is %+v, want %+v", name, pin, want)
		}
	}
	other := scope.Trusted{Epoch: 3, Roster: aweigh.Sum([]byte("of those who are anchors now"))}
	saw := false
	_, ended := observed(t, feeds, other, func(ctx context.Context, o *Node) error {
		for o.root.epochs.epoch().Number < other.Epoch && ctx.Err() == nil {
			saw = saw || served(o)
			time.Sleep(time.Millisecond) // it polls what must not be there
		}
		saw = saw || served(o) || o.Pin().Reached
		return nil
	})
	if !errors.Is(ended, ErrOtherHistory) || saw {
		t.Errorf("trusting another roster: it ended with %v, served: %v", ended, saw)
	}
	later := scope.Trusted{Epoch: 1 << 40, Roster: other.Roster}
	looked, ended := observed(t, feeds, later, func(ctx context.Context, o *Node) error {
		testwait.Until(t, "epoch 3", func() bool { return o.root.epochs.epoch().Number >= 3 || ctx.Err() != nil })
		if _, _, err := o.Range(ctx, []byte("/a"), nil, scope.Range{}, false); !errors.Is(err, ErrInstalling) {
			t.Errorf("before the trusted roster: %v", err)
		}
		if _, err := o.Txn(ctx, putTxn("/b", "1"), Once{}); !errors.Is(err, ErrInstalling) {
			t.Errorf("a write before the trusted roster: %v", err)
		}
		if err := o.Watch(ctx, []byte("/a"), nil, 1, func(Changes) error { return errLeave }); !errors.Is(err, ErrInstalling) {
			t.Errorf("a watch before the trusted roster: %v", err)
		}
		return errLeave
	})
	if !errors.Is(looked, errLeave) || ended != nil {
		t.Errorf("trusting a later roster: %v, %v", looked, ended)
	}
}

// TestScopesBelowAreFollowedToTheTrustedRoster: what a scope delegated before the trusted roster was in force is opened
// on the way there, and serves nothing until then.
func TestScopesBelowAreFollowedToTheTrustedRoster(t *testing.T) {
	p := scope.OpenPolicy(quorum.BFT)
	p.EpochBlocks = 1
	c := startClusterUnder(t, 1, p, func(int, *Node) {})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c.delegate(ctx, "", "/b/", quorum.Crash, 0)
	feeds := c.nodes[0]
	for feeds.root.epochs.epoch().Number < 6 {
		if r, err := feeds.Txn(ctx, putTxn("/a", "told"), Once{}); err != nil || r.Code != scope.Applied {
			t.Fatalf("%v, %v", r, err)
		}
	}
	early := false
	trusted := scope.TrustedOf(epochOf(t, feeds, 6))
	looked, ended := observed(t, feeds, trusted, func(ctx context.Context, o *Node) error {
		for {
			_, err := o.In("/b/")
			_, _, unread := o.Range(ctx, []byte("/b/"), []byte("/c"), scope.Range{}, false)
			if early = early || unread == nil && !o.Pin().Reached; err == nil && unread == nil {
				return errLeave
			}
			select {
			case <-o.Changed():
			case <-time.After(10 * time.Millisecond):
			case <-ctx.Done():
				return errors.Join(err, unread)
			}
		}
	})
	if !errors.Is(looked, errLeave) || ended != nil || early {
		t.Errorf("%v, ended %v, served before: %v", looked, ended, early)
	}
}

// TestSnapshotsComeByTheTrustedRoster: handovers that lead past another roster are refused, and not kept.
func TestSnapshotsComeByTheTrustedRoster(t *testing.T) {
	c, _ := elsewhere(t)
	from := c.nodes[0]
	first := epochOf(t, from, 0)
	ask := func(above aweigh.Height) ([]byte, error) {
		all, err := from.root.History().Handovers(above, 1)
		return canon.Encode(all), err
	}
	s := store.NewMem()
	p := &pinned{want: scope.Trusted{Epoch: 2, Roster: aweigh.Sum([]byte("other"))}}
	if e, err := p.followPinned(s, from.root.id, first, 4, ask); !errors.Is(err, machine.ErrSnapshot) {
		t.Errorf("by another roster: %+v, %v", e, err)
	}
	if left, err := (machine.History{Reader: s, Scope: from.root.id}).Handovers(0, 10); err != nil || len(left) > 0 {
		t.Errorf("%d handovers are kept, %v", len(left), err)
	}
	p.want = scope.TrustedOf(epochOf(t, from, 2))
	if e, err := p.followPinned(s, from.root.id, first, 4, ask); err != nil || e.Number != 4 {
		t.Errorf("by its own roster: %+v, %v", e, err)
	}
	if err := p.meet(s, *from.root.genesis, epochOf(t, from, 4)); err != nil || p.holds() != nil {
		t.Errorf("past the trusted roster: %v, %v", err, p.holds())
	}
	p = &pinned{want: scope.Trusted{Epoch: 2, Roster: aweigh.Sum([]byte("other"))}}
	if err := p.meet(s, *from.root.genesis, epochOf(t, from, 4)); !errors.Is(err, ErrOtherHistory) || p.holds() == nil {
		t.Errorf("a store that is past another roster: %v", err)
	}
}

// TestOwnHandoversBlameNoPeer: the error about a handover that does not verify blames the peer that gave it, and no
// peer if it was in the store.
func TestOwnHandoversBlameNoPeer(t *testing.T) {
	c, _ := elsewhere(t)
	root := c.nodes[0].root
	first := epochOf(t, c.nodes[0], 0)
	all, err := root.History().Handovers(first.Start, 4)
	if err != nil || len(all) != 4 {
		t.Fatalf("%d handovers, %v", len(all), err)
	}
	wrong := all[1:2] // it leads from epoch 1, not from epoch 0
	for _, damaged := range [][]byte{canon.Encode(wrong[0]), []byte("no handover")} {
		s := store.NewMem()
		if err := s.Commit([]kv.Op{kv.Set(machine.KeyHandover(root.id, all[0].Final.Header.Height), damaged)}, true); err != nil {
			t.Fatal(err)
		}
		_, err = referral.Follow(s, root.id, first, 4, nil)
		if errors.Is(err, machine.ErrSnapshot) || !errors.Is(err, scope.ErrCorrupt) || refusal.Of(err).Blame() {
			t.Errorf("from the store: %v", err)
		}
	}
	for _, given := range [][]byte{canon.Encode(wrong), canon.Encode([]scope.Handover{}), []byte("no handovers")} {
		_, err = referral.Follow(store.NewMem(), root.id, first, 4, func(aweigh.Height) ([]byte, error) { return given, nil })
		if !errors.Is(err, machine.ErrSnapshot) || refusal.Of(err) == refusal.Internal {
			t.Errorf("from a peer: %v", err)
		}
	}
}

// TestForeignQuestionsWaitForThePin: an anchor that has not come to the trusted roster answers for nothing.
func TestForeignQuestionsWaitForThePin(t *testing.T) {
	later := scope.Trusted{Epoch: 1 << 40, Roster: aweigh.Sum([]byte("to come"))}
	n := startClusterWith(t, 1, quorum.BFT, func(_ int, n *Node) { n.pin.want = later }).nodes[0]
	for kind, body := range map[uint8][]byte{
		referral.AskSubmit: nil, referral.AskProve: []byte("/a"), referral.AskJudge: nil,
		referral.AskReferrals: canon.Encode(referral.ListOf(referral.Keys([]byte("/a")))),
		referral.AskLook:      canon.Encode(scope.Txn{Success: []scope.Op{{Kind: scope.OpRange, Key: []byte("/a")}}}),
	} {
		ask := referral.Question{Kind: kind, Body: body}
		if _, err := n.root.serveForeign(t.Context(), "stranger", ask); !errors.Is(err, ErrInstalling) {
			t.Errorf("question %d: %v", kind, err)
		}
	}
	if p := n.Pin(); p.Reached || p.Trusted != later || p.Since != 0 {
		t.Errorf("the pin is %+v", p)
	}
}
