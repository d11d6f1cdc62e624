package devnet

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/aweigh/aweigh/quorum"
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
	if _, err := Make(filepath.Join(dir, "x"), MaxNodes+1, 0); err == nil {
		t.Error("too many nodes")
	}
}
