package node

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

func TestClosedTasksHaveEnded(t *testing.T) {
	t.Parallel()
	owner := newTasks(t.Context())
	ended := make(chan struct{})
	owner.start("slow", func(ctx context.Context) {
		<-ctx.Done()
		time.Sleep(20 * time.Millisecond) // a close that does not wait returns before
		close(ended)
	})
	caller, stop := owner.within(t.Context())
	defer stop()
	if got := owner.names(); !slices.Equal(got, []string{"slow"}) {
		t.Errorf("%q run", got)
	}
	owner.close()
	select {
	case <-ended:
	default:
		t.Error("a task goes on")
	}
	if got := owner.names(); len(got) > 0 {
		t.Errorf("%q run", got)
	}
	if owner.start("late", func(context.Context) { t.Error("it starts") }) {
		t.Error("closed tasks begin another")
	}
	<-caller.Done()
}

// TestAPanicOfATaskEndsTheProcess: with the text and the stack of the panic. A second process of this test panics.
func TestAPanicOfATaskEndsTheProcess(t *testing.T) {
	t.Parallel()
	const child = "AWEIGH_TEST_PANIC"
	if os.Getenv(child) != "" {
		owner := newTasks(context.Background())
		owner.start("broken", func(context.Context) { panic("a broken task") })
		owner.close()
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAPanicOfATaskEndsTheProcess$")
	cmd.Env = append(os.Environ(), child+"=1")
	out, err := cmd.CombinedOutput()
	if text := string(out); !errors.As(err, new(*exec.ExitError)) || !strings.Contains(text, "panic: a broken task") || !strings.Contains(text, "tasks_test.go") {
		t.Errorf("%v:\n%s", err, text)
	}
}

// TestNoGoroutineSurvivesClose: the node works for clients, whose contexts go on, in scopes whose anchors have stopped.
// It is not parallel, as it looks at all goroutines of the process.
func TestNoGoroutineSurvivesClose(t *testing.T) {
	a, c := newHolders(t, nil)
	ctx, cancel := context.WithTimeout(context.Background(), testwait.Patience)
	defer cancel()
	for _, key := range []string{"/a", "/b/1"} {
		if r, err := c.nodes[0].Txn(ctx, putTxn(key, "first"), Once{}); err != nil || r.Code != scope.Applied {
			t.Fatal(r, err)
		}
	}
	c.delegate(ctx, "", "/b/", quorum.BFT, 0, 1, 2, 3)
	lease, _, err := c.nodes[0].root.Grant(ctx, 0, 60, Once{})
	if err != nil {
		t.Fatal(err)
	}
	o := a.observeWith(newIdentity(t), vfs.NewMem(), func(cfg *Config) { cfg.Follow = [][]byte{} })
	if v := got(t, o.Node, "/b/1", true); v != "first" {
		t.Fatalf("/b/1 is %q", v)
	}
	nodes := append(slices.Clone(c.nodes), o.Node)
	var clients sync.WaitGroup
	for _, n := range nodes {
		clients.Go(func() {
			_ = n.Watch(ctx, []byte("/"), []byte("0"), 0, func(Changes) error { return nil })
		})
	}
	testwait.Until(t, "the watch of a foreign scope", func() bool { return o.remotes.taps.Load() > 0 })
	for i := 1; i < 4; i++ {
		if err := a.end(i); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []*Node{c.nodes[0], o.Node} {
		clients.Go(func() { _, _ = n.root.renew(ctx, []int64{lease}) })
		clients.Go(func() { _, _, _ = n.Range(ctx, []byte("/b/1"), nil, scope.Range{}, true) })
		clients.Go(func() { _, _ = n.Txn(ctx, putTxn("/b/1", "second"), Once{}) })
	}
	for task, n := range map[string]*Node{
		"asking an anchor": o.Node, "polling a scope": o.Node, "watching a scope": o.Node, "keeping leases alive": c.nodes[0],
	} {
		testwait.Until(t, "a task: "+task, func() bool { return slices.Contains(n.tasks.names(), task) })
	}
	for _, n := range []*Node{c.nodes[0], o.Node} { // the other tasks end soon after the network
		n.tasks.start("slow", func(ctx context.Context) {
			<-ctx.Done()
			time.Sleep(20 * time.Millisecond) // a node that does not wait has closed before
		})
	}
	o.halt(t)
	_ = a.end(0)
	for _, n := range nodes {
		if some := n.tasks.names(); len(some) > 0 {
			t.Errorf("%s is closed, and goes on with: %q", n.Name(), some)
		}
	}
	clients.Wait()
	if ctx.Err() != nil {
		t.Error("a call ends only with its context")
	}
	testwait.For(t, func() error { // timers and contexts call functions of the node that end by themselves
		if left := stacksOfNodes(); len(left) > 0 {
			return errors.New(strings.Join(left, "\n\n"))
		}
		return nil
	})
}

// stacksOfNodes returns the stacks of goroutines that are in the code of this package, apart from its tests.
func stacksOfNodes() (some []string) {
	_, here, _, _ := runtime.Caller(0)
	buf := make([]byte, 16<<20)
	buf = buf[:runtime.Stack(buf, true)]
	for _, stack := range strings.Split(string(buf), "\n\n") {
		for line := range strings.Lines(stack) {
			file, _, _ := strings.Cut(strings.TrimSpace(line), ".go:")
			if filepath.Dir(file) == filepath.Dir(here) && !strings.HasSuffix(file, "_test") {
				some = append(some, stack)
				break
			}
		}
	}
	return some
}
