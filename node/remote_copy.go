package node

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
)

// A node copies keys of scopes that it does not hold, if clients read them often and let the answers be old. The copy
// is filled with answers of the scope's anchors, follows the changes that they give, and answers in their place. No
// answer of a copy is older than the scope's policy permits (limits.ttl), and none is used where this node knows that
// the scope has gone on.

const (
	copyAfter    = 60 // questions in a period, from which on the keys are copied
	copySeldom   = 10 // reads in a period, below which the copy is dropped
	copyPeriod   = time.Minute
	copyEvery    = 2 * time.Second  // between questions for changes, unless the scope is known to have gone on
	copySoon     = pollScopeEvery   // between questions, then
	copyLost     = 30 * time.Second // without an answer, after which a copy is dropped
	copyRefused  = time.Minute      // before another try to copy what could not be copied
	copyTooLarge = 10 * time.Minute // before another try, if it was too large
	maxCopies    = 64               // of a node
	maxDemands   = 1024             // ranges of which the questions are counted
	copyPage     = 256              // keys in a page
	copyShare    = 4                // a copy takes at most this part of the memory for copies

	// defaultCopyMemory is the budget of a node for its copies, in bytes.
	defaultCopyMemory = 64 << 20
)

// errCopyRoom means that there is no room for a copy.
var errCopyRoom = errors.New("node: no room for a copy")

// remoteCopies are the copies of a node.
type remoteCopies struct {
	limit         int64         // bytes; 0: no copies
	often, seldom int           // in a period
	period        time.Duration // in which reads and questions are counted
	answered      atomic.Uint64

	mu      sync.Mutex
	used    int64 // bytes
	all     map[copyRange]*remoteCopy
	demands map[copyRange]*demand
}

// copyRange are keys of a scope, in the sense of scope.Op.
type copyRange struct {
	scope    aweigh.ScopeID
	key, end string
}

// demand is how often anchors were asked for some keys, for reads that may be old.
type demand struct {
	since   time.Time // of the count
	asked   int
	refused time.Time // until when they are not to be copied
}

// newRemoteCopies returns the copies of a node, which are begun after so many questions in a period, and take so many
// bytes at most; a negative limit: none.
func newRemoteCopies(limit int64, often int) *remoteCopies {
	return &remoteCopies{
		limit: max(limit, 0), often: often, seldom: copySeldom, period: copyPeriod,
		all: make(map[copyRange]*remoteCopy), demands: make(map[copyRange]*demand),
	}
}

// CopyCounts is what the copies of a node hold now, and what they did.
type CopyCounts struct {
	Copies      int
	Limit, Used int64 // bytes
	Answered    uint64
}

// Copies returns what the copies of foreign keys hold.
func (n *Node) Copies() CopyCounts {
	c := n.copies
	c.mu.Lock()
	defer c.mu.Unlock()
	return CopyCounts{Copies: len(c.all), Limit: c.limit, Used: c.used, Answered: c.answered.Load()}
}

// remoteCopy is a copy of some keys of a scope that this node does not hold.
type remoteCopy struct {
	of    *remoteScope
	at    copyRange
	woken chan struct{} // holds a token when the scope is known to have gone on
	reads atomic.Int64  // in the present period

	mu    sync.RWMutex
	kvs   *referral.Copy
	bytes int64          // that it counts for
	as    aweigh.Instant // when it was asked for what kvs shows; 0: it is not full
	epoch aweigh.Epoch   // that was known then
}

// copied answers a read that may be old from a copy, if there is one that is fresh enough.
func (f *remoteScope) copied(ctx context.Context, key, end []byte, r *scope.Range) (res scope.RangeResult, head scope.Head, ok bool) {
	c := f.of.copies.covering(f.id, key, end)
	if c == nil {
		return res, head, false
	}
	c.reads.Add(1)
	f.mu.Lock()
	ttl, known, epoch := f.knows.Epoch().Policy.Limits.TTL, f.knows.Newest(), f.knows.Epoch().Number
	f.mu.Unlock()
	now := f.of.root.runner.now()
	c.mu.RLock()
	defer c.mu.RUnlock()
	age := now.Sub(c.as)
	switch {
	case c.as == 0, c.epoch != epoch, age >= ttl:
		return res, head, false
	case c.kvs.Revision() < known:
		c.wake()
		return res, head, false
	}
	res = c.kvs.Range(key, end, r)
	head = f.info().Head
	head.Revision = res.Revision
	f.of.copies.answered.Add(1)
	noteAge(ctx, max(age, 1))
	return res, head, true
}

func (x *remoteCopy) wake() {
	select {
	case x.woken <- struct{}{}:
	default:
	}
}

// covering returns a copy that has all keys of a range, or nil.
func (c *remoteCopies) covering(id aweigh.ScopeID, key, end []byte) *remoteCopy {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range c.all { // order-free: any serves
		if x.at.scope == id && x.kvs.Covers(key, end) {
			return x
		}
	}
	return nil
}

// asked counts a question of this node for some keys, for a read that may be old, and begins a copy of them if there
// were many. The path that the keys lie in is copied, or the keys alone if that cannot be.
func (f *remoteScope) asked(key, end []byte) {
	c := f.of.copies
	if c.limit == 0 || f.known().Policy.Limits.TTL < 2*copyEvery {
		return
	}
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, at := range f.copyRanges(key, end) {
		d := c.demand(at, now)
		if d == nil || now.Before(d.refused) {
			continue
		}
		if now.Sub(d.since) >= c.period {
			d.since, d.asked = now, 0
		}
		if d.asked++; d.asked >= c.often && c.all[at] == nil && len(c.all) < maxCopies {
			c.begin(f, at)
		}
		return
	}
}

// copyRanges returns what to copy so that a range can be read, the best first.
func (f *remoteScope) copyRanges(key, end []byte) (all []copyRange) {
	prefix := f.genesis.Prefix()
	if i := bytes.LastIndexByte(key, '/'); i >= 0 && bytes.HasPrefix(key[:i+1], prefix) {
		if path := key[:i+1]; len(end) == 0 || !scope.ToEnd(end) && bytes.Compare(end, scope.PrefixEnd(path)) <= 0 {
			all = append(all, copyRange{f.id, string(path), string(scope.PrefixEnd(path))})
		}
	}
	if own := (copyRange{f.id, string(key), string(end)}); len(all) == 0 || all[0] != own {
		all = append(all, own)
	}
	return all
}

// demand returns the count of a range, or nil if there is no room for one more. The caller holds mu.
func (c *remoteCopies) demand(at copyRange, now time.Time) *demand {
	if d := c.demands[at]; d != nil {
		return d
	}
	if len(c.demands) >= maxDemands {
		for k, d := range c.demands { // order-free: a filter
			if now.Sub(d.since) >= c.period && now.After(d.refused) {
				delete(c.demands, k)
			}
		}
		if len(c.demands) >= maxDemands {
			return nil
		}
	}
	d := &demand{since: now}
	c.demands[at] = d
	return d
}

// begin starts a copy. The caller holds mu.
func (c *remoteCopies) begin(f *remoteScope, at copyRange) {
	x := &remoteCopy{of: f, at: at, woken: make(chan struct{}, 1), kvs: referral.NewCopy([]byte(at.key), []byte(at.end))}
	if f.of.tasks.start("copying keys", func(ctx context.Context) {
		c.end(x, x.run(ctx))
	}) {
		c.all[at] = x
	}
}

// end drops a copy.
func (c *remoteCopies) end(x *remoteCopy, why error) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, x.at)
	c.used -= x.bytes
	d := c.demand(x.at, now)
	switch {
	case d == nil:
	case errors.Is(why, scope.ErrTooMuch):
		d.refused = now.Add(copyTooLarge)
	case why != nil:
		d.refused = now.Add(copyRefused)
	}
	if d != nil {
		d.since, d.asked = now, 0
	}
	x.of.of.cfg.Log.Debug("dropped a copy of keys of another scope", "key", x.at.key, "scope", string(x.of.genesis.Prefix()), "reason", why)
}

// reserve counts what a copy takes. The error wraps errCopyRoom if there is no room for it, and scope.ErrTooMuch if it
// is more than one copy may take.
func (c *remoteCopies) reserve(x *remoteCopy, bytes int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case bytes > c.limit/copyShare:
		return scope.ErrTooMuch
	case c.used-x.bytes+bytes > c.limit:
		return errCopyRoom
	}
	c.used += bytes - x.bytes
	x.bytes = bytes
	return nil
}

// run fills the copy and follows the scope, until ctx ends or the copy is of no use. The error says why it is not; nil:
// it is read seldom.
func (x *remoteCopy) run(ctx context.Context) error {
	if err := x.fill(ctx); err != nil {
		return err
	}
	copies, period, lost := x.of.of.copies, time.NewTicker(x.of.of.copies.period), time.Now()
	defer period.Stop()
	for {
		began := time.Now()
		done, err := x.follow(ctx)
		switch {
		case errors.Is(err, referral.ErrMute) && time.Since(lost) < copyLost:
		case err != nil:
			return err
		case !done:
			continue
		default:
			lost = began
		}
		next := time.NewTimer(copyEvery)
		select {
		case <-next.C:
		case <-x.woken:
			next.Reset(max(0, copySoon-time.Since(began)))
			select {
			case <-next.C:
			case <-ctx.Done():
			}
		case <-period.C:
			if x.reads.Swap(0) < int64(copies.seldom) {
				return nil
			}
		case <-ctx.Done():
		case <-x.of.of.root.runner.replies.done:
			return ErrStopped
		}
		next.Stop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// fill reads the keys, page by page, as of the revision of the first page.
func (x *remoteCopy) fill(ctx context.Context) error {
	key, end := []byte(x.at.key), []byte(x.at.end)
	r := scope.Range{Limit: copyPage}
	for {
		res, head, err := x.of.rangeAsked(ctx, key, end, r, false)
		if errors.Is(err, scope.ErrTooMuch) && r.Limit > 1 {
			r.Limit /= 4
			continue
		}
		if err != nil {
			return err
		}
		if r.Revision == 0 {
			r.Revision = head.Revision
		}
		x.mu.Lock()
		x.kvs.Fill(res.Kvs)
		bytes := x.kvs.Bytes()
		x.mu.Unlock()
		if err := x.of.of.copies.reserve(x, bytes); err != nil {
			return err
		}
		if !res.More {
			break
		}
		key = append(slices.Clone(res.Kvs[len(res.Kvs)-1].Key), 0)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.kvs.Full(r.Revision)
	return nil
}

// follow asks for the changes that come next. done is false if there are more.
func (x *remoteCopy) follow(ctx context.Context) (done bool, err error) {
	began := x.of.of.root.runner.now()
	got, revision, err := x.of.events(ctx, x.kvs.Watch(), false, 0)
	if err != nil {
		return false, err
	}
	x.mu.Lock()
	if done, err = x.kvs.Follow(&got, revision); done {
		x.as, x.epoch = began, x.of.known().Number
	}
	bytes := x.kvs.Bytes()
	x.mu.Unlock()
	if err == nil {
		err = x.of.of.copies.reserve(x, bytes)
	}
	return done, err
}
