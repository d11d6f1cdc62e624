package main

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// testdata reads a file that a real program wrote.
func testdata(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestOutputOfLoadGeneratorsIsUnderstood(t *testing.T) {
	for _, c := range []struct {
		file, more string
		parse      func([]byte) (loaded, error)
		want       loaded
	}{
		{"etcd.txt", "", parseEtcd, loaded{2000, 0, 7360.808175517145, 1.215274, 3.927634}},
		{"etcd.txt", "\nError distribution:\n  [3]\tetcdserver: too many requests\n  [4]\tother\n", parseEtcd, loaded{2000, 7, 7360.808175517145, 1.215274, 3.927634}},
		{"aweigh.json", "", parseAweigh, loaded{516, 0, 511.00589796768406, 13.107199, 44.040199}},
	} {
		got, err := c.parse(append(testdata(t, c.file), c.more...))
		if err != nil {
			t.Errorf("%s: %v", c.file, err)
			continue
		}
		if got.done != c.want.done || got.errors != c.want.errors || !near(got.perSecond, c.want.perSecond) ||
			!near(got.p50, c.want.p50) || !near(got.p99, c.want.p99) {
			t.Errorf("%s: got %+v, want %+v", c.file, got, c.want)
		}
	}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*math.Abs(b) }

func TestErrorsOfRequestsAreCounted(t *testing.T) {
	l, err := parseAweigh([]byte(`{"done":5,"per_second":1,"latency_ns":{"p50":1,"p99":2},"errors":{"busy":3,"timeout":4}}`))
	if err != nil || l.errors != 7 || l.done != 5 {
		t.Errorf("got %+v, %v", l, err)
	}
}

func TestOtherOutputIsRefused(t *testing.T) {
	for name, parse := range map[string]func([]byte) (loaded, error){"etcd": parseEtcd, "aweigh": parseAweigh} {
		for _, text := range []string{"", "{}", "nonsense", "  Requests/sec:\t12.5\n", "Error distribution:\n  [5]\tdown\n", `{"done":0,"latency_ns":{"p50":1,"p99":2}}`, `{"done":3,"latency_ns":{"p50":1}}`} {
			if l, err := parse([]byte(text)); !errors.Is(err, errOutput) {
				t.Errorf("%s took %q for %+v, %v", name, text, l, err)
			}
		}
	}
}

func TestCountersAreAddedOverLabels(t *testing.T) {
	const text = `# HELP syncs_total how many
# TYPE syncs_total counter
syncs_total{node="a b } c",n="1"} 40
syncs_total{node="d"} 2 1700000000000
syncs_total_more 100
other 5
plain 7e2
`
	for name, want := range map[string]float64{"syncs_total": 42, "plain": 700, "other": 5} {
		if got, found := counter(text, name); !found || got != want {
			t.Errorf("%s: got %v, %v, want %v", name, got, found, want)
		}
	}
	if got, found := counter(text, "syncs"); found {
		t.Errorf("the start of a name was taken for it: %v", got)
	}
}

func TestProcessorTimeOfAnyName(t *testing.T) {
	const rest = " S 1 2 3 4 5 6 7 8 9 10 150 25 13 14 15 16 17 18\n"
	for _, name := range []string{"(etcd)", "(a b)", "(a) b) (c)"} {
		got, err := parseStat("4711 " + name + rest)
		if err != nil || got != 1750*time.Millisecond {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
	for _, text := range []string{"", "1 (a) S 1 2", "1 (a) S 1 2 3 4 5 6 7 8 9 10 x 25 13"} {
		if _, err := parseStat(text); !errors.Is(err, errOutput) {
			t.Errorf("%q was taken: %v", text, err)
		}
	}
}

func TestWhatOthersUseIsWhatIsLeft(t *testing.T) {
	busy, err := parseBusy("cpu  100 20 30 5000 600 7 8 9 99 99\ncpu0 1 2\n")
	if err != nil || busy != 1740*time.Millisecond {
		t.Errorf("got %v, %v", busy, err)
	}
	for _, text := range []string{"", "cpu 1 2 3", "cpu0 1 2 3 4 5 6 7 8", "cpu 1 2 x 4 5 6 7 8"} {
		if _, err := parseBusy(text); !errors.Is(err, errOutput) {
			t.Errorf("%q was taken: %v", text, err)
		}
	}
	before := use{at: time.Unix(100, 0), members: 7 * time.Second, generator: time.Second, busy: 50 * time.Second}
	after := use{at: time.Unix(110, 0), members: 12 * time.Second, generator: 4 * time.Second, busy: 63 * time.Second}
	if got := after.others(before, 2); !near(got, .25) { // 13 s busy, 8 s ours, 5 of 20 s others'
		t.Errorf("got %v", got)
	}
}

func TestFileSystemOfAPath(t *testing.T) {
	const mounts = "/dev/vda / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/vdb /tmp/disk xfs rw 0 0\n"
	for path, want := range map[string]string{"/": "ext4", "/home/x": "ext4", "/tmp": "tmpfs", "/tmp/a": "tmpfs", "/tmp/disk/a": "xfs", "/tmpfoo": "ext4"} {
		if got := filesystem(mounts, path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}
