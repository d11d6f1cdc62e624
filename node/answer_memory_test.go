package node

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// TestAnswersShareABudget: reads wait for room, one of them may exceed the budget, small ones take none of it, and a
// read that finds no room in time is refused as busy.
func TestAnswersShareABudget(t *testing.T) {
	t.Parallel()
	const limit = 4 << 20
	b := NewAnswerBudget(limit, 50*time.Millisecond, time.Hour)
	ctx := t.Context()
	read := func(a *Answer, bytes int) error { return answerIn(a.In(ctx))(bytes) }
	first, large, third, small := b.New(1, 0, nil, nil), b.New(1, 0, nil, nil), b.New(1, 0, nil, nil), b.New(1, 0, nil, nil)
	if err := errors.Join(read(first, 4<<20), read(large, 2*limit), read(large, 2*limit), read(small, answerFree/2)); err != nil {
		t.Fatal(err)
	}
	if small.Large() || !large.Large() {
		t.Error("a small answer holds a part of the budget, or a large one none")
	}
	if err := read(third, 1<<20); !errors.Is(err, machine.ErrBusy) {
		t.Errorf("without room: %v", err)
	}
	short, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if err := answerIn(third.In(short))(1 << 20); !errors.Is(err, machine.ErrBusy) || short.Err() != nil {
		t.Errorf("without room, with a deadline: %v, and its time %v", err, short.Err())
	}
	b.wait = time.Minute
	done := make(chan error, 1)
	go func() { done <- read(third, 1<<20) }()
	testwait.Until(t, "it waits", func() bool { return b.Counts().Waited == 3 })
	first.Return()
	if err := <-done; err != nil {
		t.Errorf("with room: %v", err)
	}
	for _, a := range []*Answer{first, large, third, small} {
		a.Return()
		a.Return()
	}
	if c := b.Counts(); c.Used != 0 {
		t.Errorf("%d bytes are held after all answers were returned", c.Used)
	}
	if err := read(large, 8*limit); err == nil {
		t.Error("an answer was returned, and holds more")
	}
	tooMuch := errors.New("too much")
	if err := read(b.New(1, 1<<20, tooMuch, nil), 2<<20); !errors.Is(err, tooMuch) {
		t.Errorf("above its own bound: %v", err)
	}
}

// TestAnswersOfSlowClientsAreCut, while another read waits for their part.
func TestAnswersOfSlowClientsAreCut(t *testing.T) {
	b := NewAnswerBudget(1<<20, time.Minute, 10*time.Millisecond)
	cut := make(chan struct{})
	slow := b.New(1, 0, nil, func() { close(cut) })
	if err := answerIn(slow.In(t.Context()))(1 << 20); err != nil {
		t.Fatal(err)
	}
	if err := answerIn(b.New(1, 0, nil, nil).In(t.Context()))(2 << 20); err != nil { // the one that may exceed the budget
		t.Fatal(err)
	}
	slow.Moved() // it is complete, and its client takes no more
	if err := answerIn(b.New(1, 0, nil, nil).In(t.Context()))(1 << 20); err != nil {
		t.Fatal(err)
	}
	select {
	case <-cut:
	default:
		t.Error("the client is connected")
	}
	if c := b.Counts(); c.Cut != 1 {
		t.Errorf("%d clients were cut", c.Cut)
	}
}

// TestARangeThatIsReadAgainCountsOnce: keys of a range are delegated while it is read.
func TestARangeThatIsReadAgainCountsOnce(t *testing.T) {
	c := startCluster(t, 1, quorum.BFT)
	n := c.nodes[0]
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := n.Txn(ctx, putTxn("/a", strings.Repeat("v", 1000)), Once{}); err != nil {
		t.Fatal(err)
	}
	c.delegate(ctx, "", "/b/", quorum.BFT, 0)
	const once = int64(1000 + 2*pairOver + len("/a"))
	small := n.Answers().New(1, 0, nil, nil)
	given := n.root.given.Swap(&scope.Territory{}) // the node has not taken note of it yet
	time.AfterFunc(20*time.Millisecond, func() { n.root.given.Store(given) })
	if res, _, err := n.Range(small.In(ctx), []byte("/a"), []byte("/c"), scope.Range{}, true); err != nil || len(res.Kvs) != 1 || small.read > once {
		t.Errorf("%d keys, and %d bytes were counted, %v", len(res.Kvs), small.read, err)
	}

	a, tries := n.Answers().New(1, 5<<20, errors.New("too much"), nil), 0
	in := a.In(ctx)
	err := errors.Join(answerIn(in)(1<<20), n.withHeld(in, referral.Keys([]byte("/a")), func(*Replica) error {
		if tries++; tries < 4 {
			return cmp.Or(answerIn(in)(2<<20), error(scope.ErrElsewhere))
		}
		return answerIn(in)(2 << 20)
	}))
	if err != nil || a.counted > 4<<20 {
		t.Errorf("after %d tries %d bytes are counted, %v", tries, a.counted, err)
	}
	a.Return()
}
