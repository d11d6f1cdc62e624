package node

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/p2p"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store/diskstore"
	"github.com/aweigh/aweigh/votes"
)

// outsider is a libp2p host that knows the network's identity and follows no rule.
type outsider struct {
	*p2p.Host
	key    votes.PrivateKey
	told   atomic.Int64 // frames and gossip that it got
	linked chan struct{}
}

func (c *cluster) outsider() *outsider {
	c.t.Helper()
	o := &outsider{linked: make(chan struct{}, 1)}
	var err error
	if o.key, err = votes.GenerateKey(votes.Ed25519, rand.Reader); err != nil {
		c.t.Fatal(err)
	}
	o.open(c)
	return o
}

// open starts the host, connected to one of the cluster's nodes alone.
func (o *outsider) open(c *cluster) {
	c.t.Helper()
	key, err := machine.HostKey(o.key)
	if err != nil {
		c.t.Fatal(err)
	}
	bootstrap, err := p2p.ParsePeers(c.nodes[0].Addrs())
	if err != nil {
		c.t.Fatal(err)
	}
	o.Host, err = p2p.New(p2p.Config{
		Key: key, Network: c.nodes[0].root.network(), Bootstrap: bootstrap, Listen: []string{},
		Handler: p2p.Handler{
			Frame:  func(peer.ID, []byte) { o.told.Add(1) },
			Gossip: func(peer.ID, p2p.Topic, []byte) p2p.Verdict { o.told.Add(1); return p2p.Accept },
			Peer: func(_ peer.ID, up bool) {
				if up {
					select {
					case o.linked <- struct{}{}:
					default:
					}
				}
			},
		},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	if err := errors.Join(o.Start(), o.Join(c.nodes[0].root.topic())); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { o.Close() })
	select {
	case <-o.linked:
	case <-time.After(10 * time.Second):
		c.t.Fatal("the outsider does not come in")
	}
}

// requests are all that a node answers, of a scope.
func requests(in *Replica) map[string][]byte {
	secret := []byte("/secret")
	if len(in.prefix) > 0 {
		secret = append(slices.Clone(in.prefix), "secret"...)
	}
	all := map[string][]byte{
		"genesis": []byte(askGenesis), "where": []byte(askWhere),
		"heights":   slices.Concat([]byte(askHeights), canon.Encode(heightsAsk{})),
		"snapshot":  slices.Concat([]byte(askSnapshot), canon.Encode(snapshotAsk{})),
		"part":      slices.Concat([]byte(askPart), canon.Encode(partAsk{})),
		"handovers": slices.Concat([]byte(askHands), canon.Encode(handoversAsk{})),
		"cover":     slices.Concat([]byte(askCover), canon.Encode(coverAsk{})),
		"island":    slices.Concat([]byte(askIsland), canon.Encode(islandAsk{})),
		"cosign":    slices.Concat([]byte(askCosign), canon.Encode(cosignAsk{})),
	}
	for kind := referral.AskLook; kind <= referral.AskReceive; kind++ {
		body := canon.Encode(scope.Txn{Success: []scope.Op{{Kind: scope.OpRange, Key: secret}}})
		switch kind {
		case referral.AskResolve:
			body = canon.Encode(referral.Name{Key: secret})
		case referral.AskHistory:
			body = canon.Encode(foreignHistory{Key: secret, Limit: 1})
		case referral.AskEvents:
			body = canon.Encode(referral.Watch{Key: secret})
		case referral.AskProve:
			body = secret
		case referral.AskProveRange:
			body = canon.Encode(foreignKeys{Key: secret})
		case referral.AskReferrals:
			body = canon.Encode(referral.ListOf(referral.Keys(secret)))
		}
		empty := map[int][]byte{
			referral.AskLook: canon.Encode(scope.Txn{}), referral.AskResolve: canon.Encode(referral.Name{}),
			referral.AskHistory: canon.Encode(foreignHistory{Limit: 1}), referral.AskEvents: canon.Encode(referral.Watch{}),
			referral.AskReferrals: canon.Encode(referral.RangeList{}), referral.AskProve: nil,
			referral.AskProveRange: canon.Encode(foreignKeys{}),
		}
		if body, ok := empty[kind]; ok {
			ask := canon.Encode(referral.Question{Kind: uint8(kind), Body: body})
			all[fmt.Sprint("question about no key ", kind)] = slices.Concat([]byte(askForeign), ask)
		}
		all[fmt.Sprint("foreign question ", kind)] = slices.Concat([]byte(askForeign), canon.Encode(referral.Question{Kind: uint8(kind), Body: body}))
	}
	for name, req := range all {
		all[name] = slices.Concat(in.address, req)
	}
	return all
}

// refusedAll reports which requests about a scope a node does not refuse as those of a peer that may not read.
func (o *outsider) refusedAll(ctx context.Context, of *Node, in *Replica) (answered []string) {
	for name, req := range requests(in) {
		raw, err := o.Request(ctx, of.host.ID(), req, 4<<20)
		for err != nil && !errors.Is(err, p2p.ErrRefused) && ctx.Err() == nil { // it is not connected for a moment, or too eager
			time.Sleep(20 * time.Millisecond) // until it asks again
			raw, err = o.Request(ctx, of.host.ID(), req, 4<<20)
		}
		switch {
		case errors.Is(err, p2p.ErrRefused) && strings.Contains(err.Error(), scope.ErrNoReader.Error()):
		case err == nil && bytes.Equal(raw, canon.Encode(referral.Refused())):
		default:
			answered = append(answered, fmt.Sprintf("%s: %q, %v", name, raw, err))
		}
	}
	return answered
}

// TestNonMembersLearnNothing: a peer that knows the network's identity and is not admitted gets no answer, no frame, no
// gossip and no address, whatever it asks. An invite admits it, and a revocation ends that with the block.
func TestNonMembersLearnNothing(t *testing.T) {
	t.Parallel()
	c := startClusterUnder(t, 4, scope.DefaultPolicy(quorum.BFT), func(int, *Node) {})
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	n := c.nodes[0]
	put := func(key string) {
		t.Helper()
		if r, err := n.Txn(ctx, putTxn(key, "v"), Once{}); err != nil || r.Code != scope.Applied {
			t.Fatal(r, err)
		}
	}
	put("/secret")
	o := c.outsider()
	if all := o.refusedAll(ctx, n, n.root); len(all) > 0 {
		t.Fatal("a non-member got answers to", all)
	}
	before := n.root.LastHead()
	ahead := func(h *scope.Head) []byte { // a question as of a revision that is not closed
		look := scope.Txn{Success: []scope.Op{{Kind: scope.OpRange, Key: []byte("/secret")}}}
		ask := referral.Question{Kind: referral.AskLook, At: h.ClosedTimestamp() + 1, Body: canon.Encode(look)}
		return slices.Concat([]byte(askForeign), canon.Encode(ask))
	}
	if _, err := o.Request(ctx, n.host.ID(), ahead(&before), 1<<16); err != nil {
		t.Error(err)
	}
	if h := n.root.LastHead(); h.Height > before.Height+1 { // one may have been under way
		t.Errorf("a non-member made the scope decide %d blocks", h.Height-before.Height)
	}
	states := append([]byte(askState), canon.Encode(stateAsk{Scopes: []aweigh.ScopeID{n.root.id}})...)
	if raw, err := o.Request(ctx, n.host.ID(), states, 1<<16); !errors.Is(err, p2p.ErrRefused) {
		t.Errorf("a non-member heard how an anchor is: %q, %v", raw, err)
	}
	for i := range 5 {
		put(fmt.Sprint("/", i))
		time.Sleep(100 * time.Millisecond) // gossip is slower than the answer
	}
	if got := o.told.Load(); got > 0 || o.Stats().Known > 1 { // the one that it dialled
		t.Errorf("a non-member got %d frames and messages, and knows %d peers", got, o.Stats().Known)
	}
	if n.root.Counts().Unread == 0 {
		t.Error("nothing of it was counted")
	}
	// A node that is behind asks it for blocks all the same: it may be a reader by now.
	n.root.Send(n.called.of(o.ID()), machine.Tagged(machine.TagCatchUp, machine.CatchUp{From: 1}))
	testwait.Until(t, "a non-member is asked for blocks", func() bool { return o.told.Load() == 1 })

	i, _, err := n.Invite(ctx, Tickets{Uses: 1, For: time.Hour}, Once{})
	if err != nil {
		t.Fatal(err)
	}
	if err := i.knock(ctx, o.Host, n.host.ID(), "reader"); err != nil {
		t.Fatal(err)
	}
	if all := o.refusedAll(ctx, n, n.root); len(all) != len(requests(n.root)) {
		t.Errorf("an observer got answers to %d of %d requests only", len(all), len(requests(n.root)))
	}
	before = n.root.LastHead()
	raw, err := o.Request(ctx, n.host.ID(), ahead(&before), 1<<16)
	var a referral.Answer
	if err != nil || canon.Decode(raw, &a) != nil || !errors.Is(scope.Failure(a.Failure), scope.ErrFutureRevision) {
		t.Errorf("an observer asks for what no block can close: %+v, %v", a, err)
	}
	if h := n.root.LastHead(); h.Height > before.Height+1 {
		t.Errorf("it made the scope decide %d blocks", h.Height-before.Height)
	}
	for before, k := o.told.Load(), 0; o.told.Load() == before; k++ {
		put(fmt.Sprint("/x", k))
		time.Sleep(10 * time.Millisecond) // until it writes again
		if ctx.Err() != nil {
			t.Fatal("an observer hears no gossip")
		}
	}
	list := n.root.epochs.epoch().Policy.List()
	gone := scope.Txn{Success: []scope.Op{{Kind: scope.OpDelete, Key: scope.Listing(list, o.ID().String())}}}
	if _, err := n.Txn(ctx, gone, Once{}); err != nil {
		t.Fatal(err)
	}
	select { // its connection ends, and it comes again
	case <-o.linked:
	case <-ctx.Done():
		t.Fatal("an observer that is revoked stays connected")
	}
	if all := o.refusedAll(ctx, n, n.root); len(all) > 0 {
		t.Error("an observer that is revoked got answers to", all)
	}
	testwait.For(t, func() error { // what was under way still comes, once
		o.told.Store(0)
		for i := range 5 {
			put(fmt.Sprint("/y", i))
			time.Sleep(100 * time.Millisecond) // gossip is slower than the answer
		}
		if got := o.told.Load(); got > 0 {
			return fmt.Errorf("an observer that is revoked got %d frames and messages while five writes were made", got)
		}
		return nil
	})
}

// TestNonMembersLearnNoState: a non-member gets the same refusal from a node that serves nothing before it has reached
// the roster that its operator trusts as from any other anchor.
func TestNonMembersLearnNoState(t *testing.T) {
	t.Parallel()
	later := scope.Trusted{Epoch: 1 << 40, Roster: aweigh.Sum([]byte("to come"))}
	c := startClusterUnder(t, 1, scope.DefaultPolicy(quorum.BFT), func(_ int, n *Node) { n.pin.want = later })
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	if all := c.outsider().refusedAll(ctx, c.nodes[0], c.nodes[0].root); len(all) > 0 {
		t.Error("a non-member got answers to", all)
	}
}

// TestFewPeersThatPartedStayAdmitted: a peer may part while the host asks whether to admit it, so that nothing tells
// later that it did. Connected peers stay admitted.
func TestFewPeersThatPartedStayAdmitted(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 2, quorum.BFT)
	n, other := c.nodes[0], c.nodes[1].host.ID()
	r := &n.root.readers
	known := func() (all int, has bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.admitted), r.admitted[other]
	}
	testwait.Until(t, "the other node is connected, and admitted", func() bool {
		return slices.ContainsFunc(n.host.Peers(), func(p p2p.PeerInfo) bool { return p.ID == other }) && n.admits(other)
	})
	for i := range 3 * maxReaders {
		n.admits(peer.ID(fmt.Sprint("parted", i)))
		if all, has := known(); all > maxReaders || !has {
			t.Fatalf("%d peers are admitted after %d that parted, and the connected one is: %v", all, i+1, has)
		}
	}
}

// TestInvitesAdmitSoManyNodes: and no more, whatever comes at once; a node that is admitted uses nothing up. One that
// is over, revoked, forged or bound to another peer admits none.
func TestInvitesAdmitSoManyNodes(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	c := startClusterUnder(t, 1, scope.DefaultPolicy(quorum.BFT), func(int, *Node) {})
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	n := c.nodes[0]
	i, _, err := n.Invite(ctx, Tickets{Name: "two", Uses: 2, For: time.Hour}, Once{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := n.Invite(ctx, Tickets{Name: "two", Uses: 2, For: time.Hour}, Once{}); !errors.Is(err, ErrInvited) {
		t.Errorf("a second invite of the same name: %v", err)
	}
	var guests []*outsider
	for range 5 {
		guests = append(guests, c.outsider())
	}
	knock := func(i Invite, o *outsider) error {
		for {
			err := i.knock(ctx, o.Host, n.host.ID(), "guest")
			if err == nil || errors.Is(err, ErrNotAdmitted) || ctx.Err() != nil {
				return err
			}
			time.Sleep(50 * time.Millisecond) // non-members share a budget
		}
	}
	var in, out atomic.Int64
	var all sync.WaitGroup
	for _, o := range guests {
		all.Go(func() {
			switch err := knock(i, o); {
			case err == nil:
				in.Add(1)
			case errors.Is(err, ErrNotAdmitted):
				out.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if in.Load() != 2 || out.Load() != 3 {
		t.Fatalf("an invite of 2 uses admitted %d, and refused %d", in.Load(), out.Load())
	}
	var admitted, refused *outsider
	for _, o := range guests {
		if may, err := n.root.mayReadNow(n.called.of(o.ID())); err != nil {
			t.Fatal(err)
		} else if may {
			admitted = o
		} else {
			refused = o
		}
	}
	if err := knock(i, admitted); err != nil {
		t.Errorf("a node that is admitted: %v", err)
	}
	more, _, err := n.Invite(ctx, Tickets{Name: "more", Uses: 9, For: time.Hour}, Once{})
	if err != nil {
		t.Fatal(err)
	}
	forged := more
	forged.Secret = make([]byte, secretBytes)
	unknown := more
	unknown.Ticket = "unknown"
	wrong, none := knock(forged, refused), knock(unknown, refused)
	if !errors.Is(wrong, ErrNotAdmitted) || !errors.Is(none, ErrNotAdmitted) || wrong.Error() != none.Error() {
		t.Errorf("a forged secret: %v; one of no invite: %v", wrong, none)
	}
	// What another peer signed, as an eavesdropper may have it.
	key, err := votes.KeyFromSeed(votes.Ed25519, more.Secret)
	if err != nil {
		t.Fatal(err)
	}
	k := knockOf(key, more, admitted.ID().String())
	raw, err := refused.Request(ctx, n.host.ID(), k, 1<<10)
	var a knocked
	if err != nil || canon.Decode(raw, &a) != nil || a.Refused == "" {
		t.Errorf("the knock of another peer: %+v, %v", a, err)
	}
	short, _, err := n.Invite(ctx, Tickets{Name: "short", Uses: 9, For: time.Second}, Once{})
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(2100 * time.Millisecond) // the invite ends, and no block tells so
	if err := knock(short, refused); !errors.Is(err, ErrNotAdmitted) || !strings.Contains(err.Error(), "ended") {
		t.Errorf("an invite that is over: %v", err)
	}
	list := n.root.epochs.epoch().Policy.List()
	if _, err := n.Txn(ctx, scope.Txn{Success: []scope.Op{{Kind: scope.OpDelete, Key: scope.Ticket(list, "more")}}}, Once{}); err != nil {
		t.Fatal(err)
	}
	if err := knock(more, refused); !errors.Is(err, ErrNotAdmitted) || !strings.Contains(err.Error(), "revoked") {
		t.Errorf("an invite that is revoked: %v", err)
	}
	other := i
	other.Secret = nil
	other.Ticket = ""
	refused.Close()
	if _, err := FetchGenesis(ctx, refused.key, other, "guest"); !errors.Is(err, ErrNotAdmitted) {
		t.Errorf("an invite without its secret: %v", err)
	}
}

// knockOf is the request with which a peer would knock.
func knockOf(key votes.PrivateKey, i Invite, p string) []byte {
	k := knock{Ticket: i.Ticket, Name: "guest"}
	k.Signature = key.Sign(votes.ContextKnock, knockBytes(i.Network, machine.Peer(p), k.Ticket, k.Name))
	return slices.Concat([]byte(askKnock), canon.Encode(k))
}

// invited starts an observer that an invite of a node admits.
func (c *cluster) invited(ctx context.Context, by int, transport func(p2p.Config) (Transport, error)) *Node {
	t := c.t
	t.Helper()
	key, err := votes.GenerateKey(votes.Ed25519, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i, _, err := c.nodes[by].Invite(ctx, Tickets{Uses: 1, For: time.Hour}, Once{})
	if err != nil {
		t.Fatal(err)
	}
	if i, err = ParseInvite(i.String()); err != nil {
		t.Fatal(err)
	}
	g, err := FetchGenesis(ctx, key, i, "reader")
	if err != nil {
		t.Fatal(err)
	}
	s, err := diskstore.Open(filepath.Join(t.TempDir(), "o"), diskstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n, err := New(Config{
		Name: "reader", Genesis: g, Identity: key, Store: s, Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Bootstrap: i.Peers,
		Transport: transport,
	})
	if err != nil {
		t.Fatal(err)
	}
	run, end := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- n.Run(run) }()
	t.Cleanup(func() {
		end()
		if err := errors.Join(<-done, s.Close()); err != nil {
			t.Error(err)
		}
	})
	return n
}

// TestObserversFollowByInvite: a node that an invite admitted has what the anchors have, and hears of each write.
func TestObserversFollowByInvite(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	c := startClusterUnder(t, 4, scope.DefaultPolicy(quorum.BFT), func(int, *Node) {})
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	n := c.invited(ctx, 1, nil)
	for k := range 10 {
		key := []byte(fmt.Sprint("/k", k))
		r, err := c.nodes[k%4].Txn(ctx, putTxn(string(key), "v"), Once{})
		if err != nil {
			t.Fatal(err)
		}
		for {
			found, h, err := n.Range(ctx, key, nil, scope.Range{}, false)
			if err == nil && len(found.Kvs) == 1 && h.Revision >= r.Revision {
				break
			}
			if ctx.Err() != nil {
				t.Fatalf("write %d does not arrive: %v", k, err)
			}
			time.Sleep(5 * time.Millisecond) // until it looks again
		}
	}
	if r, err := n.Txn(ctx, putTxn("/mine", "v"), Once{}); err == nil && r.Code != scope.Failed {
		t.Errorf("an observer wrote: %+v, %v", r, err)
	}
	// It answers the questions of non-members as an anchor does that lost its seat, and tells readers that it is none.
	look := canon.Encode(scope.Txn{Success: []scope.Op{{Kind: scope.OpRange, Key: []byte("/k0")}}})
	ask := referral.Question{Kind: referral.AskLook, Body: look}
	raw, err := n.root.serveForeign(ctx, "stranger", ask)
	if err != nil || !bytes.Equal(raw, canon.Encode(referral.Unseated(0))) {
		t.Errorf("an observer tells non-members %q, %v", raw, err)
	}
	if _, err := n.root.serveForeign(ctx, c.nodes[0].Peer(), ask); !errors.Is(err, ErrNoAnchor) {
		t.Errorf("an observer tells a reader %v", err)
	}
	// Once it is listed no more, its watches end.
	_, ended, stop := watched(t, n, "/k", "/l", 0)
	defer stop()
	if r, err := c.nodes[0].Txn(ctx, scope.Txn{Success: []scope.Op{{Kind: scope.OpDelete, Key: []byte("/observers/"), End: []byte("/observers0")}}}, Once{}); err != nil || r.Code != scope.Applied {
		t.Fatal(r, err)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, scope.ErrNoReader) {
			t.Errorf("a watch of an observer that is listed no more: %v", err)
		}
	case <-ctx.Done():
		t.Error("a watch of an observer that is listed no more goes on")
	}
}

// TestClosedScopesTellTheirReadersAlone: the nodes of a network learn nothing of a scope below that does not list them,
// not by questions, frames or gossip, and their clients are told why.
func TestClosedScopesTellTheirReadersAlone(t *testing.T) {
	testshort.Skip(t)
	_, c := newHolders(t, func(_ int, cfg *Config) { cfg.idleAfter = 0 })
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	policy := scope.DefaultPolicy(quorum.Crash)
	inside, outside, part := c.nodes[1], c.nodes[0], c.nodes[2]
	policy.Authors = append(policy.Authors[:1], scope.Author{ // the anchors
		Name: "app", Who: scope.OneKey, Key: outside.cfg.Identity.Public(),
		Verbs: []string{scope.VerbPut}, Prefixes: [][]byte{[]byte("/b/app/")},
	})
	policy.Authors = append(policy.Authors, scope.Author{
		Name: "part", Who: scope.OneKey, Key: part.cfg.Identity.Public(),
		Verbs: []string{scope.VerbRead}, Prefixes: [][]byte{[]byte("/b/app/")},
	})
	c.decide(ctx, "", c.child("/b/", policy, 1))
	testwait.For(t, func() error {
		_, err := inside.In("/b/")
		return err
	})
	if r, err := inside.Txn(ctx, putTxn("/b/secret", "v"), Once{}); err != nil || r.Code != scope.Applied {
		t.Fatal(r, err)
	}
	below := func(n *Node) *Replica {
		for _, p := range n.Replicas() {
			if string(p.prefix) == "/b/" {
				return p
			}
		}
		return nil
	}
	if found, _, err := outside.Range(ctx, []byte("/b/secret"), nil, scope.Range{}, true); !errors.Is(err, scope.ErrNoReader) {
		t.Errorf("a node that the scope does not list reads %+v, %v", found.Kvs, err)
	}
	in := below(inside)
	if r, err := outside.Txn(ctx, putTxn("/b/app/x", "v"), Once{}); err != nil || r.Code != scope.Applied {
		t.Errorf("an author that may not read writes: %+v, %v", r, err)
	}
	if r, err := outside.Txn(ctx, putTxn("/b/secret", "w"), Once{}); !errors.Is(err, scope.ErrDenied) || errors.Is(err, scope.ErrNoReader) {
		t.Errorf("it writes elsewhere: %+v, %v", r, err)
	}
	if found, _, err := part.Range(ctx, []byte("/b/app/x"), nil, scope.Range{}, true); err != nil || len(found.Kvs) != 1 {
		t.Errorf("a node that may read some keys reads %+v, %v", found.Kvs, err)
	}
	if _, _, err := part.Range(ctx, []byte("/b/secret"), nil, scope.Range{}, true); !errors.Is(err, scope.ErrNoReader) {
		t.Errorf("it reads others: %v", err)
	}
	other := c.nodes[3] // in the network, and of no part in the scope
	if _, err := other.Txn(ctx, putTxn("/b/app/x", "w"), Once{}); !errors.Is(err, scope.ErrNoAuthor) || !strings.Contains(err.Error(), "--scope /b/") {
		t.Errorf("a node that is no author writes: %v", err)
	}
	for name, req := range requests(in) {
		raw, err := other.host.Request(ctx, inside.host.ID(), req, 4<<20)
		refused := refusedReading(err) || err == nil && bytes.Equal(raw, canon.Encode(referral.Refused()))
		if !refused {
			t.Errorf("%s: %q, %v", name, raw, err)
		}
	}
	for _, n := range []*Node{outside, other} {
		if below(n) != nil {
			t.Error("it holds the scope")
		}
		if in.public() || slices.Contains(in.hears(), n.host.ID()) {
			t.Error("gossip of the scope goes to it")
		}
	}

	events, ended, stop := watched(t, part, "/b/app/", "/b/app0", 0)
	defer stop()
	if r, err := outside.Txn(ctx, putTxn("/b/app/x", "seen"), Once{}); err != nil || r.Code != scope.Applied {
		t.Fatal(r, err)
	}
	if e := <-events; string(e.Kv.Value) != "seen" {
		t.Errorf("a watch of a node that may read shows %q", e.Kv.Value)
	}
	copied := func() (err error) {
		_, _, err = part.Range(ctx, []byte("/b/app/x"), nil, scope.Range{}, false)
		return err
	}
	part.copies.often = 1
	testwait.Until(t, "a copy answers", func() bool {
		if err := copied(); err != nil {
			t.Fatal(err)
		}
		return part.Copies().Answered > 0
	})
	policy.Authors = policy.Authors[:len(policy.Authors)-1]
	if r, err := in.Govern(ctx, scope.Decision{Kind: scope.SetPolicy, Policy: &policy}, Once{}); err != nil || r.Code != scope.Applied {
		t.Fatal(r, err)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, scope.ErrNoReader) {
			t.Errorf("a watch of a node whose right ended: %v", err)
		}
	case <-time.After(testwait.Patience):
		t.Error("a watch goes on though its node may not read any more")
	}
	if _, _, _, err := part.WatchSegments(ctx, []byte("/b/app/"), []byte("/b/app0"), 0); !errors.Is(err, scope.ErrNoReader) || errors.Is(err, referral.ErrMute) {
		t.Errorf("another watch begins: %v", err)
	}
	testwait.Until(t, "the copy ends", func() bool { return errors.Is(copied(), scope.ErrNoReader) })
	if n := part.Copies(); n.Copies != 0 {
		t.Errorf("a node that may not read any more has %+v", n)
	}
}
