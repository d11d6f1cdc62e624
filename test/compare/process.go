package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// grace is how long a process may take to stop.
const grace = 15 * time.Second

// process is a child that runs until it is stopped, in a group of its own, so
// that Ctrl-C in the terminal does not reach it before its turn.
type process struct {
	cmd   *exec.Cmd
	log   string
	ended chan struct{} // closed after err is set
	err   error
}

// launch starts a program. Its output goes to a file beside its directory.
func launch(log string, env []string, program string, args ...string) (*process, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	defer out.Close() // the child has its own
	p := &process{cmd: exec.Command(program, args...), log: log, ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	ownGroup(p.cmd)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("compare: starting %s: %w", filepath.Base(program), err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// alive is an error if it ended.
func (p *process) alive() error {
	select {
	case <-p.ended:
		return fmt.Errorf("compare: %s ended by itself (%w): %s", filepath.Base(p.cmd.Path), p.err, lastLine(p.log))
	default:
		return nil
	}
}

// terminate asks it to stop.
func (p *process) terminate() { signalGroup(p.cmd, syscall.SIGTERM) }

// wait waits until it has stopped, and kills its group if it takes too long.
func (p *process) wait() error {
	select {
	case <-p.ended:
		return nil
	case <-time.After(grace):
	}
	signalGroup(p.cmd, syscall.SIGKILL)
	<-p.ended
	return fmt.Errorf("compare: %s did not stop within %s and was killed", filepath.Base(p.cmd.Path), grace)
}

// output runs a program to its end and returns what it printed on its standard
// output. The end of ctx ends it, too.
func output(ctx context.Context, env []string, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Cancel = func() error { signalGroup(cmd, syscall.SIGKILL); return nil }
	ownGroup(cmd)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, fmt.Errorf("compare: %s %s: %w: %s", filepath.Base(program), strings.Join(args, " "), err, lastOf(complaint.String()))
	}
	return out.Bytes(), nil
}

// lastLine is the last line of a file that is not empty.
func lastLine(file string) string {
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err.Error()
	}
	return lastOf(string(text))
}

func lastOf(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
