package scenario

import (
	"slices"
	"time"

	"github.com/aweigh/aweigh/quorum"
)

// Scenario is a whole run as plain data: the nodes and their links, liars and their attacks,
// faults and their times, clients' requests, and the time by which the network must have
// recovered. A Scenario and the version of this program determine every byte of a run.
//
// The zero value of a field means the default named beside it; WithDefaults
// fills them in. In YAML the keys are the names in lower case; durations read
// like 250ms, shares like 0.05, 5% or 1/3.
type Scenario struct {
	Name  string `yaml:"name,omitempty"`
	About string `yaml:"about,omitempty"` // one sentence for people
	Seed  uint64 `yaml:"seed,omitempty"`  // 1

	Network  Network       `yaml:"network,omitempty"`
	Links    Links         `yaml:"links,omitempty"`
	Roles    []Role        `yaml:"cast,omitempty"`   // anchors that no role names are honest
	Faults   Faults        `yaml:"faults,omitempty"` // of the world, not of people
	Govern   []Motion      `yaml:"govern,omitempty"` // nodes that join or leave, and when
	Load     Load          `yaml:"load,omitempty"`
	Approval Approval      `yaml:"approval,omitempty"` // motions and voters
	Bounds   Bounds        `yaml:"bounds,omitempty"`
	Stop     time.Duration `yaml:"stop,omitempty"`     // when clients and faults end; 10s
	Schedule string        `yaml:"schedule,omitempty"` // FateOf each frame of consensus in turn, in hex; none

	// Heal states what follows after Stop. Without it the run ends there.
	Heal *Heal `yaml:"heal,omitempty"`
	// Expect names the invariants that this scenario breaks, which only a scenario
	// whose faulty anchors weigh more than the fault budget may do. The run goes on
	// until all of them have broken, and fails if one has not.
	Expect []string `yaml:"expect,omitempty"`
	// Shows names goals, of Goals. If there are some, the run fails unless each
	// is reached and each attack of the roles has told a lie: it would show nothing.
	Shows []string `yaml:"shows,omitempty"`
}

// Network is the nodes of a scope and its policy.
type Network struct {
	Anchors   int           `yaml:"anchors,omitempty"`   // 7
	Observers int           `yaml:"observers,omitempty"` // nodes that follow without a vote, numbered after the anchors; 0
	Mode      string        `yaml:"mode,omitempty"`      // bft, crash or fast; bft
	Trust     []Share       `yaml:"trust,omitempty"`     // trust at the start, of the anchors in turn; all 1/2
	Finalize  Share         `yaml:"finalize,omitempty"`  // weight that a finalization must exceed, for a policy stricter than the mode's
	Timing    quorum.Timing `yaml:"timing,omitempty"`    // see quorum.Timing

	EpochBlocks int           `yaml:"epochblocks,omitempty"` // blocks in an epoch; 10,000
	EpochTime   time.Duration `yaml:"epochtime,omitempty"`   // after which an epoch ends that holds scope.Bounds.clockBlocks; 1h
	Whole       int           `yaml:"whole,omitempty"`       // blocks that earn all that an epoch can, see trust.Params; 64
	Judged      int           `yaml:"judged,omitempty"`      // contested motions that move blame as much as an epoch can, likewise; 4
	Reversal    int           `yaml:"reversal,omitempty"`    // epochs in which a motion can be reversed so that warnings are credited, likewise; 8
	Group       string        `yaml:"group,omitempty"`       // anchors that weigh at a time, as "aweigh policy set --group" has it: 4..7,replace=2; all
	Split       string        `yaml:"split,omitempty"`       // what scopes do about busy prefixes, as "aweigh policy set --split" has it; advise
	Transfers   bool          `yaml:"transfers,omitempty"`   // whether names move from and to the root scope
	Fold        string        `yaml:"fold,omitempty"`        // what becomes of such a scope that is quiet, as "aweigh policy set --fold" has it; advise
	Welcome     int           `yaml:"welcome,omitempty"`     // applications of liars that honest anchors approve; 0
	Guard       string        `yaml:"guard,omitempty"`       // of keys below /kept/, deletions, changes or nothing; nothing
	Authors     []string      `yaml:"authors,omitempty"`     // of the policy, as its text has them: alice who=any prefix=/a/; none: anyone may write
	When        []string      `yaml:"when,omitempty"`        // predicates of the rules of load.acts, in the place of those of rules
	Waits       []Wait        `yaml:"waits,omitempty"`       // approvals of what actors change; none
	Partitions  []string      `yaml:"partitions,omitempty"`  // of the policy, as its text has them: prefix=/isle/ share=2/5 after=2s gather=1s window=1m
	Notice      time.Duration `yaml:"notice,omitempty"`      // after which scopes that are founded can be revoked, or come home; 0: never
}

// Links states how frames travel. A frame takes the model's delay, which is
// drawn anew for each frame, so that frames overtake each other.
type Links struct {
	Model   string        `yaml:"model,omitempty"`   // uniform, constant, lognormal or regions; uniform
	Delay   time.Duration `yaml:"delay,omitempty"`   // least (uniform), exact (constant) or median (lognormal); 1ms
	Spread  time.Duration `yaml:"spread,omitempty"`  // uniform: added at most; lognormal: how far above Delay one frame in six is; 4ms
	Regions []string      `yaml:"regions,omitempty"` // regions: where the nodes stand, in turn; all that Regions lists
	Most    time.Duration `yaml:"most,omitempty"`    // no delay is longer; 10s
}

// Regions are the places that the wide-area model knows.
var Regions = []string{"virginia", "oregon", "ireland", "frankfurt", "saopaulo", "singapore", "tokyo", "sydney"}

// Role is a coalition: anchors that lie on one shared plan. It holds the keys of
// its own members only.
type Role struct {
	Attacks []string      `yaml:"play"`              // names of Attacks; all at once
	Anchors []int         `yaml:"anchors,omitempty"` // by number, from 0; observers among them hold keys, and no seat yet
	Count   int           `yaml:"count,omitempty"`   // in place of Anchors: so many, the last ones that no other role has
	Weight  string        `yaml:"weight,omitempty"`  // in place of Count: "budget", as many as may lie; "half" of them; "over", the fewest that are too many; "all" of the scope that In names
	Victims []int         `yaml:"victims,omitempty"` // half of the honest ones, chosen again as the attack goes on
	From    time.Duration `yaml:"from,omitempty"`    // honest before; 0s
	Until   time.Duration `yaml:"until,omitempty"`   // honest afterwards; 0s: to the end
	Every   time.Duration `yaml:"every,omitempty"`   // lies and is honest in turn, half of this period each; 0s: always
	Rate    Share         `yaml:"rate,omitempty"`    // of the occasions taken; 1/2
	Above   Share         `yaml:"above,omitempty"`   // a member lies while its own trust is at least this; 0: always
	During  string        `yaml:"during,omitempty"`  // "ending": lies only while an epoch ends
	In      string        `yaml:"in,omitempty"`      // prefix of a scope: lies in that one alone, and counts as honest elsewhere
}

// Motion is a change of membership or policy that anchors ask for at a time,
// and again until it is carried or Stop comes.
type Motion struct {
	Kind    string        `yaml:"kind"` // admit, retire, evict, attest, readmit, policy, delegate, revoke or fold
	At      time.Duration `yaml:"at,omitempty"`
	Node    int           `yaml:"node,omitempty"`    // its subject; not for policy
	Sponsor int           `yaml:"sponsor,omitempty"` // for admit: the anchor that stands surety
	By      []int         `yaml:"by,omitempty"`      // that approve; all honest anchors. An anchor retires by itself
	Score   Share         `yaml:"score,omitempty"`   // for attest
	// For delegate and revoke: the prefix that gets a scope of its own, and that scope's anchors; for fold the prefix
	// alone. The scope that has the prefix otherwise decides.
	Prefix  string `yaml:"prefix,omitempty"`
	Anchors []int  `yaml:"anchors,omitempty"` // of the scope; all of the network
	Mode    string `yaml:"mode,omitempty"`    // of the scope; the network's, or the one that it was founded with; for policy: bft or fast
	// For policy: what changes, with Mode; 0 leaves it as it is.
	EpochBlocks int           `yaml:"epochblocks,omitempty"`
	EpochTime   time.Duration `yaml:"epochtime,omitempty"`
	Share       Share         `yaml:"share,omitempty"`  // as Approval has it
	Guard       string        `yaml:"guard,omitempty"`  // as Network has it; or "nothing"
	Group       string        `yaml:"group,omitempty"`  // likewise; or "off"
	Author      string        `yaml:"author,omitempty"` // the entry of Network.Authors with this name goes, or comes back
}

// Faults are failures that no liar causes, until Stop.
type Faults struct {
	Loss      Share   `yaml:"loss,omitempty"`      // frames that never arrive
	Duplicate Share   `yaml:"duplicate,omitempty"` // frames that arrive twice
	Reorder   Share   `yaml:"reorder,omitempty"`   // frames that take up to ten times as long
	Crash     Share   `yaml:"crash,omitempty"`     // of a node's effects: it dies there, at most a third of the weight at a time
	Timed     []Fault `yaml:"timed,omitempty"`
}

// Moments at which a role lies or a fault begins, for Role.During and Fault.During.
const (
	DuringEnding   = "ending"   // while an epoch ends; of roles and faults
	DuringHandover = "handover" // when a scope is founded; of faults
)

// Fault is one thing that breaks at one time.
type Fault struct {
	Kind string        `yaml:"kind"`          // see FaultKinds
	At   time.Duration `yaml:"at,omitempty"`  // when it begins
	For  time.Duration `yaml:"for,omitempty"` // how long it lasts; 0s: until Stop
	// Nodes are the nodes with the fault. If none are named, at most a third is drawn; of disks that lie, one, if
	// the fault budget has room for it; of lag, as many as the others can do without.
	Nodes []int `yaml:"nodes,omitempty"`
	// Groups are the sides of a partition. Nodes named in none make one more side.
	Groups [][]int       `yaml:"groups,omitempty"`
	OneWay bool          `yaml:"oneway,omitempty"` // of a partition: the first side still gets the others' frames
	During string        `yaml:"during,omitempty"` // "ending": it begins each time that an epoch ends, from At on, and lasts For, or 500ms; "handover": each time that a scope is founded
	By     time.Duration `yaml:"by,omitempty"`     // clock offset, step or lead, time of a slow disk's sync, or delay of lag, firsthand and decisive; 1s
	Rate   int64         `yaml:"rate,omitempty"`   // clock drift in parts per million; of churn and lag: restarts
	Keep   string        `yaml:"keep,omitempty"`   // of a crash: unsynced writes that survive: none, some, all; some
}

// Load is what clients ask. Each has one request open at a time.
type Load struct {
	Clients  int           `yaml:"clients,omitempty"`  // 3, at the nodes in turn
	Writes   int           `yaml:"writes,omitempty"`   // in all; 30
	Reads    int           `yaml:"reads,omitempty"`    // linearizable, in all; 15
	Names    int           `yaml:"names,omitempty"`    // changes of aliases, in all
	Dear     int           `yaml:"dear,omitempty"`     // writes, in all, that exceed the cost they declare; none
	Programs int           `yaml:"programs,omitempty"` // bundles, in all, of mutations that conflict; none
	Visits   int           `yaml:"visits,omitempty"`   // requests, in all, of two nodes that hold no scope and go by referrals; none
	Verified int           `yaml:"verified,omitempty"` // verified reads, in all, of two readers that believe no node; none
	Keys     int           `yaml:"keys,omitempty"`     // 4
	Under    []string      `yaml:"under,omitempty"`    // prefixes of the keys, in turn; /
	Value    int           `yaml:"value,omitempty"`    // bytes; 16
	Leases   int           `yaml:"leases,omitempty"`   // clients that hold a lease for a while; none
	Swap     Share         `yaml:"swap,omitempty"`     // of the writes that compare first; 1/4
	Give     time.Duration `yaml:"give,omitempty"`     // a client gives up after so long, and does not know; 4s
	Bursts   int           `yaml:"bursts,omitempty"`   // clients and liars are busy in so many bursts of 3s, far apart; always
	Moves    bool          `yaml:"moves,omitempty"`    // in each burst, most writes and reads are under one of the prefixes, in turn
	Acts     int           `yaml:"acts,omitempty"`     // actions, writes and names, in all, under rules of the policy; none
	Isles    int           `yaml:"isles,omitempty"`    // requests, of each island, and about as many of the scope on the keys of network.partitions; none
	Probes   int           `yaml:"probes,omitempty"`   // linearizable reads, in all, where and when an old answer is most likely; none
}

// Leaves reports whether an anchor retires or is evicted: what it signed before is denied from then on.
func (s *Scenario) Leaves() bool {
	return slices.ContainsFunc(s.Govern, func(m Motion) bool { return m.Kind == "retire" || m.Kind == "evict" })
}

// Burst is how long a world that has Load.Bursts is busy at a time.
const Burst = 3 * time.Second

// Heal ends all faults: links are whole again, and every honest node is up and
// has its clock set right. Liars go on. If the honest nodes then have the weight for
// every rule of the policy, all earlier requests must be answered, each honest node
// must make a write of its own final, and all must reach the same state.
type Heal struct {
	Within time.Duration `yaml:"within,omitempty"` // 3m
}
