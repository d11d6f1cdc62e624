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

// TestScopesGoAndComeHome gives a prefix a scope of its own and takes it back, in turn, while clients write below it
// and one process is killed again and again. The last time, all processes are killed while it is on its way home.
func TestScopesGoAndComeHome(t *testing.T) {
	t.Parallel()
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	must(t, os.WriteFile(policy, []byte("children: {notice: 1s}\n"), 0o600))
	n := newNetwork(t, 4, false, "--policy", policy, "--epoch-blocks", "50")
	n.start()
	rng := drawn(t, 13)
	moves, stays := &region{prefix: "/t/moves/"}, &region{prefix: "/t/stays/"}
	stop := make(chan struct{})
	var working sync.WaitGroup
	stays.worked(n, rng, 0, 1, stop, &working)
	moves.worked(n, rng, 10, 6, stop, &working)

	ended := make(chan struct{})
	var killing sync.WaitGroup
	killing.Go(func() {
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
	prefixes := func(p *process) string {
		var tree struct{ Scopes []struct{ Prefix string } }
		if out, _, code := n.command("scope", "ls", "-o", "json", "--api", p.api); code != 0 || json.Unmarshal([]byte(out), &tree) != nil {
			return "?"
		}
		var all []string
		for _, s := range tree.Scopes {
			all = append(all, s.Prefix)
		}
		return strings.Join(all, " ")
	}
	decided := func(command string, want string) {
		t.Helper()
		apis := make([]string, 3)
		for i := range apis {
			apis[i] = n.nodes[i].api
		}
		testwait.Until(t, "scope "+command, func() bool {
			if prefixes(n.nodes[0]) == want {
				return true
			}
			_, _, _ = n.command("scope", command, moves.prefix, "--here", "--api", strings.Join(apis, ","), "--timeout", "5s")
			return prefixes(n.nodes[0]) == want
		})
	}
	for range 2 {
		decided("create", " "+moves.prefix)
		testwait.More(t, "operations below", 15, moves.history.acknowledged)
		decided("fold", "")
		testwait.More(t, "operations above", 15, moves.history.acknowledged)
	}
	decided("create", " "+moves.prefix)
	testwait.More(t, "operations below", 15, moves.history.acknowledged)
	close(ended)
	killing.Wait()
	apis := n.nodes[0].api + "," + n.nodes[1].api + "," + n.nodes[2].api
	folding := make(chan struct{})
	go func() {
		defer close(folding)
		_, _, _ = n.command("scope", "fold", moves.prefix, "--here", "--api", apis, "--timeout", "1s")
	}()
	<-folding
	time.Sleep(time.Duration(rng.IntN(400)) * time.Millisecond) // about when the notice ends
	for _, p := range n.nodes {
		p.signal(sigKill)
	}
	for _, p := range n.nodes {
		p.start()
	}
	testwait.Until(t, "it is home", func() bool { return prefixes(n.nodes[0]) == "" })
	testwait.More(t, "operations above", 15, moves.history.acknowledged)
	testwait.More(t, "operations beside", 5, stays.history.acknowledged)
	close(stop)
	working.Wait()
	moves.check(n)
	stays.check(n)
	n.agreed(time.Minute)
	for _, p := range n.nodes {
		testwait.Until(t, p.name+" tells of one scope", func() bool { return prefixes(p) == "" })
	}
	if said := n.must("audit", "tail", "--prefix", moves.prefix, "--api", n.nodes[3].api); !strings.Contains(said, "came-home") {
		t.Errorf("the history does not say that keys came home:\n%s", said)
	}
	for _, p := range n.nodes {
		p.signal(sigTerm)
		n.must("doctor", "--data-dir", p.dir, "--state")
	}
}
