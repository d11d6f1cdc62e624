package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testshort"
)

// pages are those whose commands a reader types one after the other, each on
// a machine of its own.
var pages = []string{"README.md", "docs/quickstart.md"}

// notRun are commands of the pages that the test leaves out, and why.
var notRun = map[string]string{
	"git clone https://github.com/aweigh/aweigh": "it takes the internet",
	"cd aweigh":                     "there is no clone",
	"go install ./cmd/aweigh":       "the program is built already",
	"go test ./...":                 "this test is part of it",
	"aweigh sim sweep --seeds 2000": "it takes a minute; .ci/run does it",
}

// lasting are commands that run in a terminal of their own until they are
// stopped, and what they print once they serve. A devnet stops what ran before.
var lasting = map[string]string{
	"aweigh devnet":             "ready: block",
	"aweigh devnet --processes": "ready: block",
	"aweigh watch / --prefix":   "watching from revision",
	"aweigh node --data-dir ~/.local/state/aweigh/devnet/node3": "quorum in reach",
	"aweigh join invite --data-dir ./observer":                  "ready: this node has caught up",
}

// The pages show what their commands print. What differs from run to run
// differs in its shape only; "…" stands for what a page leaves out.
func TestPagesShowWhatIsPrinted(t *testing.T) {
	testshort.SkipUnlessLong(t)
	needsProcesses(t)
	used := make(map[string]bool)
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join("..", "..", page))
		if err != nil {
			t.Fatal(err)
		}
		steps := stepsOf(string(text))
		for _, s := range steps {
			used[s.command] = true
		}
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			newReader(t).follow(steps)
		})
	}
	for _, list := range []map[string]string{notRun, lasting} {
		for command := range list {
			if !used[command] {
				t.Errorf("no page has %q", command)
			}
		}
	}
}

// step is a command of a page, without its comment, and the lines that the page
// shows below it: nil where it shows none for any command.
type step struct {
	command string
	shown   []string
}

var comment = regexp.MustCompile(`\s+#\s.*$`)

// stepsOf finds the commands in the indented blocks of a page: where a block
// starts with "$ ", its lines that do, and what they print; all lines otherwise.
func stepsOf(page string) (all []step) {
	const indent = "    "
	for _, block := range regexp.MustCompile(`(?m)^\n(?:(?:    .*)?\n)+`).FindAllString(page, -1) {
		block = strings.TrimSpace(block)
		session := strings.HasPrefix(block, "$ ")
		for _, line := range strings.Split(block, "\n") {
			line = strings.TrimPrefix(strings.TrimRight(line, " "), indent)
			command, is := strings.CutPrefix(line, "$ ")
			switch {
			case is:
				all = append(all, step{comment.ReplaceAllString(command, ""), []string{}})
			case !session:
				all = append(all, step{comment.ReplaceAllString(line, ""), nil})
			default:
				last := &all[len(all)-1]
				last.shown = append(last.shown, line)
			}
		}
	}
	return all
}

// reader follows a page, in a home directory of its own. Where a command names
// the network of the page, it names its own.
type reader struct {
	t         *testing.T
	home      string
	env       []string
	network   string      // the hash of what runs
	terminals []*terminal // with what still runs
}

func newReader(t *testing.T) *reader {
	home := t.TempDir()
	r := &reader{t: t, home: home, env: []string{
		"HOME=" + home, "XDG_RUNTIME_DIR=" + filepath.Join(home, "run"), "TMPDIR=" + home,
		"PATH=" + filepath.Dir(program) + string(os.PathListSeparator) + os.Getenv("PATH"),
	}}
	if err := os.Mkdir(filepath.Join(home, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.stop)
	return r
}

// follow runs the commands in turn.
func (r *reader) follow(steps []step) {
	for _, s := range steps {
		if _, left := notRun[s.command]; left {
			continue
		}
		if ready, ok := lasting[s.command]; ok {
			r.open(s.command, ready)
			continue
		}
		r.run(s)
	}
}

// run runs a command and compares what it prints. A command that only looks is
// repeated for a while, as what it shows may take a moment.
func (r *reader) run(s step) {
	limit := time.Duration(0)
	if strings.HasPrefix(s.command, "aweigh get ") || s.command == "aweigh status" {
		limit = 20 * time.Second
	}
	err := eventually(limit, func(context.Context) error {
		out, err := r.shell(s.command).CombinedOutput()
		switch {
		case s.shown != nil && !matches(s.shown, string(out)):
			return fmt.Errorf("the page shows\n%s\n\nand it prints\n%s", strings.Join(s.shown, "\n"), out)
		case s.shown == nil && err != nil:
			return fmt.Errorf("%w\n%s", err, out)
		}
		return nil
	})
	if err != nil {
		r.t.Errorf("$ %s: %v", s.command, err)
	}
}

func (r *reader) shell(command string) *exec.Cmd {
	cmd := exec.Command("sh", "-c", network64.ReplaceAllString(command, r.network))
	cmd.Env, cmd.Dir = r.env, r.home
	return cmd
}

// terminal is a command that runs until it is stopped.
type terminal struct {
	cmd   *exec.Cmd
	out   string // the file of what it prints
	ended chan error
}

// open starts a command that lasts, and waits until it says that it serves.
func (r *reader) open(command, ready string) {
	if strings.HasPrefix(command, "aweigh devnet") {
		r.stop()
		command += " --etcd-listen 127.0.0.1:0"
	}
	out, err := os.CreateTemp(r.home, "terminal-")
	if err != nil {
		r.t.Fatal(err)
	}
	defer out.Close()
	x := &terminal{cmd: r.shell("exec " + command), out: out.Name(), ended: make(chan error, 1)}
	x.cmd.Stdout, x.cmd.Stderr = out, out
	tie(x.cmd)
	if err := x.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	go func() { x.ended <- x.cmd.Wait() }()
	r.terminals = append(r.terminals, x)
	until(r.t, 30*time.Second, command, func(context.Context) error {
		printed, err := os.ReadFile(x.out)
		if strings.HasPrefix(command, "aweigh devnet") {
			r.network = network64.FindString(string(printed))
		}
		if err == nil && !bytes.Contains(printed, []byte(ready)) {
			err = fmt.Errorf("it does not say %q:\n%s", ready, printed)
		}
		return err
	})
}

// stop presses Ctrl-C in all terminals, the newest first.
func (r *reader) stop() {
	for _, x := range slices.Backward(r.terminals) {
		_ = x.cmd.Process.Signal(os.Interrupt)
		var err error
		select {
		case err = <-x.ended:
		case <-time.After(15 * time.Second):
			_ = x.cmd.Process.Kill()
			err = errors.New("Ctrl-C does not stop it")
		}
		if err != nil {
			printed, _ := os.ReadFile(x.out)
			r.t.Errorf("%s: %v\n%s", x.cmd.Args[2], err, printed)
		}
	}
	r.terminals = nil
}

// matches reports whether a command printed what a page shows.
func matches(shown []string, printed string) bool {
	pattern := regexp.QuoteMeta(shaped(strings.Join(shown, "\n")))
	pattern = regexp.MustCompile(`^…(\n|$)`).ReplaceAllString(pattern, `(?:.*\n)*`) // whole lines
	pattern = strings.ReplaceAll(pattern, "\n…", `(?:\n.*)*`)
	pattern = regexp.MustCompile(`\w*…`).ReplaceAllString(pattern, `.*`) // the rest of a word, or words
	return regexp.MustCompile("^" + pattern + "$").MatchString(shaped(printed))
}

// shapes are what differs from run to run. What keeps its length is replaced
// by as many letters, so that columns stay where they are.
var shapes = []struct {
	is *regexp.Regexp
	as string // one letter stands for each byte
}{
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{3})?Z`), "T"},
	{regexp.MustCompile(`\b[0-9a-f]{32}@\d{19}\b`), "N"},
	{network64, "h"},
	{regexp.MustCompile(`\b[0-9a-f]{8}\b`), "h"},
	{regexp.MustCompile(`\b[a-z2-7]{52}\b`), "u"},
	{regexp.MustCompile(`ed25519:[A-Za-z0-9_-]{43}`), "k"},
	{regexp.MustCompile(`127\.0\.0\.1:\d{4,5}\b`), "host:port"},
	{regexp.MustCompile(`/ip4/127\.0\.0\.1/(tcp/\d{4,5}|udp/\d{4,5}/quic-v1)\b`), "multiaddr"},
	{regexp.MustCompile(`view \d+ led by node[1-4]`), "view N led by nodeN"},
	// An empty block may come before, when an anchor is slow.
	{regexp.MustCompile(`final in block \d+`), "final in block N"},
	{regexp.MustCompile(`\bblock \d+ h{8}\b`), "block N hash"},
	{regexp.MustCompile(`\bheight +\d+ `), "height N "},
	{regexp.MustCompile(`\b\d+ of 10000 blocks`), "N of 10000 blocks"},
}

var (
	network64 = regexp.MustCompile(`\b[0-9a-f]{64}\b`)
	row       = regexp.MustCompile(`^node[1-4] `)
	signer    = regexp.MustCompile(`(?m)^node[1-4]( +h{8}  550)$`) // any three of four sign
)

// shaped replaces what differs from run to run. Rows of anchors, which stand in
// the order of their keys, are put in that of their names.
func shaped(text string) string {
	for _, s := range shapes {
		text = s.is.ReplaceAllStringFunc(text, func(found string) string {
			if len(s.as) == 1 {
				return strings.Repeat(s.as, len(found))
			}
			return s.as
		})
	}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for from, i := 0, 0; i < len(lines); i++ {
		lines[i] = strings.TrimRight(lines[i], " ") // of empty columns
		if !row.MatchString(lines[i]) {
			from = i + 1
		}
		slices.Sort(lines[min(from, i) : i+1])
	}
	return signer.ReplaceAllString(strings.Join(lines, "\n"), "nodeN$1")
}

// What differs in its shape alone matches; a word, a count or a column does not.
func TestPagesAreComparedByShape(t *testing.T) {
	shown := strings.Split(`/a = b
  time  2026-11-21 05:13:40.795Z, block 3 292c737d of epoch 0

SIGNED BY  ID        WEIGHT
node1      1df14dd3  550
node2      2da053f4  550
…
OK  names l6d3en7r…, at 127.0.0.1:42267`, "\n")
	same := `/a = b
  time  2027-01-02 15:43:00.005Z, block 3 00000000 of epoch 0

SIGNED BY  ID        WEIGHT
node4      46e46889  550
node2      ffffffff  550

left out
OK  names bsjuhl3f3kzyd23p2cgei2kj3zj5jawe4m5b72sh6hylpuc7jg7q, at 127.0.0.1:1234
`
	if !matches(shown, same) {
		t.Errorf("the same shape does not match:\n%s\n\n%s", shaped(strings.Join(shown, "\n")), shaped(same))
	}
	for _, change := range [][2]string{
		{"/a = b", "/a = c"}, {"epoch 0", "epoch 1"}, {"block 3", "block"}, {"00000000", "000000000"},
		{"43:00.005Z", "43:00.05Z"},
		{"SIGNED BY  ID", "SIGNED BY ID"}, {"ffffffff  550", "ffffffff  551"}, {"ffffffff  550\n", ""},
		{"BY  ID        WEIGHT", "BY  WEIGHT"}, {"names", "named"}, {":1234", ":none"}, {"OK", "ok"},
		{"\nOK", "\nmore\nNO"},
	} {
		other := strings.Replace(same, change[0], change[1], 1)
		if other == same || matches(shown, other) {
			t.Errorf("%q for %q matches", change[1], change[0])
		}
	}
	if matches([]string{}, "a word\n") || !matches([]string{}, "") {
		t.Error("where nothing is shown, nothing may be printed")
	}
}
