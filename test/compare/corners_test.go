package main

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// TestCornersAreMultiplesOfTheSameRepetition: each repetition is held against etcd's own, and only then the median is
// taken.
func TestCornersAreMultiplesOfTheSameRepetition(t *testing.T) {
	var slow, fast, ours cornered
	slow[countP50], fast[countP50], ours[countP50] = 10, 2, 20
	var out strings.Builder
	systems := []System{{Name: "crash", Title: "C"}, {Name: baseline, Title: "E"}, {Name: "cometbft", Title: "none"}}
	cornersTable(&out, systems, [][]cornered{{ours, ours, ours}, {slow, fast, slow}, nil})
	lines := strings.Split(out.String(), "\n")
	if want := "| | C | times etcd | E |"; lines[0] != want {
		t.Errorf("the head is %q, want %q", lines[0], want)
	}
	want := "| " + cornerNames[countP50] + " | 20.0 (20.0–20.0) | 2.00 (2.00–10.0) | 10.0 (2.00–10.0) |"
	if got := lines[2+int(countP50)]; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if len(lines) != 2+int(cornersAll)+1 {
		t.Errorf("%d lines", len(lines))
	}
}

func TestOneMeasurementAtATime(t *testing.T) {
	for _, args := range []string{
		"--corners --isolation", "--corners --scopes 2", "--tool etcd --corners", "--isolation --scopes 3",
	} {
		if _, err := parse(strings.Fields(args)); !errors.Is(err, errUsage) {
			t.Errorf("%s: %v, want %v", args, err, errUsage)
		}
	}
	if o, err := parse([]string{"--corners"}); err != nil || !o.corners {
		t.Errorf("--corners alone: %+v, %v", o, err)
	}
}

func TestMemoryOfAProcess(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("there is no /proc")
	}
	now, most, err := memoryOf(os.Getpid())
	if err != nil || now < 1 || most < now {
		t.Errorf("%v MiB now, %v at most, %v", now, most, err)
	}
	if _, _, err := memoryOf(-1); err == nil {
		t.Error("a process that is not there has memory")
	}
}
