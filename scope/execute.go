package scope

import (
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/lthash"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/keytree"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/trust"
	"github.com/aweigh/aweigh/votes"
)

// Result is all that follows from a block.
type Result struct {
	Ops      []kv.Op   // the writes that make the next state
	Outcomes []Outcome // one for each mutation, in order
	Head     Head      // of the next state
	Trust    []trust.Change
	Motions  []votes.MotionID // that were opened, closed or forgotten
	// Forgotten are the minutes of motions that were forgotten, with what the block itself added.
	Forgotten []Minutes
	Next      *Epoch    // that begins with the block, if it ends one
	Terms     Terms     // of Next
	Founded   []Genesis // of the scopes to which the block delegates prefixes
	next      State
}

// State is the next state, read through r, which must show Ops on top of what
// the block was executed on.
func (res *Result) State(r kv.Reader) *State { return res.next.Over(r) }

// Outcome is what became of one mutation of a block.
type Outcome struct {
	Mutation  aweigh.Hash
	Code      Code
	Reason    string // why, if Code is Failed; see Failure
	Revision  int64  // of the key space after the mutation
	Succeeded bool   // the compares of a transaction held
	Responses []Response
	TTLs      []int64 // of a LeaseRequest's leases, in seconds; 0: it is not there. None for LeaseRevoke
}

// Execute is the state transition (P22): a pure function of the state and the
// block, which must follow it (CheckHeader) and be well-formed, its bundles and
// proofs checked. No content of a mutation can make the block fail; an error means
// that the store failed. A block may also be final without a vote of this node: the
// parts that only voters check (CheckAttended, CheckBallots, CheckRevocation) may
// then be invalid, if more weight lies than the fault budget.
//
// A block first does what its time has made due: it forgets the receipts of
// mutations that are void by now, compacted content and redirects that are over, each
// bounded in proportion to the block, and ends the leases that are over. Then its
// proofs of fault reach the trust ledger and its ballots on blocks the tally,
// motions whose deadline has come are closed, its mutations are executed in order,
// its ballots on motions are counted, the order of the scope above comes on the
// agenda, and if the block ends the epoch, the next one begins.
func (s *State) Execute(b *Block) (*Result, error) { return s.ExecuteFor(b, nil) }

// Wanted reports whether a request at this node waits for the responses of a mutation.
type Wanted func(mutation aweigh.Hash, author aweigh.Hash) bool

// ExecuteFor is Execute, but leaves out, for mutations that are not wanted, the parts of responses that need reads of
// their own: values before a change, and ranges. Everything else is the same.
func (s *State) ExecuteFor(b *Block, wanted Wanted) (*Result, error) {
	h := &b.Header
	must.Hold(h.Height == s.head.Height+1 && h.Parent == s.head.Block,
		"block %d is executed on the state of block %d", h.Height, s.head.Height)
	s, err := s.Begin()
	if err != nil {
		return nil, err
	}
	x := newExecution(s, b)
	x.wanted = wanted
	if h.Epoch == s.epoch.Number && !h.Next.IsZero() {
		if x.ends, err = s.successorAt(b.Header.Time); err != nil {
			return nil, err
		}
	}
	if x.ends == nil || !x.ends.closes { // otherwise the scope has gone home with what it holds
		if err := x.due(); err != nil {
			return nil, err
		}
	}
	for _, c := range b.Bundles {
		if err := x.bundle(c); err != nil {
			return nil, err
		}
	}
	if err := x.vote(); err != nil {
		return nil, err
	}
	if err := x.applyRevocation(s, b.Revocation); err != nil {
		return nil, err
	}
	x.warm()
	if err := x.succeed(s); err != nil {
		return nil, err
	}
	return x.finish()
}

// execution is a block being executed.
type execution struct {
	view     // of the versions as they are so far
	next     State
	block    *Block
	ends     *succession // of the epoch, nil if the block does not end it
	epoch    *Epoch      // in which the block is executed
	policy   *Policy     // of epoch
	tally    tally
	heat     *heat         // before the block
	findings []finding     // of motions that ended
	made     []change      // by the motion that was carried last
	ledger   *trust.Ledger // as it is so far, if it was read
	government
	log       *lineage.Log
	names     names                // as they are so far
	proposers map[aweigh.Hash]bool // see admitted; nil until it is asked for

	versions *kv.Overlay // on the parent's state: writes of versions, and of records of motions and names
	ops      []kv.Op     // all other writes
	entries  []lineage.Entry
	changed  []change
	held     []keytree.Change
	result   Result

	recorded  map[aweigh.Hash]Receipt // by this block
	expiries  expiries
	mutation  *CheckedMutation     // being executed
	author    aweigh.Hash          // whose rights are known
	rights    Rights               // of author
	purse     purse                // what it may still cost
	carries   int64                // units that the motions which the block carries may still cost
	gives     int64                // bytes that it would hold in memory, see givenMost
	priced    bool                 // the mutation is not to be executed: only what it would cost is asked for
	foresees  bool                 // what a decision would change is asked for, whether or not it opens a motion
	impact    *Impact              // of a decision, if that was asked for
	wanted    Wanted               // nil: all responses are
	changes   uint32               // that it made so far
	grows     int64                // what the puts planned so far take, in bytes, at most
	room      map[int64]volume     // that the transaction being planned leaves in leases
	merged    string               // the reason of the put that a merge comes before
	island    *island              // whose change is being taken; nil: none
	islanders map[aweigh.UID]bool  // identities of objects that came from islands in this block
	homes     map[aweigh.UID]bool  // likewise, from scopes that came home
	arrived   map[aweigh.UID]bool  // likewise, from scopes that sent them
	left      map[aweigh.UID]int64 // entries, plus one, with which objects left in this block
	onRecord  []IslandRecord       // the islands on record, by identity; nil until they are asked for
	bills     map[string]string    // by key: the entry that pays for what the mutation puts there, "": none; see bill
	billed    map[string]int64     // by entry: bytes that these bills add at most
	used      *usages              // as they are so far; those of next until they change
	leased    bool                 // the order in which leases end changed
	scratch   []byte               // for elements
	lanes     lthash.Lanes         // likewise
}

func newExecution(s *State, b *Block) *execution {
	x := &execution{
		next:     *s,
		block:    b,
		epoch:    s.epoch,
		policy:   &s.epoch.Policy,
		tally:    s.counted.clone(),
		heat:     s.warm,
		log:      s.Lineage(),
		names:    *s.named,
		versions: kv.NewOverlay(s.r),
		ops:      make([]kv.Op, 0, 3*b.Len()+64),
		entries:  make([]lineage.Entry, 0, b.Len()),
		changed:  make([]change, 0, b.Len()),
		held:     make([]keytree.Change, 0, b.Len()),
		recorded: make(map[aweigh.Hash]Receipt, b.Len()),
		carries:  s.epoch.Policy.Limits.BlockCost,
		used:     s.used,
	}
	sum := *s.sum // to be changed
	x.next.sum = &sum
	x.view = view{r: x.versions, space: s.space, bounds: s.bounds}
	x.result.Outcomes = make([]Outcome, 0, b.Len())
	return x
}

// execute does what a mutation asks for, or records why it cannot be done.
func (x *execution) execute(m *CheckedMutation, out *Outcome) error {
	x.begin(m)
	var pending bool
	failure, err := x.authorized(m)
	if failure == nil && err == nil && x.policy.IsIsland() {
		failure = m.islandTakes()
	}
	if err == nil && (failure == nil || x.purse.empty) { // what exceeds its cost as its grants are looked up counts as well
		if exhausted := x.paced(m); failure == nil {
			failure = exhausted
		}
	}
	if failure == nil && err == nil {
		switch m.Class {
		case Write:
			failure, pending, err = x.transact(m, out)
		case Act:
			failure, pending, err = x.act(m, out)
		case Compact:
			failure = x.compact(m.Comp.Revision)
		case Govern:
			failure, err = x.govern(m)
		case Lease:
			failure, err = x.leasing(m, out)
		case Name:
			failure, pending, err = x.name(m, out)
		case Withdraw:
			failure, err = x.withdraw(m)
		case Permit:
			failure, err = x.reaccess(m.Access)
		case Rejoin:
			failure, err = x.rejoin(m.Rejoins)
		case Bring:
			failure, err = x.bring(m.Brings)
		case Carry:
			failure, err = x.transfer(m.Carries)
		}
	}
	if err != nil {
		return err
	}
	out.Revision, out.Code = x.next.head.Revision, Applied
	switch {
	case failure != nil && x.purse.empty:
		must.Hold(x.changes == 0, "a mutation that exceeds its cost changed something")
		out.Code, out.Reason = Exceeded, reason(ErrTooMuch)
	case failure != nil:
		out.Code, out.Reason = Failed, reason(failure)
		x.enter(lineage.Entry{Class: lineage.Failed, Reason: out.Reason})
	case pending:
		out.Code = Pending
	}
	return nil
}

// transact executes the transaction of a mutation, or opens a motion for it.
func (x *execution) transact(m *CheckedMutation, out *Outcome) (failure error, pending bool, err error) {
	var p plan
	if failure = x.next.own.ownsAll(m.Txn); failure == nil {
		p, failure, err = x.plan(m.Txn)
	}
	if failure != nil || err != nil {
		return failure, false, err
	}
	needed, failure, err := x.asked(m, &p)
	if failure != nil || err != nil {
		return failure, false, err
	}
	if needed != nil {
		failure, err = x.propose(m, needed, &p)
		return failure, true, err
	}
	if m.Patient {
		return ErrPatient, false, nil
	}
	if x.priced {
		return nil, false, nil
	}
	if out.Responses, err = x.run(p); err != nil {
		return nil, false, err
	}
	out.Succeeded = p.succeeded
	x.next.head.Revision = x.revision()
	return nil, false, nil
}

// asked returns the approval that what a mutation changes needs, nil for none; failure is the reason why the mutation
// is not permitted.
func (x *execution) asked(m *CheckedMutation, p *plan) (needed *Approval, failure, err error) {
	all, err := x.spread(m, p)
	if err != nil {
		return nil, nil, err
	}
	if m.Naming == nil {
		failure = x.crowded(all)
	}
	if failure == nil {
		failure, err = x.permitted(m, all)
	}
	if failure != nil || err != nil {
		return nil, failure, err
	}
	needed, failure = x.policy.approval(all, m.asksBy())
	if needed == nil && failure == nil && m.Patient {
		needed = x.policy.apart(all)
	}
	return needed, failure, nil
}

// begin is where a mutation's changes begin.
func (x *execution) begin(m *CheckedMutation) {
	x.mutation, x.changes, x.room, x.grows, x.gives, x.bills, x.billed = m, 0, nil, 0, 0, nil, nil
	x.purse.allowed, x.purse.empty, x.merged = m.allowed, false, ""
}

// revision is the key space's revision as the transaction sees it: one more
// from its first change on.
func (x *execution) revision() int64 {
	if x.changes > 0 {
		return x.nextRevision()
	}
	return x.next.head.Revision
}

// nextRevision is that of the next transaction that changes something. Once a
// network has several scopes, revisions of all of them go by the blocks' time, so
// that they compare: a hybrid logical clock (Kulkarni et al., "Logical Physical
// Clocks", 2014) of milliseconds since the network's start, and a count.
func (x *execution) nextRevision() int64 {
	next := x.next.head.Revision + 1
	if h := &x.next.head; h.Clocked {
		next = max(next, ClockRevision(h.Started, x.block.Header.Time))
	}
	return next
}

// ClosedTimestamp is a revision up to which the state has all changes that there will ever be.
func (h *Head) ClosedTimestamp() int64 {
	if !h.Clocked {
		return h.Revision
	}
	return max(h.Revision, ClockRevision(h.Started, h.Time)-1)
}

// ClockRevision is the least revision of what a block of this time changes, in a
// network of several scopes.
func ClockRevision(started, at aweigh.Instant) int64 {
	return int64(at.Sub(started)/time.Millisecond) << 20
}

// RevisionTime is the latest time, in whole milliseconds, whose blocks give a revision or one before it, in a network
// of several scopes: ClockRevision the other way.
func RevisionTime(started aweigh.Instant, revision int64) aweigh.Instant {
	return started.Add(time.Duration(revision>>20) * time.Millisecond)
}

// place is where the transaction's next change stands in the order of changes.
func (x *execution) place() revision { return revision{x.nextRevision(), x.changes} }

// store writes a version, counts it as a change, and charges it to the entry that pays for it. It returns its digest.
func (x *execution) store(v *KeyValue) (aweigh.Hash, error) {
	k, record := x.space.version(v.Key, v.at()), v.record()
	x.versions.Apply(kv.Set(k, record))
	x.changed = append(x.changed, change{v.at(), v.Key})
	x.changes++
	x.next.head.Bytes += recordBytes(k, record)
	digest := x.addElement(k, record)
	x.setLeaf(v.Key, HoldsVersion, digest, v.Version == 0)
	return digest, x.chargeFor(v)
}

// addElement puts a record into the digest and returns its element.
func (x *execution) addElement(k, record []byte) aweigh.Hash {
	var h aweigh.Hash
	h, x.scratch = element(x.scratch, k, record)
	x.next.sum.Add(h, &x.lanes)
	return h
}

func (x *execution) removeElement(k, record []byte) {
	var h aweigh.Hash
	h, x.scratch = element(x.scratch, k, record)
	x.next.sum.Remove(h, &x.lanes)
}

// nextEntry is the index in the lineage of the next entry.
func (x *execution) nextEntry() int64 { return x.next.head.LineageSize + int64(len(x.entries)) }

// enter puts an entry about the current mutation into the lineage.
func (x *execution) enter(e lineage.Entry) {
	h, m := &x.block.Header, x.mutation
	e.Scope, e.Height, e.Index = h.Scope, h.Height, uint32(len(x.entries))
	e.Mutation, e.Author, e.Justification, e.Caller = m.ID, m.Author, m.Justification, m.Caller
	e.Principal = m.granted()
	if x.island != nil && e.Reason == "" {
		e.Reason = x.island.reason
	}
	e.Revision, e.Policy, e.Roster = x.revision(), h.Policy, h.Roster
	x.entries = append(x.entries, e)
}

// storeLedger writes the trust ledger if the block changed it.
func (x *execution) storeLedger() {
	if l := x.ledger; l != nil {
		x.next.head.Ledger = l.Digest()
		x.ops = append(x.ops, kv.Set(x.space.at(atLedger), l.Encode()))
	}
}

// finish closes the block: lineage, expiries, head.
func (x *execution) finish() (*Result, error) {
	x.expire()
	if err := x.nextLease(); err != nil {
		return nil, err
	}
	ops, err := x.log.Append(x.entries...)
	if err != nil {
		return nil, err
	}
	head, err := x.log.Head()
	if err != nil {
		return nil, err
	}
	x.ops = append(append(x.ops, ops...), x.space.changeRuns(x.changed, x.bounds.ChangesInRun)...)

	h, s := &x.block.Header, &x.next
	s.head.Epoch, s.head.View, s.head.Height = h.Epoch, h.View, h.Height
	s.head.Block, s.head.Time = x.block.Hash(), h.Time
	s.head.LineageSize, s.head.LineageRoot = head.Size, head.Root
	x.storeLedger()
	x.storeAgenda()
	if err := x.storeCurrent(); err != nil {
		return nil, err
	}
	if err := x.storeNames(); err != nil {
		return nil, err
	}
	if err := x.storeUsage(); err != nil {
		return nil, err
	}
	tally := x.tally
	tally.found(&s.epoch.Roster, x.findings)
	s.tally, s.counted = tally.encode(), &tally
	if s.warm != x.heat {
		s.heat = s.warm.encode()
	}
	s.head.Digest = s.digest()
	s.log = x.log

	x.result.Head, x.result.next = s.head, *s
	x.result.Ops = append(append(x.versions.Ops(), x.ops...), s.write())
	return &x.result, nil
}
