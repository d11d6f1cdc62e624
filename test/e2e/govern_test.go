package e2e

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/testshort"
)

// government is what "aweigh trust -o json" says.
type government struct {
	Header struct {
		Epoch  uint64 `json:"epoch"`
		Height uint64 `json:"height"`
	} `json:"header"`
	TotalWeight uint64 `json:"total_weight"`
	Anchors     []struct {
		ID       string `json:"id"`
		Name     string `json:"name"`
		Standing string `json:"standing"`
		Score    uint32 `json:"score"`
		Weight   uint64 `json:"weight"`
		Since    uint64 `json:"since"`
		From     uint64 `json:"weighs_from"`
	} `json:"anchors"`
}

// standing is an anchor's row.
func (g *government) standing(name string) (s struct {
	Word          string
	Score         uint32
	Weight        uint64
	Since, Weighs uint64
}) {
	for _, a := range g.Anchors {
		if a.Name == name {
			s.Word, s.Score, s.Weight, s.Since, s.Weighs = a.Standing, a.Score, a.Weight, a.Since, a.From
		}
	}
	return s
}

// government asks a node.
func (n *network) government(p *process) (g government) {
	n.t.Helper()
	n.tells(&g, "trust", "--api", p.api)
	return g
}

// tells reads what a command says as JSON.
func (n *network) tells(v any, args ...string) {
	n.t.Helper()
	if err := json.Unmarshal([]byte(n.must(append(args, "-o", "json")...)), v); err != nil {
		n.t.Fatalf("aweigh %s: %v", strings.Join(args, " "), err)
	}
}

// governed waits until a node's view of the government pleases.
func (n *network) governed(p *process, limit time.Duration, what string, pleases func(*government) error) government {
	n.t.Helper()
	var g government
	until(n.t, limit, what, func(context.Context) error {
		g = n.government(p)
		return pleases(&g)
	})
	return g
}

// writers keep writing through nodes that stay, and note the longest pause.
type writers struct {
	stop chan struct{}
	all  sync.WaitGroup

	mu      sync.Mutex
	done    int
	failed  []error
	last    time.Time
	longest time.Duration // in which no write was answered
	slowest time.Duration // of one write
}

func (n *network) writers(count int, nodes ...int) *writers {
	w := &writers{stop: make(chan struct{}), last: time.Now()}
	for i := range count {
		c := n.dial(nodes[i%len(nodes)])
		w.all.Go(func() { w.run(c, i) })
	}
	return w
}

func (w *writers) run(c *client.Client, id int) {
	pause := time.NewTicker(5 * time.Millisecond) // leaves the machine some time for others
	defer pause.Stop()
	for i := 0; ; i++ {
		select {
		case <-w.stop:
			return
		case <-pause.C:
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		began := time.Now()
		_, err := c.Put(ctx, putOf(fmt.Sprintf("/writer/%d", id), fmt.Sprint(i)))
		cancel()
		w.mu.Lock()
		now := time.Now()
		if err != nil {
			w.failed = append(w.failed, err)
		} else {
			w.done++
			if gap := now.Sub(w.last); gap > w.longest {
				w.longest = gap
			}
			w.last = now
			w.slowest = max(w.slowest, now.Sub(began))
		}
		w.mu.Unlock()
	}
}

// end stops the writers and reports what they saw.
func (w *writers) end(t *testing.T, what string) {
	t.Helper()
	close(w.stop)
	w.all.Wait()
	t.Logf("%s: %d writes, %d failed; at most %s without one, the slowest took %s", what, w.done, len(w.failed),
		w.longest.Round(time.Millisecond), w.slowest.Round(time.Millisecond))
	for i, err := range w.failed {
		if i < 5 {
			t.Errorf("%s: a write failed: %v", what, err)
		}
	}
}

// TestAnchorsComeAndGo: an anchor is admitted, serves its probation and then
// weighs; one that runs twice on one key is barred, with a proof; one that is
// killed for good loses trust. Meanwhile clients write.
func TestAnchorsComeAndGo(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	dir := t.TempDir()
	policy := filepath.Join(dir, "policy.yaml")
	must(t, os.WriteFile(policy, []byte("trust: {whole: 60, absence: 4, churn: 1/2}\nauthors: [all who=any]\n" /* a copy of an anchor has a node's key of its own */), 0o600))
	n := newNetwork(t, 4, false, "--policy", policy, "--epoch-blocks", "100", "--probation", "2")
	n.start()
	began := time.Now()
	stage := func(what string) {
		t.Logf("%5.1f s  %s", time.Since(began).Seconds(), what)
	}

	// A fifth joins, applies, is admitted, and acts without a restart.
	w := n.writers(8, 0, 1)
	ports := freePorts(t, 2)
	fifth := newProcess(n, "node5", ports[0], ports[1])
	must(t, os.Mkdir(fifth.dir, 0o700))
	fifth.startAs("join", n.invite(), "--data-dir", fifth.dir, "--name", fifth.name,
		"--listen", fifth.listen, "--api-listen", fifth.api, "--insecure", "--log-level", *level)
	t.Cleanup(func() { fifth.signal(sigKill) })
	until(t, 20*time.Second, "the observer answers", func(ctx context.Context) error {
		s, err := fifth.status(ctx)
		if err == nil && (s.CatchingUp || s.Header.Height == 0) {
			err = fmt.Errorf("height %d", s.Header.Height)
		}
		return err
	})
	stage("the observer follows")
	if out := n.must("anchor", "apply", "--sponsor", "node1", "--api", fifth.api); !strings.Contains(out, "aweigh anchor admit node5") {
		t.Errorf("the application does not say what must happen next:\n%s", out)
	}
	if _, err := os.Stat(filepath.Join(fifth.dir, "anchor.key")); err != nil {
		t.Errorf("the key is not kept: %v", err)
	}
	if out := n.must("status", "--api", fifth.api); !strings.Contains(out, "is not in the roster yet") {
		t.Errorf("the applicant's status does not say that it has no seat:\n%s", out)
	}
	if _, errs, code := n.command("anchor", "admit", "node5", "--api", fifth.api); code == 0 || !strings.Contains(errs, "not in the roster") {
		t.Errorf("the applicant admits itself: code %d, %s", code, errs)
	}
	for i := range 3 {
		n.must("anchor", "admit", "node5", "--api", n.nodes[i].api, "-m", "welcome")
	}
	g := n.governed(n.nodes[0], 15*time.Second, "node5 is admitted", func(g *government) error {
		if s := g.standing("node5"); s.Word != "probation" || s.Weight != 0 {
			return fmt.Errorf("node5 is %+v", s)
		}
		return nil
	})
	stage(fmt.Sprintf("admitted in epoch %d", g.standing("node5").Since))
	g = n.governed(n.nodes[0], 30*time.Second, "node5 has gained trust and weighs", func(g *government) error {
		if s := g.standing("node5"); s.Word != "active" || s.Weight == 0 || s.Score <= 100_000 { // the score that it began with
			return fmt.Errorf("in epoch %d, node5 is %+v", g.Header.Epoch, s)
		}
		return nil
	})
	if s := g.standing("node5"); g.Header.Epoch < s.Weighs || s.Weighs != s.Since+3 {
		t.Errorf("in epoch %d, node5 weighs %d, admitted in epoch %d, probation until %d", g.Header.Epoch, s.Weight, s.Since, s.Weighs)
	}
	stage(fmt.Sprintf("it weighs %d in epoch %d", g.standing("node5").Weight, g.Header.Epoch))
	w.end(t, "with five anchors")

	// One runs twice on one key.
	lied := n.twice(t, n.nodes[3])
	stage("node4 ran twice")
	w = n.writers(8, 0, 1)
	g = n.governed(n.nodes[0], 15*time.Second, "node4 is barred", func(g *government) error {
		if s := g.standing("node4"); s.Word != "barred" || s.Score != 0 || s.Weight != 0 {
			return fmt.Errorf("in epoch %d, node4 is %+v", g.Header.Epoch, s)
		}
		return nil
	})
	stage(fmt.Sprintf("node4 is barred in epoch %d", g.Header.Epoch))
	if g.Header.Epoch > lied+1 {
		t.Errorf("node4 lied in epoch %d, and is barred in epoch %d", lied, g.Header.Epoch)
	}
	if out := n.must("trust", "explain", "node4", "--api", n.nodes[0].api); !strings.Contains(out, "equivocated: two conflicting ballots") || !strings.Contains(out, "it signed ") {
		t.Errorf("what barred node4 is not shown:\n%s", out)
	}
	w.end(t, "with one barred")

	// One is gone for good: it loses trust and weight, the others gain.
	n.nodes[2].signal(sigKill)
	stage("node3 is killed")
	before := g.standing("node3")
	w = n.writers(8, 0, 1)
	g = n.governed(n.nodes[0], 30*time.Second, "node3 loses trust", func(g *government) error {
		if s := g.standing("node3"); s.Score > before.Score*9/10 || s.Weight >= before.Weight {
			return fmt.Errorf("in epoch %d, node3 is %+v, of %+v", g.Header.Epoch, s, before)
		}
		return nil
	})
	stage(fmt.Sprintf("node3 fell from %d to %d, weight %d to %d, by epoch %d", before.Score, g.standing("node3").Score,
		before.Weight, g.standing("node3").Weight, g.Header.Epoch))
	if live := g.standing("node1"); live.Score <= g.standing("node3").Score {
		t.Errorf("node1, which takes part, has a score of %d", live.Score)
	}
	for _, p := range []*process{n.nodes[0], n.nodes[1], fifth} {
		if out := n.must("anchor", "evict", "node3", "--because", "gone for good", "--api", p.api); strings.Contains(out, "carried") {
			break
		}
	}
	g = n.governed(n.nodes[0], 15*time.Second, "node3 is evicted", func(g *government) error {
		if s := g.standing("node3"); s.Word != "evicted" || s.Weight != 0 {
			return fmt.Errorf("in epoch %d, node3 is %+v", g.Header.Epoch, s)
		}
		return nil
	})
	stage(fmt.Sprintf("node3 is evicted in epoch %d", g.Header.Epoch))
	w.end(t, "with one gone")

	// Whoever has the network's identity verifies it all.
	s, err := n.nodes[0].status(t.Context())
	must(t, err)
	id := hex.EncodeToString(s.Header.Network)
	for _, p := range []*process{n.nodes[0], fifth} {
		var v struct {
			Pinned           bool
			Handovers, Epoch uint64
			Total            uint64 `json:"total_weight"`
		}
		n.tells(&v, "trust", "verify", "--network", id, "--api", p.api)
		if !v.Pinned || v.Epoch < s.Header.Epoch || v.Handovers != v.Epoch {
			t.Errorf("%s, epoch %d: the rosters are verified as %+v", p.name, s.Header.Epoch, v)
		}
	}
	if _, _, code := n.command("trust", "verify", "--network", strings.Repeat("ab", 32), "--api", n.nodes[0].api); code != 7 {
		t.Errorf("the rosters of another network end with code %d", code)
	}
	n.must("why", "/writer/0", "--proof", filepath.Join(dir, "proof"), "--network", id, "--api", n.nodes[1].api)
	var proven struct {
		Origin struct {
			Epoch uint64
			Total uint64 `json:"total_weight"`
		}
	}
	n.must("trust", "explain", "node4", "--proof", filepath.Join(dir, "fault"), "--api", n.nodes[1].api)
	var fault struct {
		Name   string
		Pinned bool
		Epoch  uint64
		Signed [2]string
	}
	n.tells(&fault, "verify", filepath.Join(dir, "fault"), "--network", id)
	if fault.Name != "node4" || !fault.Pinned || fault.Epoch > lied+1 || fault.Epoch < lied || fault.Signed[0] == fault.Signed[1] {
		t.Errorf("node4 lied in epoch %d, and the proof shows %+v", lied, fault)
	}
	if _, errs, code := n.command("verify", filepath.Join(dir, "fault"), "--network", strings.Repeat("ab", 32)); code != 7 {
		t.Errorf("the proof holds in another network: code %d, %s", code, errs)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "fault"))
	must(t, err)
	raw[len(raw)-1] ^= 1 // of a signature
	must(t, os.WriteFile(filepath.Join(dir, "forged"), raw, 0o600))
	if _, errs, code := n.command("verify", filepath.Join(dir, "forged"), "--network", id); code != 7 {
		t.Errorf("a forged proof holds: code %d, %s", code, errs)
	}
	n.tells(&proven, "verify", filepath.Join(dir, "proof"), "--network", id)
	if o := proven.Origin; o.Epoch+1 < s.Header.Epoch || o.Total == 2200 {
		t.Errorf("in epoch %d, the proof is by the weights of epoch %d, %d in all", s.Header.Epoch, o.Epoch, o.Total)
	}
	n.nodes[1].signal(sigTerm)
	var replayed struct{ Epoch, Height, Certificates uint64 }
	n.tells(&replayed, "trust", "replay", "--data-dir", n.nodes[1].dir, "--network", id)
	if replayed.Epoch < s.Header.Epoch || replayed.Height < s.Header.Height || replayed.Certificates < s.Header.Epoch {
		t.Errorf("in epoch %d, the replay says %+v", s.Header.Epoch, replayed)
	}
	stage("verified and replayed")
}

// twice starts an anchor and a copy of it, which has its key and its record, in
// an idle view that the anchor leads, and has both propose. It returns the epoch.
func (n *network) twice(t *testing.T, p *process) (epoch uint64) {
	t.Helper()
	n.put(0, "/step")
	for try := range 8 {
		// To an idle view that it leads.
		until(t, 20*time.Second, p.name+" leads", func(ctx context.Context) error {
			s, err := p.status(ctx)
			if err != nil {
				return err
			}
			epoch = s.Header.Epoch
			if string(s.Leader) == string(s.Anchor) && s.Waiting == 0 {
				return nil
			}
			n.put(0, "/step")
			return fmt.Errorf("view %d is another's", s.View)
		})
		p.signal(sigTerm)
		ports := freePorts(t, 2)
		clone := newProcess(n, fmt.Sprintf("clone%d", try), ports[0], ports[1])
		copied := filepath.Join(n.dir, "copied", fmt.Sprint(try))
		n.must("backup", copied, "--data-dir", p.dir)
		n.must("restore", copied, "--data-dir", clone.dir, "--as-observer", "--from", "any")
		key, err := os.ReadFile(filepath.Join(p.dir, "anchor.key"))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(clone.dir, "anchor.key"), key, 0o600))
		p.start()
		clone.startAs("node", "--data-dir", clone.dir, "--listen", clone.listen, "--api-listen", clone.api, "--insecure", "--name", clone.name)
		both := []*process{p, clone}
		for _, x := range both {
			until(t, 20*time.Second, x.name+" is up", func(ctx context.Context) error {
				err := x.ready(ctx)
				if st, _ := x.status(ctx); err != nil && st != nil && st.LostState {
					n.put(0, "/step") // what the clone before signed silences it until the epoch ends
				}
				return err
			})
			// A linearizable read makes it listen, so that it signs from then on.
			n.must("get", "/step", "--api", x.api)
		}
		var all sync.WaitGroup
		for _, x := range both {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
				defer cancel()
				_, _ = x.asked.Put(ctx, putOf("/twice", x.name)) // of the two, one may be in vain
			})
		}
		all.Wait()
		clone.signal(sigKill)
		s, err := n.nodes[0].status(t.Context())
		must(t, err)
		if len(s.Faulty) > 0 || n.barred(p.name) {
			t.Logf("proven at try %d", try+1)
			return epoch
		}
	}
	t.Fatalf("two processes on the key of %s contradicted each other in no try", p.name)
	return 0
}

func (n *network) barred(name string) bool {
	g := n.government(n.nodes[0])
	return g.standing(name).Word == "barred"
}
