package etcdcompat

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestCommonTestsOfEtcd runs etcd's own tests of its API, with etcdctl, on networks of
// one and of three nodes, each test in a process and on networks of its own. All must
// pass but those in common/exceptions.txt, and those must fail, and say why.
func TestCommonTestsOfEtcd(t *testing.T) {
	ctl := os.Getenv("AWEIGH_ETCDCTL")
	if ctl == "" {
		t.Skip(`AWEIGH_ETCDCTL does not name a binary of etcdctl 3.6; "scripts/etcd etcdctl" builds one and prints its path`)
	}
	s := buildCommonTests(t, ctl)
	exceptions := readExceptions(t, filepath.Join("common", "exceptions.txt"))
	tests := s.list(t)
	for _, e := range exceptions {
		if top, _, _ := strings.Cut(e.test, "/"); !slices.Contains(tests, top) {
			t.Errorf("common/exceptions.txt names %s, and etcd has no such test", e.test)
		}
	}
	for _, name := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			judge(t, name, s.run(t, name), exceptions.of(name))
		})
	}
}

// judge holds the results of a test against what of it is expected to fail. The test is
// skipped if that is all of it.
func judge(t *testing.T, name string, r *results, exceptions exceptions) {
	t.Helper()
	ended := r.ended()
	if len(ended) == 0 {
		t.Fatalf("it did not run:\n%s", r.output[""])
	}
	excepted := 0
	for _, test := range ended {
		e := exceptions.find(test)
		switch passed := r.action[test] == "pass"; {
		case e == nil && !passed:
			t.Errorf("%s: %s\n%s", test, r.action[test], r.output[test])
		case e == nil:
		case passed:
			t.Errorf("%s passes, and common/exceptions.txt says that it does not: %s", test, e.reason)
		case !strings.Contains(r.output[test].String(), e.says):
			t.Errorf("%s: %s, and not with %q as common/exceptions.txt says\n%s", test, r.action[test], e.says, r.output[test])
		default:
			excepted++
		}
	}
	for _, e := range exceptions {
		if !slices.ContainsFunc(ended, e.covers) {
			t.Errorf("common/exceptions.txt names %s, and no such test ran", e.test)
		}
	}
	if excepted == len(ended) && !t.Failed() {
		t.Skipf("%s does not pass, as expected: %s", name, exceptions[0].reason)
	}
}

// commonTests are etcd's tests as a program.
type commonTests struct {
	program, dir string   // where they lie in etcd's repository: they look for files from there
	flags        []string // all but those of package testing
	env          []string
}

// buildCommonTests compiles them as part of package common, where what etcd compiles
// for its own runners is left out.
func buildCommonTests(t *testing.T, ctl string) *commonTests {
	t.Helper()
	output := func(args ...string) []byte {
		t.Helper()
		var errs bytes.Buffer
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s%s", cmd, err, out, &errs)
		}
		return out
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(output("mod", "download", "-json", "go.etcd.io/etcd/tests/v3"), &module); err != nil {
		t.Fatal(err)
	}
	program, err := aweighBinary()
	if err != nil {
		t.Fatal(err)
	}
	paths := []string{program, ctl, "common"}
	for i := range paths {
		if paths[i], err = filepath.Abs(paths[i]); err != nil {
			t.Fatal(err)
		}
	}
	program, ctl, here := paths[0], paths[1], paths[2]

	s := &commonTests{program: filepath.Join(t.TempDir(), "common.test"), dir: filepath.Join(module.Dir, "common")}
	s.flags = []string{"-bin-dir", filepath.Dir(ctl)}
	s.env = append(os.Environ(), "AWEIGH_PROGRAM="+program)
	files, err := filepath.Glob(filepath.Join(s.dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	overlay := struct{ Replace map[string]string }{make(map[string]string)}
	for _, f := range files {
		switch name := filepath.Base(f); name {
		case "e2e_test.go", "integration_test.go", "unit_test.go":
		default:
			overlay.Replace[filepath.Join(here, name)] = f
		}
	}
	raw, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	output("test", "-c", "-tags", "etcdcommon", "-overlay", file, "-o", s.program, "./common")
	return s
}

// list is the names of all tests.
func (s *commonTests) list(t *testing.T) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), s.program, append(s.flags, "-test.list", ".")...)
	cmd.Dir, cmd.Env = s.dir, s.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return strings.Fields(string(out))
}

// results are what became of one test, and of those that it consists of.
type results struct {
	action map[string]string        // pass, fail or skip
	output map[string]*bytes.Buffer // "" is that of the process
}

// run runs one test.
func (s *commonTests) run(t *testing.T, name string) *results {
	t.Helper()
	args := append([]string{"tool", "test2json", s.program}, s.flags...)
	cmd := exec.CommandContext(t.Context(), "go", append(args, "-test.v=test2json", "-test.timeout=5m", "-test.run=^"+name+"$")...)
	cmd.Dir, cmd.Env = s.dir, s.env
	out, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", cmd, err)
	}
	r := &results{make(map[string]string), make(map[string]*bytes.Buffer)}
	for line := range bytes.Lines(out) {
		var event struct{ Action, Test, Output string }
		if err := json.Unmarshal(line, &event); err != nil {
			t.Fatalf("%s: %v: %s", cmd, err, line)
		}
		switch event.Action {
		case "pass", "fail", "skip":
			r.action[event.Test] = event.Action
		case "output":
			if r.output[event.Test] == nil {
				r.output[event.Test] = new(bytes.Buffer)
			}
			r.output[event.Test].WriteString(event.Output)
		}
	}
	return r
}

// ended are the tests that consist of no others, and those that failed though none
// of what they consist of did.
func (r *results) ended() (tests []string) {
	for test, action := range r.action {
		parts, failed := 0, false
		for other := range r.action {
			if strings.HasPrefix(other, test+"/") {
				parts++
				failed = failed || r.action[other] == "fail"
			}
		}
		if test != "" && (parts == 0 || action == "fail" && !failed) {
			tests = append(tests, test)
		}
	}
	slices.Sort(tests)
	return tests
}
