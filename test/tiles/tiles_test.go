package tiles

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/transparency-dev/formats/note"
	"github.com/transparency-dev/merkle/rfc6962"
	"github.com/transparency-dev/tessera/api"
	"github.com/transparency-dev/tessera/client"
	"github.com/transparency-dev/tessera/fsck"
)

// TestTesseraReadsTiles: the checker of Tessera accepts a directory that grew in steps, by the key of each anchor, and
// finds one bent bit.
func TestTesseraReadsTiles(t *testing.T) {
	aweigh := build(t)
	network := start(t, aweigh)
	run := func(args ...string) string {
		t.Helper()
		out, err := network.command(aweigh, args...).Output()
		if err != nil {
			t.Fatalf("aweigh %s: %v", strings.Join(args, " "), err)
		}
		return string(out)
	}
	dir := filepath.Join(t.TempDir(), "tiles")
	var ops []string
	for i := range 300 {
		run("put", fmt.Sprintf("/k/%d", i%100), fmt.Sprint(i))
		if i == 0 || i == 100 || i == 299 {
			ops = append(ops, run("tiles", dir))
		}
	}
	raw, err := os.ReadFile(filepath.Join(dir, "checkpoint"))
	if err != nil {
		t.Fatal(err)
	}
	origin, _, _ := strings.Cut(string(raw), "\n")
	keys := strings.Fields(run("checkpoint", "--keys"))
	if len(keys) != 4 {
		t.Fatalf("%d keys", len(keys))
	}
	checkBy := func(key string, fetcher fsck.Fetcher) error {
		v, err := note.NewVerifier(key)
		if err != nil {
			t.Fatal(err)
		}
		return fsck.New(origin, v, fetcher, hashes, fsck.Opts{N: 2}).Check(context.Background())
	}
	check := func(key string) error { return checkBy(key, client.FileFetcher{Root: dir}) }
	served, err := client.NewHTTPFetcher(serving(t, network.command(aweigh, "tiles", dir, "--every", "1h", "--listen", "127.0.0.1:0")), nil)
	if err == nil {
		err = checkBy(keys[0], served)
	}
	if err != nil {
		t.Errorf("by HTTP: %v", err)
	}
	for _, key := range keys {
		if err := check(key); err != nil {
			t.Errorf("%s: %v; %v", key, err, ops)
		}
	}
	for _, name := range []string{"tile/0/000", "tile/entries/000", "tile/1/000.p/1"} {
		path := filepath.Join(dir, name)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		bent := bytes.Clone(whole)
		bent[len(bent)/2] ^= 1
		if err := os.WriteFile(path, bent, 0o600); err != nil {
			t.Fatal(err)
		}
		if check(keys[0]) == nil {
			t.Errorf("%s is bent, and nothing is found", name)
		}
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// serving runs a command that serves files, until the end of the test, and returns where it does.
func serving(t *testing.T, c *exec.Cmd) *url.URL {
	t.Helper()
	out, err := c.StderrPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if _, at, ok := strings.Cut(lines.Text(), " is served at "); ok {
			u, err := url.Parse(at)
			if err != nil {
				t.Fatal(err)
			}
			return u
		}
	}
	t.Fatal("nothing is served")
	return nil
}

// hashes are those of the entries of a bundle.
func hashes(bundle []byte) (all [][]byte, err error) {
	var b api.EntryBundle
	if err := b.UnmarshalText(bundle); err != nil {
		return nil, err
	}
	for _, e := range b.Entries {
		all = append(all, rfc6962.DefaultHasher.HashLeaf(e))
	}
	return all, nil
}

// build builds the program.
func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "aweigh")
	c := exec.Command("go", "build", "-o", program, "./cmd/aweigh")
	c.Dir = "../.."
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// devnet is a network that runs.
type devnet struct {
	env     []string
	dir     string // with its data
	process *exec.Cmd
}

func (d *devnet) command(program string, args ...string) *exec.Cmd {
	c := exec.Command(program, args...)
	c.Env = d.env
	return c
}

// start starts a network, and ends it with the test.
func start(t *testing.T, program string) *devnet {
	t.Helper()
	home := t.TempDir()
	d := &devnet{
		env: []string{"HOME=" + home, "XDG_RUNTIME_DIR=" + filepath.Join(home, "run"), "PATH=" + os.Getenv("PATH")},
		dir: filepath.Join(home, "net"),
	}
	if err := os.Mkdir(filepath.Join(home, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	d.run(t, program)
	t.Cleanup(func() { d.stop(t) })
	return d
}

// run runs the network of the directory.
func (d *devnet) run(t *testing.T, program string) {
	t.Helper()
	out, err := os.Create(d.dir + ".out")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	d.process = d.command(program, "devnet", "--etcd-listen", "", "--data-dir", d.dir)
	d.process.Stdout, d.process.Stderr = out, out
	if err := d.process.Start(); err != nil {
		t.Fatal(err)
	}
	ready := regexp.MustCompile("ready: block")
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		said, err := os.ReadFile(out.Name())
		if err == nil && ready.Match(said) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the network does not start: %v\n%s", err, said)
		}
	}
}

// stop stops it.
func (d *devnet) stop(t *testing.T) {
	t.Helper()
	if err := d.process.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := d.process.Wait(); err != nil {
		t.Fatal(err)
	}
}
