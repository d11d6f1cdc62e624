package node

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aweigh/aweigh/internal/testshort"
)

// TestScopesElsewhereAreBounded: a node knows of so many scopes that it does not hold, and refuses the next, but not
// one that it knows.
func TestScopesElsewhereAreBounded(t *testing.T) {
	testshort.Skip(t)
	n, _ := stillNode(t, "n0")
	g := n.root.Genesis()
	for i := range maxForeign {
		g.Name = fmt.Sprint("other ", i)
		if _, err := n.refer(g); err != nil {
			t.Fatalf("scope %d: %v", i, err)
		}
	}
	if _, err := n.refer(g); err != nil {
		t.Errorf("one that it knows: %v", err)
	}
	g.Name = "one more"
	if _, err := n.refer(g); err == nil || !strings.Contains(err.Error(), "has no room for more") {
		t.Errorf("one more: %v", err)
	}
}
