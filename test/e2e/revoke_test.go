package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
)

// TestRevokedScopeComesThroughAKill: while clients work on a scope of one anchor, the scope above
// gives it to three others. That anchor is killed during the notice, and comes back when it is over;
// it hands over, and is killed for good. To each client every key was one register all the time.
func TestRevokedScopeComesThroughAKill(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	n := newNetwork(t, 5, false)
	n.start()
	notice := filepath.Join(n.dir, "notice.yaml")
	if err := os.WriteFile(notice, []byte("children:\n  notice: 4s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	n.decreed("notice: 4s", notice)
	r := &region{prefix: "/lab/", template: "local", anchors: []int{4}}
	n.delegate(r)
	stop := make(chan struct{})
	var working sync.WaitGroup
	r.worked(n, drawn(t, 9), 0, 4, stop, &working)
	busy := func() { testwait.More(t, "operations", 20, r.history.acknowledged) }
	busy()

	var apis []string
	for _, p := range n.nodes {
		apis = append(apis, p.api)
	}
	n.must("scope", "revoke", r.prefix, "--anchors", "node1,node2,node3", "--template", "light", "--here", "--api", strings.Join(apis, ","), "--timeout", "30s")
	n.nodes[4].signal(sigKill)
	time.Sleep(5 * time.Second) // longer than the notice
	if x := n.scopeOf(r.prefix); strings.Join(x.Anchors, " ") != "node5" {
		t.Errorf("its anchor was dead, and it is governed by %v", x.Anchors)
	}
	n.nodes[4].start()
	until(t, backSoon, "others govern it", func(context.Context) error {
		if x := n.scopeOf(r.prefix); len(x.Anchors) != 3 || x.Mode != "crash" || x.Epoch != 1 {
			return fmt.Errorf("it has the anchors %v in epoch %d", x.Anchors, x.Epoch)
		}
		return nil
	})
	busy()
	n.nodes[4].signal(sigKill)
	before := r.history.acknowledged() // and at most one more for each client is on its way
	until(t, backSoon, "it goes on without who governed before", func(context.Context) error {
		if did := r.history.acknowledged() - before; did < 20 {
			return fmt.Errorf("%d operations", did)
		}
		return nil
	})
	close(stop)
	working.Wait()
	r.check(n)
	n.leadsTo(r.prefix+"traced", "/", r.prefix)
	n.nodes[4].start()
}

type scopeJSON struct {
	Prefix, Mode string
	Epoch        uint64
	Anchors      []string
}

// scopeOf is what the second node tells of a scope.
func (n *network) scopeOf(prefix string) (x scopeJSON) {
	n.t.Helper()
	var all struct{ Scopes []scopeJSON }
	if err := json.Unmarshal([]byte(n.must("scope", "show", prefix, "-o", "json", "--api", n.nodes[1].api)), &all); err != nil || len(all.Scopes) != 1 {
		n.t.Fatalf("%+v, %v", all, err)
	}
	return all.Scopes[0]
}
