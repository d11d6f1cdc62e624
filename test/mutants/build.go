package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// program is one in which a mutant is planted.
type program struct {
	path   string
	number int // of the mutant, in variable; 0: the program has no other
	err    error
}

// build builds the programs of the mutants, in their order. Those that can share
// one do so.
func (r *runner) build(ctx context.Context, list []Mutant) []program {
	out := make([]program, len(list))
	for _, edge := range []bool{false, true} {
		r.buildOf(ctx, list, edge, out)
	}
	return out
}

// buildOf builds the programs of the mutants that the simulator looks for, or those that worlds of test/edge do.
func (r *runner) buildOf(ctx context.Context, list []Mutant, edge bool, out []program) {
	var together []int
	s := newSharing(r.read)
	for i := range list {
		if list[i].edge() != edge {
			continue
		}
		files, err := list[i].sources(r.root)
		shares := false
		if err == nil {
			shares, err = s.add(i+1, files)
		}
		switch {
		case err != nil:
			out[i].err = err
		case shares && len(list) > 1:
			together = append(together, i)
		default:
			out[i].path, out[i].err = r.compile(ctx, files, edge)
		}
	}
	r.share(ctx, list, together, edge, out)
}

// share builds one program with several mutants, without those that do not build.
func (r *runner) share(ctx context.Context, list []Mutant, together []int, edge bool, out []program) {
	for len(together) > 0 && ctx.Err() == nil {
		s := newSharing(r.read)
		for _, i := range together {
			files, err := list[i].sources(r.root)
			if err == nil {
				_, err = s.add(i+1, files)
			}
			out[i].err = err
		}
		files := s.sources()
		path, err := r.compile(ctx, files, edge)
		var wrong map[int]string
		if err != nil {
			wrong = blame(files, err.Error())
		}
		rest := together[:0]
		for _, i := range together {
			if why, bad := wrong[i+1]; bad {
				out[i].err = fmt.Errorf("it does not build: %s", why)
				continue
			}
			out[i] = program{path: path, number: i + 1, err: err}
			rest = append(rest, i)
		}
		if together = rest; len(wrong) == 0 {
			return
		}
	}
}

var (
	compileError = regexp.MustCompile(`(?m)([a-z_]+\.go):(\d+):\d+: (.*)$`)
	variant      = regexp.MustCompile(`^func (?:\(.*?\) )?\w+_(\d+)\(`)
)

// blame reports which mutants of a shared program do not compile, and why.
func blame(files map[string]string, text string) map[int]string {
	wrong := make(map[int]string)
	for _, e := range compileError.FindAllStringSubmatch(text, -1) {
		for file, source := range files {
			if strings.ReplaceAll(file, "/", "_") != e[1] {
				continue
			}
			lines := strings.Split(source, "\n")
			at, _ := strconv.Atoi(e[2])
			for at = min(at, len(lines)); at > 0; at-- {
				if f := variant.FindStringSubmatch(lines[at-1]); f != nil {
					n, _ := strconv.Atoi(f[1])
					wrong[n] = e[3]
					break
				}
			}
		}
	}
	return wrong
}

func (r *runner) read(file string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(r.root, file))
	return string(raw), err
}

// compile builds the sweep, or the worlds of test/edge, with some files changed or added.
func (r *runner) compile(ctx context.Context, files map[string]string, edge bool) (path string, err error) {
	overlay, err := r.overlay(files)
	if err != nil {
		return "", err
	}
	path = filepath.Join(filepath.Dir(overlay), "sweep")
	args := []string{"build", "-overlay", overlay, "-ldflags", "-s -w", "-o", path, "./test/mutants/sweep"}
	if edge {
		args = []string{"test", "-c", "-overlay", overlay, "-o", path, "./test/edge"}
	}
	if _, err := r.command(ctx, "go", args...); err != nil {
		return "", fmt.Errorf("it does not build: %w", err)
	}
	return path, nil
}

// overlay writes files to a new folder, with the list of them that go build takes.
func (r *runner) overlay(files map[string]string) (name string, err error) {
	dir, err := os.MkdirTemp(r.temp, "planted-")
	if err != nil {
		return "", err
	}
	replace := make(map[string]string)
	for file, source := range files {
		to := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(to, []byte(source), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(r.root, file)] = to
	}
	raw, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name = filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, raw, 0o600)
}
