package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
)

// region is a part of the namespace that gets a scope of its own while clients work
// on it.
type region struct {
	prefix   string
	template string
	anchors  []int
	history  *history
}

// worked starts clients on a region's keys.
func (r *region) worked(n *network, rng *rand.Rand, first, clients int, stop <-chan struct{}, all *sync.WaitGroup) {
	r.history = newHistory()
	for i := range clients {
		w := &worker{
			history: r.history, caller: native{n.dial((first + i) % len(n.nodes))}, id: first + i, rng: rand.New(rand.NewPCG(rng.Uint64(), rng.Uint64())),
			keys: 3, prefix: r.prefix + "k", seen: make(map[string]string),
		}
		all.Go(func() { w.run(stop) })
	}
}

// answers objects if a node answers a probe with another code.
func (p *process) answers(ctx context.Context, path string, want int) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.api+path, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != want {
		return fmt.Errorf("%d: %s", resp.StatusCode, body)
	}
	return nil
}

// acknowledged is how many operations were done so far.
func (h *history) acknowledged() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.ops {
		if h.ops[i].fate == done {
			n++
		}
	}
	return n
}

// delegate gives a region its scope: every anchor that is asked approves.
func (n *network) delegate(r *region) {
	n.t.Helper()
	var names, apis []string
	for _, p := range n.nodes {
		apis = append(apis, p.api)
	}
	for _, i := range r.anchors {
		names = append(names, n.nodes[i].name)
	}
	n.must("scope", "create", r.prefix, "--template", r.template, "--anchors", strings.Join(names, ","), "--here", "--api", strings.Join(apis, ","), "--timeout", "30s")
}

// TestScopesGovernThemselves: three levels of scopes in four kinds, founded while
// clients work on all of them. Then all anchors of one are killed: it decides nothing,
// and all others go on; when they come back, so does it. To each client, every key
// was one register all the time.
func TestScopesGovernThemselves(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	n := newNetwork(t, 5, false)
	n.start()
	rng := drawn(t, 7)
	regions := []*region{
		{prefix: "/"},
		{prefix: "/a/", template: "standard", anchors: []int{0, 1, 2, 3}},
		{prefix: "/a/b/", template: "light", anchors: []int{0, 1, 2}},
		{prefix: "/a/b/c/", template: "local", anchors: []int{4}},
		{prefix: "/d/", template: "light", anchors: []int{1, 2, 3}},
	}
	stop := make(chan struct{})
	var working sync.WaitGroup
	for i, r := range regions {
		r.worked(n, rng, 10*i, 3, stop, &working)
	}
	for _, r := range regions[1:] {
		testwait.More(t, "operations on "+r.prefix, 5, r.history.acknowledged)
		n.delegate(r)
		testwait.More(t, "operations on "+r.prefix, 5, r.history.acknowledged)
	}
	var tree struct {
		Scopes []struct {
			Prefix, Mode string
			Depth        int
			Anchors      []string
		}
	}
	if err := json.Unmarshal([]byte(n.must("scope", "tree", "-o", "json", "--api", n.nodes[1].api)), &tree); err != nil {
		t.Fatal(err)
	}
	if len(tree.Scopes) != len(regions) {
		t.Errorf("the tree: %+v", tree)
	}
	n.leadsTo("/a/b/c/traced", "/", "/a/", "/a/b/", "/a/b/c/")
	n.grows("/a/b/", "/a/b/more")

	lost := regions[3]
	n.nodes[4].signal(sigKill)
	time.Sleep(time.Second) // what was on its way
	before := make([]int, len(regions))
	for i, r := range regions {
		before[i] = r.history.acknowledged()
	}
	time.Sleep(4 * time.Second) // in which one must do nothing
	for i, r := range regions {
		if r != lost {
			testwait.Until(t, r.prefix+" goes on", func() bool { return r.history.acknowledged() > before[i] })
		}
	}
	if did := lost.history.acknowledged() - before[3]; did > 0 {
		t.Errorf("while all anchors of %s were dead, it acknowledged %d operations", lost.prefix, did)
	}
	for query, want := range map[string]int{"": 200, "?scope=/a/b/c/": 503, "?scope=/a/b/": 200, "?scope=/d/": 200, "?scope=/none/": 404} {
		until(t, backSoon, "readyz"+query, func(ctx context.Context) error { return n.nodes[1].answers(ctx, "/readyz"+query, want) })
	}
	n.nodes[4].start()
	until(t, backSoon, "the scope is back", func(context.Context) error {
		if lost.history.acknowledged() == before[3] {
			return fmt.Errorf("%s acknowledges nothing", lost.prefix)
		}
		return nil
	})
	testwait.More(t, "operations on "+lost.prefix, 5, lost.history.acknowledged)
	close(stop)
	working.Wait()
	for _, r := range regions {
		r.check(n)
	}
}

// check holds what clients saw of a region's keys to be a register each.
func (r *region) check(n *network) {
	n.t.Helper()
	h := r.history
	var maybe []change // what is unknown may have happened
	for i := range h.ops {
		if h.ops[i].fate == unknown {
			maybe = append(maybe, change{value: h.ops[i].value})
		}
	}
	result, info := linearizable(h.ops, maybe, time.Minute)
	if result != porcupine.Ok {
		picture := filepath.Join(n.dir, strings.ReplaceAll("history"+r.prefix, "/", "-")+".html")
		if f, err := os.Create(picture); err == nil {
			_ = porcupine.Visualize(register, info, f)
			_ = f.Close()
		}
		n.t.Errorf("%s: linearizable: %s; see %s", r.prefix, result, picture)
	}
	n.t.Logf("%s: %s", r.prefix, h.summary())
}

// grows keeps a signed head of a scope's history, and later verifies that it only grew,
// and that a head that was changed is found out.
func (n *network) grows(prefix, key string) {
	n.t.Helper()
	words := []string{"checkpoint", "--scope", prefix, "--api", n.nodes[1].api}
	note := n.must(words...)
	file := filepath.Join(n.dir, "head.note")
	keep := func(note string) {
		if err := os.WriteFile(file, []byte(note), 0o600); err != nil {
			n.t.Fatal(err)
		}
	}
	keep(note)
	n.must("put", key, "more", "--api", n.nodes[1].api)
	if _, errs, code := n.command(append(words, "--since", file)...); code != 0 || !strings.Contains(errs, "nothing before was changed") {
		n.t.Errorf("a head of %s, and one before it (%d): %s", prefix, code, errs)
	}
	lines := strings.Split(note, "\n")
	first := "A"
	if strings.HasPrefix(lines[2], first) {
		first = "B"
	}
	lines[2] = first + lines[2][1:]
	keep(strings.Join(lines, "\n"))
	if _, errs, code := n.command(append(words, "--since", file)...); code != 7 || !strings.Contains(errs, "altered") {
		n.t.Errorf("a head of %s, and one that was altered (%d): %s", prefix, code, errs)
	}
	if out := n.must("trust", "verify", "--scope", prefix, "--api", n.nodes[1].api); !strings.Contains(out, prefix) {
		n.t.Errorf("the roster of %s: %s", prefix, out)
	}
}

// leadsTo writes a key, and has the way to it proven and verified: by the command that
// asks, and offline.
func (n *network) leadsTo(key string, prefixes ...string) {
	n.t.Helper()
	api, file := n.nodes[1].api, filepath.Join(n.dir, "traced.proof")
	n.must("put", key, "v", "--api", api)
	genesis, err := n.dial(1).Genesis(n.t.Context())
	if err != nil {
		n.t.Fatal(err)
	}
	network := genesis.Hash().String()
	var found struct {
		UID, Network string
		Scopes       []struct {
			Prefix string
			Proven *struct {
				Head struct {
					Weight, Total_Weight uint64
				}
			}
		}
		Header struct{ Linearizable bool }
	}
	out := n.must("resolve", key, "--freshest", "--proof", file, "--network", network, "-o", "json", "--api", api)
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		n.t.Fatal(err)
	}
	if found.Network != network || found.UID == "" || !found.Header.Linearizable || len(found.Scopes) != len(prefixes) {
		n.t.Errorf("%s resolves to %s", key, out)
	}
	for i, x := range found.Scopes {
		if "/"+strings.TrimPrefix(x.Prefix, "/") != prefixes[i] || x.Proven == nil || 2*x.Proven.Head.Weight <= x.Proven.Head.Total_Weight {
			n.t.Errorf("on the way to %s: %+v, want %s", key, x, prefixes[i])
		}
	}
	if out := n.must("verify", file, "--network", network); !strings.Contains(out, "verified here") || !strings.Contains(out, found.UID) {
		n.t.Errorf("offline: %s", out)
	}
	if out, _, code := n.command("verify", file, "--network", strings.Repeat("0", 63)+"1"); code != 7 {
		n.t.Errorf("in another network (%d): %s", code, out)
	}
}
