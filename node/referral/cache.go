package referral

import (
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/scope"
)

// maxCached bounds the answers that are kept of one scope, and maxCachedBytes the bytes of one of them.
const (
	maxCached      = 256
	maxCachedBytes = 64 << 10
)

// cached is an answer that enough anchors gave. It is used again for questions that do not ask for the newest state,
// for as long as the scope's policy says (Limits.TTL). It is dropped earlier if the scope is known to have changed.
type cached struct {
	Answer
	at aweigh.Instant
}

// cacheKey returns the key of the answer to a question.
func cacheKey(a *Question) aweigh.Hash {
	return canon.Hash("aweigh/foreign/1", *a)
}

func (f *Scope) ttl() time.Duration { return f.epoch.Policy.Limits.TTL }

// cached returns an answer that was given less than the TTL ago, and how old it is; ok is false if there is none.
func (f *Scope) cached(key aweigh.Hash, now aweigh.Instant) (a Answer, age time.Duration, ok bool) {
	c, ok := f.cache[key]
	if age = now.Sub(c.at); !ok || age >= f.ttl() {
		return a, 0, false
	}
	return c.Answer, max(age, 1), true
}

// heard notes the revision of an answer that enough anchors gave. If it is a new one, all cached answers are dropped.
func (f *Scope) heard(a *Answer) {
	if a.Revision > f.newest {
		f.newest = a.Revision
		clear(f.cache)
	}
}

// Time returns the time that the scope has reached according to Newest, or 0 if it is not known.
func (f *Scope) Time() aweigh.Instant {
	if f.newest == 0 || f.genesis.Descent == nil {
		return 0
	}
	return scope.RevisionTime(f.genesis.Descent.Started, f.newest)
}

// StoodAt notes the scope's height, time and revision at an answer, unless that time is too far ahead of now.
func (f *Scope) StoodAt(a *Answer, now aweigh.Instant) {
	if a.Height > f.last.Height && a.Time <= now.Add(f.epoch.Policy.Limits.Drift) {
		f.last = Answer{Height: a.Height, Time: a.Time, Revision: a.Revision}
	}
}

// keep caches an answer to a question that was asked at began, and that was heard, unless the scope is known to have
// changed since.
func (f *Scope) keep(key aweigh.Hash, a *Answer, began aweigh.Instant) {
	if f.ttl() <= 0 || len(a.Body) > maxCachedBytes || a.Revision < f.newest {
		return
	}
	if len(f.cache) >= maxCached {
		for k, c := range f.cache { // order-free: a filter
			if began.Sub(c.at) >= f.ttl() {
				delete(f.cache, k)
			}
		}
		if len(f.cache) >= maxCached {
			clear(f.cache)
		}
	}
	f.cache[key] = cached{*a, began}
}
