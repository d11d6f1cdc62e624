package node

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/refusal"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/p2p"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
	"github.com/aweigh/aweigh/votes"
)

// logged is what a node logged.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// take is what was logged since it was called last.
func (l *logged) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return l.text.String()
}

// stillNode is a node of a network of anchors n0, n1, …, that does not run. It
// is n0, and logs into the buffer.
func stillNode(t *testing.T, names ...string) (*Node, *logged) {
	t.Helper()
	var founders []machine.Founder
	var keys []votes.PrivateKey
	for _, name := range names {
		for range 2 {
			k, err := votes.GenerateKey(votes.Ed25519, rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, k)
		}
		id, err := machine.PeerOf(keys[len(keys)-2])
		if err != nil {
			t.Fatal(err)
		}
		founders = append(founders, machine.Founder{Name: name, Key: keys[len(keys)-1].Public(), Peer: id})
	}
	g, err := machine.NewGenesis("test", aweigh.InstantOf(time.Now()), scope.OpenPolicy(quorum.BFT), founders...)
	if err != nil {
		t.Fatal(err)
	}
	var log logged
	n, err := New(Config{
		Genesis: g, Identity: keys[0], Anchor: &keys[1], Store: store.NewMem(), Listen: []string{"/ip4/127.0.0.1/tcp/0"},
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.host.Close() })
	return n, &log
}

func TestAnchorsOfOneNameAreToldApart(t *testing.T) {
	n, _ := stillNode(t, "same", "same", "", "")
	seen := make(map[string]bool)
	for _, a := range n.root.Counts().Anchors {
		if a.Name == "" || seen[a.Name] {
			t.Errorf("%q names no anchor, or two", a.Name)
		}
		seen[a.Name] = true
	}
	if !seen["same"] {
		t.Error("a name that people gave is not used")
	}
}

func TestLatenciesStandInTheirBuckets(t *testing.T) {
	var l latency
	for _, d := range []time.Duration{0, 3 * time.Millisecond, time.Hour} {
		l.since(time.Now().Add(-d))
	}
	s := l.snapshot()
	if s.Count != 3 || s.Sum < time.Hour || s.AtMost[time.Millisecond] != 1 || s.AtMost[5*time.Millisecond] != 2 || s.AtMost[30*time.Second] != 2 {
		t.Errorf("counted %+v", s)
	}
	last := uint64(0)
	for _, bound := range latencyBounds {
		if s.AtMost[bound] < last {
			t.Errorf("fewer at most %v than at most less", bound)
		}
		last = s.AtMost[bound]
	}
}

// TestRefusalsAreSortedAndSaidOnce: input is counted by class, and a flood of it
// does not flood the log.
func TestRefusalsAreSortedAndSaidOnce(t *testing.T) {
	n, log := stillNode(t, "n0", "n1", "n2", "n3")
	from := n.root.measured.roster.Load().all[1].peer
	id, err := peer.Decode(string(from))
	if err != nil {
		t.Fatal(err)
	}
	domain := n.root.epochs.checker().Keyring.Domain()
	foreign, stale := domain, domain
	foreign.Network[0] ^= 1
	stale.Roster[0] ^= 1
	want := [refusal.Classes]uint64{}
	push := func(class refusal.Class, f []byte) {
		t.Helper()
		before := n.root.Counts().Refused
		n.frame(id, f)
		want[class]++
		if got := n.root.Counts().Refused; got[class] != before[class]+1 {
			t.Errorf("a frame %q is not counted as %q: %v", f[:min(len(f), 1)], class, got)
		}
	}
	push(refusal.Malformed, []byte("?"))
	push(refusal.Malformed, nil)
	push(refusal.Malformed, []byte("v\x00"))
	push(refusal.Oversized, machine.Tagged(machine.TagWant, machine.Want{Bundles: make([]aweigh.Hash, machine.MaxNames+1)}))
	push(refusal.Foreign, machine.Tagged(machine.TagOffer, machine.Offer{Domain: foreign}))
	push(refusal.Stale, machine.Tagged(machine.TagOffer, machine.Offer{Domain: stale}))
	push(refusal.Unasked, machine.Tagged(machine.TagBlocks, machine.Blocks{}))
	push(refusal.Forged, machine.RawFrame(machine.TagBallot, votes.Ballot{
		Format: scope.Format, Domain: domain, Anchor: n.root.measured.roster.Load().all[1].id, Signature: make([]byte, 64),
		Subject: quorum.Subject{Kind: quorum.Nullify, View: 1},
	}.Encode()))
	if early := fmt.Errorf("%w: %w, by 1h", scope.ErrInvalid, scope.ErrEarly); refusal.Of(early) != refusal.Early || refusal.Early.Blame() {
		t.Error("an anchor is blamed for a clock that may be this node's")
	}
	for range 10_000 {
		n.frame(id, []byte("?"))
	}
	want[refusal.Malformed] += 10_000
	if got := n.root.Counts().Refused; got != want {
		t.Errorf("counted %v, not %v", got, want)
	}
	if got := n.root.Counts().Received["unknown"].Frames; got < 10_000 {
		t.Errorf("%d frames of no kind", got)
	}
	text := log.take()
	lines := strings.Count(text, "\n")
	if warned := strings.Count(text, "level=WARN"); warned != 5 || lines != warned {
		t.Errorf("%d lines, %d warnings, for four classes that no honest node sends, and the peer that was disconnected:\n%s", lines, warned, text)
	}
	for r := range refusal.Classes {
		if fmt.Sprint(r) == "" {
			t.Errorf("class %d has no name", r)
		}
	}
}

// TestAnErrorWithoutAClassBlamesNoPeer: a peer is not blocked for what this node fails to do with its frames.
func TestAnErrorWithoutAClassBlamesNoPeer(t *testing.T) {
	n, log := stillNode(t, "n0", "n1", "n2", "n3")
	key, err := votes.GenerateKey(votes.Ed25519, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p, err := machine.PeerOf(key)
	if err != nil {
		t.Fatal(err)
	}
	nonMember, err := peer.Decode(string(p))
	if err != nil {
		t.Fatal(err)
	}
	const times = 1000
	for range times {
		n.root.refuse(nonMember, fmt.Errorf("reading a frame: %w", errors.New("unlisted")))
	}
	if n.host.Stats().Blocked > 0 || n.root.Counts().Refused != [refusal.Classes]uint64{refusal.Internal: times} {
		t.Errorf("%d peers are blocked; counted %v", n.host.Stats().Blocked, n.root.Counts().Refused)
	}
	if text := log.take(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "level=WARN") {
		t.Errorf("the log does not have one warning:\n%s", text)
	}
	for range times {
		n.root.refuse(nonMember, fmt.Errorf("reading a frame: %w", machine.ErrFrame))
	}
	if n.host.Stats().Blocked == 0 {
		t.Error("a peer is not blocked for frames that no honest node sends")
	}
}

// TestNewsOfALaterEpochIsNoFault: who passes on what this node cannot verify yet is
// not blamed for it.
func TestNewsOfALaterEpochIsNoFault(t *testing.T) {
	n, _ := stillNode(t, "n0", "n1", "n2", "n3")
	id, err := peer.Decode(string(n.root.measured.roster.Load().all[1].peer))
	if err != nil {
		t.Fatal(err)
	}
	f := machine.Tagged(machine.TagAnnounce, machine.Announce{Header: scope.Header{
		Format: scope.Format, Network: n.root.id, Scope: n.root.id, Epoch: n.root.epochs.epoch().Number + 1, View: 1, Height: 9,
	}})
	if v := n.gossip(id, n.root.topic(), f); v != p2p.Ignore {
		t.Errorf("it is judged %v", v)
	}
	for class, refused := range n.root.Counts().Refused {
		if refused > 0 {
			t.Errorf("counted as %v", refusal.Class(class))
		}
	}
}

// TestMutationsAreCountedByScope: those of each scope, and together those of the node.
func TestMutationsAreCountedByScope(t *testing.T) {
	c := startCluster(t, 1, quorum.BFT)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c.delegate(ctx, "", "/s/", quorum.BFT, 0)
	n := c.nodes[0]
	counted := func() (root, child uint64) {
		for _, s := range n.Scopes() {
			if len(s.Genesis.Prefix()) == 0 {
				root = s.Mutations
			} else {
				child = s.Mutations
			}
		}
		return root, child
	}
	before, _ := counted()
	var writing sync.WaitGroup
	for i := range 50 { // blocks hold several
		key := fmt.Sprintf("/s/%d", i)
		if i < 3 {
			key = fmt.Sprintf("/%d", i)
		}
		writing.Go(func() {
			if _, err := n.Txn(ctx, putTxn(key, ""), Once{}); err != nil {
				t.Error(err)
			}
		})
	}
	writing.Wait()
	testwait.For(t, func() error {
		root, child := counted()
		if root == before+3 && child == 47 && root+child == n.root.Counts().Mutations {
			return nil
		}
		return fmt.Errorf("%d mutations of the root scope after %d, %d of the other; %d of the node", root, before, child, n.root.Counts().Mutations)
	})
}
