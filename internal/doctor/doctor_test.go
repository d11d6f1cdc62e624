package doctor

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/founding"
	"github.com/aweigh/aweigh/internal/home"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/store/diskstore"
)

// founded is a new node's directory and settings.
func founded(t *testing.T, at time.Time) Subject {
	t.Helper()
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	dir := home.Dir(filepath.Join(t.TempDir(), "node"))
	s := home.Settings{Name: "one", Listen: []string{"/ip4/127.0.0.1/tcp/0"}, API: "127.0.0.1:0", Insecure: true}
	self, err := founding.Self(dir, s)
	if err != nil {
		t.Fatal(err)
	}
	plan := founding.Plan{Dir: dir, Settings: s, Self: self, Network: "n", Mode: quorum.BFT, Now: aweigh.InstantOf(at)}
	if _, err := plan.Found(); err != nil {
		t.Fatal(err)
	}
	return Subject{Dir: dir, Settings: s}
}

// verdict is the finding of one check.
func verdict(t *testing.T, findings []Finding, check string) Finding {
	t.Helper()
	for _, f := range findings {
		if f.Check == check {
			if f.Do == "" && (f.Verdict == Warn || f.Verdict == Fail) {
				t.Errorf("nothing to do: %+v", f)
			}
			return f
		}
	}
	t.Fatalf("no finding for %s in %+v", check, findings)
	return Finding{}
}

func want(t *testing.T, findings []Finding, check string, v Verdict, text string) {
	t.Helper()
	if f := verdict(t, findings, check); f.Verdict != v || !strings.Contains(f.Found, text) {
		t.Errorf("%s: %s, %q; want %s, %q", check, f.Verdict, f.Found, v, text)
	}
}

func TestMistakesAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		spoil       func(t *testing.T, s *Subject)
		check, text string
	}{
		"a port in use": {func(t *testing.T, s *Subject) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { l.Close() })
			s.Settings.Listen = []string{fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", l.Addr().(*net.TCPAddr).Port)}
		}, "ports", "in use by another program"},
		"an open API": {func(_ *testing.T, s *Subject) { s.Settings.Insecure = false }, "settings", "would take every client"},
		"a broken key": {func(t *testing.T, s *Subject) {
			if err := os.WriteFile(s.Dir.Anchor(), []byte("ed25519:zz\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "keys", "anchor.key"},
		"another identity": {func(t *testing.T, s *Subject) {
			if err := os.Remove(s.Dir.Identity()); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Dir.NewKey(s.Dir.Identity()); err != nil {
				t.Fatal(err)
			}
		}, "genesis", "expects the anchor"},
		"no genesis": {func(t *testing.T, s *Subject) {
			if err := os.Remove(s.Dir.Genesis()); err != nil {
				t.Fatal(err)
			}
		}, "genesis", "no genesis"},
		"a clock set back": {func(t *testing.T, s *Subject) {
			name := filepath.Join(s.Dir.Store(), "000001.log")
			if err := os.MkdirAll(s.Dir.Store(), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(name, time.Time{}, time.Now().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
		}, "clock", "was set back"},
		"a log that was cut off": {func(t *testing.T, s *Subject) {
			p, err := diskstore.Open(s.Dir.Store(), diskstore.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(p.Commit([]kv.Op{kv.Set([]byte("k"), []byte("v"))}, true), p.Close()); err != nil {
				t.Fatal(err)
			}
			logs, err := filepath.Glob(filepath.Join(s.Dir.Store(), "*.log"))
			if err != nil || len(logs) == 0 {
				t.Fatalf("no log: %v", err)
			}
			for _, name := range logs {
				if err := os.Truncate(name, 0); err != nil {
					t.Fatal(err)
				}
			}
		}, "store", "was synced up to"},
	} {
		t.Run(name, func(t *testing.T) {
			s := founded(t, time.Now())
			for _, f := range Examine(t.Context(), s) {
				if f.Verdict == Fail {
					t.Errorf("before: %+v", f)
				}
			}
			c.spoil(t, &s)
			findings := Examine(t.Context(), s)
			want(t, findings, c.check, Fail, c.text)
			if Worst(findings) != Fail {
				t.Error("that does not fail")
			}
		})
	}
}

// TestUnreadableStoreIsNotChecked: whether the node has run is not known then, and no backup mends it.
func TestUnreadableStoreIsNotChecked(t *testing.T) {
	if os.Geteuid() <= 0 {
		t.Skip("this user may read everything")
	}
	s := founded(t, time.Now())
	store := s.Dir.Store()
	if err := os.Mkdir(store, 0o000); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(store, 0o700) })
	all := Examine(t.Context(), s)
	want(t, all, "store", NotChecked, "permission denied")
	if f := verdict(t, all, "store"); !strings.Contains(f.Do, "the user that the files belong to") {
		t.Errorf("it advises %q", f.Do)
	}
	if f := verdict(t, all, "process"); strings.Contains(f.Found, "has not run") {
		t.Errorf("it says %q", f.Found)
	}
}

func TestHeightThatDoesNotMoveNamesWhatWaits(t *testing.T) {
	for waiting, text := range map[uint64]string{0: "others are ahead", 1: "1 write waits", 5: "5 writes wait"} {
		if got := still(&aweighv1.StatusResponse{Waiting: waiting}); got != text {
			t.Errorf("%d: %q, not %q", waiting, got, text)
		}
	}
}

func TestClockBeforeTheNetworkIsNoticed(t *testing.T) {
	want(t, Examine(t.Context(), founded(t, time.Now().Add(time.Hour))), "clock", Fail, "was founded")
}

func TestWhatIsNotThereIsNotMade(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	findings := Examine(t.Context(), Subject{Dir: home.Dir(dir), Settings: home.Settings{Listen: []string{"/ip4/127.0.0.1/tcp/0"}, API: "127.0.0.1:0", Insecure: true}})
	want(t, findings, "directory", Fail, "none")
	if _, err := os.Stat(dir); err == nil {
		t.Error("the directory was made")
	}
}

// TestOtherDirectoriesAreLeftAlone: no advice on their permissions, and no --fix.
func TestOtherDirectoriesAreLeftAlone(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s := Subject{Dir: home.Dir(dir), Settings: home.Settings{Listen: []string{"/ip4/127.0.0.1/tcp/0"}, API: "127.0.0.1:0", Insecure: true}, Fix: true}
	findings := Examine(t.Context(), s)
	want(t, findings, "directory", Fail, "holds no node")
	for _, f := range findings {
		if strings.Contains(f.Do, "chmod") || strings.Contains(f.Do, "chown") || f.Check == "disk speed" {
			t.Errorf("of another program's directory it says %+v", f)
		}
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("its permissions are %v now, %v", info.Mode(), err)
	}
	devnet := filepath.Dir(string(founded(t, time.Now()).Dir))
	if err := os.Rename(filepath.Join(devnet, "node"), filepath.Join(devnet, "node1")); err != nil {
		t.Fatal(err)
	}
	s.Dir = home.Dir(devnet)
	if f := verdict(t, Examine(t.Context(), s), "directory"); !strings.Contains(f.Do, "node1") {
		t.Errorf("of a devnet it says %+v", f)
	}
}

// TestExaminationLeavesNothing compares the directory before and after.
func TestExaminationLeavesNothing(t *testing.T) {
	s := founded(t, time.Now())
	list := func() (all []string) {
		entries, err := os.ReadDir(string(s.Dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			all = append(all, e.Name())
		}
		return all
	}
	before := list()
	Examine(t.Context(), s)
	if after := list(); fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("%v became %v", before, after)
	}
}

func TestHealthInWords(t *testing.T) {
	scopes := make(map[*aweighv1.StatusResponse][]*aweighv1.Scope)
	anchors := []*aweighv1.Anchor{{Id: []byte{1}, Name: "oslo", Weight: 1, Reachable: true}, {Id: []byte{2}, Name: "riga", Weight: 1}}
	below := func(mode string, left int64) *aweighv1.StatusResponse {
		s := &aweighv1.StatusResponse{LostScopes: [][]byte{[]byte("/a/")}}
		scopes[s] = []*aweighv1.Scope{
			{Mode: "bft"}, {Prefix: []byte("/b/"), Mode: "crash", FailuresLeft: -1}, // there it lost nothing
			{Prefix: []byte("/a/"), Mode: mode, FailuresLeft: left, LostState: true},
		}
		return s
	}
	apart := []*aweighv1.Partition{{Prefix: []byte("/ship/"), Island: []byte{1, 2, 3, 4}}}
	for name, c := range map[string]struct {
		status      *aweighv1.StatusResponse
		check, text string
		verdict     Verdict
	}{
		"no quorum":                 {&aweighv1.StatusResponse{FailuresLeft: -1, Anchors: anchors}, "quorum", "NO QUORUM", Fail},
		"no quorum, an island":      {&aweighv1.StatusResponse{FailuresLeft: -1, Anchors: anchors, Partitions: apart}, "quorum", "NO QUORUM", Fail},
		"one missing":               {&aweighv1.StatusResponse{Anchors: anchors}, "quorum", "no more may fail", Warn},
		"alone":                     {&aweighv1.StatusResponse{Anchors: anchors}, "peers", "no connection", Fail},
		"other":                     {&aweighv1.StatusResponse{Version: "x"}, "version", "x", Warn},
		"lost below":                {below("bft", 1), "standing", "in 1 scope, and signs nothing there", Fail},
		"lost below for all":        {below("bft", -1), "standing", "in 1 scope, and signs nothing there", Fail},
		"lost below, crash":         {below("crash", 1), "standing", "in 1 scope, and signs nothing there", Fail},
		"lost below for all, crash": {below("crash", -1), "standing", "in 1 scope, and signs nothing there", Fail},
		"lost state, crash":         {&aweighv1.StatusResponse{LostState: true, Mode: "crash"}, "standing", "signs nothing more", Fail},
		"lost for all, crash":       {&aweighv1.StatusResponse{LostState: true, Mode: "crash", FailuresLeft: -1}, "standing", "signs nothing more", Fail},
		"lost state":                {&aweighv1.StatusResponse{LostState: true}, "standing", "signs nothing more", Fail},
		"lost for all":              {&aweighv1.StatusResponse{LostState: true, FailuresLeft: -1}, "standing", "signs nothing more", Fail},
		"at fault":                  {&aweighv1.StatusResponse{Anchor: []byte{1}, Faulty: [][]byte{{1}}}, "standing", "conflicting", Fail},
		"clock behind":              {&aweighv1.StatusResponse{Anchor: []byte{1}, ClockBehindNs: 3600e9}, "standing", "behind by 1h0m0s", Fail},
		"fault beside":              {&aweighv1.StatusResponse{Anchor: []byte{1}, Faulty: [][]byte{{2}}}, "standing", "1 other", Warn},
		"idle":                      {&aweighv1.StatusResponse{Header: &aweighv1.Header{Height: 7}}, "height", "7, idle", OK},
	} {
		t.Run(name, func(t *testing.T) {
			e := &exam{ctx: t.Context(), status: c.status}
			e.scopes = func(context.Context) []*aweighv1.Scope { return scopes[c.status] }
			e.checkHealth()
			want(t, e.findings, c.check, c.verdict, c.text)
			if strings.HasPrefix(name, "lost") {
				crash, stuck := strings.HasSuffix(name, "crash"), strings.Contains(name, "for all")
				do := verdict(t, e.findings, "standing").Do
				if strings.Contains(do, "let it run") == (crash || stuck) || strings.Contains(do, "move anchor.key out") != crash ||
					strings.Contains(do, "bring other anchors back") != stuck {
					t.Errorf("what to do: %s", do)
				}
			}
			if c.check == "quorum" && !strings.Contains(verdict(t, e.findings, "quorum").Do, "riga") {
				t.Error("who is missing is not named")
			}
			if len(c.status.Partitions) > 0 && !strings.Contains(verdict(t, e.findings, "quorum").Do, "island 01020304 decides provisionally") {
				t.Error("the island is not named")
			}
		})
	}
}

// TestSuspendedNodeIsNoticed: the clock that a node counts by stands still while its machine sleeps.
func TestSuspendedNodeIsNoticed(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		node time.Time
		text string // "" if all is well
	}{
		"right":          {now.Add(time.Second), ""},
		"slow answer":    {now.Add(10 * time.Millisecond), ""},
		"suspended":      {now.Add(-time.Hour), "behind this machine's by 1h0m0s"},
		"clock set back": {now.Add(time.Hour), "ahead of this machine's by 59m58s"},
	} {
		e := &exam{ctx: t.Context()}
		if ok := e.sameClock(c.node, now, now.Add(2*time.Second)); ok != (c.text == "") {
			t.Errorf("%s: %v", name, ok)
		}
		if c.text != "" {
			want(t, e.findings, "clock", Fail, c.text)
		}
	}
}

// TestTimeServerIsCompared asks a server whose clock is wrong.
func TestTimeServerIsCompared(t *testing.T) {
	for name, c := range map[string]struct {
		ahead   time.Duration // of the server
		verdict Verdict
		text    string
	}{
		"right":  {0, OK, "off by"},
		"late":   {time.Hour, Fail, "off by -"}, // by an hour, give or take a scheduler's pause
		"early":  {-time.Hour, Fail, "off by 1h0m0"},
		"little": {200 * time.Millisecond, Warn, "off by"},
	} {
		t.Run(name, func(t *testing.T) {
			e := &exam{ctx: t.Context(), Subject: Subject{NTP: timeServer(t, c.ahead)}}
			e.checkClock()
			want(t, e.findings, "clock", c.verdict, c.text)
		})
	}
	e := &exam{ctx: t.Context(), Subject: Subject{NTP: "127.0.0.1:1"}}
	e.checkClock()
	want(t, e.findings, "clock", NotChecked, "did not return the time")
}

// timeServer answers as RFC 5905 says, with a clock that is ahead.
func timeServer(t *testing.T, ahead time.Duration) (address string) {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { c.Close(); <-done })
	go func() {
		defer close(done)
		question := make([]byte, 48)
		for {
			n, from, err := c.ReadFrom(question)
			if err != nil {
				return
			}
			if n != 48 || question[0] != 0x23 {
				continue
			}
			answer := make([]byte, 48)
			answer[0], answer[1] = 4<<3|4, 1
			copy(answer[24:32], question[40:48])
			binary.BigEndian.PutUint64(answer[32:], ntpStamp(time.Now().Add(ahead)))
			binary.BigEndian.PutUint64(answer[40:], ntpStamp(time.Now().Add(ahead)))
			if _, err := c.WriteTo(answer, from); err != nil {
				return
			}
		}
	}()
	return c.LocalAddr().String()
}

func TestStampsSurviveTheirEra(t *testing.T) {
	for _, at := range []string{"2026-11-21T00:00:00.25Z", "2036-02-07T06:28:16.5Z", "2040-01-01T00:00:00Z"} {
		when, err := time.Parse(time.RFC3339Nano, at)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 8)
		binary.BigEndian.PutUint64(b, ntpStamp(when))
		if got := ntpTimeOf(b, when.Add(time.Hour)); got.Sub(when).Abs() > time.Microsecond {
			t.Errorf("%s is read as %s", when, got)
		}
	}
}
