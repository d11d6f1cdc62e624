package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/aweigh/aweigh/sim/sweep"
)

// Report is what came of a mutant.
type Report struct {
	Class, Name, About string
	Expected           int    `json:",omitempty"` // worlds within which it is to be found; 0: none
	Why                string `json:",omitempty"` // it is not expected
	Worlds             int    // that ran
	Found              bool   // the last of them failed
	By                 string `json:",omitempty"` // the invariant that broke, or how else the world failed
	Text               string `json:",omitempty"` // of the failure
	Tests              string `json:",omitempty"` // what the tests of the changed packages say, with -tests
	Error              string `json:",omitempty"` // it could not be planted
}

// missed reports whether the list says more than came of it.
func (r *Report) missed() bool { return r.Error != "" || r.Expected > 0 && !r.Found }

// runner plants mutants.
type runner struct {
	root  string // of the repository
	temp  string
	from  uint64 // first seed
	least int    // worlds for any mutant
	tests bool
	plain bool // build alone
}

// run plants a mutant and sweeps.
func (r *runner) run(ctx context.Context, m *Mutant, p program) (out Report) {
	out = Report{Class: m.Class, Name: m.Name, About: m.About, Expected: m.Within, Why: m.Why}
	err := p.err
	if err == nil && !r.plain {
		err = r.sweep(ctx, p, r.arguments(m), &out)
	}
	if err == nil && r.tests && !r.plain {
		out.Tests, err = r.test(ctx, m)
	}
	if err != nil {
		out.Error = err.Error()
	}
	return out
}

// test runs the tests of the packages that a mutant changes.
func (r *runner) test(ctx context.Context, m *Mutant) (string, error) {
	files, err := m.sources(r.root)
	if err != nil {
		return "", err
	}
	overlay, err := r.overlay(files)
	if err != nil {
		return "", err
	}
	text, err := r.command(ctx, "go", append([]string{"test", "-short", "-failfast", "-overlay", overlay}, m.packages()...)...)
	if err != nil {
		return firstFailure(text), ctx.Err()
	}
	return "pass", nil
}

// determinism is the class whose worlds run twice.
const determinism = "determinism"

func (r *runner) command(ctx context.Context, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = r.root
	text, err := c.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(text))
	}
	return string(text), err
}

// silence is how long a world may take: a mutant may make one that never ends.
const silence = 2 * time.Minute

// A mutant is lost after many times the worlds that the list says. What worlds draw changes with each new draw, and the
// world that finds a mutant with it: one that is found in a world of n is missed by 3 n of them once in 20 changes, and
// by 10 n once in 20,000. Past a thousand worlds the list's own margin has to do.
const (
	patience     = 10
	leastPatient = 3
	mostPatient  = 1000 // worlds
)

// lostAfter is after how many worlds a mutant is lost that is to be found within some.
func lostAfter(within int) int { return max(leastPatient*within, min(patience*within, mostPatient)) }

// arguments are those with which the program of a mutant looks for it.
func (r *runner) arguments(m *Mutant) []string {
	from, worlds := strconv.FormatUint(r.from, 10), strconv.Itoa(max(lostAfter(m.Within), r.least))
	args := []string{"-from", from, "-seeds", worlds}
	switch {
	case m.edge():
		args = []string{"-test.run", "^TestWorlds$", "-test.timeout", "0", "-progress", "-from", from, "-worlds", worlds}
	case m.Class == determinism:
		args = append(args, "-twice")
	}
	return args
}

// sweep runs worlds until one fails.
func (r *runner) sweep(ctx context.Context, p program, args []string, out *Report) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	c := exec.CommandContext(ctx, p.path, args...)
	c.Env = append(os.Environ(), "GOMAXPROCS=1", fmt.Sprintf("%s=%d", variable, p.number))
	var stderr bytes.Buffer
	c.Stderr = &stderr
	lines, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		return err
	}
	stuck := time.AfterFunc(silence, stop)
	for in := json.NewDecoder(lines); ; {
		var p sweep.Progress
		if err := in.Decode(&p); err != nil {
			if !errors.Is(err, io.EOF) && ctx.Err() == nil {
				stop()
				return err
			}
			break
		}
		stuck.Reset(silence)
		out.Worlds = int(p.Done)
		if f := p.Failure; f != nil {
			out.Found, out.Text, out.By = true, f.Text, kind(f)
		}
	}
	err = c.Wait()
	switch {
	case !stuck.Stop() && !out.Found:
		out.Worlds++
		out.Found, out.By, out.Text = true, "a world that does not end", fmt.Sprintf("nothing for %v", silence)
	case err != nil && !out.Found && ctx.Err() == nil: // as a stack that overflows does
		text, _, _ := strings.Cut(stderr.String(), "\n")
		out.Worlds++
		out.Found, out.By, out.Text = true, "crash", text
	}
	return nil
}

// kind is how a world failed, in a word or two.
func kind(f *sweep.Failure) string {
	switch {
	case f.Breach != nil:
		return f.Breach.Invariant
	case f.Stack != "":
		return "panic"
	case strings.Contains(f.Text, "two runs"):
		return "second run"
	}
	return "no progress"
}

// firstFailure is the first test that failed.
func firstFailure(text string) string {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "--- FAIL: "); ok {
			name, _, _ := strings.Cut(rest, " ")
			return name
		}
	}
	return "fail"
}
