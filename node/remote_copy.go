package node

import (
	"bytes"
	"context"
	"errors"
	"math"
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
	copyAfter   = 60               // questions in a period, from which on the keys are copied
	copySeldom  = 30               // reads in a period, below which a copy is dropped: about what it asks itself
	copyPeriod  = time.Minute      // in which both are counted
	copyEvery   = 2 * time.Second  // between a copy's questions, unless more was shown to clients than it has
	copySoon    = pollScopeEvery   // between questions, then
	copyLost    = 30 * time.Second // without an answer, after which a copy is dropped
	copyRefused = 10 * time.Minute // before another try to copy what could not be copied, or did not pay
	copyRetried = time.Minute      // before another try, if it may pass
	maxCopies   = 64               // of a node
	maxDemands  = 1024             // ranges of which the questions are counted
	copyShare   = 4                // a copy takes at most this part of the memory for copies
	copyFree    = 1 << 20          // bytes that a copy may cost in a period, whatever it serves

	// defaultCopyMemory is the budget of a node for its copies, in bytes.
	defaultCopyMemory = 64 << 20
)

// Why a copy ends.
var (
	errCopyRoom = errors.New("node: no room for a copy")
	errCopyCost = errors.New("node: a copy costs more than it serves")
)

// remoteCopies are the copies of a node.
type remoteCopies struct {
	limit         int64         // bytes; 0: no copies
	often, seldom int           // in a period
	filling       chan struct{} // holds a token while a copy is filled
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
		limit: max(limit, 0), often: often, filling: make(chan struct{}, 1), seldom: copySeldom, period: copyPeriod,
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
	woken chan struct{} // holds a token when clients were shown more than it has, or another epoch is known
	bytes int64         // that it counts for; guarded by the copies' mu

	// In the present period:
	reads  atomic.Int64 // that it answered
	missed atomic.Int64 // and did not
	served atomic.Int64 // bytes of their answers

	mu    sync.RWMutex
	kvs   *referral.Copy
	as    aweigh.Instant // when it was asked for what kvs shows; 0: it is not full
	epoch aweigh.Epoch   // that was known then
	least int64          // revision of its keys that clients were shown
}

// copied answers a read that may be old from a copy, if there is one that is fresh enough.
func (f *remoteScope) copied(ctx context.Context, key, end []byte, r *scope.Range) (res scope.RangeResult, head scope.Head, ok bool) {
	x := f.of.copies.covering(f.id, key, end)
	if x == nil {
		return res, head, false
	}
	known := f.known()
	now := f.of.root.runner.now()
	x.mu.RLock()
	defer x.mu.RUnlock()
	age := now.Sub(x.as)
	switch {
	case x.as == 0:
		return res, head, false
	case age >= known.Policy.Limits.TTL:
		x.missed.Add(1)
		return res, head, false
	case x.epoch != known.Number, x.kvs.Revision() < x.least:
		x.missed.Add(1)
		x.wake()
		return res, head, false
	}
	res = x.kvs.Range(key, end, r)
	head = f.info().Head
	head.Revision = res.Revision
	f.of.copies.answered.Add(1)
	x.reads.Add(1)
	x.served.Add(int64(bytesOf(res.Kvs)))
	noteAge(ctx, max(age, 1), true)
	return res, head, true
}

// bytesOf returns the bytes of pairs, about.
func bytesOf(kvs []scope.KeyValue) (bytes int) {
	for i := range kvs {
		bytes += len(kvs[i].Key) + len(kvs[i].Value) + pairOver
	}
	return bytes
}

func (x *remoteCopy) wake() {
	select {
	case x.woken <- struct{}{}:
	default:
	}
}

// shown notes that clients were shown some keys as of a revision, so that no copy shows less of them from now on.
// Without ranges, these are all keys of the scope.
func (f *remoteScope) shown(ranges referral.Ranges, revision int64) {
	c := f.of.copies
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range c.all { // order-free: each for itself
		if x.at.scope != f.id {
			continue
		}
		touches := ranges == nil
		if !touches {
			ranges(func(key, end []byte) bool {
				touches = scope.Overlap(key, end, []byte(x.at.key), []byte(x.at.end))
				return !touches
			})
		}
		if touches {
			x.mu.Lock()
			x.least = max(x.least, revision)
			x.mu.Unlock()
		}
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
	f.mu.Lock()
	newest := f.knows.Newest()
	f.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, at := range f.copyRanges(key, end) {
		d := c.demand(at, now)
		if now.Before(d.refused) {
			continue
		}
		if now.Sub(d.since) >= c.period {
			d.since, d.asked = now, 0
		}
		if d.asked++; d.asked >= c.often && c.all[at] == nil && len(c.all) < maxCopies {
			c.begin(f, at, newest)
		}
		return
	}
}

// copyRanges returns what to copy so that a range can be read, the best first: the keys with the same path, as far as
// the scope has not delegated them, and then the range alone.
func (f *remoteScope) copyRanges(key, end []byte) (all []copyRange) {
	prefix := f.genesis.Prefix()
	own := copyRange{f.id, string(key), string(end)}
	if i := bytes.LastIndexByte(key, '/'); i >= 0 && bytes.HasPrefix(key[:i+1], prefix) {
		for _, s := range scope.Segments(f.delegations(), key[:i+1], scope.PrefixEnd(key[:i+1])) {
			at := copyRange{f.id, string(s.Key), string(s.End)}
			if s.Given == nil && at != own && referral.Holds(s.Key, s.End, key, end) {
				all = append(all, at)
			}
		}
	}
	return append(all, own)
}

// demand returns the count of a range. If there is no room for one more, the one with the fewest questions goes. The
// caller holds mu.
func (c *remoteCopies) demand(at copyRange, now time.Time) *demand {
	if d := c.demands[at]; d != nil {
		return d
	}
	if len(c.demands) >= maxDemands {
		var least copyRange
		few := math.MaxInt
		for k, d := range c.demands { // order-free: any of those with the fewest
			asked := d.asked
			if now.Sub(d.since) >= c.period {
				asked = 0
			}
			if now.Before(d.refused) {
				asked = c.often // or it would be tried again
			}
			if asked < few {
				least, few = k, asked
			}
		}
		delete(c.demands, least)
	}
	d := &demand{since: now}
	c.demands[at] = d
	return d
}

// begin starts a copy. No client was shown more of its keys than the least revision. The caller holds mu.
func (c *remoteCopies) begin(f *remoteScope, at copyRange, least int64) {
	x := &remoteCopy{of: f, at: at, woken: make(chan struct{}, 1), kvs: referral.NewCopy([]byte(at.key), []byte(at.end)), least: least}
	f.of.cfg.Log.Debug("copying keys of another scope", "key", at.key, "scope", string(f.genesis.Prefix()))
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
	d.since, d.asked = now, 0
	switch {
	case why == nil:
	case errors.Is(why, referral.ErrMute), errors.Is(why, scope.ErrElsewhere), errors.Is(why, referral.ErrCopyParts), errors.Is(why, referral.ErrCopyGap):
		d.refused = now.Add(copyRetried)
	default:
		d.refused = now.Add(copyRefused)
	}
	x.of.of.cfg.Log.Debug("dropped a copy of keys of another scope", "key", x.at.key, "scope", string(x.of.genesis.Prefix()), "reason", why)
}

// reserve counts what a copy takes. The error wraps errCopyRoom if there is no room for it, or it is more than one copy
// may take.
func (c *remoteCopies) reserve(x *remoteCopy, bytes int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if bytes > c.limit/copyShare || c.used-x.bytes+bytes > c.limit {
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
	copies := x.of.of.copies
	period := time.NewTicker(copies.period)
	defer period.Stop()
	cost, heard := int64(0), time.Now()
	for {
		began := time.Now()
		took, done, err := x.follow(ctx)
		switch {
		case errors.Is(err, referral.ErrMute) && time.Since(heard) < copyLost:
		case err != nil:
			return err
		default:
			heard = began
		}
		if cost += took; cost > copyFree && cost > x.served.Load() {
			return errCopyCost
		}
		wait := copyEvery
		if err == nil && !done {
			wait = copySoon
		}
		next := time.NewTimer(wait)
		select {
		case <-next.C:
		case <-x.woken:
			next.Reset(max(0, copySoon-time.Since(began)))
			select {
			case <-next.C:
			case <-ctx.Done():
			}
		case <-ctx.Done():
		case <-x.of.of.root.runner.replies.done:
			return ErrStopped
		}
		next.Stop()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-period.C:
			reads, missed := x.reads.Swap(0), x.missed.Swap(0)
			if reads < int64(copies.seldom) && missed > reads {
				return errCopyCost
			} else if reads < int64(copies.seldom) {
				return nil
			}
			x.served.Store(0)
			cost = 0
		default:
		}
	}
}

// fill reads the keys, with one question. Copies are filled one after the other, since an answer is large before it is
// counted.
func (x *remoteCopy) fill(ctx context.Context) error {
	copies := x.of.of.copies
	select {
	case copies.filling <- struct{}{}:
		defer func() { <-copies.filling }()
	case <-ctx.Done():
		return ctx.Err()
	}
	res, head, err := x.of.rangeAsked(ctx, []byte(x.at.key), []byte(x.at.end), scope.Range{}, false)
	if err != nil {
		return err
	}
	x.mu.Lock()
	x.kvs.Fill(res.Kvs, head.Revision)
	bytes := x.kvs.Bytes()
	x.mu.Unlock()
	return copies.reserve(x, bytes)
}

// follow asks for the changes that come next, and returns the bytes that they took. done is false if there are more.
func (x *remoteCopy) follow(ctx context.Context) (took int64, done bool, err error) {
	began, epoch := x.of.of.root.runner.now(), x.of.known().Number
	got, revision, err := x.of.events(ctx, x.kvs.Watch(), false, 0)
	if err != nil {
		return 0, false, err
	}
	for i := range got.All {
		took += int64(bytesOf(got.All[i].Prev) + bytesOf([]scope.KeyValue{got.All[i].Kv}))
	}
	x.mu.Lock()
	if done, err = x.kvs.Follow(&got, revision); done {
		x.as, x.epoch = began, epoch
	}
	bytes := x.kvs.Bytes()
	x.mu.Unlock()
	if err == nil {
		err = x.of.of.copies.reserve(x, bytes)
	}
	return took, done, err
}
