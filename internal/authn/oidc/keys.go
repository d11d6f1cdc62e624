package oidc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// periods of fetching keys; tests have shorter ones.
type periods struct {
	refresh    time.Duration // after which keys are fetched again
	apart      time.Duration // at least, between two fetches that tokens cause
	firstRetry time.Duration // after a fetch that failed, doubled up to mostRetry
	mostRetry  time.Duration
	keep       time.Duration // for which keys are used though no fetch succeeds: the issuer may have withdrawn them
	wait       time.Duration // of a request, at most, for a fetch
}

var usual = periods{
	refresh: 10 * time.Minute, apart: 10 * time.Second, firstRetry: time.Second, mostRetry: time.Minute,
	keep: time.Hour, wait: 5 * time.Second,
}

// Status is the state of fetching the keys of an issuer.
type Status struct {
	Issuer  string
	Keys    int       // that are in use
	Fetched time.Time // when they came; zero: never
	Failed  int       // fetches that failed since
	Err     error     // of the last fetch; nil if it succeeded, or none ended yet
}

// keys are an issuer's keys. The goroutine of run fetches them, and requests wait for it.
type keys struct {
	issuer  Issuer
	periods periods
	changed func(old, fresh *keySet) // before fresh is in use
	report  func(Status)
	wanted  chan struct{} // holds a token while a request wants a fetch

	mu       sync.Mutex
	set      *keySet // nil: none came yet
	fetching bool
	began    time.Time     // the last fetch
	ended    chan struct{} // closed with the fetch in progress, or the next
	failed   int
	err      error
}

func newKeys(i Issuer, p periods, changed func(old, fresh *keySet), report func(Status)) *keys {
	return &keys{
		issuer: i, periods: p, changed: changed, report: report,
		wanted: make(chan struct{}, 1), ended: make(chan struct{}),
	}
}

// run fetches keys until ctx ends.
func (k *keys) run(ctx context.Context) {
	for retry := k.periods.firstRetry; ; {
		k.begin()
		set, err := k.fetch(ctx)
		if ctx.Err() != nil {
			return
		}
		k.end(set, err)
		next := k.periods.refresh
		if err == nil {
			retry = k.periods.firstRetry
		} else {
			next, retry = retry, min(2*retry, k.periods.mostRetry)
		}
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-k.wanted:
		}
		timer.Stop()
	}
}

func (k *keys) begin() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fetching, k.began = true, time.Now()
	select {
	case <-k.wanted: // this fetch serves it
	default:
	}
}

func (k *keys) end(set *keySet, err error) {
	k.mu.Lock()
	if k.fetching, k.err = false, err; err == nil {
		k.changed(k.set, set)
		k.set, k.failed = set, 0
	} else {
		k.failed++
	}
	close(k.ended)
	k.ended = make(chan struct{})
	k.mu.Unlock()
	if k.report != nil {
		k.report(k.status())
	}
}

// status returns the state of fetching.
func (k *keys) status() Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := Status{Issuer: k.issuer.URL, Failed: k.failed, Err: k.err}
	if set := k.inUse(); set != nil {
		s.Keys = len(set.keys)
	}
	if k.set != nil {
		s.Fetched = k.set.at
	}
	return s
}

// inUse is the set of keys, nil if there is none, or it is too old. The caller holds mu.
func (k *keys) inUse() *keySet {
	if k.set != nil && time.Since(k.set.at) > k.periods.keep {
		return nil
	}
	return k.set
}

// current returns the keys that are in use, nil if there are none.
func (k *keys) current() *keySet {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.inUse()
}

var (
	errNone = errors.New("oidc: the issuer's keys are not here")
	errSoon = errors.New("oidc: the issuer was asked for its keys a moment ago")
)

// newer waits for a set of keys that comes after another. Fetches are apart from each other, so that tokens with
// invented key IDs cause few: it returns errSoon if the next fetch is not due. It returns errNone if the fetch failed,
// or takes long.
func (k *keys) newer(ctx context.Context, than *keySet) (*keySet, error) {
	k.mu.Lock()
	set, ended := k.inUse(), k.ended
	due := k.fetching || time.Since(k.began) >= k.periods.apart
	if set == than && due && !k.fetching {
		select {
		case k.wanted <- struct{}{}:
		default:
		}
	}
	k.mu.Unlock()
	switch {
	case set != than:
		return set, nil
	case !due && set == nil:
		return nil, errNone
	case !due:
		return nil, errSoon
	}
	timer := time.NewTimer(k.periods.wait)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	case <-ctx.Done():
	}
	if set = k.current(); set == than {
		return nil, errNone
	}
	return set, nil
}

// fetch asks the issuer for its keys.
func (k *keys) fetch(ctx context.Context) (*keySet, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	client, err := HTTPClient(k.issuer.CA)
	if err != nil {
		return nil, err
	}
	at := time.Now()
	all, err := discover(ctx, client, k.issuer.URL)
	if err != nil {
		return nil, fmt.Errorf("oidc: keys of %s: %w", k.issuer.URL, Brief(err))
	}
	return &keySet{all, at}, nil
}

func discover(ctx context.Context, client *http.Client, issuer string) ([]key, error) {
	p, err := oidc.NewProvider(oidc.ClientContext(ctx, client), issuer)
	if err != nil {
		return nil, err
	}
	var at struct {
		Keys string `json:"jwks_uri"`
	}
	if err := p.Claims(&at); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.Keys, http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, errors.New(resp.Status)
	}
	return parseKeys(text)
}
