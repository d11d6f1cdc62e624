package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/backup"
	"github.com/aweigh/aweigh/internal/config"
	"github.com/aweigh/aweigh/internal/running"
	"github.com/aweigh/aweigh/store"
)

func TestMessagesNameNoPackages(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("%w: %w", errUsage, errors.New("show: the output is table")), "the output is table"},
		{fmt.Errorf("devnet: node3: %w", errors.New("store: directory is in use")), "node3: directory is in use"},
		{running.ErrNone, `no node runs here; start one with "aweigh devnet", or name one with --api HOST:PORT`},
		{errors.Join(errors.New("client: a"), errors.New("client: b")), "a\nb"},
		{fmt.Errorf("%w: c.yaml:1: x", config.ErrConfig), "invalid settings: c.yaml:1: x"},
		{errors.New("a key of the client: store"), "a key of the client: store"},
		{errors.New("evil \x1b[31m"), `evil \x1b[31m`},
		{errors.New("unknown command \"x\"\n\nDid you mean this?\n\tstatus\n"), "unknown command \"x\"\n\nDid you mean this?\n  status"},
		{&client.Gone{Next: 7, Cause: client.ErrUnreachable}, "the node went away; continue with --rev 7"},
	} {
		if got := message(c.err); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestLogsEndWithTheirContext(t *testing.T) {
	var out bytes.Buffer
	h, err := logger(&out, "debug", "text")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	log := slog.New(lasting{h.Handler(), ctx}).With("node", "node1")
	log.Warn("before")
	stop()
	log.Warn("others stop")
	log.Error("the disk fails")
	if got := out.String(); !strings.Contains(got, "before") || strings.Contains(got, "others") || !strings.Contains(got, "disk") {
		t.Errorf("logged:\n%s", got)
	}
}

func TestLibrariesAreQuietBelowWarnings(t *testing.T) {
	own, _, _, _ := runtime.Caller(0)
	other := reflect.ValueOf(strings.Contains).Pointer()
	for _, c := range []struct {
		pc    uintptr
		level slog.Level
		want  bool
	}{
		{own, slog.LevelInfo, true}, {own, slog.LevelWarn, true}, {0, slog.LevelInfo, true},
		{other, slog.LevelInfo, false}, {other, slog.LevelWarn, true},
	} {
		var out bytes.Buffer
		log, err := logger(&out, "debug", "text")
		if err != nil {
			t.Fatal(err)
		}
		r := slog.NewRecord(time.Time{}, c.level, "m", c.pc)
		if err := log.With("a", 1).Handler().Handle(t.Context(), r); err != nil || (out.Len() > 0) != c.want {
			t.Errorf("%+v: logged %q, %v", c, out.String(), err)
		}
	}
}

func TestExitCodes(t *testing.T) {
	none := &fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}
	for _, c := range []struct {
		err  error
		want int
	}{
		{fmt.Errorf("a write: %w", client.ErrBusy), exitBusy},
		{fmt.Errorf("%w: %w", client.ErrUndecided, client.ErrBusy), exitUndecided},
		{fmt.Errorf("a policy: %w", none), exitUsage},
		{fmt.Errorf("%w: %w", store.ErrDamaged, none), exitStore},
		{fmt.Errorf("%w: %w", backup.ErrBroken, none), exitUnverified},
		{errors.New("another"), exitError},
	} {
		if got := exitCode(c.err, true); got != c.want {
			t.Errorf("%v ends with %d, want %d", c.err, got, c.want)
		}
	}
}
