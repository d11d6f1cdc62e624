package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/testshort"
)

// exitStore is the exit code for a disk that failed or a store that is damaged.
const exitStore = 8

// mayEnd lets the node end by itself.
func (p *process) mayEnd() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.meant = true
}

// ends waits until the node has ended by itself, and returns its exit code.
func (p *process) ends(limit time.Duration) (code int) {
	p.mu.Lock()
	cmd, ended := p.cmd, p.ended
	p.mu.Unlock()
	select {
	case <-ended:
		return cmd.ProcessState.ExitCode()
	case <-time.After(limit):
		p.net.t.Fatalf("%s still runs after %s; see %s", p.name, limit, p.log())
		return 0
	}
}

// stopsBecause wants that the node ended for the reason that its log ends with.
func (p *process) stopsBecause(reasons ...string) {
	t := p.net.t
	t.Helper()
	if code := p.ends(30 * time.Second); code != exitStore {
		t.Errorf("%s: exit code %d, want %d; see %s", p.name, code, exitStore, p.log())
	}
	text := p.said(0)
	for _, r := range reasons {
		if !strings.Contains(text, r) {
			t.Errorf("%s did not say %q; see %s", p.name, r, p.log())
		}
	}
}

// said is what the node logged from an offset on.
func (p *process) said(from int64) string {
	raw, err := os.ReadFile(p.log())
	if err != nil {
		p.net.t.Fatal(err)
	}
	return string(raw[min(from, int64(len(raw))):])
}

// says objects until one line of the node's log has all words.
func (p *process) says(words ...string) func(context.Context) error {
	return func(context.Context) error {
		for line := range strings.Lines(p.said(0)) {
			if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
				return nil
			}
		}
		return fmt.Errorf("no line of %s has all of %q", p.log(), words)
	}
}

// put writes through a node, and fails if it is not acknowledged.
func (n *network) put(i int, key string) {
	n.t.Helper()
	n.must("put", key, "v", "--api", n.nodes[i].api, "--timeout", "20s")
}

// silenced objects until the node says that it lost its record and votes no more.
func (p *process) silenced(ctx context.Context) error {
	s, err := p.status(ctx)
	if err != nil {
		return err
	}
	if !s.LostState {
		return fmt.Errorf("it does not know that it lost its record, at height %d of %d; listening: %t", s.Header.Height, s.View, s.Listening)
	}
	return nil
}

// votesNot objects while the node votes, for all that it says.
func (p *process) votesNot(ctx context.Context) error {
	s, err := p.status(ctx)
	if err != nil {
		return err
	}
	if !s.LostState && !s.Listening {
		return fmt.Errorf("it votes, at height %d", s.Header.Height)
	}
	return nil
}

// nobodyIsAtFault wants that no node holds a proof against any.
func (n *network) nobodyIsAtFault() {
	n.t.Helper()
	for _, p := range n.nodes {
		if s, err := p.status(n.t.Context()); err == nil && len(s.Faulty) > 0 {
			n.t.Errorf("%s holds proofs against %x", p.name, s.Faulty)
		}
	}
}

// TestFullDiskStopsANodeAndRoomBringsItBack fills a small disk under one of four
// nodes while clients write: it stops and says why, the others go on, and with
// room again it comes back with everything.
func TestFullDiskStopsANodeAndRoomBringsItBack(t *testing.T) {
	testshort.SkipUnlessLong(t)
	n := newNetwork(t, 4, false)
	p := n.nodes[0]
	disk := filepath.Join(p.dir, "store")
	smallDisk(t, disk, "192m")
	n.start()
	h := newHistory()
	stop := make(chan struct{})
	clients := h.work(n, rand.New(rand.NewPCG(1, 3)), 8, 5, stop)
	p.mayEnd()
	ballast := filepath.Join(disk, "ballast")
	fill(t, ballast)
	// what the log has reserved already is used up by larger values
	big, other := strings.Repeat("x", 100_000), n.dial(1)
	write := func(i int) operation {
		return h.do(within(t, 20*time.Second), other, operation{client: 99, kind: put, key: fmt.Sprint("/key/", i%5), value: fmt.Sprint(i, big)})
	}
	for i := 0; p.runs() && i < 2000; i++ {
		write(i)
	}
	p.stopsBecause("no space left on device", "nothing more is signed")
	if op := write(2000); op.fate != done {
		t.Error("without the node, nothing is written")
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	p.start()
	until(t, 30*time.Second, p.name+" is back", p.ready)
	close(stop)
	clients.Wait()
	h.verify(t, n)
	n.nobodyIsAtFault()
}

// fill writes a file until the disk is full.
func fill(t *testing.T, name string) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size >= 512; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
}

// TestReadOnlyDiskStopsANode: the disk under a node becomes read-only, and
// writable again.
func TestReadOnlyDiskStopsANode(t *testing.T) {
	testshort.SkipUnlessLong(t)
	n := newNetwork(t, 4, false)
	p := n.nodes[2]
	disk := filepath.Join(p.dir, "store")
	smallDisk(t, disk, "64m")
	n.start()
	n.put(0, "/a")
	n.agreed(20 * time.Second)
	p.signal(sigTerm)
	readOnly(t, disk, true)
	if _, errs, code := n.command("node", "--data-dir", p.dir); code != 1 || !strings.Contains(errs, "read-only file system") {
		t.Errorf("started on a read-only disk: exit code %d\n%s", code, errs)
	}
	n.put(0, "/b")
	readOnly(t, disk, false)
	p.start()
	until(t, 30*time.Second, p.name+" is back", p.ready)
	n.put(2, "/c")
	n.agreed(20 * time.Second)
}

// TestDamagedStoreIsNotStarted damages the store of a stopped anchor in several
// ways. It does not start and says why; and when the store was moved away, as
// the manual says, it follows without a vote, and contradicts nothing.
func TestDamagedStoreIsNotStarted(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	n := newNetwork(t, 4, false)
	n.start()
	for i := range 12 {
		n.put(i%4, fmt.Sprint("/k/", i))
	}
	n.agreed(20 * time.Second)
	p := n.nodes[3]
	for range 2 { // what stands in the log becomes a table at the next start
		p.signal(sigKill)
		p.start()
		until(t, 30*time.Second, p.name+" is back", p.ready)
	}
	// A node syncs what it votes for. Where the other three are faster, it votes for
	// nothing, and its log stays empty until a table is full.
	store := filepath.Join(p.dir, "store")
	puts := 0
	until(t, 30*time.Second, p.name+" has votes in its log", func(context.Context) error {
		n.put(puts%4, fmt.Sprint("/l/", puts))
		puts++
		if info, err := os.Stat(one(t, store, "*.log")); err != nil || info.Size() < 2000 {
			return fmt.Errorf("%d puts, and the log is %v, %v", puts, info, err)
		}
		return nil
	})
	n.agreed(20 * time.Second)
	p.signal(sigKill)
	whole := filepath.Join(n.dir, "whole")
	if err := os.Rename(store, whole); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(t *testing.T, dir string){
		"a bit of the log":      func(t *testing.T, dir string) { flipLog(t, dir) },
		"the log cut off":       func(t *testing.T, dir string) { must(t, os.Truncate(one(t, dir, "*.log"), 200)) },
		"the log missing":       func(t *testing.T, dir string) { must(t, os.Remove(one(t, dir, "*.log"))) },
		"the manifest missing":  func(t *testing.T, dir string) { must(t, os.Remove(one(t, dir, "MANIFEST-*"))) },
		"bits of a table":       func(t *testing.T, dir string) { flipTable(t, dir) },
		"the tables missing":    func(t *testing.T, dir string) { must(t, os.Remove(one(t, dir, "*.sst"))) },
		"a bit of the manifest": func(t *testing.T, dir string) { flip(t, one(t, dir, "MANIFEST-*"), 12) },
	} {
		must(t, os.RemoveAll(store))
		must(t, os.CopyFS(store, os.DirFS(whole)))
		change(t, store)
		for range 2 {
			_, errs, code := n.command("node", "--data-dir", p.dir)
			if code != exitStore || !strings.Contains(errs, "is damaged; move it away") || !strings.Contains(errs, store) {
				t.Errorf("%s: exit code %d, and it said\n%s", name, code, errs)
			}
		}
	}
	must(t, os.Rename(store, store+".damaged"))
	p.start()
	until(t, 30*time.Second, "the anchor sees that it forgot", p.silenced)
	n.put(3, "/through/it")
	n.agreed(20 * time.Second)
	until(t, 10*time.Second, "its log says so", p.says("ERROR", "signs nothing more in this epoch", "epoch 1 of /"))
	if out := n.must("status", "--api", p.api); !strings.Contains(out, "LOST STATE") {
		t.Errorf("its status does not say so:\n%s", out)
	}
	n.nobodyIsAtFault()
}

// TestSecondProcessOnOneKeyEndsSilent: a copy of a node's directory is started
// on other ports, while the original runs.
func TestSecondProcessOnOneKeyEndsSilent(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	n := newNetwork(t, 4, false)
	n.start()
	n.put(0, "/a")
	n.agreed(20 * time.Second)
	original := n.nodes[3]
	original.signal(sigTerm)
	ports := freePorts(t, 2)
	clone := newProcess(n, "clone", ports[0], ports[1])
	must(t, os.CopyFS(clone.dir, os.DirFS(original.dir)))
	must(t, os.Remove(clone.log()))
	original.start()
	until(t, 30*time.Second, "the original is back", original.ready)
	for i := range 8 {
		n.put(i%4, fmt.Sprint("/k/", i))
	}
	t.Cleanup(func() { clone.signal(sigKill) })
	clone.startAs("node", "--data-dir", clone.dir, "--listen", clone.listen, "--api-listen", clone.api, "--insecure")
	// The others may talk to the original alone: then the clone hears nobody.
	for i := range 8 {
		n.put(i%4, fmt.Sprint("/l/", i))
		until(t, 30*time.Second, "the clone votes not", clone.votesNot)
	}
	if out := n.must("status", "--api", clone.api); !strings.Contains(out, "LOST STATE") && !strings.Contains(out, "signs nothing until") {
		t.Errorf("its status does not say so:\n%s", out)
	}
	n.nobodyIsAtFault()
}

// TestRestoredAnchorIsSilent: what was signed after the backup is forgotten.
func TestRestoredAnchorIsSilent(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	n := newNetwork(t, 4, false)
	n.start()
	n.put(0, "/a")
	p := n.nodes[1]
	to := filepath.Join(n.dir, "backup")
	out := n.must("backup", to, "--data-dir", p.dir, "--with-keys")
	if !strings.Contains(out, "files, network ") {
		t.Errorf("the backup said %q", out)
	}
	for i := range 6 {
		n.put(i%4, fmt.Sprint("/k/", i))
	}
	n.agreed(20 * time.Second)
	p.signal(sigKill)
	must(t, os.Rename(p.dir, p.dir+".lost"))
	signer := regexp.MustCompile(`12D3KooW\w+`).FindString(out) // so the settings are the node's own
	n.must("restore", to, "--data-dir", p.dir, "--from", signer)
	p.start()
	until(t, 30*time.Second, "the anchor sees that it forgot", p.silenced)
	n.put(1, "/through/it")
	n.agreed(20 * time.Second)
	if out := n.must("status", "--api", p.api); !strings.Contains(out, "LOST STATE") {
		t.Errorf("its status does not say so:\n%s", out)
	}
	n.nobodyIsAtFault()
}

// TestTerminatedRestoreLeavesNothing: a restore that gets SIGTERM while it works ends soon, with the exit code of
// interrupted commands, and leaves nothing.
func TestTerminatedRestoreLeavesNothing(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	n := newNetwork(t, 1, false)
	n.start()
	p := n.nodes[0]
	c, err := client.Dial(p.api)
	must(t, err)
	defer c.Close()
	const values, size = 24, 1_000_000 // half a second of work, or more
	noise := noiseOf(t, 14, values*size)
	for i := range values {
		_, err := c.Put(t.Context(), &aweighv1.PutRequest{Key: fmt.Append(nil, "/k/", i), Value: noise[i*size:][:size]})
		must(t, err)
	}
	copied, to := filepath.Join(n.dir, "backup"), filepath.Join(n.dir, "restored")
	n.must("backup", copied, "--data-dir", p.dir, "--with-keys")
	cmd := exec.Command(program, "restore", copied, "--data-dir", to, "--from", "any")
	var said bytes.Buffer
	cmd.Env, cmd.Dir, cmd.Stderr = n.env, n.dir, &said
	tie(cmd)
	must(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for working := false; !working; {
		select {
		case err := <-ended:
			t.Fatalf("it ended before it was seen to work: %v\n%s", err, said.String())
		default:
			_, err := os.Lstat(filepath.Join(to, "store.restoring"))
			working = err == nil
		}
	}
	must(t, cmd.Process.Signal(sigTerm))
	<-ended
	if code := cmd.ProcessState.ExitCode(); code != 130 || !strings.Contains(said.String(), "interrupted: nothing was restored") {
		t.Errorf("exit code %d:\n%s", code, said.String())
	}
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it left %s: %v", to, err)
	}
}

// TestOneLossIsToldOnce: an anchor of several scopes loses its store. While it catches up, it meets ballots of its own
// in each scope, and in each epoch of the root. One line tells until when it signs nothing, and what to do.
func TestOneLossIsToldOnce(t *testing.T) {
	testshort.SkipUnlessLong(t)
	n := newNetwork(t, 4, false)
	n.start()
	words := []string{"this anchor", "signs nothing"}
	for i := range 3 {
		r := &region{prefix: fmt.Sprintf("/s%d/", i), template: "standard", anchors: []int{0, 1, 2, 3}}
		n.delegate(r)
		for range 4 { // so that each of four anchors has led and voted
			n.put(i, r.prefix+"a")
		}
		words = append(words, "epoch 1 of "+r.prefix)
	}
	n.agreed(20 * time.Second)
	lost := n.nodes[3]
	lost.signal(sigKill)
	must(t, os.Rename(filepath.Join(lost.dir, "store"), filepath.Join(lost.dir, "store.lost")))
	lost.extra = append(lost.extra, "--log-level", "debug")
	lost.start()
	until(t, 30*time.Second, "it tells of all scopes", lost.says(words...))
	if told := strings.Count(lost.said(0), "level=ERROR"); told != 1 {
		t.Errorf("%d lines of %s are errors", told, lost.log())
	}
	for _, c := range [][]string{{"status", "LOST STATE in /s0/, /s1/, /s2/"}, {"scope", "ls", "LOST STATE here"}} {
		if out := n.must(append(c[:len(c)-1], "--api", lost.api)...); !strings.Contains(out, c[len(c)-1]) {
			t.Errorf("%s does not say %q:\n%s", c[0], c[len(c)-1], out)
		}
	}
	until(t, 10*time.Second, "it tells what to do", lost.says("ERROR", "it signs again by itself", "epoch 1 of /s"))
}

// TestLostAnchorIsShownByAll: of five anchors that have nothing to do, one loses its store. Every
// node, an observer too, says soon that it signs nothing and that no other may fail (P9).
func TestLostAnchorIsShownByAll(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	n := newNetwork(t, 5, false)
	n.start()
	for i := range 10 {
		n.put(i%5, fmt.Sprint("/k/", i))
	}
	n.agreed(20 * time.Second)
	ports := freePorts(t, 2)
	o := newProcess(n, "observer", ports[0], ports[1])
	must(t, os.Mkdir(o.dir, 0o700))
	o.startAs("join", n.invite(), "--data-dir", o.dir, "--name", o.name,
		"--listen", o.listen, "--api-listen", o.api, "--insecure", "--log-level", *level)
	t.Cleanup(func() { o.signal(sigKill) })
	all := append(slices.Clone(n.nodes), o)
	shown := func(failures int64, state string) func(context.Context) error {
		return func(ctx context.Context) error {
			for _, p := range all {
				s, err := p.status(ctx)
				if err != nil {
					return err
				}
				for _, a := range s.Anchors {
					if want := a.Name != "node5" || state == "signing"; s.FailuresLeft != failures || a.Reachable != want || a.Name == "node5" && a.State != state {
						return fmt.Errorf("%s says of %s that it is %s, and that %d may fail", p.name, a.Name, a.State, s.FailuresLeft)
					}
				}
			}
			return nil
		}
	}
	until(t, 30*time.Second, "all are well", shown(1, "signing"))

	lost := n.nodes[4]
	lost.signal(sigKill)
	must(t, os.Rename(filepath.Join(lost.dir, "store"), filepath.Join(lost.dir, "store.lost")))
	lost.start()
	until(t, 30*time.Second, "the anchor sees that it forgot", lost.silenced)
	began := time.Now()
	until(t, 10*time.Second, "all show it", shown(0, "silenced"))
	t.Logf("all showed it after %s", time.Since(began).Round(time.Millisecond))
	for _, p := range all {
		if out := n.must("status", "--api", p.api); !strings.Contains(out, "no more may fail") || !strings.Contains(out, "silenced until epoch 1") {
			t.Errorf("the status of %s does not say so:\n%s", p.name, out)
		}
	}
	if out, errs, _ := n.command("doctor", "--data-dir", n.nodes[0].dir); !strings.Contains(out, "no more may fail") || !strings.Contains(out, "see to node5 (silenced until epoch 1)") {
		t.Errorf("doctor at another node does not show it:\n%s%s", out, errs)
	}
	until(t, 10*time.Second, "metrics and probes show it", func(ctx context.Context) error {
		for _, p := range all {
			for path, want := range map[string]string{
				"/metrics": `aweigh_anchor_state{anchor="node5",state="silenced"} 1`, "/readyz?verbose": "none may fail; missing: node5 (silenced until epoch 1)",
			} {
				if body := fetched(ctx, "http://"+p.api+path); !strings.Contains(body, want) {
					return fmt.Errorf("%s of %s does not say %q:\n%s", path, p.name, want, body)
				}
			}
		}
		return nil
	})
}

// fetched is what a URL shows.
func fetched(ctx context.Context, url string) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err.Error()
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	return string(body)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// one is the newest file of a kind.
func one(t *testing.T, dir, pattern string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(names) == 0 {
		t.Fatalf("no %s in %s: %v", pattern, dir, err)
	}
	return names[len(names)-1]
}

func flip(t *testing.T, name string, at int) {
	t.Helper()
	raw, err := os.ReadFile(name)
	must(t, err)
	raw[at] ^= 0x10
	must(t, os.WriteFile(name, raw, 0o600))
}

func flipLog(t *testing.T, dir string) { flip(t, one(t, dir, "*.log"), 40) }

// flipTable flips a bit in every block of the newest table.
func flipTable(t *testing.T, dir string) { flipAll(t, one(t, dir, "*.sst")) }

// flipAll changes a bit in every 512 bytes of a file.
func flipAll(t *testing.T, name string) {
	raw, err := os.ReadFile(name)
	must(t, err)
	for at := 0; at < len(raw); at += 512 {
		raw[at] ^= 0x10
	}
	must(t, os.WriteFile(name, raw, 0o600))
}
