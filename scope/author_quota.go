package scope

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/refusal"
)

// Quota bounds what all authors of an entry have together (P46), since keys that authors sign with cost nothing. A
// bound of 0 is none.
type Quota struct {
	_       struct{} `cbor:",toarray"`
	Rate    int64    // mutations a second, by the blocks' time; see rateBurst
	Bytes   int64    // of keys and their values that were last written under the entry
	Leases  int64    // that were granted under it
	Motions int64    // that were opened under it, and are open
}

const (
	// rateBurst is for how long an entry's mutations may be saved up: an entry with a rate of 5 may make 50 at once. A
	// scope may stand still for some seconds while its leader fails, and what clients sent meanwhile at their rate
	// comes in one block.
	rateBurst = 10 * time.Second
	// maxRate is from which on the time between two mutations would have no three digits of nanoseconds.
	maxRate = 1_000_000
)

// measure is something that a Quota bounds.
type measure uint8

const (
	byRate measure = iota
	heldBytes
	heldLeases
	openMotions
	measures int = iota
)

func (q *Quota) most(what measure) int64 {
	return [measures]int64{q.Rate, q.Bytes, q.Leases, q.Motions}[what]
}

func (q *Quota) check() error {
	for what, most := range [measures]int64{maxRate, math.MaxInt64, math.MaxInt64, math.MaxInt64} {
		if n := q.most(measure(what)); n < 0 || n > most {
			return fmt.Errorf("a quota of %d %s; it must lie between 0, which is none, and %d",
				n, [measures]string{"changes a second", "bytes", "leases", "motions"}[what], most)
		}
	}
	return nil
}

// interval is the time in which one mutation more is permitted.
func (q *Quota) interval() time.Duration { return time.Second / time.Duration(q.Rate) }

// ErrQuota is wrapped by failures of mutations for which no entry that permits them has room.
var ErrQuota = refusal.New(refusal.Full, "scope: over the quota of an author")

// What ErrQuota is about; both wrap it.
var (
	ErrRate       = fmt.Errorf("%w: too many changes", ErrQuota)
	ErrQuotaSpace = fmt.Errorf("%w: too many bytes", ErrQuota)
)

// exhausted is the failure of what an entry has no room for.
func (a *Author) exhausted(what measure) error {
	switch most := a.Quota.most(what); what {
	case byRate:
		return fmt.Errorf("%w: the entry %s may make %d a second; try again later, or ask for more", ErrRate, a.Name, most)
	case heldBytes:
		return fmt.Errorf("%w: the entry %s may hold %s; delete something, or ask for more", ErrQuotaSpace, a.Name, size(most))
	case heldLeases:
		return fmt.Errorf("%w: the entry %s may have %s; revoke one, or ask for more", ErrQuota, a.Name, counted(most, "lease"))
	default:
		return fmt.Errorf("%w: the entry %s may have %s; withdraw one, or ask for more", ErrQuota, a.Name, counted(most, "open motion"))
	}
}

// size is a number of bytes in the largest unit that shows it exactly.
func size(bytes int64) string {
	for _, unit := range []struct {
		bytes int64
		name  string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if bytes >= unit.bytes && bytes%unit.bytes == 0 {
			return fmt.Sprintf("%d %s", bytes/unit.bytes, unit.name)
		}
	}
	return fmt.Sprintf("%d bytes", bytes)
}

// quotaFailure is the failure that a recorded reason about a quota stands for, nil if it is about something else.
func quotaFailure(why string) error {
	for _, of := range []error{ErrRate, ErrQuotaSpace, ErrQuota} {
		if rest, ok := strings.CutPrefix(why, reason(of)+": "); ok {
			return fmt.Errorf("%w: %s", of, rest)
		}
	}
	return nil
}

// Usage is what the authors of an entry have under its quota. Counts of something go on when the entry loses its
// quota, and when the policy no longer has the entry.
type Usage struct {
	_       struct{}       `cbor:",toarray"`
	Full    aweigh.Instant // from when on it may make as many mutations as it could save up; 0, or past: it may now
	Bytes   int64
	Leases  int64
	Motions int64
}

// held is the count of something that is not a rate.
func (u *Usage) held(what measure) *int64 {
	return [measures]*int64{heldBytes: &u.Bytes, heldLeases: &u.Leases, openMotions: &u.Motions}[what]
}

// Made is how many mutations of those that an entry with a quota could save up are used at an instant.
func (u *Usage) Made(q *Quota, at aweigh.Instant) int64 {
	if q.Rate == 0 || u.Full <= at {
		return 0
	}
	return int64((u.Full.Sub(at) + q.interval() - 1) / q.interval())
}

// Burst is how many mutations an entry with a quota can save up.
func (q *Quota) Burst() int64 {
	if q.Rate == 0 {
		return 0
	}
	return int64(rateBurst / q.interval())
}

// makes counts one more mutation, unless there have been too many.
func (u *Usage) makes(q *Quota, at aweigh.Instant) bool {
	full := max(u.Full, at).Add(q.interval())
	if full.Sub(at) > rateBurst {
		return false
	}
	u.Full = full
	return true
}
