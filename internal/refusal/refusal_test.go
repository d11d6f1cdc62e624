package refusal_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/aweigh/aweigh/internal/refusal"
)

func TestTheClassThatSaysMostDecides(t *testing.T) {
	malformed, invalid := refusal.New(refusal.Malformed, "malformed"), refusal.New(refusal.Invalid, "invalid")
	forged, stale := refusal.New(refusal.Forged, "forged"), refusal.New(refusal.Stale, "stale")
	damaged := refusal.New(refusal.Internal, "the store is damaged")
	for _, c := range []struct {
		err  error
		want refusal.Class
	}{
		{forged, refusal.Forged},
		{fmt.Errorf("a block: %w", fmt.Errorf("a ballot: %w", forged)), refusal.Forged},
		{fmt.Errorf("%w: %w", invalid, malformed), refusal.Invalid},
		{fmt.Errorf("%w: %w", malformed, invalid), refusal.Invalid},
		{fmt.Errorf("%w: %w", invalid, fmt.Errorf("%w: %w", malformed, stale)), refusal.Stale},
		{errors.Join(stale, forged), refusal.Stale},
		{fmt.Errorf("%w: %w", io.ErrUnexpectedEOF, invalid), refusal.Invalid},
		{fmt.Errorf("%w: %w", invalid, fmt.Errorf("%w: %w", damaged, forged)), refusal.Internal},
	} {
		if got := refusal.Of(c.err); got != c.want {
			t.Errorf("%v is %v, not %v", c.err, got, c.want)
		}
	}
}

// TestAnErrorWithoutAClassBlamesNoPeer: what this node did not foresee is its own fault.
func TestAnErrorWithoutAClassBlamesNoPeer(t *testing.T) {
	for _, err := range []error{nil, io.EOF, errors.New("unlisted"), fmt.Errorf("reading: %w", io.EOF), errors.Join(io.EOF, io.ErrNoProgress)} {
		if c := refusal.Of(err); c != refusal.Internal || c.Blame() {
			t.Errorf("%v is %v, blamed: %v", err, c, c.Blame())
		}
	}
	if new(refusal.Class).Blame() {
		t.Error("a note without a class blames its peer")
	}
}

func TestEqualTextsAreTwoErrors(t *testing.T) {
	a, b := refusal.New(refusal.Stale, "stale"), refusal.New(refusal.Stale, "stale")
	if errors.Is(a, b) || !errors.Is(fmt.Errorf("x: %w", a), a) {
		t.Error("errors.Is confuses them")
	}
}

func TestClassesHaveNames(t *testing.T) {
	seen := make(map[string]bool)
	for c := range refusal.Classes {
		if s := c.String(); s == "" || seen[s] {
			t.Errorf("class %d is called %q", c, s)
		}
		seen[c.String()] = true
	}
}
