package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/api"
	"github.com/aweigh/aweigh/internal/home"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
	"github.com/aweigh/aweigh/store/diskstore"
	"github.com/aweigh/aweigh/votes"
)

// running is daemons of one network in this process.
type running struct {
	t    testing.TB
	dirs []home.Dir
	set  []home.Settings
	on   []*Daemon // nil where stopped
	stop []func()
	logs []*lines
}

// lines are the log lines of a daemon.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) has(part ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		all := true
		for _, p := range part {
			all = all && strings.Contains(line, p)
		}
		if all {
			return true
		}
	}
	return false
}

// await waits for a line with all the parts.
func (l *lines) await(t *testing.T, parts ...string) {
	t.Helper()
	testwait.For(t, func() error {
		if l.has(parts...) {
			return nil
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		return fmt.Errorf("the log has no line of %q:\n%s", parts, l.text.String())
	})
}

func (l *lines) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Reset()
}

func newRunning(t testing.TB, size int, change ...func(*scope.Policy)) *running {
	t.Helper()
	r := &running{t: t, on: make([]*Daemon, size), stop: make([]func(), size)}
	var founders []machine.Founder
	for i := range size {
		dir := home.Dir(t.TempDir())
		var keys [2]votes.PrivateKey
		for j, file := range []string{dir.Identity(), dir.Anchor()} {
			var err error
			if keys[j], err = dir.NewKey(file); err != nil {
				t.Fatal(err)
			}
		}
		id, err := machine.PeerOf(keys[0])
		if err != nil {
			t.Fatal(err)
		}
		name := string(rune('a'+i)) + "nchor"
		founders = append(founders, machine.Founder{Name: name, Key: keys[1].Public(), Peer: id})
		r.dirs = append(r.dirs, dir)
		r.set = append(r.set, home.Settings{
			Name: name, Listen: []string{"/ip4/127.0.0.1/tcp/0"}, API: "127.0.0.1:0", Metrics: "127.0.0.1:0", Etcd: "127.0.0.1:0", Insecure: true,
		})
		r.logs = append(r.logs, &lines{})
	}
	policy := scope.OpenPolicy(quorum.BFT)
	for _, f := range change {
		f(&policy)
	}
	g, err := machine.NewGenesis("n", aweigh.InstantOf(time.Now()), policy, founders...)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range r.dirs {
		if err := dir.SaveGenesis(g); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for i := range r.on {
			r.down(i)
		}
	})
	for i := range size {
		r.up(i)
	}
	return r
}

// up starts a daemon, which finds the others that run.
func (r *running) up(i int) {
	r.t.Helper()
	s := r.set[i]
	for _, d := range r.on {
		if d != nil {
			s.Bootstrap = append(s.Bootstrap, d.Node.Addrs()...)
		}
	}
	log := slog.New(slog.NewTextHandler(r.logs[i], &slog.HandlerOptions{Level: slog.LevelInfo}))
	d, err := Open(r.dirs[i], s, "v-test", log)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := d.Node.Start(); err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	r.on[i], r.stop[i] = d, func() {
		cancel()
		if err := <-ended; err != nil {
			r.t.Errorf("%s: %v", s.Name, err)
		}
	}
}

func (r *running) down(i int) {
	if r.on[i] != nil {
		r.stop[i]()
		r.on[i] = nil
	}
}

// get asks a daemon's address.
func get(t *testing.T, address, path string) (code int, body string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}

// until waits for a path to answer with a code, and returns the body.
func until(t *testing.T, address, path string, want int, says ...string) (body string) {
	t.Helper()
	testwait.For(t, func() error {
		var code int
		code, body = get(t, address, path)
		missing := slices.DeleteFunc(slices.Clone(says), func(s string) bool { return strings.Contains(body, s) })
		if code != want || len(missing) > 0 {
			return fmt.Errorf("%s answers %d, not %d with %q:\n%s", path, code, want, missing, body)
		}
		return nil
	})
	return body
}

// scrape parses what an address exposes.
func scrape(t *testing.T, address string) map[string]*dto.MetricFamily {
	t.Helper()
	code, body := get(t, address, "/metrics")
	if code != http.StatusOK {
		t.Fatalf("/metrics answers %d:\n%s", code, body)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if err != nil {
		t.Fatalf("%v in\n%s", err, body)
	}
	return families
}

// value is that of the sample whose labels have the values given, in any order.
func value(t *testing.T, families map[string]*dto.MetricFamily, name string, labels ...string) float64 {
	t.Helper()
	f := families[name]
	if f == nil {
		t.Fatalf("there is no %s", name)
	}
samples:
	for _, m := range f.Metric {
		for i, l := range m.Label {
			if i >= len(labels) || l.GetValue() != labels[i] {
				continue samples
			}
		}
		switch {
		case m.Counter != nil:
			return m.Counter.GetValue()
		case m.Gauge != nil:
			return m.Gauge.GetValue()
		case m.Histogram != nil:
			return float64(m.Histogram.GetSampleCount())
		case m.Summary != nil:
			return float64(m.Summary.GetSampleCount())
		}
	}
	t.Fatalf("%s has no sample of %q: %v", name, labels, f.Metric)
	return 0
}

func TestWhatHappenedIsCounted(t *testing.T) {
	t.Parallel()
	r := newRunning(t, 4)
	d := r.on[0]
	until(t, d.API(), "/readyz", http.StatusOK)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	const min = 3
	writes := 0.0
	for writes < min || scrape(t, d.API())["aweigh_anchor_clock_ahead_seconds"] == nil { // until another anchor led
		writes++
		txn := scope.Txn{Success: []scope.Op{{Kind: scope.OpPut, Key: []byte("/k"), Value: []byte("v")}}}
		if _, err := d.Node.Txn(ctx, txn, node.Once{}); err != nil {
			t.Fatal(err)
		}
	}
	v, err := d.Node.Root().Read(ctx, true)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()

	for _, address := range []string{d.API(), d.healthAddr()} {
		m := scrape(t, address)
		for _, c := range []struct {
			name     string
			labels   []string
			min, max float64
		}{
			{"aweigh_build_info", []string{runtime.Version(), "v-test"}, 1, 1},
			{"aweigh_node_info", []string{"anchor", "n", string(d.Node.Peer())}, 1, 1},
			{"aweigh_height", nil, 1, 1e6},
			{"aweigh_known_height", nil, 1, 1e6},
			{"aweigh_revision", nil, writes, 1e6},
			{"aweigh_view", nil, 1, 1e6},
			{"aweigh_epoch", nil, 0, 0},
			{"aweigh_blocks_final_total", nil, 1, 1e6},
			{"aweigh_mutations_final_total", nil, writes, writes},
			{"aweigh_scope_mutations_final_total", []string{"/"}, writes, writes},
			{"aweigh_scope_epoch", []string{"/"}, 0, 0},
			{"aweigh_commit_seconds", nil, writes, writes},
			{"aweigh_answer_cut_total", nil, 0, 0},
			{"aweigh_linearizable_read_seconds", nil, 1, 1},
			{"aweigh_ballots_signed_total", []string{"finalize"}, 1, 1e6},
			{"aweigh_views_nullified_total", []string{"bnchor"}, 0, 1e6},
			{"aweigh_reachable_weight", nil, 3, 1e9},
			{"aweigh_anchor_reachable", []string{"anchor"}, 1, 1},
			{"aweigh_anchor_weight", []string{"anchor"}, 1, 1e6},
			{"aweigh_input_refused_total", []string{"forged"}, 0, 0},
			{"aweigh_lost_state", nil, 0, 0},
			{"aweigh_equivocation_proofs_total", nil, 0, 0},
			{"aweigh_frames_received_total", []string{"ballot"}, 1, 1e9},
			{"aweigh_frames_sent_bytes_total", []string{"ballot"}, 100, 1e9},
			{"aweigh_p2p_peers", nil, 2, 3},
			{"aweigh_p2p_frames_sent_total", nil, 1, 1e9},
			{"aweigh_p2p_frames_unsent_total", []string{"too long"}, 0, 0},
			{"aweigh_store_commits_total", nil, 1, 1e9},
			{"aweigh_store_syncs_total", nil, 1, 1e9},
			{"aweigh_store_sync_seconds", nil, 1, 1e9},
			{"aweigh_store_disk_bytes", nil, 1, 1e12},
			{"aweigh_store_disk_free_bytes", nil, 1, 1e18},
			{"aweigh_store_failed", nil, 0, 0},
			{"process_cpu_seconds_total", nil, 0.01, 1e6},
			{"go_goroutines", nil, 1, 1e6},
		} {
			if got := value(t, m, c.name, c.labels...); got < c.min || got > c.max {
				t.Errorf("%s%v is %v, not between %v and %v", c.name, c.labels, got, c.min, c.max)
			}
		}
		for _, a := range m["aweigh_anchor_clock_ahead_seconds"].GetMetric() {
			if x := a.Gauge.GetValue(); x > 0.5 || x < -30 {
				t.Errorf("the clock of %v is %v s ahead", a.Label, x)
			}
		}
		for name := range m {
			if f := m[name]; strings.HasPrefix(name, "aweigh_") && (f.GetType() == dto.MetricType_COUNTER) != strings.HasSuffix(name, "_total") {
				t.Errorf("%s is a %v", name, f.GetType())
			}
		}
	}
}

func TestHealthFollowsTheQuorumOnlyWhereItShould(t *testing.T) {
	t.Parallel()
	r := newRunning(t, 4)
	d := r.on[3]
	if body := until(t, d.API(), "/readyz?verbose", http.StatusOK); !strings.Contains(body, "[+]quorum ok") {
		t.Errorf("verbose says\n%s", body)
	}
	r.logs[3].await(t, "INFO", "anchor in reach", "bnchor") // a quorum is without it
	for i := range 3 {
		r.down(i)
	}
	for _, address := range []string{d.API(), d.healthAddr()} {
		body := until(t, address, "/readyz", http.StatusServiceUnavailable,
			"[-]quorum failed", "[-]reads failed", "missing: anchor (away), bnchor (away), cnchor (away)")
		if strings.Contains(body, "[+]") || strings.Contains(body, "[-]store") {
			t.Errorf("readyz says more than why:\n%s", body)
		}
		if code, body := get(t, address, "/livez"); code != http.StatusOK || body != "ok\n" {
			t.Errorf("livez depends on the others: %d\n%s", code, body)
		}
	}
	m := scrape(t, d.healthAddr())
	if got, want := value(t, m, "aweigh_anchor_failures_left"), -1.0; got != want {
		t.Errorf("failures left: %v", got)
	}
	if w, n := value(t, m, "aweigh_reachable_weight"), value(t, m, "aweigh_needed_weight"); w >= n {
		t.Errorf("weight %v in reach, %v needed", w, n)
	}
	r.logs[3].await(t, "INFO", "quorum in reach")
	r.logs[3].await(t, "INFO", "anchor out of reach", "bnchor")
	// The line names the anchors that were away when the quorum was lost, two of the three at least. Connections
	// end in any order.
	r.logs[3].await(t, "WARN", "no quorum in reach", "missing=")
	missing := 0
	for _, name := range []string{"anchor", "bnchor", "cnchor"} {
		if r.logs[3].has("no quorum in reach", "missing=", name+" (") {
			missing++
		}
	}
	if missing < 2 {
		t.Errorf("the log names %d anchors that are missing without a quorum", missing)
	}
	r.logs[3].clear()
	for i := range 3 {
		r.up(i)
	}
	until(t, d.API(), "/readyz", http.StatusOK)
	r.logs[3].await(t, "INFO", "quorum in reach")
	r.logs[3].await(t, "INFO", "anchor in reach", "bnchor")
}

func TestHealthAloneIsAloneOnItsAddress(t *testing.T) {
	t.Parallel()
	dir, s := founded(t)
	s.Metrics = "127.0.0.1:0"
	d, err := Open(dir, s, "", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	for _, path := range []string{"/", "/health", "/aweigh.v1.Node/Status", "/debug/pprof/"} {
		if code, _ := get(t, d.healthAddr(), path); code != http.StatusNotFound {
			t.Errorf("%s answers %d on the address of metrics", path, code)
		}
	}
	until(t, d.healthAddr(), "/readyz", http.StatusOK)
	if code, _ := get(t, d.API(), "/health"); code != http.StatusNoContent {
		t.Errorf("/health answers %d", code)
	}
}

// TestFailuresOfTheStoreEndLife: a store that fails, or hangs, is what a restart is for.
func TestFailuresOfTheStoreEndLife(t *testing.T) {
	t.Parallel()
	dir, s := founded(t)
	var fail errorfs.Toggle
	release := make(chan struct{})
	var hang atomic.Bool
	fail.Injector = errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSync {
			if hang.Load() {
				<-release
			}
			return errorfs.ErrInjected
		}
		return nil
	})
	identity, anchor, err := dir.Keys()
	if err != nil {
		t.Fatal(err)
	}
	genesis, err := dir.ReadGenesis()
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	d := &Daemon{log: log}
	if err := d.open(dir, s, node.Config{
		Genesis: genesis, Identity: identity, Anchor: anchor, Listen: s.Listen, Log: log,
	}, diskstore.Options{FS: errorfs.Wrap(vfs.NewMem(), &fail)}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- d.Run(context.Background()) }()
	until(t, d.API(), "/livez", http.StatusOK)

	hang.Store(true)
	fail.On()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	submitted := make(chan error, 1)
	go func() {
		txn := scope.Txn{Success: []scope.Op{{Kind: scope.OpPut, Key: []byte("/k"), Value: []byte("v")}}}
		_, err := d.Node.Txn(ctx, txn, node.Once{})
		submitted <- err
	}()
	for stuck := false; !stuck; {
		if ctx.Err() != nil {
			t.Fatal("a machine that waits for its disk forever counts as alive")
		}
		short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		for _, c := range d.Node.Root().Live(short) {
			stuck = stuck || c.Name == "machine" && c.Err != nil
		}
		cancel()
	}
	close(release)
	if err := <-submitted; err == nil {
		t.Error("a write succeeded that is not on disk")
	}
	if err := <-ended; !errors.Is(err, store.ErrFailed) {
		t.Errorf("the daemon ended with %v", err)
	}
	// The API is gone with the rest; what it would say is the same handler's word.
	w := httptest.NewRecorder()
	api.Live(d.Node.Root()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/livez", nil))
	if body := w.Body.String(); w.Code != http.StatusServiceUnavailable || !strings.Contains(body, "[-]store failed: "+store.ErrFailed.Error()) {
		t.Errorf("livez answers %d:\n%s", w.Code, body)
	}
}

// TestMetricsAreDocumented: docs/operations.md names what is exposed, and nothing else.
func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	r := newRunning(t, 1)
	until(t, r.on[0].API(), "/readyz", http.StatusOK)
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := make(map[string]string)
	for _, row := range regexp.MustCompile("(?m)^\\| `((?:aweigh|etcd|grpc)_[a-z0-9_]+)[^`]*` \\| (\\w+) \\|").FindAllStringSubmatch(string(text), -1) {
		documented[row[1]] = row[2]
	}
	unseen := map[string]bool{
		"aweigh_anchor_clock_ahead_seconds": true, // it appears with the first proposal of another anchor
		"etcd_network_active_peers":         true, // and this with another anchor
	}
	for name := range unseen {
		if documented[name] == "" {
			t.Errorf("%s is not documented", name)
		}
	}
	_, body := get(t, r.on[0].API(), "/metrics")
	problems, err := promlint.New(strings.NewReader(body)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if !strings.HasPrefix(p.Metric, "etcd_") { // etcd named these
			t.Errorf("not as metrics are named: %v", p)
		}
	}
	exposed := scrape(t, r.on[0].API())
	for name, f := range exposed {
		ours := !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") && !strings.HasPrefix(name, "promhttp_")
		if kind := strings.ToLower(f.GetType().String()); ours && documented[name] != kind {
			t.Errorf("%s is a %s, and docs/operations.md says %q", name, kind, documented[name])
		}
	}
	for name := range documented {
		if exposed[name] == nil && !unseen[name] {
			t.Errorf("docs/operations.md documents %s, which there is not", name)
		}
	}
}

// asked counts how often a scope is asked.
type asked struct {
	*node.Replica
	times atomic.Int64
}

func (a *asked) Ready(ctx context.Context) []node.Check {
	a.times.Add(1)
	return a.Replica.Ready(ctx)
}

func TestProbesShareOneLook(t *testing.T) {
	t.Parallel()
	r := newRunning(t, 1)
	until(t, r.on[0].API(), "/readyz", http.StatusOK)
	a := &asked{Replica: r.on[0].Node.Root()}
	ready := api.Ready(a, r.on[0].Node)
	began := time.Now()
	var probes sync.WaitGroup
	const many = 2000
	for range many {
		probes.Go(func() {
			w := httptest.NewRecorder()
			ready.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
			if w.Code != http.StatusOK {
				t.Errorf("a probe among many is answered %d: %s", w.Code, w.Body)
			}
		})
	}
	probes.Wait()
	if most := int64(1 + time.Since(began)/(50*time.Millisecond)); a.times.Load() > most {
		t.Errorf("%d probes asked the node %d times in %v", many, a.times.Load(), time.Since(began))
	}
}
