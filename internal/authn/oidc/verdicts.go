package oidc

import (
	"crypto/sha256"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/aweigh/aweigh/internal/authn"
)

const (
	maxVerdicts = 4096
	verdictFor  = time.Minute
)

// verdicts holds the callers of tokens that were accepted, by the hash of the token. Refusals are not kept: invented
// tokens would push out the good ones, and cost one check of a signature each.
type verdicts struct {
	all   *lru.Cache[[sha256.Size]byte, verdict]
	epoch atomic.Uint64 // grows when an issuer withdraws a key: verdicts of before are void
}

type verdict struct {
	caller      authn.Identity
	from, until time.Time
	epoch       uint64
}

func newVerdicts() *verdicts {
	all, err := lru.New[[sha256.Size]byte, verdict](maxVerdicts)
	if err != nil {
		panic(err) // only of a size below 1
	}
	return &verdicts{all: all}
}

// get returns the caller of a token. A verdict does not hold before the time at which it was made: the clock went back.
func (v *verdicts) get(hash [sha256.Size]byte, now time.Time) (authn.Identity, bool) {
	x, ok := v.all.Get(hash)
	if !ok || x.epoch != v.epoch.Load() || now.Before(x.from) || !now.Before(x.until) {
		return authn.Identity{}, false
	}
	return x.caller, true
}

// put keeps the caller of a token that ends at a time. The epoch is the one before the token's keys were looked up.
func (v *verdicts) put(hash [sha256.Size]byte, caller authn.Identity, now, end time.Time, epoch uint64) {
	until := now.Add(verdictFor)
	if end.Before(until) {
		until = end
	}
	v.all.Add(hash, verdict{caller, now, until, epoch})
}

// changed voids verdicts if an issuer withdrew a key.
func (v *verdicts) changed(old, fresh *keySet) {
	if fresh.lacks(old) {
		v.epoch.Add(1)
	}
}
