package devnet

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

func TestDevnetsStayWhatTheyAre(t *testing.T) {
	dir := t.TempDir()
	n, err := Make(dir, 3, quorum.Crash)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, x := range n.Nodes {
		seen[x.API], seen[x.Listen[0]], seen[string(x.Peer)] = true, true, true
		if len(x.Bootstrap) != 2 {
			t.Errorf("%s knows %v", x.Name, x.Bootstrap)
		}
	}
	if len(n.Nodes) != 3 || len(seen) != 9 {
		t.Errorf("nodes share ports or keys: %+v", n.Nodes)
	}
	for _, same := range []struct {
		nodes int
		mode  quorum.Mode
	}{{0, 0}, {3, 0}, {3, quorum.Crash}} {
		again, err := Make(dir, same.nodes, same.mode)
		if err != nil || again.Genesis.Hash() != n.Genesis.Hash() || again.Nodes[2].API != n.Nodes[2].API {
			t.Errorf("%v: another devnet, %v", same, err)
		}
	}
	if _, err := Make(dir, 4, 0); !errors.Is(err, ErrDifferent) {
		t.Errorf("other nodes: %v", err)
	}
	if _, err := Make(dir, 0, quorum.BFT); !errors.Is(err, ErrDifferent) {
		t.Errorf("another mode: %v", err)
	}
	policy := scope.DefaultPolicy(quorum.Crash)
	if again, err := MakeUnder(dir, 3, policy, false); err != nil || again.Genesis.Hash() != n.Genesis.Hash() {
		t.Errorf("the same policy: %v", err)
	}
	policy.EpochBlocks = 7
	if _, err := MakeUnder(dir, 3, policy, false); !errors.Is(err, ErrDifferent) {
		t.Errorf("another policy: %v", err)
	}
	if short, err := MakeUnder(filepath.Join(dir, "short"), 3, policy, false); err != nil || short.Genesis.Policy.EpochBlocks != 7 {
		t.Errorf("made under another policy: %v", err)
	}
	if _, err := Make(filepath.Join(dir, "x"), MaxNodes+1, 0); err == nil {
		t.Error("too many nodes")
	}
}

// TestOtherDirectoriesAreRefused, but not what an attempt that was cut off left.
func TestOtherDirectoriesAreRefused(t *testing.T) {
	dir := t.TempDir()
	for _, begun := range []string{"node1", "node2"} {
		if err := os.Mkdir(filepath.Join(dir, begun), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	other := filepath.Join(dir, "passwd")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Make(dir, 3, 0); !errors.Is(err, ErrOccupied) || !strings.Contains(err.Error(), "passwd") {
		t.Errorf("in a directory of another program: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "node3")); err == nil {
		t.Error("a node was made there")
	}
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	if _, err := Make(dir, 3, 0); err != nil {
		t.Errorf("after an attempt that was cut off: %v", err)
	}
}

// TestNodesOfOtherProcessesAreNoticed: such a node would answer in the place of the one that is to start.
func TestNodesOfOtherProcessesAreNoticed(t *testing.T) {
	n, err := Make(t.TempDir(), 2, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Free(); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", n.Nodes[1].API)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := n.Free(); !errors.Is(err, ErrTaken) || !strings.Contains(err.Error(), "node2") {
		t.Errorf("the API of node2 is served already: %v", err)
	}
}

func TestEtcdIsServedElsewhereWhereItsPortIsTaken(t *testing.T) {
	n, err := Make(t.TempDir(), 2, 0)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	taken := l.Addr().String()
	if err := n.ServeEtcd(taken, true); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("an address that was chosen and is taken: %v", err)
	}
	if err := n.ServeEtcd(taken, false); err != nil {
		t.Fatal(err)
	}
	if a, b := n.Nodes[0].Etcd, n.Nodes[1].Etcd; a == taken || b == taken || a == b || a == "" || b == "" {
		t.Errorf("served at %q and %q, where %q is taken", a, b, taken)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := n.ServeEtcd(taken, true); err != nil {
		t.Fatal(err)
	}
	if n.Nodes[0].Etcd != taken {
		t.Errorf("served at %q, not at %q", n.Nodes[0].Etcd, taken)
	}
}
