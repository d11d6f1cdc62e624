package node

import (
	"time"

	"github.com/aweigh/aweigh"
)

// foreignFresh is for how long an answer is given again to those who do not ask for the
// newest. It is dropped before if the scope is known to have gone on.
const foreignFresh = 5 * time.Second

// maxCached bounds the answers that are kept of one scope, and maxCachedBytes one of them.
const (
	maxCached      = 256
	maxCachedBytes = 64 << 10
)

// cached is an answer that enough anchors gave.
type cached struct {
	answered
	at time.Time
}

// cached is an answer that was given lately.
func (f *foreign) cached(key aweigh.Hash) (answered, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, ok := f.cache[key]
	return c.answered, ok && time.Since(c.at) < foreignFresh
}

// heard notes what enough anchors said, as of when. What it shows to have happened since
// makes all that was kept old.
func (f *foreign) heard(a answered) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if a.Height > f.last.Height && a.Time <= f.of.runner.now().Add(f.epoch.Policy.Limits.Drift) {
		f.last = foreignAnswer{Height: a.Height, Time: a.Time, Revision: a.Revision}
	}
	if a.Revision > f.newest {
		f.newest = a.Revision
		clear(f.cache)
	}
}

// keep keeps an answer, unless the scope is known to have gone on since.
func (f *foreign) keep(key aweigh.Hash, a answered) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(a.Body) > maxCachedBytes || a.Revision < f.newest {
		return
	}
	if a.Revision > f.newest {
		clear(f.cache)
	}
	if len(f.cache) >= maxCached {
		for k, c := range f.cache { // order-free: a filter
			if time.Since(c.at) >= foreignFresh {
				delete(f.cache, k)
			}
		}
		if len(f.cache) >= maxCached {
			clear(f.cache)
		}
	}
	f.cache[key] = cached{a, time.Now()}
}
