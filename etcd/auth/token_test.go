package auth

import (
	"errors"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/authn"
)

// TestTokensOfWrongClocksAreRefusedAsSuch, and not as invalid ones.
func TestTokensOfWrongClocksAreRefusedAsSuch(t *testing.T) {
	now := aweigh.InstantOf(time.Unix(1_000_000, 0))
	for _, c := range []struct {
		until time.Duration // from now on
		want  authn.Reason
	}{
		{-time.Second, authn.Expired}, {0, authn.Accepted}, {tokenFor, authn.Accepted}, {tokenFor + clocksApart, authn.Accepted},
		{tokenFor + clocksApart + time.Second, authn.Early},
	} {
		token := token{Until: now.Add(c.until)}
		err, refused := token.lasts(now), &authn.Refusal{}
		if errors.As(err, &refused); refused.Reason != c.want || (err == nil) != (c.want == authn.Accepted) {
			t.Errorf("good for %v: %v", c.until, err)
		}
	}
}
