package main

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Of one message at one level a burst is logged, and then one line per pause:
// a peer that sends nonsense must not fill the disk. Errors and debug lines
// always pass: the former are few and urgent, the latter were requested.
const (
	warnBurst  = 20
	infoBurst  = 300 // more than a roster has anchors: all of them may come at once
	burstPause = 10 * time.Second
	// maxMessages bounds the messages told apart; the rest share their fate.
	maxMessages = 256
)

// calm is a handler that holds back repeated lines, and adds their number to
// the next line that passes.
type calm struct {
	slog.Handler
	repeats *repeats
}

func calmed(h slog.Handler) calm { return calm{h, &repeats{of: make(map[said]*allowance)}} }

// Handle implements slog.Handler.
func (c calm) Handle(ctx context.Context, r slog.Record) error {
	held, ok := c.repeats.take(r.Level, r.Message, r.Time)
	if !ok {
		return nil
	}
	if held > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Uint64("held-back", held))
	}
	return c.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler. Nodes that share a process share no limits.
func (c calm) WithAttrs(attrs []slog.Attr) slog.Handler { return calmed(c.Handler.WithAttrs(attrs)) }

// WithGroup implements slog.Handler.
func (c calm) WithGroup(name string) slog.Handler { return calmed(c.Handler.WithGroup(name)) }

type said struct {
	level   slog.Level
	message string
}

// allowance is the rest of a burst.
type allowance struct {
	left int
	next time.Time // when one more line is allowed
	held uint64
}

type repeats struct {
	mu sync.Mutex
	of map[said]*allowance
}

// take reports whether a line may pass, and how many like it were held back
// since the last that did.
func (r *repeats) take(level slog.Level, message string, now time.Time) (held uint64, ok bool) {
	if level < slog.LevelInfo || level >= slog.LevelError {
		return 0, true
	}
	burst := infoBurst
	if level >= slog.LevelWarn {
		burst = warnBurst
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	key := said{level, message}
	if r.of[key] == nil && len(r.of) >= maxMessages {
		key = said{level: level}
	}
	a := r.of[key]
	if a == nil {
		a = &allowance{left: burst}
		r.of[key] = a
	}
	for a.left < burst && !now.Before(a.next) && !a.next.IsZero() { // one for each pause that went by
		a.left++
		a.next = a.next.Add(burstPause)
	}
	if a.left == 0 {
		a.held++
		return 0, false
	}
	if a.left == burst {
		a.next = now.Add(burstPause)
	}
	a.left--
	held, a.held = a.held, 0
	return held, true
}
