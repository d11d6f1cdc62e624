package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/aweigh/aweigh/internal/testparallel"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
)

// TestMain runs this program when the scripts start "aweigh": a process of its
// own, linked like the real one. Only the passphrases of its key files take less work.
func TestMain(m *testing.M) {
	testscript.Main(waiting{m}, map[string]func(){
		"aweigh": func() {
			keyWork = 10
			os.Exit(run())
		},
		"motioned":   motioned,
		"witnessing": witnessing,
	})
}

// waiting runs the tests, and not the commands of the scripts, with the flags of tests.
type waiting struct{ *testing.M }

func (m waiting) Run() int {
	testparallel.Waiting()
	return m.M.Run()
}

// TestStories runs what users do, from testdata/script. In them
//
//	[!] code N aweigh …    runs a command that must exit with N
//	await FILE TEXT         waits until a file holds a text
//	motioned FILE           makes the files of a motion for tests (see there)
//	witnessing NAME         serves a witness, and prints its line of a policy
//	[long] …                holds with AWEIGH_TESTS=all, and if -run names tests
func TestStories(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("XDG_STATE_HOME", e.WorkDir+"/state")
			e.Setenv("XDG_RUNTIME_DIR", e.WorkDir+"/run")
			e.Setenv("XDG_CONFIG_HOME", e.WorkDir+"/config")
			e.Setenv("HOME", e.WorkDir)
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name != "long" {
				return false, fmt.Errorf("no condition %s", name)
			}
			return testshort.Long(), nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":  code,
			"await": await,
		},
	})
}

// code N command… runs a command and wants that exit code. Its output stands in
// the files out and err afterwards.
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N command…")
	}
	var out, errs bytes.Buffer
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), &out, &errs
	cmd.Env = environment(ts)
	program, err := lookPath(ts, args[1])
	ts.Check(err)
	cmd.Path, cmd.Err = program, nil
	err = cmd.Run()
	ts.Check(os.WriteFile(ts.MkAbs("out"), out.Bytes(), 0o644))
	ts.Check(os.WriteFile(ts.MkAbs("err"), errs.Bytes(), 0o644))
	got := cmd.ProcessState.ExitCode()
	if fmt.Sprint(got) != args[0] {
		ts.Fatalf("exit code %d, want %s (%v)\n%s%s", got, args[0], err, out.String(), errs.String())
	}
}

// lookPath finds a program in the script's own PATH.
func lookPath(ts *testscript.TestScript, name string) (string, error) {
	for _, d := range strings.Split(ts.Getenv("PATH"), string(os.PathListSeparator)) {
		if p := d + "/" + name; isProgram(p) {
			return p, nil
		}
	}
	return "", fmt.Errorf("no program %s", name)
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

func environment(ts *testscript.TestScript) (env []string) {
	for _, k := range []string{"PATH", "HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "TMPDIR", "SSH_AUTH_SOCK"} {
		env = append(env, k+"="+ts.Getenv(k))
	}
	return env
}

// await FILE TEXT waits until a file, which a background command writes, holds
// a text.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: await FILE TEXT")
	}
	var held []byte
	for deadline := time.Now().Add(testwait.Patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) { // it polls a file
		held, _ = os.ReadFile(ts.MkAbs(args[0]))
		if bytes.Contains(held, []byte(args[1])) {
			return
		}
	}
	ts.Fatalf("%s does not say %q:\n%s", args[0], args[1], held)
}
