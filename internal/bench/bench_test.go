package bench

import (
	"errors"
	"testing"

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
	if err := (&Result{Errors: map[string]uint64{"odd": 1}}).Err(); err == nil {
		t.Error("an odd error is none")
	}
}
