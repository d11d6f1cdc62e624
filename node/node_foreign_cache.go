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
	maxCached      = 1024
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

// keep notes what enough anchors said. What it shows to have happened since makes all that
// was kept old.
func (f *foreign) keep(key aweigh.Hash, a answered) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if a.Height > f.last.Height {
		f.last = foreignAnswer{Height: a.Height, Time: a.Time, Revision: a.Revision}
	}
	if a.Revision > f.newest {
		f.newest = a.Revision
		clear(f.cache)
	}
	if len(a.Body) > maxCachedBytes {
		return
	}
	if len(f.cache) >= maxCached {
		clear(f.cache)
	}
	f.cache[key] = cached{a, time.Now()}
}
