package node

import (
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/scope"
)

// maxCached bounds the answers that are kept of one scope, and maxCachedBytes one of them.
const (
	maxCached      = 256
	maxCachedBytes = 64 << 10
)

// cached is an answer that enough anchors gave. It is given again to those who do not ask for
// the newest, for as long as the scope's policy says. It is dropped before if the scope is
// known to have gone on.
type cached struct {
	ForeignAnswer
	at aweigh.Instant
}

// cacheKey names what is kept as the answer to a question.
func cacheKey(a *ForeignAsk) aweigh.Hash {
	return canon.Hash("aweigh/foreign/1", *a)
}

func (f *ForeignScope) ttl() time.Duration { return f.epoch.Policy.Limits.TTL }

// cached is an answer that was given lately.
func (f *ForeignScope) cached(key aweigh.Hash, now aweigh.Instant) (ForeignAnswer, bool) {
	c, ok := f.cache[key]
	return c.ForeignAnswer, ok && now.Sub(c.at) < f.ttl()
}

// heard notes as of when enough anchors said something. What it shows to have happened since
// makes all that was kept old.
func (f *ForeignScope) heard(a *ForeignAnswer) {
	if a.Revision > f.newest {
		f.newest = a.Revision
		clear(f.cache)
	}
}

// time is what the scope's time has reached, by the highest revision that more of its anchors' weight spoke of than may lie.
func (f *ForeignScope) time() aweigh.Instant {
	if f.newest == 0 || f.genesis.Descent == nil {
		return 0
	}
	return scope.RevisionTime(f.genesis.Descent.Started, f.newest)
}

// stood notes where the scope stood when it answered, if that is not later than by now.
func (f *ForeignScope) stood(a *ForeignAnswer, now aweigh.Instant) {
	if a.Height > f.last.Height && a.Time <= now.Add(f.epoch.Policy.Limits.Drift) {
		f.last = ForeignAnswer{Height: a.Height, Time: a.Time, Revision: a.Revision}
	}
}

// keep keeps an answer that came in the time that began then, unless the scope is known to have gone on since.
func (f *ForeignScope) keep(key aweigh.Hash, a *ForeignAnswer, began aweigh.Instant) {
	if f.ttl() <= 0 || len(a.Body) > maxCachedBytes || a.Revision < f.newest {
		return
	}
	if a.Revision > f.newest {
		clear(f.cache)
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
