package device

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/aweigh/aweigh/internal/plain"
)

// Bounds of a login.
const (
	usualLogin = 15 * time.Minute // if the issuer does not state when its code ends
	mostLogin  = time.Hour
	retries    = 5 // of polling, after answers that are no decision
	maxCode    = 64
)

// Login logs a person in: it prints to out the URL to open and the code to enter, waits until the person has done so,
// and keeps the token in its file.
func Login(ctx context.Context, c Config, out io.Writer) (Token, error) {
	c, err := c.withDefaults()
	if err != nil {
		return Token{}, err
	}
	s, err := c.discover(ctx)
	if err != nil {
		return Token{}, err
	}
	if s.oauth.Endpoint.DeviceAuthURL == "" {
		return Token{}, fmt.Errorf("device: %s does not offer the device authorization grant", c.Issuer)
	}
	grant, err := s.oauth.DeviceAuth(s.ctx)
	if err != nil {
		return Token{}, problem(err)
	}
	if err := show(out, grant); err != nil {
		return Token{}, err
	}
	answer, err := s.poll(grant)
	if err != nil {
		return Token{}, err
	}
	t, err := s.token(answer)
	if err != nil {
		return Token{}, err
	}
	return t, c.save(t)
}

// show prints what the person has to do. An issuer's text must not control the terminal.
func show(out io.Writer, g *oauth2.DeviceAuthResponse) error {
	for _, at := range []string{g.VerificationURI, g.VerificationURIComplete} {
		u, err := url.Parse(at)
		if at != "" && (err != nil || u.Scheme != "https" || !printable(at)) || g.VerificationURI == "" {
			return errors.New("device: the issuer returned no URL that begins with https://")
		}
	}
	if g.UserCode == "" || len(g.UserCode) > maxCode || !printable(g.UserCode) {
		return errors.New("device: the issuer returned no code that can be printed")
	}
	text := fmt.Sprintf("Open %s and enter the code %s\n", g.VerificationURI, g.UserCode)
	if g.VerificationURIComplete != "" {
		text += fmt.Sprintf("or open %s\n", g.VerificationURIComplete)
	}
	_, err := io.WriteString(out, text)
	return err
}

func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !plain.Prints(r) })
}

// poll asks the token endpoint until the person has decided, at the pace that the issuer asks for (RFC 8628, section
// 3.5).
func (s *session) poll(g *oauth2.DeviceAuthResponse) (*oauth2.Token, error) {
	now := time.Now()
	if g.Expiry.IsZero() {
		g.Expiry = now.Add(usualLogin)
	}
	if most := now.Add(mostLogin); g.Expiry.After(most) {
		g.Expiry = most
	}
	for try := 0; ; try++ {
		t, err := s.oauth.DeviceAccessToken(s.ctx, g)
		var e *oauth2.RetrieveError
		switch decided := errors.As(err, &e) && e.ErrorCode != ""; {
		case err == nil:
			return t, nil
		case s.ctx.Err() != nil:
			return nil, s.ctx.Err()
		case !time.Now().Before(g.Expiry):
			return nil, ErrExpired
		case decided || try == retries:
			return nil, problem(err)
		}
	}
}

// early is how long before its end an ID token is replaced.
const early = time.Minute

// Current returns the token that Login has kept, after a refresh if it ends soon. The error wraps ErrNone if there is
// none, or the issuer does not refresh it any more.
func Current(ctx context.Context, c Config) (Token, error) {
	c, err := c.withDefaults()
	if err != nil {
		return Token{}, err
	}
	t, err := c.load()
	if err != nil || time.Until(t.Until) > early {
		return t, err
	}
	fresh, err := c.refresh(ctx, t)
	if err == nil {
		return fresh, nil
	}
	if other, again := c.load(); again == nil && time.Until(other.Until) > early { // another process was faster
		return other, nil
	}
	if time.Now().Before(t.Until) {
		return t, nil
	}
	return Token{}, err
}

func (c Config) refresh(ctx context.Context, t Token) (Token, error) {
	if t.Refresh == "" {
		return Token{}, ErrNone
	}
	s, err := c.discover(ctx)
	if err != nil {
		return Token{}, err
	}
	answer, err := s.oauth.TokenSource(s.ctx, &oauth2.Token{RefreshToken: t.Refresh}).Token()
	if err != nil {
		return Token{}, problem(err)
	}
	fresh, err := s.token(answer)
	if err != nil {
		return Token{}, err
	}
	return fresh, c.save(fresh)
}
