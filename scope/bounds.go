package scope

import (
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/lineage"
)

// Bounds are the sizes, numbers and periods at which a scope forgets, refuses, divides or defers. The effects of a
// block depend on them, so all nodes of a scope must have the same. No policy sets them: production runs with
// DefaultBounds, and simulations with smaller ones, so that what happens at a bound happens often.
//
// The tag of a field is its least useful value. The constants have the reasons for the default values.
type Bounds struct {
	// Of what an epoch counts.
	RecentBlocks    int         `least:"4"`                  // back from the head, of which ballots can be reconciled
	TimelyBlocks    int         `least:"2"`                  // in which a ballot counts as in time
	MostSkipped     aweigh.View `least:"1"`                  // before a block, whose leaders are counted
	NonLeadingAfter uint32      `yaml:"restafter" least:"1"` // views led in vain
	AttendedBytes   int         `least:"128"`                // of signatures that a block reconciles

	// Of what an epoch counts of changes.
	Heat       int `least:"2"` // counters
	HeatLevels int `least:"1"` // paths above a key
	HeatPrefix int `least:"4"` // bytes of a path, or of a key
	HeatFailed int `least:"1"` // splits that failed, which are remembered

	// Of how the state is stored.
	ChangesInRun int `least:"1"`
	Lineage      lineage.Bounds
	CacheBytes   int `least:"1"`
	CacheRecord  int `least:"1"`
	Receipts     int `least:"1"` // that a cache knows of
	FewReceipts  int `least:"1"` // that are read again after memory was freed
	LongRecord   int `least:"1"` // from which on a digest is read from the lineage
	LeanKeys     int `least:"1"` // of a tree that is made again after memory was freed

	// Of the work that a block does besides its mutations.
	DueLeast     int   `least:"1"` // receipts, changes and redirects
	CollectBytes int64 `least:"1"`

	// Of decisions.
	ProposedAtOnce  int `least:"1"`
	OutsideAtOnce   int `least:"1"`
	GovernedByOne   int `least:"1"`
	GovernedOutside int `least:"1"`
	HandKeys        int `least:"1"`
	HandBytes       int `least:"256"`
	HomePart        int `least:"1"` // bytes of a part of what comes home

	// Of motions and ballots.
	MotionsOpen        int64         `least:"1"`
	MotionsOfOne       int64         `least:"1"`
	MotionsKept        int64         `least:"1"`
	MotionBytes        int64         `least:"4096"`
	MotionBytesOne     int64         `least:"4096"`
	UnlistedMotionStay time.Duration `yaml:"strangermotionstay" least:"1ms"`
	ExpiredAtOnce      int           `yaml:"lapsedatonce" least:"1"`
	ForgottenAtOnce    int           `least:"1"`
	KeptFor            time.Duration `least:"1s"`
	BallotBytes        int           `least:"5120"`
	BallotMotions      int           `least:"1"`
	Warnings           int           `least:"1"`
	WarningObjects     int           `least:"1"`
	WarningBytes       int           `least:"1"`

	// Of leases.
	Leases       int64         `least:"1"`
	LeaseKeys    int64         `least:"1"`
	LeaseBytes   int64         `least:"64"`
	ExpireLeases int           `least:"1"`
	ExpireKeys   int64         `least:"1"`
	ExpireBytes  int64         `least:"1"`
	LeaseHalt    time.Duration `least:"1s"`

	// Of names.
	Aliases   int   `least:"2"`
	Redirects int64 `least:"1"`
	Transfers int64 `least:"1"` // names on their way to other scopes
	Walked    int   `least:"1"`

	// Of islands.
	Islands int `least:"1"` // on record

	// Of answers.
	PlacesBytes int   `least:"1"`
	GivenMost   int64 `least:"65536"`
}

// DefaultBounds are those of production, and the largest that there may be.
func DefaultBounds() Bounds {
	return Bounds{
		Heat: heatCounters, HeatLevels: heatLevels, HeatPrefix: heatPrefix, HeatFailed: heatFailed,
		RecentBlocks: recentBlocks, TimelyBlocks: timelyBlocks, MostSkipped: mostSkipped, NonLeadingAfter: nonLeadingAfter, AttendedBytes: MaxAttendedBytes,
		ChangesInRun: changesInRun, Lineage: lineage.DefaultBounds(),
		CacheBytes: cacheBytes, CacheRecord: cacheRecord, Receipts: cacheReceipts, FewReceipts: fewReceipts, LongRecord: longRecord, LeanKeys: leanKeys,
		DueLeast: dueLeast, CollectBytes: collectBytes,
		ProposedAtOnce: proposedAtOnce, OutsideAtOnce: outsideAtOnce, GovernedByOne: governedByOne, GovernedOutside: governedOutside,
		HandKeys: handKeys, HandBytes: handBytes, HomePart: homePart,
		MotionsOpen: motionsOpen, MotionsOfOne: motionsOfOne, MotionsKept: motionsKept, MotionBytes: motionBytes,
		MotionBytesOne: motionBytesOne, UnlistedMotionStay: unlistedMotionStay,
		ExpiredAtOnce: expiredAtOnce, ForgottenAtOnce: forgottenAtOnce, KeptFor: keptFor,
		BallotBytes: MaxBallotBytes, BallotMotions: MaxBallotMotions,
		Warnings: maxWarnings, WarningObjects: warningObjects, WarningBytes: warningBytes,
		Leases: maxLeases, LeaseKeys: maxLeaseKeys, LeaseBytes: maxLeaseBytes,
		ExpireLeases: expireLeases, ExpireKeys: expireKeys, ExpireBytes: expireBytes, LeaseHalt: leaseHalt,
		Aliases: MaxAliases, Redirects: maxRedirects, Transfers: maxTransfers, Walked: mostWalked,
		Islands:     mostIslands,
		PlacesBytes: placesBytes, GivenMost: givenMost,
	}
}

// defaults are shared by all states that have no others. Nothing changes them.
var defaults = DefaultBounds()

// Within is the state under other bounds, which must not change any more.
func (s *State) Within(b *Bounds) *State {
	c := *s
	c.bounds = b
	return &c
}

// Bounds are those of the state. They must not be changed.
func (s *State) Bounds() *Bounds { return s.bounds }

// Within sets other bounds for the cache, and returns it.
func (c *Cache) Within(b *Bounds) *Cache {
	c.bounds = b
	return c
}
