package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
)

// process is a node in a process of its own, which may run or not.
type process struct {
	net       *network
	name, dir string
	listen    string // multiaddr
	p2p, api  string // host:port
	etcd      string // host:port, if it serves etcd's API
	extra     []string
	asked     *client.Client // for what the harness itself wants to know

	mu    sync.Mutex
	cmd   *exec.Cmd
	ended chan struct{} // closed when cmd has ended
	meant bool          // it is to end
}

func newProcess(n *network, name string, p2p, api int) *process {
	p := &process{
		net: n, name: name, dir: filepath.Join(n.dir, name),
		listen: fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", p2p),
		p2p:    fmt.Sprintf("127.0.0.1:%d", p2p), api: fmt.Sprintf("127.0.0.1:%d", api),
	}
	var err error
	if p.asked, err = client.Dial(p.api); err != nil {
		n.t.Fatal(err)
	}
	return p
}

// init is the command line that makes the node.
func (p *process) init(args ...string) []string {
	return append([]string{"init", "--data-dir", p.dir, "--name", p.name, "--listen", p.listen,
		"--api-listen", p.api, "--insecure", "--log-level", *level}, args...)
}

func (p *process) log() string { return filepath.Join(p.dir, "node.log") }

// start starts the node, and does not wait for it.
func (p *process) start() { p.startAs(append([]string{"node", "--data-dir", p.dir}, p.extra...)...) }

// startAs starts the node with a command line.
func (p *process) startAs(args ...string) {
	t := p.net.t
	log, err := os.OpenFile(p.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Errorf("%s: %v", p.name, err)
		return
	}
	defer log.Close()
	cmd := exec.Command(program, args...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = p.net.env, p.net.dir, log, log
	tie(cmd)
	if err := cmd.Start(); err != nil {
		t.Errorf("%s: %v", p.name, err)
		return
	}
	ended := make(chan struct{})
	p.mu.Lock()
	p.cmd, p.ended, p.meant = cmd, ended, false
	p.mu.Unlock()
	go func() {
		defer close(ended)
		err := cmd.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.meant {
			t.Errorf("%s ended by itself: %v; see %s", p.name, err, p.log())
		}
	}()
}

// runs reports whether the node runs.
func (p *process) runs() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// pid is the number of the process.
func (p *process) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd.Process.Pid
}

// signal sends a signal; after one that ends a process it waits for the end,
// and returns the exit code, -1 if a signal ended it.
func (p *process) signal(s os.Signal) (code int) {
	p.mu.Lock()
	cmd, ended := p.cmd, p.ended
	if cmd == nil {
		p.mu.Unlock()
		return 0
	}
	ends := s == sigKill || s == sigTerm
	p.meant = p.meant || ends
	p.mu.Unlock()
	err := cmd.Process.Signal(s)
	if !ends {
		if err != nil {
			p.net.t.Errorf("%s: signal %v: %v", p.name, s, err)
		}
		return 0
	}
	select {
	case <-ended:
	case <-time.After(15 * time.Second):
		p.net.t.Errorf("%s does not end on signal %v; see %s", p.name, s, p.log())
		_ = cmd.Process.Kill()
		<-ended
	}
	return cmd.ProcessState.ExitCode()
}

// shoot sends a signal that ends the node, and does not wait for the end.
func (p *process) shoot(s os.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.meant = true
	_ = p.cmd.Process.Signal(s)
}

// status is what the node says of itself.
func (p *process) status(ctx context.Context) (*aweighv1.StatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return p.asked.Status(ctx)
}

// ready objects until the node answers, is connected with all other anchors
// that run, and has caught up.
func (p *process) ready(ctx context.Context) error {
	s, err := p.status(ctx)
	if err != nil {
		return err
	}
	running, reached := 0, 0
	for _, other := range p.net.nodes {
		if other.runs() {
			running++
		}
	}
	for _, a := range s.Anchors {
		if a.Reachable {
			reached++
		}
	}
	if reached < running || s.CatchingUp || s.LostState {
		return fmt.Errorf("%d of %d anchors are reachable, catching up: %t, lost its state: %t", reached, running, s.CatchingUp, s.LostState)
	}
	return nil
}
