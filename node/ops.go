package node

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node/admission"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// Once makes it safe to send a request to the same node again: a request with the same nonce, instant, justification,
// caller and content is the same mutation, and is applied at most once. A zero nonce and instant are filled in.
type Once struct {
	Nonce         []byte         // 8 to 32 bytes
	ValidUntil    aweigh.Instant // the mutation is void afterwards
	Justification string         // kept in the lineage
	Caller        string         // for whom the node makes the request; see scope.Mutation.Caller
	Patient       bool           // it may only open a motion on keys; see scope.Mutation.Patient
	drawn         bool           // the nonce was drawn for this request: nothing with this nonce was signed before
}

// UndecidedError says that a mutation was not final when its caller stopped waiting. It may still become final until
// ValidUntil. It is safe to send the mutation again to the same node with the same Once.
type UndecidedError struct {
	Mutation   aweigh.Hash
	Scope      aweigh.ScopeID
	Prefix     []byte // of the scope; empty for the root scope
	ValidUntil aweigh.Instant
	Reachable  uint64 // weight of the anchors that this node is connected to, including its own
	Needed     uint64 // weight that a decision needs
	Kept       bool   // this node has it on disk, and continues after a restart
	Next       string // what can be done meanwhile; "": nothing is known
	Cause      error
}

// Error implements error.
func (e *UndecidedError) Error() string {
	why := "the network is slow or busy"
	if e.Reachable < e.Needed {
		why = fmt.Sprintf("no quorum: anchors of weight %d are reachable, %d is needed", e.Reachable, e.Needed)
	}
	pending := "may still commit"
	if e.Kept {
		pending = "is pending on this node's disk, and may still commit"
	}
	if len(e.Prefix) > 0 {
		why += fmt.Sprintf(", in the scope of %q", e.Prefix)
	}
	text := fmt.Sprintf("not committed yet: %s; mutation %s %s, in a block dated until %s, and repeating the request is safe",
		why, e.Mutation.Short(), pending, e.ValidUntil.Time().Format(time.RFC3339))
	if e.Next != "" {
		text += "; " + e.Next
	}
	return text
}

// Unwrap returns the caller's own reason to stop.
func (e *UndecidedError) Unwrap() error { return e.Cause }

// defaultValidity is how long a mutation may wait for a quorum if its request sets no ValidUntil.
const defaultValidity = time.Minute

// Txn proposes a transaction in this node's name and waits until it is final.
func (n *Replica) Txn(ctx context.Context, t scope.Txn, once Once) (machine.Receipt, error) {
	return n.proposeAt(ctx, scope.Write, canon.Encode(t), once, n.costs.NeedsPrice(n.epochs.epoch(), &t), t.OfKeys())
}

// Compact proposes to drop the content of revisions below the given one.
func (n *Replica) Compact(ctx context.Context, revision int64, once Once) (machine.Receipt, error) {
	return n.propose(ctx, scope.Compact, canon.Encode(scope.Compaction{Revision: revision}), once)
}

// filled returns a copy of once with its empty fields filled in.
func (n *Replica) filled(once Once) Once {
	once.draw()
	return once.dated(n.time())
}

// draw fills in the nonce.
func (o *Once) draw() {
	if o.Nonce == nil {
		o.Nonce, o.drawn = make([]byte, 16), true
		rand.Read(o.Nonce)
	}
}

// dated returns a copy of o with ValidUntil filled in, counted from an instant.
func (o Once) dated(from aweigh.Instant) Once {
	if o.ValidUntil == 0 {
		o.ValidUntil = from.Add(defaultValidity)
	}
	return o
}

// time returns the instant from which this node dates mutations for the scope: its clock, or the scope's time if that
// is ahead.
func (n *Replica) time() aweigh.Instant {
	now := n.runner.now()
	if s := n.runner.stand.Load(); s != nil && s.State != nil {
		now = max(now, s.State.Head().Time)
	}
	return now
}

// mutation returns a request in this node's name. once must be filled in.
func (n *Replica) mutation(class scope.Class, content []byte, once Once) scope.Mutation {
	return scope.Mutation{
		Scope: n.id, Class: class, Author: n.author, Content: content,
		Justification: once.Justification, Caller: once.Caller, Nonce: once.Nonce, ValidUntil: once.ValidUntil, Patient: once.Patient,
	}
}

func (n *Replica) propose(ctx context.Context, class scope.Class, content []byte, once Once) (machine.Receipt, error) {
	return n.proposeAt(ctx, class, content, once, class == scope.Act || class == scope.Name, false)
}

// proposeAt is propose, but a dear mutation is priced first, beside those of ranges if it is a transaction of keys.
func (n *Replica) proposeAt(ctx context.Context, class scope.Class, content []byte, once Once, dear, keys bool) (r machine.Receipt, err error) {
	once = n.filled(once)
	m := n.mutation(class, content, once)
	ctx, cancel := n.deadline(ctx)
	defer cancel()
	begin := time.Now()
	if err := n.mayWrite(ctx, class, 1); err != nil {
		return machine.Receipt{}, err
	}
	var reserve int64
	if dear && !once.drawn { // a repeated mutation costs nothing, whatever it would cost by now
		if _, known, err := n.outcome(scope.ID(m.Encode())); err != nil {
			return machine.Receipt{}, err
		} else if known {
			dear = false
		}
	}
	if dear {
		if reserve, err = n.price(ctx, m, noReserve, keys); err != nil {
			return machine.Receipt{}, err
		}
	}
	for tried := false; ; tried = true {
		if err := n.costs.WaitPriced(ctx, reserve, keys, n.prefix); err != nil {
			return machine.Receipt{}, err
		}
		s := &submission{ctx: ctx, mutation: m, reserve: reserve, alone: tried || once.Patient || class == scope.Rejoin, done: make(chan machine.Reply, 1)}
		if r, err = n.attempt(ctx, s); err != nil || r.Code != scope.Exceeded {
			break
		}
		n.costs.Underestimated()
		if reserve, err = n.price(ctx, m, reserve, keys); err != nil {
			if !once.drawn { // what was signed for an earlier request may still be ordered until its time is over
				err = n.undecided(err, scope.ID(m.Encode()), m.ValidUntil)
			}
			return machine.Receipt{}, err
		}
	}
	if err == nil {
		n.measured.commits.since(begin)
	}
	return r, err
}

// attempt hands in a submission, and waits for its outcome.
func (n *Replica) attempt(ctx context.Context, s *submission) (machine.Receipt, error) {
	m := s.mutation
	id := scope.ID(m.Encode())
	defer n.runner.replies.forget(id, s.done)
	select {
	case n.runner.submits <- s:
	case <-ctx.Done():
		return machine.Receipt{}, n.undecided(ctx.Err(), id, m.ValidUntil)
	case <-n.runner.replies.done:
		return machine.Receipt{}, n.runner.replies.stopped
	}
	r, err := n.receipt(ctx, id, s.done, m.ValidUntil)
	if errors.Is(err, scope.ErrDenied) && !s.again && n.currently(ctx) == nil {
		again := *s
		again.again, again.done = true, make(chan machine.Reply, 1)
		return n.attempt(ctx, &again)
	}
	in := ""
	if len(n.prefix) > 0 {
		in = fmt.Sprintf(" --scope %s", n.id)
	}
	return r, n.of.advised(err, in)
}

// advised adds to an error that the policy of a scope does not list this node how to propose that.
func (n *Node) advised(err error, in string) error {
	if err == nil || !errors.Is(err, scope.ErrNoAuthor) && err.Error() != scope.ErrNoAuthor.Error() { // as an anchor said it
		return err
	}
	key := n.cfg.Identity.Public()
	return fmt.Errorf("%w: this node writes with the key %s; at an anchor's node, propose to list it: aweigh auth grant NAME --public-key %s%s", err, key, key, in)
}

// currentIn is how long a denied request waits for the newest state.
const currentIn = 2 * time.Second

// currently waits until this node's state is as new as every write that was acknowledged before: a policy that denies a
// mutation may be an old one.
func (n *Replica) currently(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, currentIn)
	defer cancel()
	v, err := n.Read(ctx, true)
	if err != nil {
		return err
	}
	return v.Close()
}

// Submit takes a bundle that its author signed and waits until all of its
// mutations are final. The receipts are in the bundle's order.
func (n *Replica) Submit(ctx context.Context, raw []byte) ([]machine.Receipt, error) {
	b, err := scope.CheckBundle(raw, n.epochs.checker().Limits, votes.Verify)
	if err == nil && isSignal(b) {
		err = scope.ErrSignal
	}
	if err != nil {
		return nil, err
	}
	ctx, cancel := n.deadline(ctx)
	defer cancel()
	if err := n.mayWrite(ctx, scope.Write, len(b.Mutations())); err != nil {
		return nil, err
	}
	if err := n.costs.Wait(ctx, b.Looks(), n.prefix); err != nil {
		return nil, err
	}
	receipts, err := n.submit(ctx, machine.Submit{Bundle: b})
	if errors.Is(err, scope.ErrDenied) && n.currently(ctx) == nil {
		return n.submit(ctx, machine.Submit{Bundle: b})
	}
	return receipts, err
}

func (n *Replica) submit(ctx context.Context, ev machine.Submit) (_ []machine.Receipt, err error) {
	if err := n.of.pin.holds(); err != nil {
		return nil, err
	}
	b := ev.Bundle
	ctx, cancel := n.deadline(ctx)
	defer cancel()
	begin := time.Now()
	waiting := make([]chan machine.Reply, len(b.Mutations()))
	for i := range waiting {
		waiting[i] = make(chan machine.Reply, 1)
		id := b.Mutations()[i].ID
		n.runner.replies.expect(ctx, b.ID(), id, waiting[i])
		defer n.runner.replies.forget(id, waiting[i])
	}
	select {
	case n.runner.events <- ev:
	case <-ctx.Done():
		return nil, n.undecided(ctx.Err(), b.Mutations()[0].ID, b.ValidUntil())
	case <-n.runner.replies.done:
		return nil, n.runner.replies.stopped
	}
	receipts := make([]machine.Receipt, len(waiting))
	for i, done := range waiting {
		m := b.Mutations()[i]
		if receipts[i], err = n.receipt(ctx, m.ID, done, m.ValidUntil); err != nil {
			return nil, err
		}
		n.measured.commits.since(begin)
	}
	return receipts, nil
}

// mayWrite waits until this node's clients may hand in the given number of changes. Errors wrap ErrBusy, or are those
// of ctx; nothing was done then.
func (n *Replica) mayWrite(ctx context.Context, class scope.Class, changes int) error {
	if err := n.of.pin.holds(); err != nil || !admission.Paced(class) {
		return err
	}
	if err := n.pace.Wait(ctx, changes, &n.epochs.epoch().Policy, n.prefix); err != nil {
		return err
	}
	if n.cfg.FirstCome {
		return nil
	}
	return n.of.sharing.Wait(ctx, n.id, changes, n.prefix)
}

func (n *Replica) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, n.cfg.Timeout)
}

func (n *Replica) receipt(ctx context.Context, id aweigh.Hash, done chan machine.Reply, until aweigh.Instant) (machine.Receipt, error) {
	reply, err := n.runner.replies.wait(ctx, done)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return machine.Receipt{}, n.undecided(err, id, until)
	}
	if err != nil {
		return machine.Receipt{}, err
	}
	if reply.Outcome.Code == scope.Refused {
		return machine.Receipt{}, n.undecided(errEarly, id, until)
	}
	return machine.Receipt{Outcome: *reply.Outcome, Height: reply.Height, Epoch: reply.Epoch, Scope: n.id}, nil
}

// errEarly is why a mutation is undecided that was ordered when it was valid for longer than the policy allows. It is
// not of another scope, which is not taken, and so waits for no block. This is not on record, and it may be ordered
// again.
var errEarly = errors.New("node: it was ordered too long before its time is over")

// graceAfterDeadline is how long a request whose time is up already waits to learn why.
const graceAfterDeadline = 50 * time.Millisecond

func (n *Replica) undecided(cause error, id aweigh.Hash, until aweigh.Instant) error {
	n.measured.undecided.Add(1)
	now := n.seenWithin(graceAfterDeadline, id)
	r := n.reach(now.Status)
	return &UndecidedError{Mutation: id, Scope: n.id, Prefix: n.prefix, ValidUntil: until, Reachable: r.Weight, Needed: r.Needed, Kept: now.kept, Cause: cause}
}

// View is a consistent state of the scope. The caller must close it.
type View struct {
	*shared
	of           *views
	Linearizable bool // as new as every write that was acknowledged before the view was requested

	// Now is, for a linearizable view, the latest of the clocks of this node and of the anchors that answered.
	Now aweigh.Instant
}

// Close releases the view, once.
func (v *View) Close() error { return v.of.release(v.shared) }

// Look carries out a transaction that only reads, without the bounds of one that all nodes must execute. The scope
// must own its keys.
func (v *View) Look(t *scope.Txn) (referral.Looked, error) { return referral.Look(v.State, t, 0) }

// Read returns a view of the state. A linearizable read asks a quorum of anchors first (P23); any other returns what
// this node has, however old.
func (n *Replica) Read(ctx context.Context, linearizable bool) (*View, error) {
	if err := n.of.pin.holds(); err != nil {
		return nil, err
	}
	var now aweigh.Instant
	if linearizable {
		ctx, cancel := n.deadline(ctx)
		defer cancel()
		begin := time.Now()
		id, done := n.runner.replies.read()
		defer n.runner.replies.forgetRead(id)
		select {
		case n.runner.events <- machine.Read{ID: id}:
		case <-ctx.Done():
			return nil, n.unread(ctx.Err())
		case <-n.runner.replies.done:
			return nil, n.runner.replies.stopped
		}
		reply, err := n.runner.replies.wait(ctx, done)
		if err != nil {
			return nil, n.unread(err)
		}
		now = reply.Now
		n.measured.reads.since(begin)
	}
	s, err := n.views.open()
	if err != nil {
		return nil, err
	}
	return &View{shared: s, of: &n.views, Linearizable: linearizable, Now: now}, nil
}

// ErrUnread is wrapped when a linearizable read was not answered in time.
var ErrUnread = errors.New("node: too few anchors answered a linearizable read")

// unreadError is ErrUnread with what the node knows of the reason.
type unreadError struct {
	why   string
	cause error
}

// Error implements error.
func (e *unreadError) Error() string {
	// The command line replaces the hint: see staleHint in cmd/aweigh.
	return fmt.Sprintf("%v: %s; a serializable read is answered by this node alone, and may be old", ErrUnread, e.why)
}

// Unwrap gives ErrUnread and the caller's own reason to stop.
func (e *unreadError) Unwrap() []error { return []error{ErrUnread, e.cause} }

func (n *Replica) unread(cause error) error {
	if errors.Is(cause, ErrStopped) {
		return cause
	}
	n.measured.unanswered.Add(1)
	r := n.reach(n.statusWithin(graceAfterDeadline))
	why := "the network is slow or busy"
	refusing := 0
	for _, says := range r.Says { // order-free: a count
		if says.State == AnchorRefuses {
			refusing++
		}
	}
	switch {
	case r.Answers < r.Reads && refusing > 0:
		who := "1 anchor does"
		if refusing > 1 {
			who = fmt.Sprintf("%d anchors do", refusing)
		}
		why = fmt.Sprintf("%s not let this node read: it needs an invite (\"aweigh invite\" at a node that may read, and \"aweigh join FILE --data-dir DIR\" here)", who)
	case r.Answers < r.Reads:
		why = fmt.Sprintf("no quorum: anchors of weight %d are reachable, answers of %d are needed", r.Answers, r.Reads)
	}
	return &unreadError{why, cause}
}

// Changed returns a channel that is closed when the state has changed after the call.
func (n *Replica) Changed() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.changed
}

// History returns a reader of final blocks. It shows no block that a power failure could take away again.
func (n *Replica) History() machine.History {
	return machine.History{Reader: between{n.cfg.Store, &n.views.durable}, Scope: n.id}
}

// Limits returns the limits of the present epoch's policy.
func (n *Replica) Limits() scope.Limits { return n.epochs.checker().Limits }

// Authors returns the authors of the policy in force, as of the node's last block.
func (n *Replica) Authors() []scope.Author {
	e, err := n.runner.stand.Load().State.Epoch()
	if err != nil {
		return nil
	}
	return e.Policy.Authors
}

// Genesis returns the genesis of the scope.
func (n *Replica) Genesis() scope.Genesis { return *n.genesis }
