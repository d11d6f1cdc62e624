package node

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
)

// AnswerBudget is the budget in bytes for the answers to ranges that a node reads and sends, in all scopes and for all
// APIs. An answer takes its part while it is read, and returns it once the client has taken the answer. A read that
// finds no room waits.
//
// One answer at a time may exceed the budget, so that each range can be read, and so that reads which wait for each
// other's part go on.
type AnswerBudget struct {
	limit int64
	wait  time.Duration // of a read without a deadline
	slow  time.Duration // after which a client that takes nothing is cut off, if reads wait

	mu       sync.Mutex
	used     int64   // by all but large
	large    *Answer // that may exceed the budget, nil: none does
	out      map[*Answer]struct{}
	returned chan struct{}
	waited   uint64
	cut      uint64
}

const (
	// defaultAnswerMemory is the budget of a node for its answers to ranges, in bytes.
	defaultAnswerMemory = 128 << 20

	answerFree = 64 << 10 // bytes of each answer that are not counted, so that small reads never wait
	answerStep = 1 << 20  // bytes that an answer takes at once
	pairOver   = referral.PairBytes
)

// NewAnswerBudget returns a budget of bytes. Reads without a deadline wait for it at most for wait; while reads wait, a
// client that takes nothing of its answer for slow is cut off.
func NewAnswerBudget(limit int64, wait, slow time.Duration) *AnswerBudget {
	return &AnswerBudget{limit: limit, wait: wait, slow: slow, out: make(map[*Answer]struct{}), returned: make(chan struct{})}
}

// Answers returns the budget of the node for answers to ranges.
func (n *Node) Answers() *AnswerBudget { return n.answers }

// Counts returns what the answers hold now. Waited counts the reads that had to wait for room.
func (b *AnswerBudget) Counts() MemoryCounts {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := MemoryCounts{Limit: b.limit, Used: b.used, Waited: b.waited, Cut: b.cut}
	if b.large != nil {
		c.Used += b.large.held
	}
	return c
}

// Answer is one answer. The functions of a node that read ranges count what they read for the answer in their context.
type Answer struct {
	of      *AnswerBudget
	weight  int64 // bytes in memory for each byte that is read
	most    int64 // bytes that may be read, 0: any number
	tooMuch error // if there are more
	cut     func()

	read, counted int64 // used by the reader alone

	// Under the lock of the budget:
	held    int64
	over    bool      // it was returned
	sending bool      // all is read
	moved   time.Time // when the client took something last
}

// New begins an answer of which each byte that is read takes weight bytes of memory. With most > 0, reading more fails
// with tooMuch. cut disconnects the client, and may be nil. The caller calls Return.
func (b *AnswerBudget) New(weight, most int64, tooMuch error, cut func()) *Answer {
	return &Answer{of: b, weight: weight, most: most, tooMuch: tooMuch, cut: cut}
}

type answerKey struct{}

// In returns a context in which reads count for the answer.
func (a *Answer) In(ctx context.Context) context.Context {
	return context.WithValue(ctx, answerKey{}, a)
}

// Until returns the answer's part when ctx ends; if the answer holds none, it does nothing.
func (a *Answer) Until(ctx context.Context) {
	if a.Large() {
		context.AfterFunc(ctx, a.Return)
	}
}

// answerIn returns what counts the bytes that are read in a context, nil if nothing does.
func answerIn(ctx context.Context) func(bytes int) error {
	a, ok := ctx.Value(answerKey{}).(*Answer)
	if !ok {
		return nil
	}
	return func(bytes int) error { return a.take(ctx, bytes+pairOver) }
}

// rereading returns what to call before each try of a read: what the tries before read does not count for the answer of
// a context. The answer keeps the part of the budget that it took.
func rereading(ctx context.Context) (again func()) {
	a, ok := ctx.Value(answerKey{}).(*Answer)
	if !ok {
		return func() {}
	}
	read := a.read
	return func() { a.read = read }
}

// takenBy counts the pairs in the responses of a transaction that was read.
func takenBy(take func(bytes int) error, responses []scope.Response) error {
	r := reading{take: take}
	for i := range responses {
		if err := r.taken(responses[i].Range.Kvs); err != nil {
			return err
		}
	}
	return nil
}

// take counts bytes that were read, and waits for room. Errors wrap ErrBusy, or are those of ctx.
func (a *Answer) take(ctx context.Context, bytes int) error {
	a.read += int64(bytes)
	if a.most > 0 && a.read > a.most {
		return a.tooMuch
	}
	need := (a.read - answerFree) * a.weight
	if need <= a.counted {
		return nil
	}
	need += answerStep - 1
	need -= need % answerStep
	if err := a.of.reserve(ctx, a, need-a.counted); err != nil {
		return err
	}
	a.counted = need
	return nil
}

// Large reports whether the answer holds a part of the budget, which Return gives back.
func (a *Answer) Large() bool {
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	return a.held > 0
}

// Moved notes that the answer is complete, and that its client took something.
func (a *Answer) Moved() {
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	a.sending, a.moved = true, time.Now()
}

// Again returns the part of the answer, and begins its next part.
func (a *Answer) Again() {
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	if !a.over {
		a.of.free(a)
		a.read, a.counted, a.sending = 0, 0, false
	}
}

// Return ends the answer. Further calls have no effect.
func (a *Answer) Return() {
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	if !a.over {
		a.over = true
		a.of.free(a)
	}
}

// free takes an answer's part back, and wakes the reads that wait. The caller holds mu.
func (b *AnswerBudget) free(a *Answer) {
	if a.held == 0 && b.large != a {
		return
	}
	if b.large == a {
		b.large = nil
	} else {
		b.used -= a.held
	}
	a.held = 0
	delete(b.out, a)
	close(b.returned)
	b.returned = make(chan struct{})
}

// room gives bytes to an answer if there is room. The caller holds mu.
func (b *AnswerBudget) room(a *Answer, bytes int64) bool {
	switch {
	case b.large == a:
	case b.used+bytes <= b.limit:
		b.used += bytes
	case b.large != nil:
		return false
	default:
		b.large = a
		b.used -= a.held
	}
	a.held += bytes
	b.out[a] = struct{}{}
	return true
}

// reserve gives bytes to an answer, once there is room.
func (b *AnswerBudget) reserve(ctx context.Context, a *Answer, bytes int64) error {
	var tick *time.Ticker
	var late <-chan time.Time
	for {
		b.mu.Lock()
		if a.over {
			b.mu.Unlock()
			return context.Canceled // its client is gone
		}
		if b.room(a, bytes) {
			b.mu.Unlock()
			return nil
		}
		if tick == nil {
			b.waited++
			wait := b.wait
			if at, ok := ctx.Deadline(); ok { // the rest of its time is for the error
				wait = time.Until(at) * 3 / 4
			}
			timer := time.NewTimer(wait)
			defer timer.Stop()
			late = timer.C
			tick = time.NewTicker(max(b.slow/10, time.Millisecond))
			defer tick.Stop()
		}
		returned, used := b.returned, b.used
		b.mu.Unlock()
		select {
		case <-returned:
		case now := <-tick.C:
			b.cutSlow(now)
		case <-late:
			return fmt.Errorf("%w: answers to ranges hold %d bytes of memory at this node; read in pages, or try again", machine.ErrBusy, used)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// cutSlow ends the clients that for long took nothing of their answers.
func (b *AnswerBudget) cutSlow(now time.Time) {
	var slow []*Answer
	b.mu.Lock()
	for a := range b.out { // order-free: each alone
		if a.sending && a.cut != nil && now.Sub(a.moved) > b.slow {
			b.cut++
			a.sending = false // it is cut once
			slow = append(slow, a)
		}
	}
	b.mu.Unlock()
	for _, a := range slow {
		a.cut()
		a.Return()
	}
}
