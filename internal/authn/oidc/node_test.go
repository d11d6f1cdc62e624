package oidc

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/authn"
	"github.com/aweigh/aweigh/internal/testwait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var network = aweigh.Sum([]byte("a network"))

// quick are periods for tests: fetches that tokens cause may follow each other at once, and retries too.
var quick = periods{
	refresh: time.Hour, apart: 0, firstRetry: 3 * time.Millisecond, mostRetry: 30 * time.Millisecond, keep: time.Hour, wait: testwait.Patience,
}

// clock is a clock that tests set.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.at }

func (c *clock) add(d time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.at = c.at.Add(d) }

// node is an authenticator that runs until its test ends.
type node struct {
	*Authenticator
	clock *clock
	log   *logged // of what it reports, and of refusals
}

// logged is a log that tests read.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string { l.mu.Lock(); defer l.mu.Unlock(); return l.text.String() }

func start(t testing.TB, p periods, issuers ...Issuer) *node {
	t.Helper()
	n := &node{clock: &clock{at: time.Now()}, log: new(logged)}
	log := slog.New(slog.NewTextHandler(n.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var err error
	n.Authenticator, err = newWith(Config{Network: network, Issuers: issuers, Report: func(s Status) { log.Info("fetched", "status", s) }}, p, n.clock.now)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); n.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return n
}

// ask returns what a node makes of a token, in the words of the tables below.
func (n *node) ask(t testing.TB, token string) string {
	t.Helper()
	row := authn.Row{Authenticators: []authn.Authenticator{n}, Anonymous: true, Log: slog.New(slog.NewTextHandler(n.log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	id, refused := row.Authenticate(t.Context(), bearer(token))
	if refused != nil {
		for part := range strings.SplitSeq(token, ".") {
			if len(part) > 8 && (strings.Contains(refused.Error(), part) || strings.Contains(n.log.String(), part)) {
				t.Errorf("the token is in the error or in the log: %v\n%s", refused, n.log)
			}
		}
		return refused.Reason.String()
	}
	return id.String()
}

func bearer(token string) *authn.Request {
	h := http.Header{"Authorization": {"Bearer " + token}}
	return &authn.Request{Header: h.Values}
}
