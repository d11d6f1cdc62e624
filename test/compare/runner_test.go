package main

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"testing"
	"time"
)

// recorder is a system that writes down what is done with it.
type recorder struct {
	name    string
	log     *[]string
	fails   error // of every load
	expects *[]float64
}

func (r recorder) start(_ context.Context, dir string) (*cluster, error) {
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		return nil, errors.Join(err, errors.New("the directory is not empty"))
	}
	*r.log = append(*r.log, r.name)
	return new(cluster), os.WriteFile(dir+"/file", nil, 0o600)
}

func (r recorder) load(_ context.Context, _ *cluster, w work) (loaded, error) {
	*r.expects = append(*r.expects, w.expected)
	if w.operation == get && r.name == "b" {
		return loaded{}, errNone
	}
	return loaded{done: 10, perSecond: 5, p50: 1, p99: 2}, r.fails
}

// recorders are three systems, a, b, c.
func recorders(t *testing.T, fails error) (r *runner, log *[]string, expects *[]float64) {
	log, expects = new([]string), new([]float64)
	r = &runner{
		report: &Report{Repetitions: 4, Clients: []int{1, 10}, Connections: 8},
		does:   []string{put, get}, duration: time.Second, dir: t.TempDir(), screen: io.Discard,
	}
	for _, name := range []string{"a", "b", "c"} {
		r.systems = append(r.systems, recorder{name, log, fails, expects})
		r.report.Systems = append(r.report.Systems, System{Name: name})
	}
	return r, log, expects
}

func TestSystemsTakeTurnsInRotatedOrder(t *testing.T) {
	r, log, expects := recorders(t, nil)
	if err := r.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", "b", "c", "b", "c", "a", "c", "a", "b", "a", "b", "c"}; !slices.Equal(*log, want) {
		t.Errorf("order %v, want %v", *log, want)
	}
	// Two numbers of clients, four repetitions, puts of three and gets of two.
	if got := len(r.report.Samples); got != 2*4*(3+2) {
		t.Errorf("%d samples", got)
	}
	if !slices.Equal((*expects)[:4], []float64{0, 5, 0, 5}) {
		t.Errorf("warm-ups and measures: %v", *expects)
	}
	if left, err := os.ReadDir(r.dir); err != nil || len(left) > 0 {
		t.Errorf("%d directories are left, %v", len(left), err)
	}
}

func TestAFailureIsOnRecordAndTheRestGoesOn(t *testing.T) {
	r, log, _ := recorders(t, errors.New("broken"))
	if err := r.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(*log) != 12 || len(r.report.Samples) == 0 {
		t.Fatalf("%v, %d samples", *log, len(r.report.Samples))
	}
	for _, s := range r.report.Samples {
		if s.Failure != "broken" || s.PerSecond != nil {
			t.Errorf("%+v", s)
		}
	}
	if notes := r.report.notes(); len(notes) != len(r.report.Samples) {
		t.Errorf("%d notes", len(notes))
	}
}

func TestInterruptionEndsTheRun(t *testing.T) {
	r, log, _ := recorders(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if len(*log) > 1 {
		t.Errorf("started %v", *log)
	}
}
