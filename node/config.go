package node

import (
	"log/slog"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/p2p"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
	"github.com/aweigh/aweigh/votes"
)

// Config defines a node and where it keeps its data. Genesis, Identity and Store are required. Validate checks it.
type Config struct {
	Name     string // for people; the anchor's name in the genesis by default
	Version  string
	Genesis  scope.Genesis
	Identity votes.PrivateKey  // Ed25519: the libp2p identity, and the author of what this node admits
	Anchor   *votes.PrivateKey // signs ballots; nil for an observer
	// MakeAnchor makes and stores a key for a node without an anchor key when it applies for a seat in the roster. If
	// it is nil, such a node cannot apply.
	MakeAnchor func() (votes.PrivateKey, error)
	Store      store.Store // owned by the caller
	// Follow holds prefixes. The node holds the scopes below and above them, besides the root scope and the scopes in
	// which it is an anchor. nil: all scopes.
	Follow [][]byte
	Timing quorum.Timing

	Listen    []string // multiaddrs; see p2p.Config
	Announce  []string
	Bootstrap []string // multiaddrs with /p2p/
	Relay     bool
	Relays    []string // multiaddrs with /p2p/
	PerIP     int      // p2p.Config.PerAddressConns

	// Transport returns what connects the node to others. Default: a p2p.Host.
	Transport func(p2p.Config) (Transport, error)

	Trusted scope.Trusted // of the root scope: see Pin
	// Clock returns the time in what the node signs, and against which it holds what others sign. Default: time.Now.
	Clock func() time.Time
	// Timeout is how long a request waits to become final if its caller set no deadline. Default 10 s.
	Timeout time.Duration

	// SnapshotBehind is how many final blocks a node may lack and still fetch them one by one instead of a snapshot.
	// Default 5,000.
	SnapshotBehind aweigh.Height
	// Prune drops blocks all of whose changes were compacted, except the newest 2 × SnapshotBehind and those that
	// opened motions, carry out an order of the scope above or have proofs of faults.
	Prune bool
	// SnapshotPart is how many bytes of records a part of a snapshot has that this node gives. Default 1 MiB.
	SnapshotPart int
	// FirstCome handles clients' requests in the order of arrival. Otherwise, while processors are short, scopes with
	// far more writes than others give way to those.
	FirstCome bool
	// WatchMemory is how many bytes of the content of changes all watches of the node may hold. Default
	// defaultWatchMemory.
	WatchMemory int64
	// AnswerMemory is how many bytes the answers to ranges may hold together while they are read and sent. Default
	// defaultAnswerMemory.
	AnswerMemory int64
	// CopyMemory is how many bytes the copies of keys of scopes that the node does not hold may take. Below 0 there are
	// no copies. Default defaultCopyMemory.
	CopyMemory int64
	// CopyAfter is from how many questions in a minute on, for reads that may be old, such keys are copied. Default
	// copyAfter.
	CopyAfter int
	// WatchSlow is how long a client may take nothing of what was read for it, while others wait for room,
	// before it is disconnected. Default 10 s.
	WatchSlow     time.Duration
	snapshotEvery time.Duration   // how often a node looks whether it needs one
	idleAfter     time.Duration   // how long a scope has nothing to do before it counts as idle
	islandRest    time.Duration   // how long an island stays open once its outcome is final
	islandKept    time.Duration   // how long the records of one that rests are kept
	partTimeout   time.Duration   // for a part that it asked for
	bounds        *machine.Bounds // of machines; nil: the defaults

	Log *slog.Logger
}

// withDefaults returns cfg with the defaults for unset fields.
func (cfg Config) withDefaults() Config {
	if cfg.Timeout <= 0 {
		cfg.Timeout = 10 * time.Second
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.WatchMemory <= 0 {
		cfg.WatchMemory = defaultWatchMemory
	}
	if cfg.AnswerMemory <= 0 {
		cfg.AnswerMemory = defaultAnswerMemory
	}
	if cfg.CopyMemory == 0 {
		cfg.CopyMemory = defaultCopyMemory
	}
	if cfg.CopyAfter <= 0 {
		cfg.CopyAfter = copyAfter
	}
	if cfg.WatchSlow <= 0 {
		cfg.WatchSlow = 10 * time.Second
	}
	if cfg.SnapshotBehind == 0 {
		cfg.SnapshotBehind = 5000
	}
	if cfg.SnapshotPart <= 0 {
		cfg.SnapshotPart = partBytes
	}
	if cfg.partTimeout <= 0 {
		cfg.partTimeout = partTimeout
	}
	if cfg.idleAfter <= 0 {
		cfg.idleAfter = idleAfter
	}
	if cfg.islandRest <= 0 {
		cfg.islandRest = islandRest
	}
	if cfg.islandKept <= 0 {
		cfg.islandKept = islandKept
	}
	if cfg.snapshotEvery <= 0 {
		cfg.snapshotEvery = time.Second
	}
	if cfg.Transport == nil {
		cfg.Transport = libp2pHost
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.MakeAnchor == nil {
		cfg.MakeAnchor = func() (votes.PrivateKey, error) { return votes.PrivateKey{}, ErrNoAnchor }
	}
	return cfg
}

// keep returns how many of the newest blocks always stay: a node that lacks more takes a snapshot. 0: all stay.
func (cfg *Config) keep() aweigh.Height {
	if !cfg.Prune {
		return 0
	}
	return 2 * cfg.SnapshotBehind
}
