package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
)

// A watch of keys of a scope that this node does not hold asks the scope's anchors again and again what changed, and
// takes the answers that enough of them give. All such watches of a scope share a poller: one question, every
// pollScopeEvery, for the scope's revision.

const (
	pollScopeEvery = 250 * time.Millisecond
	tapAnyway      = 2 * time.Second       // even if nothing is known to have happened: anchors may be behind, or lie
	maxTaps        = 4096                  // of a node
	remoteRoom     = 1 << 20               // bytes that wait for the segment, and one answer more
	tapAgain       = time.Second           // after a question that was not answered
	standsWithin   = 3 * time.Second       // for its anchors to say where a scope stands
	tapSoon        = 50 * time.Millisecond // after an answer of anchors that were behind others
)

// poller tells the taps of a foreign scope that the scope has moved on.
type poller struct {
	mu       sync.Mutex
	taps     int
	stop     context.CancelFunc // while there are taps
	revision int64              // up to which the scope was closed when it answered last
	beat     chan struct{}      // closed when revision has grown; nil if nothing waits for that
}

// join keeps the poller running until leave.
func (f *remoteScope) join() {
	p := &f.poller
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taps++; p.taps == 1 {
		var ctx context.Context
		ctx, p.stop = context.WithCancel(f.of.tasks.ctx)
		f.of.tasks.start("polling a scope", func(context.Context) { f.poll(ctx) })
	}
}

func (f *remoteScope) leave() {
	p := &f.poller
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taps--; p.taps == 0 {
		p.stop()
	}
}

// poll asks for the scope's revision, again and again, until ctx ends.
func (f *remoteScope) poll(ctx context.Context) {
	tick := time.NewTicker(pollScopeEvery)
	defer tick.Stop()
	for {
		if _, revision, err := f.events(ctx, referral.AboutNow(f.genesis.Prefix()), false, 0); err == nil {
			f.poller.grow(revision)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		case <-f.of.root.runner.replies.done:
			return
		}
	}
}

func (p *poller) grow(revision int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if revision <= p.revision {
		return
	}
	if p.revision = revision; p.beat != nil {
		close(p.beat)
		p.beat = nil
	}
}

// beyond returns a channel that is closed when the scope is known to be closed beyond a revision; behind says that it
// is.
func (p *poller) beyond(revision int64) (beat <-chan struct{}, behind bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.revision > revision {
		return nil, true
	}
	if p.beat == nil {
		p.beat = make(chan struct{})
	}
	return p.beat, false
}

// events asks for the changes up to a revision, 0 for the newest, and returns them with the revision up to which the
// answer goes. If newest is set, it includes all that was acknowledged before the call. A scope all of whose anchors
// lie cannot move the clock of another scope.
func (f *remoteScope) events(ctx context.Context, x referral.Watch, newest bool, at int64) (got referral.Events, revision int64, err error) {
	head, err := f.say(ctx, referral.Question{Kind: referral.AskEvents, Newest: newest, At: at, Body: canon.Encode(x)}, &got)
	if err == nil {
		err = got.Wrong(&x)
	}
	if err != nil {
		return referral.Events{}, 0, err
	}
	now := f.of.root.runner.now().Add(f.of.root.epochs.epoch().Policy.Limits.Drift) // the root's: the scope sets its own
	most := scope.ClockRevision(f.genesis.Descent.Started, now)
	if n := len(got.All); n > 0 && got.All[n-1].Kv.ModRevision > most || got.Next > most || got.Compacted > most {
		return referral.Events{}, 0, scope.ErrFutureRevision
	}
	return got, min(head.Revision, most), nil
}

// remoteWatch reads for a segment of a watch the changes in a scope that this node does not hold.
type remoteWatch struct {
	of       *remoteScope
	key, end []byte
	stop     context.CancelFunc
	woken    chan struct{} // holds a token when the segment took what was read, or asks for closing

	mu        sync.Mutex
	read      []Change // that the segment has not taken
	bytes     int64    // that they hold
	next      int64    // nothing was read from here on
	compacted int64    // it cannot continue from next, because revisions below this were compacted
	err       error    // why nothing more can be read
	closing   int64    // the scope is to be closed up to this revision
	dropped   bool     // nothing takes what is read
}

// drop releases what was read, and what will be read.
func (t *remoteWatch) drop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dropped = true
	Drop(t.read)
	t.read, t.bytes = nil, 0
}

// openRemoteWatch begins to read the changes of the keys [key, end) from a revision on.
func openRemoteWatch(ctx context.Context, f *remoteScope, key, end []byte, next int64) *remoteWatch {
	ctx, stop := f.of.tasks.within(ctx)
	t := &remoteWatch{of: f, key: key, end: end, stop: stop, next: next, woken: make(chan struct{}, 1)}
	f.join()
	f.of.remotes.taps.Add(1)
	context.AfterFunc(ctx, func() {
		stop()
		t.drop()
	})
	left := func() {
		f.leave()
		f.of.remotes.taps.Add(-1)
	}
	if !f.of.tasks.start("watching a scope", func(context.Context) {
		defer left()
		t.run(ctx)
	}) {
		left()
	}
	return t
}

// run reads ahead until ctx ends, or the next revision was compacted.
func (t *remoteWatch) run(ctx context.Context) {
	for {
		t.mu.Lock()
		from, some, full, at := t.next, len(t.read) > 0, len(t.read) >= watchMost || t.bytes >= remoteRoom, t.closing
		t.mu.Unlock()
		full = full || !t.room(ctx, some)
		if at < from {
			at = 0
		}
		var beat <-chan struct{}
		var again <-chan time.Time
		if !full {
			got, revision, err := t.of.events(ctx, referral.Watch{Key: t.key, End: t.end, From: from}, false, at)
			if err == nil {
				_, err = t.of.learnGiven(ctx, t.key, t.end, got.Given) // before the segment is past that
			}
			if ctx.Err() != nil {
				return
			}
			if err == nil && t.took(&got, revision) {
				t.of.of.hasChanged()
			}
			switch {
			case errors.Is(err, scope.ErrTooMuch), errors.Is(err, scope.ErrNoReader):
				t.ends(err)
				t.of.of.hasChanged()
				return
			case err != nil:
				t.giveUpClosing(at) // what can be read without is not to wait for it
				again = time.After(tapAgain)
			case got.Compacted > from:
				return
			case got.Next > 0 && len(got.All) > 0:
				continue
			case got.Next > 0:
				again = time.After(tapSoon)
			default:
				again = time.After(tapAnyway)
				var behind bool
				if beat, behind = t.of.poller.beyond(revision); behind { // the anchors that answered were late
					again = time.After(tapSoon)
				}
			}
		}
		select {
		case <-beat:
		case <-again:
		case <-t.woken:
		case <-ctx.Done():
			return
		case <-t.of.of.root.runner.replies.done:
			return
		}
	}
}

// room reports whether the remote watch may read on. If the remote watch has brought something lately (some), room
// reports at once whether there is room in the node's memory for watches. Otherwise it waits for room, at most for
// tapAgain, and returns true, so that no watch waits forever for memory that others hold.
func (t *remoteWatch) room(ctx context.Context, some bool) bool {
	m := t.of.of.memory
	if some {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.room()
	}
	ctx, cancel := context.WithTimeout(ctx, tapAgain)
	defer cancel()
	_ = m.await(ctx, m.room)
	return true
}

// took keeps what was read, and reports whether it is new.
func (t *remoteWatch) took(got *referral.Events, revision int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dropped {
		return false
	}
	if got.Compacted > t.next {
		t.compacted = got.Compacted
		return true
	}
	for i := range got.All {
		e := got.All[i].Event()
		h := t.of.of.memory.keep(heldKey{}, e)
		t.bytes += h.size
		t.read = append(t.read, Change{Place: scope.Place{Key: e.Kv.Key, Revision: e.Kv.ModRevision, Sub: e.Kv.Sub}, held: h})
	}
	if n := len(got.All); n > 0 {
		t.of.shown(referral.Between(t.key, t.end), got.All[n-1].Kv.ModRevision)
	}
	to := got.Through(revision)
	if to < t.next {
		return false
	}
	t.next = to + 1
	return true
}

// ends notes why nothing more can be read.
func (t *remoteWatch) ends(why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = why
}

func (t *remoteWatch) giveUpClosing(at int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closing == at {
		t.closing = 0
	}
}

// give moves what was read to the segment. compacted is not 0 where it cannot go on because of that; the error is
// another reason.
func (t *remoteWatch) give(l *WatchSegment) (compacted int64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dropped { // the segment stays where it is: it will be given nothing more
		return t.compacted, t.err
	}
	if len(t.read) > 0 {
		l.Read = append(l.Read, t.read...)
		t.wake() // the remote watch may wait for that
		t.read, t.bytes = nil, 0
	}
	l.Next, l.Closed = t.next, t.next-1
	return t.compacted, t.err
}

// close asks the scope to close up to a revision. It does not wait.
func (t *remoteWatch) close(revision int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if revision > t.closing {
		t.closing = revision
		t.wake()
	}
}

func (t *remoteWatch) wake() {
	select {
	case t.woken <- struct{}{}:
	default:
	}
}

// stands returns the head of the scope, as new as all that was acknowledged, for a watch of some of its keys. The
// error wraps scope.ErrElsewhere if the scope has delegated some of them; the delegations are known from then on.
func (f *remoteScope) stands(ctx context.Context, key, end []byte) (h scope.Head, err error) {
	ctx, cancel := context.WithTimeout(ctx, standsWithin)
	defer cancel()
	x := referral.AboutNow(key)
	x.End = end
	got, revision, err := f.events(ctx, x, true, 0)
	if errors.Is(err, scope.ErrNoReader) {
		return h, fmt.Errorf("scope %q: %w", f.genesis.Prefix(), err)
	}
	if err != nil {
		if !errors.Is(err, referral.ErrMute) {
			err = fmt.Errorf("%w: scope %q: %w", referral.ErrMute, f.genesis.Prefix(), err)
		}
		return h, err
	}
	if news, err := f.learnGiven(ctx, key, end, got.Given); err != nil || news {
		return h, cmp.Or(err, error(scope.ErrElsewhere))
	}
	h.Revision, h.Compacted = revision, got.Compacted
	return h, nil
}

// learnGiven fetches the scope's referrals for a range, if it has delegated more prefixes in it than are known.
func (f *remoteScope) learnGiven(ctx context.Context, key, end []byte, given int64) (news bool, err error) {
	parts := scope.Segments(f.delegations(), key, end)
	known := len(scope.Touching(f.delegations(), key, end))
	if int64(known) >= given {
		return false, nil
	}
	parts = slices.DeleteFunc(parts, func(s scope.Segment) bool { return s.Given != nil }) // as is known
	for some := range slices.Chunk(parts, foreignOps) {
		err := f.learn(ctx, func(visit func(key, end []byte) bool) bool {
			return !slices.ContainsFunc(some, func(s scope.Segment) bool { return !visit(s.Key, s.End) })
		})
		if err != nil {
			return false, err
		}
		if len(scope.Touching(f.delegations(), key, end)) > known {
			return true, nil
		}
	}
	return false, fmt.Errorf("%w: scope %q speaks of %d delegations, and refers to %d", referral.ErrMute, f.genesis.Prefix(), given, known)
}
