// Package doctor looks for common mistakes around a node, and reports the fix
// for each. It reads, listens for a moment where the node is to listen, measures
// the disk with a file of its own, and asks the node, if it runs. It changes
// nothing but permissions, and those on request only.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/home"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/node/fsck"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// Verdict is the result of a check.
type Verdict string

// The verdicts. Only Fail is about something that stops a node, endangers it,
// or makes it useless.
const (
	OK         Verdict = "ok"
	Warn       Verdict = "warn"
	Fail       Verdict = "fail"
	NotChecked Verdict = "not checked"
)

// Finding is the outcome of one check.
type Finding struct {
	Check   string  `json:"check"`
	Verdict Verdict `json:"verdict"`
	Found   string  `json:"found"`
	Do      string  `json:"do,omitempty"` // what to do; empty if nothing is to be done
}

// Subject is the node to examine.
type Subject struct {
	Dir      home.Dir
	Settings home.Settings
	Problem  error  // why the settings cannot be read, if they cannot
	Version  string // of this program
	NTP      string // a time server, host or host:port, to compare the clock with; empty for none
	Fix      bool   // correct permissions
	State    bool   // check the whole store against final blocks
	Audited  func(fsck.Progress)
	Begun    func(part string) // is called with each part of the examination; may be nil
	Found    func(Finding)     // is called with each finding as it is made; may be nil
}

// exam is one examination.
type exam struct {
	Subject
	ctx      context.Context
	findings []Finding

	identity *votes.PrivateKey // nil if it cannot be read
	anchor   *votes.PrivateKey // nil for an observer
	genesis  *scope.Genesis    // nil if it cannot be read
	pid      int               // the process that holds the store; 0 if none is known
	api      string            // where the node's API answers
	status   *aweighv1.StatusResponse
	scopes   func(context.Context) []*aweighv1.Scope // asks the node for those that it knows
}

// Examine makes every check, in a fixed order. It takes a few seconds; what does not answer is waited for within
// bounds.
func Examine(ctx context.Context, s Subject) []Finding {
	if abs, err := filepath.Abs(string(s.Dir)); err == nil {
		s.Dir = home.Dir(abs)
	}
	e := &exam{Subject: s, ctx: ctx}
	e.scopes = e.askScopes
	e.checkSettings()
	if !e.there() {
		e.checkLimits()
		e.checkClock()
		return e.findings
	}
	for _, part := range []struct {
		name  string
		check func()
	}{
		{"files", e.checkFiles}, {"keys", e.checkKeys}, {"genesis", e.checkGenesis}, {"process", e.checkProcess},
		{"store", e.checkStore}, {"twins", e.checkTwins}, {"limits", e.checkLimits}, {"disk", e.checkDisk},
		{"ports", e.checkPorts}, {"callers", e.checkCallers}, {"clock", e.checkClock}, {"health", e.checkHealth},
	} {
		if e.Begun != nil {
			e.Begun(part.name)
		}
		part.check()
	}
	return e.findings
}

// Worst is the worst verdict among findings: OK if there is none.
func Worst(findings []Finding) Verdict {
	worst := OK
	for _, f := range findings {
		switch {
		case f.Verdict == Fail:
			return Fail
		case f.Verdict == Warn:
			worst = Warn
		}
	}
	return worst
}

// there reports whether the directory exists, and adds a finding if it does not.
func (e *exam) there() bool {
	info, err := os.Stat(string(e.Dir))
	switch {
	case err != nil:
		e.fail("directory", fmt.Sprintf("cannot be read: %v", err),
			"make a node with \"aweigh init\" or \"aweigh join\", or name its directory with --data-dir")
	case !info.IsDir():
		e.fail("directory", fmt.Sprintf("%s is a file", e.Dir), "name the node's directory with --data-dir")
	case e.strange():
		e.fail("directory", fmt.Sprintf("%s holds no node: no identity.key, anchor.key or genesis.cbor", e.Dir), e.nodesBelow())
	default:
		e.ok("directory", string(e.Dir))
		return true
	}
	return false
}

// strange reports whether nothing in the directory is a node's: then it is not for
// this program to write there, or to say who may read it.
func (e *exam) strange() bool {
	for _, name := range []string{e.Dir.Identity(), e.Dir.Anchor(), e.Dir.Genesis()} {
		if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			return false // there, or not for this user to see
		}
	}
	return true
}

// nodesBelow reports where to look instead.
func (e *exam) nodesBelow() string {
	if first := home.Dir(filepath.Join(string(e.Dir), "node1")); first.Exists() {
		return fmt.Sprintf("it is a devnet's: examine its nodes one by one, with --data-dir %s and so on", show.Word(string(first)))
	}
	return "make a node with \"aweigh init\" or \"aweigh join\", or name its directory with --data-dir"
}

// runs reports whether the node of the directory answered.
func (e *exam) runs() bool { return e.status != nil }

func (e *exam) say(check string, v Verdict, found, do string) {
	f := Finding{Check: check, Verdict: v, Found: found, Do: do}
	e.findings = append(e.findings, f)
	if e.Subject.Found != nil {
		e.Subject.Found(f)
	}
}

func (e *exam) ok(check, found string)       { e.say(check, OK, found, "") }
func (e *exam) warn(check, found, do string) { e.say(check, Warn, found, do) }
func (e *exam) fail(check, found, do string) { e.say(check, Fail, found, do) }
func (e *exam) skip(check, why string)       { e.say(check, NotChecked, why, "") }

// ago is a time in the past in words.
func ago(t time.Time) string {
	return fmt.Sprintf("%s (%s ago)", t.UTC().Format(time.RFC3339), time.Since(t).Round(time.Second))
}

// nodes is a number of nodes in words.
func nodes(n int) string { return show.Count(n, "node") }

// size is a number of bytes in words.
func size(n uint64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d KiB", n>>10)
}
