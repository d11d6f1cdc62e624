package main

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/report.* anew")

func TestMedians(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   span
	}{
		{nil, span{}},
		{[]float64{4}, span{4, 4, 4, 1}},
		{[]float64{9, 1, 4}, span{4, 1, 9, 3}},
		{[]float64{9, 1, 4, 6}, span{5, 1, 9, 4}},
	} {
		if got := spanOf(c.values); got != c.want {
			t.Errorf("%v: got %+v, want %+v", c.values, got, c.want)
		}
	}
}

// A machine that is slower in one repetition must not show in ratios.
func TestRatiosAreTakenWithinARepetition(t *testing.T) {
	r := &Report{Clients: []int{1}}
	for i, speed := range []float64{1, 10, 100} {
		r.add("etcd", i+1, put, 1, 1000*speed)
		r.add("bft", i+1, put, 1, 500*speed)
	}
	if got := r.ratio(rate, "bft", put, 1); got != (span{.5, .5, .5, 3}) {
		t.Errorf("got %+v", got)
	}
	r.add("bft", 4, put, 1, 7) // etcd has no fourth
	if got := r.ratio(rate, "bft", put, 1); got.n != 3 {
		t.Errorf("a repetition without etcd counts: %+v", got)
	}
	if got := r.ratio(cpu, "bft", put, 1); got.n != 0 {
		t.Errorf("a ratio of nothing: %+v", got)
	}
}

// add makes a sample with a rate, and all else that follows from it but CPU and syncs.
func (r *Report) add(system string, repetition int, operation string, clients int, perSecond float64) *Sample {
	median, slow := 1000*float64(clients)/perSecond, 2200*float64(clients)/perSecond
	r.Samples = append(r.Samples, Sample{
		System: system, Repetition: repetition, Operation: operation, Clients: clients, Done: uint64(5 * perSecond),
		PerSecond: &perSecond, P50: &median, P99: &slow,
	})
	return &r.Samples[len(r.Samples)-1]
}

// example is a report with everything in it.
func example() *Report {
	r := &Report{
		Machine: Machine{Date: "2026-01-02", Commit: "abcdef0", CPU: "Example <CPU> & Co", Cores: 2, MemoryGiB: 24,
			Kernel: "Linux 6.1", Filesystem: "ext4", Go: "go1.26"},
		Command: "scripts/compare", Seconds: 5, Repetitions: 3, Clients: []int{1, 100, 1000}, Connections: 8,
		Skipped: []string{"Another: it did not build"},
	}
	for _, p := range plans {
		r.Systems = append(r.Systems, System{p.name, p.title})
	}
	for i, p := range plans {
		for repetition := range 3 {
			for at, clients := range r.Clients {
				speed := float64(at*8+1) * 1000 / float64(i+1) * (1 + .1*float64(repetition))
				s := r.add(p.name, repetition+1, put, clients, speed)
				each := float64(i+1) * 150
				s.CPU = &each
				if i == 0 {
					some := 3 / float64(clients)
					s.Syncs = &some
				}
				if p.name != "cometbft" {
					r.add(p.name, repetition+1, get, clients, 3*speed)
				}
			}
		}
	}
	r.Samples[1].Errors = 12
	for i, others := range []float64{.02, .4, .11} {
		r.Samples[i].Others = &others
	}
	r.Samples = append(r.Samples, Sample{System: "cometbft", Repetition: 3, Operation: put, Clients: 100, Failure: "it ended by itself"})
	return r
}

func TestReportAndPicture(t *testing.T) {
	r := example()
	for name, got := range map[string]string{"report.md": r.markdown("report.svg"), "report.svg": r.svg()} {
		file := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want := string(testdata(t, name)); got != want {
			t.Errorf("%s is not as on record; look at the difference after go test ./test/compare -update", name)
		}
	}
}

func TestNumbersHaveThreeDigits(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 0.012345: "0.0123", 0.5: "0.500", 1.2345: "1.23", 99.96: "100", 9.996: "10.0", 12.34: "12.3", 999.6: "1,000", 1234567: "1,234,567"} {
		if got := number(x); got != want {
			t.Errorf("%v: got %s, want %s", x, got, want)
		}
	}
}

func TestSectionIsReplacedBetweenItsMarks(t *testing.T) {
	const document = "# A\n\n<!-- compare:begin -->\nold\n<!-- compare:end -->\n\nmore\n"
	got, err := replaceSection(document, "compare", "new\n")
	if want := strings.Replace(document, "old", "new", 1); err != nil || got != want {
		t.Errorf("got %q, %v", got, err)
	}
	for _, document := range []string{"", "<!-- compare:begin -->\n", "<!-- compare:end -->"} {
		if _, err := replaceSection(document, "compare", "new"); err == nil {
			t.Errorf("%q has no marks", document)
		}
	}
}

func TestWrongUseIsRefused(t *testing.T) {
	for _, line := range []string{"--clients 0", "--clients x", "--systems mysql", "--duration 10ms", "--repetitions 0", "more", "--unknown", "--tool x", "--scopes 1", "--tool etcd --scopes 4", "--isolation --scopes 4", "--rate 5", "--tool etcd --systems cometbft"} {
		if _, err := parse(strings.Fields(line)); !errors.Is(err, errUsage) {
			t.Errorf("%s: %v", line, err)
		}
	}
	o, err := parse([]string{"--systems", "bft,etcd", "--clients", "5, 7"})
	if err != nil || len(o.plans) != 2 || o.plans[0].name != "etcd" || len(o.clients) != 2 || o.clients[1] != 7 {
		t.Errorf("%+v, %v", o, err)
	}
}
