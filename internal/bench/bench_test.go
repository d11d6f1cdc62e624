package bench

import (
	"errors"
	"testing"
	"time"

	"github.com/aweigh/aweigh/client"
)

func TestNothingDoneIsAnErrorOfTheMostTellingKind(t *testing.T) {
	for _, c := range []struct {
		name   string
		done   uint64
		errors map[string]uint64
		want   error
	}{
		{"some done", 1, map[string]uint64{"unreachable": 9}, nil},
		{"none asked", 0, nil, nil},
		{"unreachable", 0, map[string]uint64{"unreachable": 1}, client.ErrUnreachable},
		{"undecided", 0, map[string]uint64{"unreachable": 9, "undecided": 1}, client.ErrUndecided},
	} {
		r := &Result{Done: c.done, Errors: c.errors}
		if err := r.Err(); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
	lost := &client.Undecided{Cause: client.ErrUndecided} // which no flag of this command repeats
	err := (&Result{Errors: map[string]uint64{Undecided: 1}, Sample: lost}).Err()
	if !errors.Is(err, client.ErrUndecided) || errors.As(err, new(*client.Undecided)) {
		t.Errorf("of an undecided write: %v", err)
	}
	if err := (&Result{Errors: map[string]uint64{"odd": 1}}).Err(); err == nil {
		t.Error("an odd error is none")
	}
}

// TestRateIsOfTheTimeInWhichAnswersCame: what waited in vain until its timeout
// makes the others no slower.
func TestRateIsOfTheTimeInWhichAnswersCame(t *testing.T) {
	r := &Result{Done: 100, Took: 20 * time.Second, Active: 10 * time.Second, Errors: map[string]uint64{"undecided": 3}}
	if got := r.PerSecond(); got != 10 {
		t.Errorf("%v per second", got)
	}
	if r.Undecided() != 3 {
		t.Errorf("%d undecided", r.Undecided())
	}
	if got := (&Result{Took: time.Second}).PerSecond(); got != 0 {
		t.Errorf("without an answer, %v per second", got)
	}
}
