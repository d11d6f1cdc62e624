package e2e

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testparallel"
)

var (
	length = flag.Duration("e2e.for", 4*time.Second, "how long the tests that kill nodes disturb the network; from 20s on, other tests have more rounds, too")
	seed   = flag.Uint64("e2e.seed", 0, "of what tests draw; 0 draws one. Real processes do not replay: it is a hint")
	level  = flag.String("e2e.log", "info", "log level of the nodes")
	keep   = flag.Bool("e2e.keep", false, "keep the directories of tests that pass, too")
)

// thorough reports whether the tests were asked to run long.
func thorough() bool { return *length >= 20*time.Second }

// drawn is the randomness of a test, by the seed of the command line or one that it logs.
// Tests with one seed have streams of their own.
func drawn(t *testing.T, stream uint64) *rand.Rand {
	t.Helper()
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("-e2e.seed=%d", s)
	return rand.New(rand.NewPCG(s, stream))
}

// program is the path of the program under test.
var program string

func TestMain(m *testing.M) {
	testparallel.Waiting()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if testing.Short() || !processes {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "aweigh-e2e-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "aweigh")
	build := exec.Command("go", "build", "-o", program, "github.com/aweigh/aweigh/cmd/aweigh")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "the program does not build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// needsProcesses skips a test where it cannot run processes, or shall not.
func needsProcesses(t *testing.T) {
	t.Helper()
	if !processes {
		t.Skipf("signals that kill and pause processes are needed, and %s has none", runtime.GOOS)
	}
	if testing.Short() {
		t.Skip("starts processes and takes a while")
	}
}

// pollEvery is how often a condition is looked at.
const pollEvery = 20 * time.Millisecond

// until waits until check has nothing to object to.
func until(t *testing.T, limit time.Duration, what string, check func(context.Context) error) {
	t.Helper()
	if err := eventually(limit, check); err != nil {
		t.Fatalf("%s: not within %s: %v", what, limit, err)
	}
}

// eventually is until for other goroutines than the test's own.
func eventually(limit time.Duration, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return last
		case <-tick.C:
		}
	}
}
