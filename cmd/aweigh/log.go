package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
)

// logger writes to w.
func logger(w io.Writer, level, format string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("%w: log-level is debug, info, warn or error, not %q", errUsage, level)
	}
	o := &slog.HandlerOptions{Level: l, ReplaceAttr: united}
	switch format {
	case "text":
		return slog.New(quiet{calmed(slog.NewTextHandler(w, o))}), nil
	case "json":
		return slog.New(quiet{calmed(slog.NewJSONHandler(w, o))}), nil
	}
	return nil, fmt.Errorf("%w: log-format is text or json, not %q", errUsage, format)
}

// united writes durations with their unit in every format, as in 1.5s: bare numbers
// in JSON would be nanoseconds, without a unit.
func united(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

// quiet passes on all records of this module. Libraries get the same logger: of
// their records it passes on warnings and errors alone.
type quiet struct{ slog.Handler }

// Handle implements slog.Handler.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn && foreign(r.PC) {
		return nil
	}
	return q.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }

// WithGroup implements slog.Handler.
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }

// lasting passes on records while a context lasts, and errors alone after that.
type lasting struct {
	slog.Handler
	ctx context.Context
}

// Handle implements slog.Handler.
func (l lasting) Handle(ctx context.Context, r slog.Record) error {
	if l.ctx.Err() != nil && r.Level < slog.LevelError {
		return nil
	}
	return l.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (l lasting) WithAttrs(attrs []slog.Attr) slog.Handler {
	return lasting{l.Handler.WithAttrs(attrs), l.ctx}
}

// WithGroup implements slog.Handler.
func (l lasting) WithGroup(name string) slog.Handler {
	return lasting{l.Handler.WithGroup(name), l.ctx}
}

// foreign reports whether code at pc belongs to another module.
func foreign(pc uintptr) bool {
	f, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	return f.Function != "" && !strings.HasPrefix(f.Function, "github.com/aweigh/aweigh") && !strings.HasPrefix(f.Function, "main.")
}
