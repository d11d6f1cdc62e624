package model

import (
	"maps"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// Model is a scope as its final blocks make it.
type Model struct {
	Executed   int            // mutations whose outcomes were reckoned
	Unmodelled map[string]int // what was taken from a node, by its kind

	bounds    scope.Bounds
	genesis   scope.Genesis
	id        aweigh.ScopeID
	revisions []revision // in order; the first is what the scope began with
	blocks    []*View    // by height; the first is the genesis
	receipts  map[aweigh.Hash]*receipt
	order     []aweigh.Hash // of receipts of mutations, as they came
	lists     []list        // of receipts that are not forgotten
	docket    motionIndex
	void      map[aweigh.Hash]*scope.Voided // approvers that signed both ways, by their keys
	returns   []*scope.CheckedMutation      // decisions to readmit such approvers that wait for the next epoch
	warnings  []*warning                    // contested motions that may be reversed, as they were carried
	outcomes  map[aweigh.Hash]scope.Outcome // of mutations, as they were executed first
	chains    map[aweigh.UID]int64          // the newest entry of each object, plus one
	walks     map[aweigh.UID]int            // entries of each object
	stored    stored
	language  *cel.Env // of predicates; nil: none was asked for
	programs  map[string]cel.Program
	founded   map[aweigh.ScopeID]*takeover // what the scopes below began with
	homings   map[string]*homing           // of scopes that are ordered to come home, by their prefixes
	folding   map[aweigh.Hash]bool         // motions that scopes come home
	handed    map[aweigh.UID]handed        // objects that went to other scopes
	went      map[int64]int64              // by the entry of an object that went: the number of its version
	islands   map[aweigh.ScopeID]*isle     // on record
	warmth    warmth
	traffic   traffic
	terms     []terms // of epochs in which islands may be founded, or could in the one before

	view  *View  // after the block that is being executed, or the last one
	block *block // that is being executed
}

// revision is the key space after one transaction that changed it.
type revision struct {
	number int64
	keys   map[string]scope.KeyValue
	events []event
}

// event is one change of one key.
type event struct {
	kv      scope.KeyValue // of a deletion, its place and the object
	deleted bool
	handed  bool           // the key went to another scope
	isle    aweigh.ScopeID // that made the change first; zero: none
}

// View is the scope as of one block.
type View struct {
	Height    aweigh.Height
	Block     aweigh.Hash
	Time      aweigh.Instant
	Revision  int64
	Compacted int64
	Lineage   int64 // entries

	model     *Model
	clocked   bool
	resumed   aweigh.Instant
	leases    map[int64]Lease
	objects   map[aweigh.UID]object
	redirects map[string]scope.Redirect
	sent      map[string]sent // names that are on their way to other scopes
	received  map[string]bool // what was decided about names that other scopes sent, see decisionAbout
	given     []scope.Delegation
	folds     []fold
	closed    bool // the scope went back to the one above
	access    scope.Access
	bytes     int64                     // of what is stored of versions
	charges   map[string]charge         // under quotas, by what they are for
	full      map[string]aweigh.Instant // by entry: from when on it may make as many mutations as it could save up
	docket    scope.MotionIndex
}

// New is the model of a root scope, which holds nothing at its genesis.
func New(g scope.Genesis) *Model {
	m := open(g)
	m.view.Revision = 1
	m.revisions = []revision{{number: 1, keys: make(map[string]scope.KeyValue)}}
	return m
}

func open(g scope.Genesis) *Model {
	m := &Model{
		Unmodelled: make(map[string]int), bounds: scope.DefaultBounds(), genesis: g, id: g.Hash(),
		receipts: make(map[aweigh.Hash]*receipt), stored: stored{of: make(map[string][]version), collected: place{revision: 1}},
		outcomes: make(map[aweigh.Hash]scope.Outcome), chains: make(map[aweigh.UID]int64), walks: make(map[aweigh.UID]int),
		founded: make(map[aweigh.ScopeID]*takeover), islands: make(map[aweigh.ScopeID]*isle), programs: make(map[string]cel.Program),
	}
	m.view = &View{
		Block: m.id, Time: g.Time, model: m, leases: make(map[int64]Lease), objects: make(map[aweigh.UID]object),
		redirects: make(map[string]scope.Redirect), sent: make(map[string]sent), received: make(map[string]bool), access: scope.Access{Revision: 1},
		charges: make(map[string]charge), full: make(map[string]aweigh.Instant),
	}
	m.folding, m.homings, m.handed, m.went = make(map[aweigh.Hash]bool), make(map[string]*homing), make(map[aweigh.UID]handed), make(map[int64]int64)
	m.docket.motions, m.void = make(map[votes.MotionID]*motion), make(map[aweigh.Hash]*scope.Voided)
	m.blocks = []*View{m.view}
	return m
}

// Within lets the model keep to other bounds. It returns the model.
func (m *Model) Within(b *scope.Bounds) *Model {
	m.bounds = *b
	return m
}

// Height is that of the last block.
func (m *Model) Height() aweigh.Height { return m.view.Height }

// Closed reports whether the scope went back to the one above.
func (m *Model) Closed() bool { return m.view.closed }

// At is the scope as of a height, nil if the model has not come as far.
func (m *Model) At(height aweigh.Height) *View {
	if int(height) >= len(m.blocks) {
		return nil
	}
	return m.blocks[height]
}

// Outcome is what became of a mutation in the block that executed it, if one did.
func (m *Model) Outcome(id aweigh.Hash) (scope.Outcome, bool) {
	out, ok := m.outcomes[id]
	return out, ok
}

// Told is what a node says of a block, and is believed.
type Told struct {
	Epoch *scope.Epoch    // of the block
	First int64           // entries in the lineage before the block
	Log   []lineage.Entry // that the block entered
	// Outcome is the receipt of a mutation, or of the bundle that exceeded what it declares.
	Outcome func(bundle, mutation aweigh.Hash) (scope.Receipt, bool)
	Impact  func(votes.MotionID) *scope.Impact // of a decision that the block opens a motion about
	Quiet   bool                               // the epoch that begins with the block says that the scope is quiet
	Closes  bool                               // the scope goes back to the one above with the block
	Below   func(aweigh.ScopeID) *Model        // of a scope that comes home, nil if there is none
}

// block is a block that is being executed.
type block struct {
	*scope.Block
	told     Told
	policy   *scope.Policy
	mutation *scope.CheckedMutation // whose changes are made; an empty one where leases expire
	changes  uint32                 // that it made so far
	merged   string                 // the reason of the put that a merge comes before
	keys     map[string]scope.KeyValue
	events   []event
	purse    purse               // of the mutation
	room     map[int64]volume    // that its puts leave in leases
	reach    []scope.Reach       // of it
	grows    int64               // bytes that its puts take at most
	bills    map[string]string   // by key: the entry that pays for what it puts there
	billed   map[string]int64    // by entry: what that adds at most
	carries  int64               // units that the motions which the block carries may still cost
	isle     *taken              // what is taken of an island
	homes    map[aweigh.UID]bool // identities of objects that came home
	arrived  map[aweigh.UID]bool // likewise, that other scopes sent

	entered int      // entries of told.Log that were looked at
	differ  []string // what the lineage says otherwise
}

// Apply executes the next block and returns the outcomes of its mutations. Differences are what the lineage says
// otherwise.
func (m *Model) Apply(b *scope.Block, told Told) (outcomes []scope.Outcome, differences []string) {
	before := m.view
	m.view = before.after(b)
	m.block = &block{Block: b, told: told, policy: &told.Epoch.Policy, carries: told.Epoch.Policy.Limits.BlockCost}
	m.forgetWarnings(told.Epoch, 0)
	m.begins()
	n, changed := 0, len(m.stored.changes)
	for _, c := range b.Bundles {
		n += len(c.Mutations())
	}
	if !told.Closes {
		m.forget(m.bounds.DueLeast + 2*n)
		m.collect(m.bounds.DueLeast + 2*n)
		m.dropExpiredRedirects(m.bounds.DueLeast + 2*n)
		m.expireLeases(before.Time)
		m.expireMotions()
	}
	for _, c := range b.Bundles {
		outcomes = m.bundle(c, outcomes)
	}
	m.vote()
	changes := m.stored.changes[changed:]
	m.cools(uint64(len(changes)))
	m.counts(changes)
	m.parts()
	m.decided()
	m.readmitted()
	m.hands()
	if told.Closes {
		m.voidAll()
	}
	m.superseded()
	m.entries()
	m.view.Lineage = told.First + int64(len(told.Log))
	m.view.dropUnusedRates()
	m.view.bytes, m.view.docket = m.stored.bytes, m.docket.sum()
	m.blocks = append(m.blocks, m.view)
	return outcomes, m.block.differ
}

// after is a copy for the next block.
func (v *View) after(b *scope.Block) *View {
	next := *v
	h := &b.Header
	next.Height, next.Block, next.Time = h.Height, b.Hash(), h.Time
	next.leases, next.objects = maps.Clone(v.leases), maps.Clone(v.objects)
	next.redirects, next.given = maps.Clone(v.redirects), slices.Clone(v.given)
	next.sent, next.received = maps.Clone(v.sent), maps.Clone(v.received)
	next.charges, next.full = maps.Clone(v.charges), maps.Clone(v.full)
	return &next
}

// unmodelled counts something that is taken from a node.
func (m *Model) unmodelled(kind string) { m.Unmodelled[kind]++ }

// keys is the newest key space; it must not be changed.
func (m *Model) keys() map[string]scope.KeyValue { return m.revisions[len(m.revisions)-1].keys }

// asOf is the key space as of a revision; it must not be changed.
func (m *Model) asOf(rev int64) map[string]scope.KeyValue {
	for i := len(m.revisions) - 1; i > 0; i-- {
		if m.revisions[i].number <= rev {
			return m.revisions[i].keys
		}
	}
	return m.revisions[0].keys
}

// since is the revisions after one, but for what the scope began with.
func (m *Model) since(rev int64) []revision {
	i := len(m.revisions)
	for i > 1 && m.revisions[i-1].number > rev {
		i--
	}
	return m.revisions[i:]
}

// next is the revision of the next transaction that changes something.
func (m *Model) next() int64 {
	next := m.view.Revision + 1
	if m.view.clocked {
		next = max(next, scope.ClockRevision(m.started(), m.block.Header.Time))
	}
	return next
}

func (m *Model) started() aweigh.Instant {
	if d := m.genesis.Descent; d != nil {
		return d.Started
	}
	return m.genesis.Time
}

// begin is where the changes of a mutation begin.
func (m *Model) begin(mut *scope.CheckedMutation) {
	x := m.block
	x.mutation, x.changes, x.events, x.keys = mut, 0, nil, maps.Clone(m.keys())
	x.bills, x.billed = nil, nil
}

// commit makes what was changed since begin one revision.
func (m *Model) commit() {
	x := m.block
	if x.changes > 0 {
		m.view.Revision = m.next()
		m.revisions = append(m.revisions, revision{m.view.Revision, x.keys, x.events})
	}
	x.changes, x.events, x.keys = 0, nil, nil
}

// revision is that of the key space as the transaction sees it.
func (m *Model) revision() int64 {
	if m.block.changes > 0 {
		return m.next()
	}
	return m.view.Revision
}

// reason is the text under which a failure stands on record.
func reason(err error) string { return strings.TrimPrefix(err.Error(), "scope: ") }
