package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/ports"
)

// network is a network of anchors of equal weight, mode bft, made as its users
// would make it: with "aweigh init".
type network struct {
	t     *testing.T
	dir   string
	env   []string
	nodes []*process
	id    string    // of the network; "" until oneRound asks for it
	links [][]*link // from one node to the other; nil if they reach each other without
}

// newNetwork makes a network whose nodes do not run yet. If linked is set, all
// that nodes say to each other goes through links. founding are further words of
// the command that makes the genesis.
func newNetwork(t *testing.T, size int, linked bool, founding ...string) *network {
	needsProcesses(t)
	t.Helper()
	dir, err := os.MkdirTemp("", "aweigh-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	n := &network{t: t, dir: dir, env: environment(dir)}
	t.Cleanup(n.cleanup)

	ports := freePorts(t, 2*size)
	lines := make([]string, size)
	for i := range size {
		p := newProcess(n, fmt.Sprintf("node%d", i+1), ports[2*i], ports[2*i+1])
		n.nodes = append(n.nodes, p)
		lines[i] = n.must(p.init("--anchor-info")...)
	}
	founders := filepath.Join(dir, "founders.yaml")
	if err := os.WriteFile(founders, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, p := range n.nodes {
		args := p.init("--anchors", founders)
		if i > 0 {
			args = append(args, "--genesis", filepath.Join(n.nodes[0].dir, "genesis.cbor"))
		} else {
			args = append(args, founding...)
		}
		n.must(args...)
	}
	if linked {
		n.link(lines)
	}
	return n
}

// prune has the nodes drop what was compacted, from their next start on.
func (n *network) prune() {
	for _, p := range n.nodes {
		p.extra = append(p.extra, "--prune")
	}
}

// environment is that of this process without what would steer the program.
func environment(dir string) []string {
	env := []string{
		"HOME=" + dir, "XDG_RUNTIME_DIR=" + filepath.Join(dir, "run"),
		"XDG_STATE_HOME=" + filepath.Join(dir, "state"), "XDG_CONFIG_HOME=" + filepath.Join(dir, "config"),
	}
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if name != "HOME" && !strings.HasPrefix(name, "XDG_") && !strings.HasPrefix(name, "AWEIGH_") {
			env = append(env, v)
		}
	}
	return env
}

// freePorts are ports that a node that was killed gets back.
func freePorts(t *testing.T, n int) []int {
	t.Helper()
	free, err := ports.Free(n)
	if err != nil {
		t.Fatal(err)
	}
	return free
}

// cleanup ends all processes, and removes what they wrote if all went well.
func (n *network) cleanup() {
	for _, p := range n.nodes {
		p.signal(sigKill)
	}
	for _, row := range n.links {
		for _, l := range row {
			l.close()
		}
	}
	if n.t.Failed() || *keep {
		n.t.Logf("the directories of the nodes, with their logs, are in %s", n.dir)
		return
	}
	if err := os.RemoveAll(n.dir); err != nil {
		n.t.Log(err)
	}
}

// command runs the program to its end, and returns what it wrote and its exit code.
func (n *network) command(args ...string) (out, errs string, code int) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	var o, e bytes.Buffer
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = n.env, n.dir, &o, &e
	tie(cmd)
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		n.t.Fatalf("aweigh %s: %v", strings.Join(args, " "), err)
	}
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

// must is command where only success will do.
func (n *network) must(args ...string) string {
	n.t.Helper()
	out, errs, code := n.command(args...)
	if code != 0 {
		n.t.Fatalf("aweigh %s: exit code %d\n%s%s", strings.Join(args, " "), code, out, errs)
	}
	return out
}

// invite is the file of a new invite.
func (n *network) invite() string {
	n.t.Helper()
	file := filepath.Join(n.t.TempDir(), "invite")
	must(n.t, os.WriteFile(file, []byte(n.must("invite", "--api", n.nodes[0].api)), 0o600))
	return file
}

// start starts all nodes that do not run, and waits until each answers and sees
// a quorum.
func (n *network) start() {
	n.t.Helper()
	for _, p := range n.nodes {
		if !p.runs() {
			p.start()
		}
	}
	for _, p := range n.nodes {
		until(n.t, 30*time.Second, p.name+" is up", p.ready)
	}
}

// dial makes a client of the nodes with the indexes given, or of all.
func (n *network) dial(indexes ...int) *client.Client {
	n.t.Helper()
	var addresses []string
	for _, i := range indexes {
		addresses = append(addresses, n.nodes[i].api)
	}
	if len(indexes) == 0 {
		for _, p := range n.nodes {
			addresses = append(addresses, p.api)
		}
	}
	c, err := client.Dial(addresses...)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = c.Close() })
	return c
}

// agreed waits until all nodes are in the same state, and returns it.
func (n *network) agreed(limit time.Duration) *aweighv1.StatusResponse {
	n.t.Helper()
	var first *aweighv1.StatusResponse
	until(n.t, limit, "all nodes are in the same state", func(ctx context.Context) error {
		for i, p := range n.nodes {
			s, err := p.status(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			if i == 0 {
				first = s
			}
			if !bytes.Equal(s.StateDigest, first.StateDigest) || s.Header.Height != first.Header.Height || s.Waiting > 0 {
				return fmt.Errorf("%s: height %d, digest %x, %d waiting; %s: height %d, digest %x",
					p.name, s.Header.Height, s.StateDigest, s.Waiting, n.nodes[0].name, first.Header.Height, first.StateDigest)
			}
		}
		return nil
	})
	return first
}
