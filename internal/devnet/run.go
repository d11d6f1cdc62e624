package devnet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/daemon"
)

// Run runs all nodes in this process until ctx ends or one of them fails.
func (n *Network) Run(ctx context.Context, version string, log *slog.Logger) error {
	daemons := make([]*daemon.Daemon, 0, len(n.Nodes))
	for _, x := range n.Nodes {
		d, err := daemon.Open(x.Home, x.Settings, version, log.With("node", x.Name))
		if err != nil {
			for _, d := range daemons {
				err = errors.Join(err, d.Close())
			}
			return fmt.Errorf("devnet: %s: %w", x.Name, err)
		}
		daemons = append(daemons, d)
	}
	group, ctx := errgroup.WithContext(ctx)
	for i, d := range daemons {
		group.Go(func() error {
			if err := d.Run(ctx); err != nil {
				return fmt.Errorf("devnet: %s: %w", n.Nodes[i].Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// LogFile is where the output of a node goes that is a process of its own.
func (x Node) LogFile() string { return filepath.Join(string(x.Home), "node.log") }

// pidFile holds the process ID of a node that is a process of its own, while
// it runs.
func (x Node) pidFile() string { return filepath.Join(string(x.Home), "node.pid") }

// PID is the number of the node's process, 0 if it has none of its own.
func (x Node) PID() int {
	raw, err := os.ReadFile(x.pidFile())
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		return 0
	}
	return pid
}

// RunProcesses runs every node as a process of its own until ctx ends. When one
// of them ends before, it asks ended whether the others go on. A child notices
// the end of its parent by its standard input, which no other process holds
// open, and stops.
func (n *Network) RunProcesses(ctx context.Context, ended func(error) (goOn bool), program string, args ...string) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, x := range n.Nodes {
		group.Go(func() error {
			err := x.run(ctx, program, args)
			if err == nil {
				return nil
			}
			err = fmt.Errorf("devnet: %s: %w; see %s", x.Name, err, x.LogFile())
			if ended(err) {
				return nil
			}
			return err
		})
	}
	return group.Wait()
}

// grace is how long a child may take to stop.
const grace = 10 * time.Second

func (x Node) run(ctx context.Context, program string, args []string) (err error) {
	log, err := os.OpenFile(x.LogFile(), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	before, err := log.Stat()
	if err != nil {
		return err
	}
	life, alive, err := os.Pipe()
	if err != nil {
		return err
	}
	defer life.Close()
	defer alive.Close()
	args = append(slices.Concat(args, x.flags()), "--data-dir", string(x.Home))
	if x.Insecure {
		args = append(args, "--insecure")
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = life, log, log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = grace
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	pid := []byte(strconv.Itoa(cmd.Process.Pid) + "\n")
	err = errors.Join(os.WriteFile(x.pidFile(), pid, 0o600), cmd.Wait(), os.Remove(x.pidFile()))
	if ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled) || terminated(cmd)) {
		return nil
	}
	if err == nil {
		err = errors.New("it ended by itself")
	}
	if reason := lastWords(io.NewSectionReader(log, before.Size(), 1<<20)); reason != "" {
		err = fmt.Errorf("%s (%w)", reason, err)
	}
	return err
}

// terminated reports whether SIGTERM ended a program: it came before the program knew what to do with it.
func terminated(cmd *exec.Cmd) bool {
	s, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && s.Signaled() && s.Signal() == syscall.SIGTERM
}

// lastWords is the error with which the output of a program ends, empty if there
// is none.
func lastWords(output io.Reader) string {
	const mark = "aweigh: "
	text, _ := io.ReadAll(output)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if reason, ok := strings.CutPrefix(lines[i], mark); ok {
			return strings.Join(append([]string{reason}, lines[i+1:]...), "\n")
		}
	}
	return ""
}

// WithParent ends when the process that holds the other end of stdin does.
func WithParent(ctx context.Context, stdin io.Reader) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		cancel()
	}()
	return ctx
}

// Greet waits until the network decides: it writes a greeting where there is
// none, or proposes a transaction that changes nothing.
func (n *Network) Greet(ctx context.Context) (height uint64, err error) {
	addresses, err := n.APIs()
	if err != nil {
		return 0, err
	}
	c, err := client.Dial(addresses...)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	key := []byte(GreetingKey)
	for {
		resp, err := c.Txn(ctx, &aweighv1.TxnRequest{
			Compare: []*aweighv1.Compare{{
				Target: aweighv1.Compare_TARGET_VERSION, Relation: aweighv1.Compare_RELATION_EQUAL, Key: key,
			}},
			Success: []*aweighv1.Op{{Op: &aweighv1.Op_Put{Put: &aweighv1.PutRequest{Key: key, Value: []byte("Anchors aweigh!")}}}},
			Once:    &aweighv1.Once{Justification: "the devnet's first block"},
		})
		if err == nil {
			return resp.Header.Height, nil
		}
		if ctx.Err() != nil {
			return 0, err
		}
		if !errors.Is(err, client.ErrUnreachable) {
			return 0, err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return 0, err
		}
	}
}

// GreetingKey is the key that Greet writes.
const GreetingKey = "/greeting"
