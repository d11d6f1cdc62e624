//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/aweigh/aweigh/internal/testwait"
)

// family runs a shell whose child writes down its process ID.
const family = `sleep 1000 & echo $! >"$0"; wait`

func childOf(t *testing.T, file string) (pid int) {
	t.Helper()
	testwait.Until(t, "the child", func() bool {
		text, _ := os.ReadFile(file)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		return pid > 0
	})
	return pid
}

func gone(pid int) func() bool {
	return func() bool {
		// One that nobody has waited for yet is a zombie.
		text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || err == nil && strings.Contains(string(text), ") Z ")
	}
}

func TestStoppingAClusterStopsChildrenOfChildren(t *testing.T) {
	dir := t.TempDir()
	p, err := launch(filepath.Join(dir, "log"), nil, "/bin/sh", "-c", family, filepath.Join(dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	child := childOf(t, filepath.Join(dir, "pid"))
	if err := p.alive(); err != nil {
		t.Error(err)
	}
	if err := (&cluster{processes: []*process{p}}).stop(); err != nil {
		t.Error(err)
	}
	testwait.Until(t, "the end of the child", gone(child))
	if p.alive() == nil {
		t.Error("it is said to be alive")
	}
}

func TestInterruptionStopsLoadGenerators(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := output(ctx, nil, "/bin/sh", "-c", family, filepath.Join(dir, "pid"))
		ended <- err
	}()
	child := childOf(t, filepath.Join(dir, "pid"))
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	testwait.Until(t, "the end of the child", gone(child))
}

func TestAProgramThatFailsTellsItsLastWords(t *testing.T) {
	_, err := output(t.Context(), nil, "/bin/sh", "-c", "echo first >&2; echo no disk >&2; exit 3")
	if err == nil || !strings.Contains(err.Error(), "no disk") {
		t.Errorf("got %v", err)
	}
}
