package node

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// tasks owns goroutines that outlive the call that starts them, so that closing a node waits for all of them. Only
// start starts goroutines in this package; a call that needs several at once has a sync.WaitGroup, and waits for it
// before it returns. A panic in a task ends the process, with its stack, as in any other goroutine.
type tasks struct {
	ctx  context.Context // ends with close
	stop context.CancelFunc
	all  sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	running map[string]int // by name
}

// newTasks returns tasks whose contexts end with ctx, or with close.
func newTasks(ctx context.Context) *tasks {
	t := &tasks{running: make(map[string]int)}
	t.ctx, t.stop = context.WithCancel(ctx)
	return t
}

// start calls f in a goroutine. It reports whether it does so: once close was called, it does not.
func (t *tasks) start(name string, f func(ctx context.Context)) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.running[name]++
	t.all.Go(func() {
		defer t.ended(name)
		f(t.ctx)
	})
	return true
}

func (t *tasks) ended(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running[name]--; t.running[name] == 0 {
		delete(t.running, name)
	}
}

// within returns a context that ends with ctx, or with the tasks' own: for a task that works for a caller.
func (t *tasks) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(t.ctx, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// names returns the names of the tasks that run.
func (t *tasks) names() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.running))
}

// close ends the contexts of the tasks, and waits for the tasks.
func (t *tasks) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.stop()
	t.all.Wait()
}
