package tiles

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/transparency-dev/formats/note"
	"github.com/transparency-dev/tessera"
	"github.com/transparency-dev/witness/config"
	"github.com/transparency-dev/witness/persistence/inmemory"
	"github.com/transparency-dev/witness/witness"
	snote "golang.org/x/mod/sumdb/note"
)

// TestForeignWitnessesSign: the witness of transparency-dev signs a history that grows, from whatever size a directory
// begins with, and refuses a second history of the same anchors. Tessera finds its cosignature by the same policy.
func TestForeignWitnessesSign(t *testing.T) {
	aweigh := build(t)
	network := start(t, aweigh)
	temp := t.TempDir()
	run := func(args ...string) (string, int) {
		t.Helper()
		c := network.command(aweigh, args...)
		out, err := c.CombinedOutput()
		if failed := new(exec.ExitError); err != nil && !errors.As(err, &failed) {
			t.Fatal(err)
		}
		t.Logf("aweigh %s: %d\n%s", strings.Join(args, " "), c.ProcessState.ExitCode(), out)
		return string(out), c.ProcessState.ExitCode()
	}
	must := func(args ...string) string {
		t.Helper()
		out, code := run(args...)
		if code != 0 {
			t.Fatalf("exit code %d", code)
		}
		return out
	}
	must("put", "/a", "1")
	origin, _, _ := strings.Cut(must("checkpoint"), "\n")
	key, _, _ := strings.Cut(must("checkpoint", "--keys"), "\n")
	logs := fmt.Sprintf("logs/v0\nvkey %s\norigin %s\n", key, origin)
	vkey, url := serve(t, logs)
	policy := filepath.Join(temp, "policy")
	lines := fmt.Sprintf("log %s\nwitness w %s %s\ngroup g all w\nquorum g\n", key, vkey, url)
	if err := os.WriteFile(policy, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	group, err := tessera.NewWitnessGroupFromPolicy([]byte(lines))
	if err != nil {
		t.Fatal(err)
	}
	first, second := filepath.Join(temp, "first"), filepath.Join(temp, "second")
	check := func(dir string) {
		t.Helper()
		must("tiles", dir, "--witnesses", policy)
		raw, err := os.ReadFile(filepath.Join(dir, "checkpoint"))
		if err != nil {
			t.Fatal(err)
		}
		if !group.Satisfied(raw) {
			t.Errorf("no cosignature of the witness on\n%s", raw)
		}
		anchors, _, _ := bytes.Cut(raw, []byte("— w.example "))
		if group.Satisfied(anchors) {
			t.Error("the anchors alone satisfy the policy")
		}
	}
	check(first)
	check(first) // nothing is new
	for i := range 3 {
		must("put", "/b", fmt.Sprint(i))
		check(first)
	}
	check(second)

	network.stop(t)
	fork := filepath.Join(temp, "fork")
	if err := os.CopyFS(fork, os.DirFS(network.dir)); err != nil {
		t.Fatal(err)
	}
	network.run(t, aweigh)
	must("put", "/a", "2")
	check(second)
	network.stop(t)

	network.dir = fork
	network.run(t, aweigh)
	for i := range 4 {
		must("put", "/a", fmt.Sprint("other ", i))
	}
	out, code := run("tiles", filepath.Join(temp, "forked"), "--witnesses", policy)
	if code != 7 || !strings.Contains(out, "witness w: two histories of "+origin) {
		t.Errorf("a second history is not refused")
	}
	if _, err := os.Stat(filepath.Join(temp, "forked", "checkpoint")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is shown: %v", err)
	}
}

// serve serves a witness that takes the given logs.
func serve(t *testing.T, logs string) (vkey, url string) {
	t.Helper()
	known, err := config.ParsePublicWitnessConfig(strings.NewReader(logs))
	if err != nil {
		t.Fatal(err)
	}
	secret, public, err := snote.GenerateKey(rand.Reader, "w.example")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := note.NewSignerForCosignatureV1(secret)
	if err != nil {
		t.Fatal(err)
	}
	if vkey, err = note.VKeyToCosignatureV1(public); err != nil {
		t.Fatal(err)
	}
	w, err := witness.New(context.Background(), witness.Opts{
		Persistence: inmemory.New(), Signers: []snote.Signer{signer},
		VerifierForLog: func(_ context.Context, origin string) (snote.Verifier, bool, error) {
			for i := range known {
				if known[i].Origin == origin {
					return known[i].Verifier, true, nil
				}
			}
			return nil, false, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /prefix/add-checkpoint", witness.NewHTTPHandler(w).AddCheckpoint)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return vkey, server.URL + "/prefix"
}
