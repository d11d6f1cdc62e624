package node

import (
	"context"
	"sync/atomic"
	"time"
)

// Age tells how old the answer to a call is, as far as it comes from scopes that this node does not hold.
type Age struct {
	oldest     atomic.Int64
	remembered atomic.Bool
}

type ageKey struct{}

// Aged returns a context in which calls note the age of what they answer with.
func Aged(ctx context.Context) (context.Context, *Age) {
	a := new(Age)
	return context.WithValue(ctx, ageKey{}, a), a
}

// Oldest returns how long ago the anchors were asked for the oldest part of the answer; 0: none were.
func (a *Age) Oldest() time.Duration { return time.Duration(a.oldest.Load()) }

// noteAge notes in a context of Aged that a part of the answer is as old, and whether the node remembered it.
func noteAge(ctx context.Context, old time.Duration, remembered bool) {
	a, ok := ctx.Value(ageKey{}).(*Age)
	if ok && remembered {
		a.remembered.Store(true)
	}
	for ok && old > 0 {
		was := a.oldest.Load()
		if int64(old) <= was || a.oldest.CompareAndSwap(was, int64(old)) {
			return
		}
	}
}
