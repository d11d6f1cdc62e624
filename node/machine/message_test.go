package machine_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
	"github.com/aweigh/aweigh/votes"
)

// tap is a host that keeps the frames that a machine sends.
type tap struct {
	*store.Mem
	frames [][]byte
	to     []machine.Peer // of each frame, "" for gossip
	notes  []machine.Note
}

func (t *tap) Commit(ops []kv.Op, sync bool) error { return t.Mem.Commit(ops, sync) }
func (t *tap) Send(p machine.Packet)               { t.frames, t.to = append(t.frames, p.Frame), append(t.to, p.To) }
func (t *tap) Gossip(f []byte)                     { t.frames, t.to = append(t.frames, f), append(t.to, "") }
func (t *tap) Reply(machine.Reply)                 {}
func (t *tap) Note(n machine.Note)                 { t.notes = append(t.notes, n) }

// network is the machines of four anchors, on disks of their own.
type network struct {
	genesis  scope.Genesis
	shared   *machine.Network
	keys     []votes.PrivateKey
	authors  []votes.PrivateKey
	peers    []machine.Peer
	hosts    []*tap
	machines []*machine.Machine
	now      aweigh.Instant
}

func newNetwork(t testing.TB, name string) *network {
	t.Helper()
	return newNetworkUnder(t, name, scope.OpenPolicy(quorum.BFT))
}

func newNetworkUnder(t testing.TB, name string, policy scope.Policy) *network {
	t.Helper()
	n := &network{now: aweigh.InstantOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
	var founders []machine.Founder
	for i := range 4 {
		seed := aweigh.Sum([]byte(name), []byte{byte(i)})
		key, _ := votes.KeyFromSeed(votes.Ed25519, seed[:])
		seed = aweigh.Sum(seed[:])
		author, _ := votes.KeyFromSeed(votes.Ed25519, seed[:])
		peer, err := machine.PeerOf(author)
		if err != nil {
			t.Fatal(err)
		}
		n.keys, n.authors, n.peers = append(n.keys, key), append(n.authors, author), append(n.peers, peer)
		founders = append(founders, machine.Founder{Key: key.Public(), Peer: peer})
	}
	var err error
	if n.genesis, err = machine.NewGenesis(name, n.now, policy, founders...); err != nil {
		t.Fatal(err)
	}
	if n.shared, err = machine.NewNetwork(n.genesis, nil); err != nil {
		t.Fatal(err)
	}
	ops, err := machine.Bootstrap(n.genesis)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		h := &tap{Mem: store.NewMem()}
		if err := h.Mem.Commit(ops, true); err != nil {
			t.Fatal(err)
		}
		m, err := machine.NewMachine(machine.MachineConfig{Network: n.shared, Key: &n.keys[i]}, h.Mem)
		if err != nil {
			t.Fatal(err)
		}
		n.hosts, n.machines = append(n.hosts, h), append(n.machines, m)
	}
	return n
}

// listen lets all anchors hear each other, so that they sign (P9).
func (n *network) listen(t testing.TB) {
	t.Helper()
	for i := range n.hosts {
		for _, p := range n.peers {
			if p != n.peers[i] {
				n.step(t, i, machine.Met{Peer: p})
			}
		}
	}
	for range 2 {
		for i, h := range n.hosts {
			sent, to := h.frames, h.to
			h.frames, h.to = nil, nil
			for k, f := range sent {
				for j := range n.hosts {
					if msg, err := n.machines[j].Checker().Check(n.peers[i], f); err == nil && n.peers[j] == to[k] {
						n.step(t, j, machine.Arrived{From: n.peers[i], Message: msg})
					}
				}
			}
		}
	}
}

func (n *network) step(t testing.TB, i int, events ...machine.Event) {
	t.Helper()
	n.now = n.now.Add(time.Millisecond)
	if err := machine.Perform(n.hosts[i], n.machines[i].Step(n.now, events...)); err != nil {
		t.Fatal(err)
	}
}

func (n *network) mutation(key string) scope.Mutation {
	txn := scope.Txn{Success: []scope.Op{{Kind: scope.OpPut, Key: []byte(key), Value: []byte("v")}}}
	return scope.Mutation{
		Scope: n.genesis.Hash(), Class: scope.Write, Content: canon.Encode(txn), Nonce: []byte("12345678"), ValidUntil: n.now.Add(time.Minute),
	}
}

func (n *network) bundle(t testing.TB, i int) *scope.CheckedBundle {
	t.Helper()
	b, err := scope.Sign(n.authors[i], n.genesis.Policy.Limits, n.mutation("/k"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// other is a bundle with another key.
func (n *network) other(t testing.TB, i int) *scope.CheckedBundle {
	t.Helper()
	return n.named(t, i, "/other")
}

func (n *network) named(t testing.TB, i int, key string) *scope.CheckedBundle {
	t.Helper()
	b, err := scope.Sign(n.authors[i], n.genesis.Policy.Limits, n.mutation(key))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// traffic commits one write among the four, and returns every frame sent.
func (n *network) traffic(t testing.TB) (frames [][]byte) {
	t.Helper()
	n.step(t, 0, machine.Submit{Bundle: n.bundle(t, 0)}, machine.Read{ID: 1}, machine.Met{Peer: n.peers[1]})
	for range 12 {
		for i, h := range n.hosts {
			sent := h.frames
			h.frames, h.to = nil, nil
			frames = append(frames, sent...)
			for _, f := range sent {
				for j := range n.hosts {
					if msg, err := n.machines[j].Checker().Check(n.peers[i], f); err == nil && j != i {
						n.step(t, j, machine.Arrived{From: n.peers[i], Message: msg})
					}
				}
			}
		}
	}
	if h := n.machines[3].Status().Head.Height; h == 0 {
		t.Fatal("nothing was committed")
	}
	return frames
}

// TestOtherNetworksAreRefused: no frame of one network that carries a signature
// is taken in another, and the reason says so.
func TestOtherNetworksAreRefused(t *testing.T) {
	theirs, ours := newNetwork(t, "theirs"), newNetwork(t, "ours")
	refused := 0
	for _, f := range theirs.traffic(t) {
		msg, err := ours.machines[0].Checker().Check(ours.peers[1], f)
		switch {
		case errors.Is(err, votes.ErrForeign), errors.Is(err, machine.ErrFrame):
			refused++
		case err != nil:
			t.Errorf("frame %q refused for another reason: %v", f[0], err)
		default: // unsigned questions, and bundles, which name their scope
			ours.step(t, 0, machine.Arrived{From: theirs.peers[1], Message: msg})
		}
	}
	if refused < 10 {
		t.Fatalf("only %d frames refused", refused)
	}
	if s := ours.machines[0].Status(); s.Head.Height != 0 || s.Pool != 0 || s.View != 1 {
		t.Fatalf("another network moved this one: %+v", s)
	}
}

// ofNextEpoch reports whether a frame claims to be of epoch 1.
func ofNextEpoch(f []byte) bool {
	switch c, _ := machine.Parse(f); c := c.(type) {
	case votes.Ballot:
		return c.Domain.Epoch == 1
	case machine.Announce:
		return c.Header.Epoch == 1
	}
	return false
}

// TestForgedFramesAreRefused flips each byte of each kind of frame: what a
// signature covers is refused, and nothing panics or changes what is final.
func TestForgedFramesAreRefused(t *testing.T) {
	n := newNetwork(t, "forged")
	seen := make(map[byte]bool)
	for _, f := range n.traffic(t) {
		if seen[f[0]] {
			continue
		}
		seen[f[0]] = true
		for i := range f {
			bad := append([]byte(nil), f...)
			bad[i] ^= 1
			msg, err := n.machines[1].Checker().Check(n.peers[2], bad)
			if err == nil {
				n.step(t, 1, machine.Arrived{From: n.peers[2], Message: msg})
				if ofNextEpoch(bad) {
					continue // kept until it can be verified
				}
				if f[0] == 'b' || f[0] == 'v' || f[0] == 'n' {
					t.Errorf("byte %d of a frame %q is covered by no signature", i, f[0])
				}
			}
		}
	}
	for _, kind := range "bpvora" {
		if !seen[byte(kind)] {
			t.Errorf("no frame of kind %q was tried", kind)
		}
	}
	if a, b := n.machines[1].Status().Head, n.machines[0].Status().Head; a.Digest != b.Digest {
		t.Fatal("forged frames changed the state")
	}
	if n.machines[1].Status().Lost {
		t.Fatal("forged frames silenced an anchor")
	}
}

// TestTruncatedFramesAreRefused: no frame is good when cut short.
func TestTruncatedFramesAreRefused(t *testing.T) {
	n := newNetwork(t, "truncated")
	for _, f := range n.traffic(t) {
		for cut := range f {
			if _, err := n.machines[1].Checker().Check(n.peers[2], f[:cut]); err == nil {
				t.Fatalf("the first %d of %d bytes of a frame %q were taken", cut, len(f), f[0])
			}
		}
	}
}

// TestStoreOfAnotherNetworkIsRefused: a data directory is good for one network.
func TestStoreOfAnotherNetworkIsRefused(t *testing.T) {
	a, b := newNetwork(t, "a"), newNetwork(t, "b")
	if _, err := machine.NewMachine(machine.MachineConfig{Network: b.shared}, a.hosts[0].Mem); !errors.Is(err, machine.ErrOtherNetwork) {
		t.Fatalf("opened another network's store: %v", err)
	}
}

// TestRestoredBackupIsSilenced (P9): an anchor that comes up on an old copy of
// its disk and meets ballots that it does not remember signs nothing more.
func TestRestoredBackupIsSilenced(t *testing.T) {
	n := newNetwork(t, "restored5")
	n.listen(t)
	old := n.hosts[3].Mem.Clone()
	n.step(t, 0, machine.Submit{Bundle: n.bundle(t, 0)})
	n.traffic(t)
	m, err := machine.NewMachine(machine.MachineConfig{Network: n.shared, Key: &n.keys[3]}, old)
	if err != nil {
		t.Fatal(err)
	}
	n.hosts[3], n.machines[3] = &tap{Mem: old}, m
	n.step(t, 0, machine.Met{Peer: n.peers[3]})
	for _, f := range n.hosts[0].frames {
		if msg, err := m.Checker().Check(n.peers[0], f); err == nil {
			n.step(t, 3, machine.Arrived{From: n.peers[0], Message: msg})
		}
	}
	if !m.Status().Lost {
		t.Fatal("the anchor did not see that it lost its state")
	}
	for _, f := range n.hosts[3].frames {
		if b, ok := parsed(t, f).(votes.Ballot); ok {
			t.Fatalf("signed %v after it lost its state", b.Subject)
		}
	}
	again, err := machine.NewMachine(machine.MachineConfig{Network: n.shared, Key: &n.keys[3]}, old)
	if err != nil || !again.Status().Lost {
		t.Fatalf("forgot that it lost its state: %v", err)
	}
}

func FuzzCheck(f *testing.F) {
	n := newNetwork(f, "fuzz")
	seen := make(map[byte]bool)
	for _, frame := range n.traffic(f) {
		if !seen[frame[0]] {
			seen[frame[0]] = true
			f.Add(frame)
		}
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		msg, err := n.machines[0].Checker().Check(n.peers[1], frame)
		if err == nil {
			n.step(t, 0, machine.Arrived{From: n.peers[1], Message: msg})
			n.hosts[0].frames, n.hosts[0].to = nil, nil
		}
	})
}

// parsed takes a frame of an honest machine apart, and holds Parse and Frame to
// being each other's inverse.
func parsed(t *testing.T, f []byte) any {
	t.Helper()
	content, err := machine.Parse(f)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(machine.Frame(content), f) {
		t.Fatalf("%T: Frame does not give what Parse read", content)
	}
	return content
}
