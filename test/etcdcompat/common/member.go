package common

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/etcd/tests/v3/framework/config"
	"go.etcd.io/etcd/tests/v3/framework/e2e"
	"go.etcd.io/etcd/tests/v3/framework/interfaces"
)

// pause is between two questions whether something is so by now.
const pause = 50 * time.Millisecond

// member is a node in a process of its own.
type member struct {
	net       *network
	name, dir string
	endpoint  string
	settings  []string // flags of "aweigh init"

	mu    sync.Mutex
	cmd   *exec.Cmd     // nil if it does not run
	ended chan struct{} // closed when cmd has ended, and then
	err   error         // how it ended, and
	log   bytes.Buffer  // what it had to say, are there
}

// newMember takes two ports, for nodes and for clients of etcd.
func newMember(n *network, name string, ports []int, flags []string) *member {
	m := &member{net: n, name: name, dir: filepath.Join(n.dir, name), endpoint: fmt.Sprintf("127.0.0.1:%d", ports[1])}
	m.settings = append([]string{"--data-dir", m.dir, "--name", name, "--log-level", "warn",
		"--listen", fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", ports[0]),
		"--insecure", "--etcd-listen", m.endpoint}, flags...)
	return m
}

// command is the program under test, which knows of nothing outside of the network.
func (m *member) command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Getenv("AWEIGH_PROGRAM"), args...)
	dir := m.net.dir
	cmd.Env = []string{"HOME=" + dir, "TMPDIR=" + dir, "XDG_STATE_HOME=" + dir, "XDG_RUNTIME_DIR=" + dir, "XDG_CONFIG_HOME=" + dir}
	return cmd
}

// init runs "aweigh init", and gives what it prints.
func (m *member) init(args ...string) (string, error) {
	cmd := m.command(append(append([]string{"init"}, m.settings...), args...)...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", cmd, err, &errs)
	}
	return string(out), nil
}

// Client is etcdctl, which is told of this node alone.
func (m *member) Client() interfaces.Client {
	c, err := e2e.NewEtcdctl(m.net.client, []string{m.endpoint})
	if err != nil {
		panic(err) // it cannot fail without a user
	}
	return c
}

// Start starts the node, and waits until it answers by itself.
func (m *member) Start(ctx context.Context) error {
	if err := m.launch(); err != nil {
		return err
	}
	return m.await(ctx, config.GetOptions{Serializable: true})
}

// Stop ends the node.
func (m *member) Stop() {
	if err := m.end(); err != nil {
		m.net.t.Error(err)
	}
}

// launch starts the node, and does not wait for it.
func (m *member) launch() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log.Reset()
	cmd, ended := m.command("node", "--data-dir", m.dir), make(chan struct{})
	cmd.Stdout, cmd.Stderr = &m.log, &m.log
	tie(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	m.cmd, m.ended = cmd, ended
	go func() {
		defer close(ended)
		m.err = cmd.Wait()
	}()
	return nil
}

func (m *member) runs() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cmd != nil
}

// await waits until the node answers a read. It asks no sooner than somebody listens:
// a client that found nobody waits a second before it tries again.
func (m *member) await(ctx context.Context, how config.GetOptions) error {
	for {
		c, err := net.Dial("tcp", m.endpoint)
		if err == nil {
			_ = c.Close()
			_, err = m.Client().Get(ctx, "none", how)
		}
		if err == nil || strings.Contains(err.Error(), "user name is empty") { // it wants to know who asks: that is an answer
			return nil
		}
		select {
		case <-m.ended:
			return m.end()
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w", m.name, err)
		case <-time.After(pause):
		}
	}
}

// end interrupts the node, and waits until it has ended. It fails if the node ended
// by itself or does not end well, and not if there is none.
func (m *member) end() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cmd == nil {
		return nil
	}
	cmd := m.cmd
	m.cmd = nil
	select {
	case <-m.ended:
		return fmt.Errorf("%s ended by itself: %v\n%s", m.name, cmd.ProcessState, &m.log)
	default:
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	timer := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	<-m.ended
	if m.err != nil {
		return fmt.Errorf("%s: %w\n%s", m.name, m.err, &m.log)
	}
	if m.net.t.Failed() && m.log.Len() > 0 {
		m.net.t.Logf("%s:\n%s", m.name, &m.log)
	}
	return nil
}
