package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// patience is how long a client of a workload waits for one answer.
const patience = 4 * time.Second

// work lets clients work on a few keys, which they all want, until stop is
// closed. The clients share the nodes out; every second one knows them all and
// goes elsewhere when its own is away, the others wait for it.
func (h *history) work(n *network, rng *rand.Rand, clients, keys int, stop <-chan struct{}) *sync.WaitGroup {
	return h.workAs(0, n, rng, clients, keys, stop)
}

// workAs is work for clients whose numbers begin with first.
func (h *history) workAs(first int, n *network, rng *rand.Rand, clients, keys int, stop <-chan struct{}) *sync.WaitGroup {
	var all sync.WaitGroup
	for i := range clients {
		mine := i % len(n.nodes)
		c := n.dial(mine)
		if i/len(n.nodes)%2 == 1 {
			c = n.dial(mine, (mine+1)%len(n.nodes), (mine+2)%len(n.nodes), (mine+3)%len(n.nodes))
		}
		w := &worker{
			history: h, caller: native{c}, id: first + i, rng: rand.New(rand.NewPCG(rng.Uint64(), rng.Uint64())),
			keys: keys, prefix: "/key/", seen: make(map[string]string),
		}
		all.Go(func() { w.run(stop) })
	}
	return &all
}

// worker is one client that works.
type worker struct {
	*history
	caller caller
	id     int
	rng    *rand.Rand
	keys   int
	prefix string // of its keys
	count  int
	seen   map[string]string // the last value that it knows of
}

func (w *worker) run(stop <-chan struct{}) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-stop:
			return
		case <-pause.C:
		}
		op := w.next()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		op = w.doBy(ctx, w.caller, op)
		cancel()
		wait := time.Duration(w.rng.Int64N(int64(4 * time.Millisecond)))
		if op.fate != done {
			wait += 50 * time.Millisecond // its node is away
		}
		switch {
		case op.fate != done:
		case op.kind == get:
			w.seen[op.key] = op.read
		case op.kind == put || op.held:
			w.seen[op.key] = op.value
		case op.kind == del:
			w.seen[op.key] = ""
		}
		pause.Reset(wait)
	}
}

// next draws an operation.
func (w *worker) next() operation {
	w.count++
	op := operation{client: w.id, key: fmt.Sprintf("%s%d", w.prefix, w.rng.IntN(w.keys))}
	switch d := w.rng.IntN(100); {
	case d < 35:
		op.kind = get
	case d < 65:
		op.kind = put
	case d < 92:
		op.kind, op.old = swap, w.seen[op.key]
	default:
		op.kind = del
	}
	if op.kind == put || op.kind == swap {
		op.value = fmt.Sprintf("%d.%d", w.id, w.count)
	}
	return op
}

// verify checks a history that has ended, when all nodes run again: the nodes
// agree on the state and on all that led to it, and the clients were told the
// truth.
func (h *history) verify(t *testing.T, n *network) {
	t.Helper()
	began := time.Now()
	// A write of every node, so that each has taken part in what follows.
	for i := range n.nodes {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		if op := h.do(ctx, n.dial(i), operation{client: 1000 + i, kind: put, key: "/last", value: fmt.Sprintf("last %d", i)}); op.fate != done {
			t.Errorf("%s takes no write when all is well again: %v", n.nodes[i].name, op.why)
		}
		cancel()
	}
	state := n.agreed(30 * time.Second)
	agreed := time.Since(began)

	var all []change
	for i := range n.nodes {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		told, err := changes(ctx, n.dial(i), state.Header.Revision)
		cancel()
		if err != nil {
			t.Fatalf("watching %s: %v", n.nodes[i].name, err)
		}
		if i > 0 && !slices.Equal(told, all) {
			t.Errorf("%s tells another history than %s", n.nodes[i].name, n.nodes[0].name)
		}
		all = told
	}
	report := func(what string, wrong []string) {
		for i, line := range wrong {
			if i == 20 {
				t.Errorf("%s: %d more", what, len(wrong)-i)
				break
			}
			t.Errorf("%s: %s", what, line)
		}
	}
	report("kept", kept(h.ops, all))
	report("in real time", inRealTime(h.ops))
	checking := time.Now()
	result, info := linearizable(h.ops, all, 2*time.Minute)
	if result != porcupine.Ok {
		picture := filepath.Join(n.dir, "history.html")
		if f, err := os.Create(picture); err == nil {
			_ = porcupine.Visualize(register, info, f)
			_ = f.Close()
		}
		t.Errorf("linearizable: %s; see %s", result, picture)
	}
	t.Logf("%s; height %d, revision %d, agreed after %s; checked in %s",
		h.summary(), state.Header.Height, state.Header.Revision, agreed.Round(time.Millisecond), time.Since(checking).Round(time.Millisecond))
}

// summary is what was done, and how it went.
func (h *history) summary() string {
	var fates [3]int
	var kinds [4]int
	var times []time.Duration
	for _, op := range h.ops {
		fates[op.fate]++
		if op.fate == done {
			kinds[op.kind]++
			times = append(times, op.answer-op.call)
		}
	}
	slices.Sort(times)
	at := func(percent int) time.Duration {
		if len(times) == 0 {
			return 0
		}
		return times[(len(times)-1)*percent/100].Round(100 * time.Microsecond)
	}
	return fmt.Sprintf("%d operations: %d done (%d gets, %d puts, %d swaps, %d deletes), %d refused, %d unknown; p50 %s, p99 %s, longest %s; at most %s without a write, until %.3f s",
		len(h.ops), fates[done], kinds[get], kinds[put], kinds[swap], kinds[del], fates[refused], fates[unknown],
		at(50), at(99), at(100), h.gap.Round(time.Millisecond), h.gapAt.Seconds())
}
