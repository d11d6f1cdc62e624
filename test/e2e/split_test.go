package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testwait"
)

// TestBusyPrefixesBecomeScopes: clients flood one prefix of two. The scope gives it a scope of its own, while a node is
// killed over and over. To each client every key was one register all the time, all nodes tell of the same scopes after
// a restart of all, and the history says why. Once it is quiet and both policies let it, it comes home.
func TestBusyPrefixesBecomeScopes(t *testing.T) {
	t.Parallel()
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	must(t, os.WriteFile(policy, []byte("topology: {split: act, rate: 20, epochs: 2, rest: 2, most: 1}\n"), 0o600))
	n := newNetwork(t, 4, false, "--policy", policy, "--epoch-blocks", "25")
	n.start()
	rng := drawn(t, 11)
	hot, quiet := &region{prefix: "/t/hot/"}, &region{prefix: "/t/quiet/"}
	stop := make(chan struct{})
	var working sync.WaitGroup
	quiet.worked(n, rng, 0, 1, stop, &working)
	hot.worked(n, rng, 10, 8, stop, &working)

	ended := make(chan struct{})
	working.Go(func() {
		for {
			select {
			case <-ended:
				return
			case <-time.After(400 * time.Millisecond):
				n.nodes[3].signal(sigKill)
				n.nodes[3].start()
			}
		}
	})
	prefixes := func(p *process) []string {
		var tree struct{ Scopes []struct{ Prefix string } }
		if out, _, code := n.command("scope", "ls", "-o", "json", "--api", p.api); code != 0 || json.Unmarshal([]byte(out), &tree) != nil {
			return nil
		}
		var all []string
		for _, s := range tree.Scopes {
			all = append(all, s.Prefix)
		}
		return all
	}
	is := func(p *process) bool { return strings.Join(prefixes(p), " ") == " /t/hot/" }
	testwait.Until(t, "/t/hot/ is a scope of its own", func() bool { return is(n.nodes[0]) })
	testwait.More(t, "operations on "+hot.prefix, 20, hot.history.acknowledged)
	testwait.More(t, "operations on "+quiet.prefix, 5, quiet.history.acknowledged)
	close(ended)
	close(stop)
	working.Wait()
	hot.check(n)
	quiet.check(n)

	for _, p := range n.nodes {
		p.signal(sigKill)
	}
	for _, p := range n.nodes {
		p.start()
	}
	n.agreed(time.Minute)
	for _, p := range n.nodes {
		testwait.Until(t, p.name+" tells of both scopes", func() bool { return is(p) })
	}
	if said := n.must("audit", "tail", "--prefix", "/t/hot/", "--api", n.nodes[3].api); !strings.Contains(said, "by itself: ") {
		t.Errorf("the history does not say why:\n%s", said)
	}
	var seen struct {
		Splits uint32
		Reason string
	}
	if out := n.must("scope", "topology", "-o", "json", "--api", n.nodes[1].api); json.Unmarshal([]byte(out), &seen) != nil || seen.Splits != 1 {
		t.Errorf("the topology: %s", out)
	}

	// Now it is quiet, and may go home by itself.
	apis := n.nodes[0].api + "," + n.nodes[1].api + "," + n.nodes[2].api
	for _, where := range [][]string{{"--scope", hot.prefix}, nil} {
		n.must(append(where, "policy", "set", "--fold", "act,quiet=2s", "--here", "--api", apis)...)
	}
	testwait.Until(t, "it is home", func() bool {
		n.nodes[3].signal(sigKill)
		n.nodes[3].start()
		time.Sleep(400 * time.Millisecond) // the life of a process that is killed again
		return strings.Join(prefixes(n.nodes[0]), " ") == ""
	})
	n.agreed(time.Minute)
	hot.check(n)
	if said := n.must("audit", "tail", "--prefix", "/t/hot/", "--api", n.nodes[3].api); !strings.Contains(said, "by itself: the scope is quiet") {
		t.Errorf("the history does not say why:\n%s", said)
	}
	for _, p := range n.nodes {
		p.signal(sigTerm)
		n.must("doctor", "--data-dir", p.dir, "--state")
	}
}
