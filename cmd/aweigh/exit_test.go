package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aweigh/aweigh/alias"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/audit"
	"github.com/aweigh/aweigh/internal/authn"
	"github.com/aweigh/aweigh/internal/authn/device"
	"github.com/aweigh/aweigh/internal/authn/oidc"
	"github.com/aweigh/aweigh/internal/backup"
	"github.com/aweigh/aweigh/internal/config"
	"github.com/aweigh/aweigh/internal/running"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/internal/token"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store/diskstore"
	"github.com/aweigh/aweigh/trust"
	"github.com/spf13/cobra"
)

func TestMessagesNameNoPackages(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("%w: %w", errUsage, errors.New("show: the output is table")), "the output is table"},
		{fmt.Errorf("devnet: node3: %w", errors.New("store: directory is in use")), "node3: directory is in use"},
		{running.ErrNone, `no node runs here; start one with "aweigh devnet", or name one with --api unix:///DATA-DIR/run/api.sock, or HOST:PORT`},
		{errors.Join(errors.New("client: a"), errors.New("client: b")), "a\nb"},
		{fmt.Errorf("%w: c.yaml:1: x", config.ErrConfig), "invalid settings: c.yaml:1: x"},
		{errors.New("a key of the client: store"), "a key of the client: store"},
		{errors.New("evil \x1b[31m"), `evil \x1b[31m`},
		{errors.New("unknown command \"x\"\n\nDid you mean this?\n\tstatus\n"), "unknown command \"x\"\n\nDid you mean this?\n  status"},
		{errors.Join(errors.New("store: a: write: no room"), errors.New("a: a: write: no room")), "a: write: no room"},
		{fmt.Errorf("%w: write it: %w", diskstore.ErrNoRoom, syscall.ENOSPC), "no room on the disk: make room, 200 MiB at least, and start again: write it: no space left on device"},
		{fmt.Errorf("write it: %w", syscall.ENOSPC), "write it: no space left on device; make room on the disk, 200 MiB at least, and start again"},
		{fmt.Errorf("%w: line 3", audit.ErrLine), "not a line of a trail: line 3"},
		{fmt.Errorf("x.token: %w", token.ErrToken), "x.token: not a token"},
		{device.ErrNone, "not logged in, or the session ended: log in"},
		{fmt.Errorf("device: %w", oidc.ErrIssuer), "invalid settings of an issuer"},
		{fmt.Errorf("%w: %w", errUsage, authn.ErrIdentity), "not an identity"},
		{fmt.Errorf("daemon: %w", errors.New("requestlog: x is not a regular file")), "x is not a regular file"},
		{fmt.Errorf("%w: %w", errUsage, trust.ErrParams), "bad parameters"},
		{&client.Gone{Next: 7, Cause: client.ErrUnreachable}, "the node went away; continue with --rev 7"},
	} {
		if got := message(c.err); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// TestMessagesKnowAllPackages: the command line leaves out the name of each package that begins its errors with it.
func TestMessagesKnowAllPackages(t *testing.T) {
	begins := regexp.MustCompile(`(?:errors\.New|fmt\.Errorf)\("([a-z0-9]+): `)
	seen := make(map[string]bool)
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", ".ci", "test", "scripts", "testdata", "node_modules"}, d.Name()):
			return fs.SkipDir
		case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range begins.FindAllSubmatch(text, -1) {
			name := string(m[1])
			if seen[name] = true; name == filepath.Base(filepath.Dir(path)) && message(errors.New(name+": x")) != "x" {
				t.Errorf("%s: messages begin with %q", path, name)
			}
		}
		return err
	})
	if err != nil || !seen["scope"] || !seen["audit"] {
		t.Errorf("%v; packages: %v", err, seen)
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
		{fmt.Errorf("%w: %w", diskstore.ErrDamaged, none), exitStore},
		{fmt.Errorf("%w: %w", backup.ErrBroken, none), exitUnverified},
		{errors.New("another"), exitError},
	} {
		if got := exitCode(c.err, true); got != c.want {
			t.Errorf("%v ends with %d, want %d", c.err, got, c.want)
		}
	}
}

// TestReadsThatTimeOutNameTheSerializable: the error of a read without an answer in time names the read that
// would be answered.
func TestReadsThatTimeOutNameTheSerializable(t *testing.T) {
	c := &cobra.Command{}
	late := fmt.Errorf("client: no answer in time: %w", context.DeadlineExceeded)
	if got := about(c, "no answer in time", late); got != "no answer in time" {
		t.Errorf("without the flag: %q", got)
	}
	c.Flags().Bool("serializable", false, "")
	if got := about(c, "no answer in time", late); !strings.HasSuffix(got, readHint) {
		t.Errorf("with the flag: %q", got)
	}
	const node = "no quorum"
	if got := about(c, node+staleHint, late); got != node+readHint {
		t.Errorf("of a node that says why: %q", got)
	}
	if got := about(c, "denied", errors.New("denied")); got != "denied" {
		t.Errorf("of another error: %q", got)
	}
}

// TestARepetitionThatIsNotTakenIsUndecided holds that a write which is repeated with its nonce may still commit if a
// node is too busy to take it again.
func TestARepetitionThatIsNotTakenIsUndecided(t *testing.T) {
	c := &cobra.Command{}
	onceFlags(c)
	busy := fmt.Errorf("a write: %w", client.ErrBusy)
	if u := undecided(c, busy); u != nil {
		t.Errorf("without a nonce: %+v", u)
	}
	const nonce = "0102@1700000000000000007"
	if err := c.Flags().Set("nonce", nonce); err != nil {
		t.Fatal(err)
	}
	if u := undecided(c, errors.New("another")); u != nil {
		t.Errorf("of another error: %+v", u)
	}
	var out bytes.Buffer
	u := undecided(c, busy)
	if u == nil {
		t.Fatal("with a nonce: it is decided")
	}
	if err := (show.Printer{Out: &out, Format: show.JSON}).Undecided(u, false); err != nil || !strings.Contains(out.String(), nonce) {
		t.Errorf("%v: %s", err, out.String())
	}
}

// TestExitCodesAreInOneTable holds the help, the manual and the errors to the same codes.
func TestExitCodesAreInOneTable(t *testing.T) {
	manual, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(manual), "## Exit codes")
	table, _, _ = strings.Cut(table, "## What the errors mean")
	find := func(text, at string) (all []string) {
		for _, m := range regexp.MustCompile(at).FindAllStringSubmatch(text, -1) {
			all = append(all, m[1])
		}
		return all
	}
	helped, told := find(exitHelp, `(?m)^  (\d+) `), find(table, `(?m)^\| (\d+) \|`)
	if len(helped) < 13 || !slices.Equal(helped, told) {
		t.Errorf("the help has %v, and docs/operations.md %v", helped, told)
	}
	for _, c := range codes {
		if !slices.Contains(told, fmt.Sprint(c.code)) {
			t.Errorf("%v ends with %d", c.err, c.code)
		}
	}
}

// TestUndecidedWritesSaySo: a write without an answer is reported as one that may still commit, and in JSON with all
// its fields.
func TestUndecidedWritesSaySo(t *testing.T) {
	u := &client.Undecided{
		ValidUntil: time.Unix(1_800_000_000, 0), Node: "127.0.0.1:1", Once: &aweighv1.Once{Nonce: []byte{1}, ValidUntilNs: 7},
		Cause: errors.New("client: no answer in time"),
	}
	if got := message(u); !strings.HasPrefix(got, "not committed yet: 127.0.0.1:1: no answer in time; it may still commit, in a block dated until 2027-01-15T08:00:00Z\nTo repeat") {
		t.Errorf("it says %q", got)
	}
	if got := message(u); !strings.HasSuffix(got, "\nIf the node at 127.0.0.1:1 stays away: after 2027-01-15T08:00:00Z, see at another node what is there, and write anew without --nonce if the change is not.") {
		t.Errorf("of a node that does not answer: %q", got)
	}
	u.Mutation = []byte{1}
	if got := message(u); strings.Contains(got, "stays away") {
		t.Errorf("of a node that answered: %q", got)
	}
	u.Mutation, u.Cause = nil, errors.New("not committed yet: no quorum")
	if got := message(u); !strings.HasPrefix(got, "not committed yet: no quorum\n") {
		t.Errorf("of the node's own words: %q", got)
	}
	var out bytes.Buffer
	if err := (show.Printer{Out: &out, Format: show.JSON}).Undecided(u, false); err != nil || !strings.Contains(out.String(), `"mutation": ""`) {
		t.Errorf("%v: %s", err, &out)
	}
}

// TestErrorsAboutKeysNeedNoUsage: an error about a key that is not written as one gives what to write, and the program
// points at no help beside it. An error about a flag has both.
func TestErrorsAboutKeysNeedNoUsage(t *testing.T) {
	_, parsed := alias.Parse("nokey")
	_, quoted := prefixOf(`"nokey`)
	for _, err := range []error{
		parsed, quoted, rooted("nokey", []byte("nokey")), likely("nokey", []byte("nokey")), likely("/a", []byte("/a")), likely("/a/*/", []byte("/a/*/")),
		policyChanges{set: &[]string{"prefix=nokey threshold=1/2 window=1h"}, drop: new([]string), mode: new(string), group: new(string), split: new(string), fold: new(string)}.apply(new(scope.Policy)),
	} {
		if err == nil || usageHelps(err) || exitCode(err, true) != exitUsage {
			t.Errorf("%v: usage %v, exit code %d", err, usageHelps(err), exitCode(err, true))
		}
	}
	if err := fmt.Errorf("%w: --rev is no number", errUsage); !usageHelps(err) {
		t.Errorf("%v: no usage", err)
	}
}

// TestMessagesAreShort holds that no error repeats megabytes.
func TestMessagesAreShort(t *testing.T) {
	err := fmt.Errorf("%w: not %q", errUsage, strings.Repeat("v", 3<<20))
	if got := message(err); len(got) > 200 || !strings.Contains(got, "(3145728 characters)") {
		t.Errorf("%d bytes: %.200s", len(got), got)
	}
}
