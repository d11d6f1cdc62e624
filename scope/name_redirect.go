package scope

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
)

// A key that has content names an object. The redirect of an alias that was moved counts
// only while the key has no content, and is deleted when the key names an object again.

// mayRedirect reports why no redirect can be left until an instant.
func (x *execution) mayRedirect(until aweigh.Instant) error {
	now := x.block.Header.Time
	switch {
	case until <= now || until.Sub(now) > MaxRedirect:
		return ErrUntil
	case x.names.Redirects >= x.bounds.Redirects:
		return ErrRedirects
	}
	return nil
}

// redirectTo leaves a redirect under a key that names nothing.
func (x *execution) redirectTo(key []byte, r redirect) error {
	x.names.Redirects++
	x.versions.Apply(kv.Set(x.space.redirectExpiry(r.Until, key), nil))
	return x.replace(x.space.redirect(key), r)
}

// deleteRedirect deletes the redirect under a key that comes to name an object.
func (x *execution) deleteRedirect(key []byte) error {
	if x.names.Redirects == 0 {
		return nil
	}
	r, err := x.redirect(key)
	if err != nil || r == nil {
		return err
	}
	return x.drops(x.space.redirectExpiry(r.Until, key), key)
}

func (x *execution) drops(end, key []byte) error {
	x.names.Redirects--
	x.versions.Apply(kv.Del(end))
	return x.replace(x.space.redirect(key), nil)
}

// dropExpiredRedirects drops redirects that are over at the block's time, the oldest first, at
// most due of them.
func (x *execution) dropExpiredRedirects(due int) error {
	if x.names.Redirects == 0 {
		return nil
	}
	var over [][]byte
	to := x.space.at(atRedirectExpiry, binary.BigEndian.AppendUint64(nil, uint64(x.block.Header.Time))...)
	err := x.r.Scan(x.space.at(atRedirectExpiry), to, false, func(k, _ []byte) bool {
		over = append(over, bytes.Clone(k))
		return len(over) < due
	})
	if err != nil {
		return err
	}
	for _, k := range over {
		key := k[len(x.space)+9:]
		r, err := x.redirect(key)
		if err == nil && r == nil {
			err = fmt.Errorf("%w: no redirect of %q", ErrCorrupt, key)
		}
		if err != nil {
			return err
		}
		if err := x.drops(k, key); err != nil {
			return err
		}
	}
	return nil
}

// redirects are those of the keys [key, end), in order: the first ones, so many at most.
func (x *execution) redirects(key, end []byte, most int) (found []Redirect, err error) {
	prefix := x.space.at(atRedirect)
	var bad error
	err = x.r.Scan(appendEscaped(bytes.Clone(prefix), key), kv.PrefixEnd(prefix), false, func(k, raw []byte) bool {
		at := bytes.Clone(keyOf(k[len(prefix):]))
		if !Within(at, key, end) {
			return false
		}
		var r redirect
		if bad = canon.Decode(raw, &r); bad != nil {
			bad = fmt.Errorf("%w: redirect of %q: %w", ErrCorrupt, at, bad)
			return false
		}
		found = append(found, Redirect{Key: at, To: r.To, Object: r.Object, Until: r.Until})
		return len(found) < most
	})
	return found, cmp.Or(err, bad)
}
