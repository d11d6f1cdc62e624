package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestLogsHoldBackWhatRepeats(t *testing.T) {
	r := calmed(slog.DiscardHandler).repeats
	now := time.Unix(1, 0)
	take := func(level slog.Level, message string, times int) (passed int) {
		for range times {
			if _, ok := r.take(level, message, now); ok {
				passed++
			}
		}
		return passed
	}
	for _, c := range []struct {
		level slog.Level
		want  int
	}{{slog.LevelDebug, 1000}, {slog.LevelInfo, infoBurst}, {slog.LevelWarn, warnBurst}, {slog.LevelError, 1000}} {
		if got := take(c.level, "x", 1000); got != c.want {
			t.Errorf("%d of 1000 lines pass at %s, not %d", got, c.level, c.want)
		}
	}
	if got := take(slog.LevelWarn, "y", 1); got != 1 {
		t.Error("one message holds back another")
	}
	now = now.Add(burstPause)
	if held, ok := r.take(slog.LevelWarn, "x", now); !ok || held != 1000-warnBurst {
		t.Errorf("after a pause: %v, %d held back", ok, held)
	}
	if take(slog.LevelWarn, "x", 10) != 0 {
		t.Error("more than one line passes after one pause")
	}
	now = now.Add(time.Hour)
	if got := take(slog.LevelWarn, "x", 1000); got != warnBurst {
		t.Errorf("%d lines pass after an hour of silence", got)
	}
	for i := range 10 * maxMessages {
		take(slog.LevelWarn, fmt.Sprint(i), 1)
	}
	if len(r.of) > maxMessages+2 {
		t.Errorf("%d messages are remembered", len(r.of))
	}
}

func TestLogsSayHowMuchTheyHeldBack(t *testing.T) {
	var out bytes.Buffer
	log, err := logger(&out, "info", "text")
	if err != nil {
		t.Fatal(err)
	}
	for range warnBurst + 5 {
		log.Warn("nonsense came")
	}
	if got := strings.Count(out.String(), "nonsense came"); got != warnBurst {
		t.Errorf("%d lines passed", got)
	}
	out.Reset()
	log.With("node", "other").Warn("nonsense came")
	if out.Len() == 0 {
		t.Error("one node holds back what another says")
	}
}

func TestDurationsInLogsHaveAUnit(t *testing.T) {
	for format, want := range map[string]string{"json": `"took":"1.5s"`, "text": "took=1.5s"} {
		var out bytes.Buffer
		l, err := logger(&out, "info", format)
		if err != nil {
			t.Fatal(err)
		}
		if l.Info("done", "took", 1500*time.Millisecond); !strings.Contains(out.String(), want) {
			t.Errorf("%s: %s", format, out.String())
		}
	}
}
