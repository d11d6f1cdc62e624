//go:build linux

package hostile

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/testshort"
)

// TestOtherUsersOfTheMachineAreKeptOut: another user of a node's machine does not reach its socket, and where the modes
// of the socket and of its directories are opened, it gets no answer but what to do. The owner goes on.
func TestOtherUsersOfTheMachineAreKeptOut(t *testing.T) {
	testshort.Skip(t)
	if os.Geteuid() != 0 {
		t.Skip("only root starts processes of other users")
	}
	x := newNetwork(t, 4)
	dir := x.Nodes[0].Home
	path, err := dir.Socket()
	if err != nil {
		t.Fatal(err)
	}
	test, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "stranger")
	if err := errors.Join(os.WriteFile(program, test, 0o755), os.Chmod(filepath.Dir(program), 0o755), os.Chmod(filepath.Dir(filepath.Dir(program)), 0o755)); err != nil {
		t.Fatal(err)
	}
	play := func(want string) {
		t.Helper()
		cmd := exec.Command(program)
		cmd.Env = []string{localEnv + "=" + path}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 4177, Gid: 4177}}
		out, err := cmd.CombinedOutput()
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		if err != nil || len(lines) != 5 {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, l := range lines {
			if !strings.HasPrefix(l, want+": ") || !strings.Contains(l, "run the command as that user") {
				t.Errorf("a non-member is not %s:\n%s", want, l)
			}
		}
	}
	play("kept out")
	for d := filepath.Dir(path); len(d) > len(os.TempDir()); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	play("denied")
	c, err := client.Dial("unix://" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := c.Put(ctx, &aweighv1.PutRequest{Key: []byte("/a"), Value: []byte("theirs")}); err != nil {
		t.Errorf("the owner: %v", err)
	}
	if got, err := c.Get(ctx, []byte("/a")); err != nil || string(got.Value) != "theirs" {
		t.Errorf("the owner reads %v, %v", got, err)
	}
}
