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
	"github.com/aweigh/aweigh/scope"
)

// A watch of keys of a scope that this node does not hold asks the scope's anchors again and again what
// changed, and counts what enough of them say. All such watches of a scope share a pulse: one question,
// every pulseEvery, of how far the scope is.

const (
	pulseEvery   = 250 * time.Millisecond
	tapAnyway    = 2 * time.Second       // though nothing is known to have happened: who answers first may be behind, or lie
	maxTaps      = 4096                  // of a node
	tapRoom      = 1 << 20               // bytes that wait for the leg, and one answer more
	tapAgain     = time.Second           // after a question that was not answered
	standsWithin = 3 * time.Second       // for its anchors to say where a scope stands
	tapSoon      = 50 * time.Millisecond // after an answer of anchors that were behind others
)

// pulse tells the taps of a foreign scope that it went on.
type pulse struct {
	mu       sync.Mutex
	taps     int
	stop     context.CancelFunc // while there are taps
	revision int64              // up to which the scope was closed when it answered last
	beat     chan struct{}      // closed when revision grew; nil if nobody waits
}

// join has the pulse beat, until leave.
func (f *foreign) join() {
	p := &f.pulse
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taps++; p.taps == 1 {
		ctx, stop := context.WithCancel(context.Background())
		p.stop = stop
		go f.pulsate(ctx)
	}
}

func (f *foreign) leave() {
	p := &f.pulse
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taps--; p.taps == 0 {
		p.stop()
	}
}

// pulsate asks how far the scope is until ctx ends.
func (f *foreign) pulsate(ctx context.Context) {
	tick := time.NewTicker(pulseEvery)
	defer tick.Stop()
	for {
		if _, revision, err := f.events(ctx, aboutNow(f.genesis.Prefix()), false, 0); err == nil {
			f.pulse.grow(revision)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		case <-f.of.runner.replies.done:
			return
		}
	}
}

func (p *pulse) grow(revision int64) {
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

// beyond is closed when the scope is known to be closed beyond a revision; behind says that it is.
func (p *pulse) beyond(revision int64) (beat <-chan struct{}, behind bool) {
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

// events asks what changed, up to a revision, 0 for the newest; with the revision up to which the answer goes.
// Newest asks for all that was acknowledged before. A scope that lies as a whole moves no other's clock.
func (f *foreign) events(ctx context.Context, x foreignWatch, newest bool, at int64) (got foreignEvents, revision int64, err error) {
	head, err := f.say(ctx, ForeignAsk{Kind: ForeignEvents, Newest: newest, At: at, Body: canon.Encode(x)}, &got)
	if err == nil {
		err = got.wrong(&x)
	}
	if err != nil {
		return foreignEvents{}, 0, err
	}
	now := f.of.runner.now().Add(f.of.roll.epoch().Policy.Limits.Drift) // the root's: the scope sets its own
	most := scope.ClockRevision(f.genesis.Descent.Started, now)
	if n := len(got.All); n > 0 && got.All[n-1].Kv.ModRevision > most || got.Next > most || got.Compacted > most {
		return foreignEvents{}, 0, scope.ErrFutureRevision
	}
	return got, min(head.Revision, most), nil
}

// tap brings a leg the changes in a scope that this node does not hold.
type tap struct {
	of       *foreign
	key, end []byte
	stop     context.CancelFunc
	stirred  chan struct{} // holds a token when the leg took what was read, or asks for closing

	mu        sync.Mutex
	read      []Change // that the leg has not taken
	bytes     int64    // that they hold
	next      int64    // nothing was read from here on
	compacted int64    // it cannot go on from next: what is below was compacted
	err       error    // why nothing more can be read
	closing   int64    // the scope is to be closed up to here
	dropped   bool     // nobody takes what is read
}

// drop gives back what was read, and what will be.
func (t *tap) drop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dropped = true
	Drop(t.read)
	t.read, t.bytes = nil, 0
}

// openTap begins to read the changes of the keys [key, end) from a revision on.
func openTap(ctx context.Context, f *foreign, key, end []byte, next int64) *tap {
	ctx, stop := context.WithCancel(ctx)
	t := &tap{of: f, key: key, end: end, stop: stop, next: next, stirred: make(chan struct{}, 1)}
	f.join()
	f.of.foreigners.taps.Add(1)
	context.AfterFunc(ctx, t.drop)
	go func() {
		defer f.of.foreigners.taps.Add(-1)
		defer f.leave()
		t.run(ctx)
	}()
	return t
}

// run reads ahead until ctx ends, or what comes next was compacted.
func (t *tap) run(ctx context.Context) {
	for {
		t.mu.Lock()
		from, some, full, at := t.next, len(t.read) > 0, len(t.read) >= watchMost || t.bytes >= tapRoom, t.closing
		t.mu.Unlock()
		full = full || !t.room(ctx, some)
		if at < from {
			at = 0
		}
		var beat <-chan struct{}
		var again <-chan time.Time
		if !full {
			got, revision, err := t.of.events(ctx, foreignWatch{Key: t.key, End: t.end, From: from}, false, at)
			if err == nil {
				_, err = t.of.learnGiven(ctx, t.key, t.end, got.Given) // before the leg is past that
			}
			if ctx.Err() != nil {
				return
			}
			if err == nil && t.took(&got, revision) {
				t.of.of.hasChanged()
			}
			switch {
			case errors.Is(err, scope.ErrTooMuch):
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
				if beat, behind = t.of.pulse.beyond(revision); behind { // the anchors that answered were late
					again = time.After(tapSoon)
				}
			}
		}
		select {
		case <-beat:
		case <-again:
		case <-t.stirred:
		case <-ctx.Done():
			return
		case <-t.of.of.runner.replies.done:
			return
		}
	}
}

// room waits until there is room in the node's memory for watches. A tap that has brought something lately
// does without, and reports false; another goes on after a while, so that no watch waits for good for what others hold.
func (t *tap) room(ctx context.Context, some bool) bool {
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

// took keeps what was read, and reports whether it is something new.
func (t *tap) took(got *foreignEvents, revision int64) bool {
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
		e := got.All[i].event()
		h := t.of.of.memory.keep(heldKey{}, e)
		t.bytes += h.size
		t.read = append(t.read, Change{Place: scope.Place{Key: e.Kv.Key, Revision: e.Kv.ModRevision, Sub: e.Kv.Sub}, held: h})
	}
	to := got.through(revision)
	if to < t.next {
		return false
	}
	t.next = to + 1
	return true
}

// ends notes why nothing more can be read.
func (t *tap) ends(why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = why
}

func (t *tap) giveUpClosing(at int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closing == at {
		t.closing = 0
	}
}

// give moves what was read to the leg. compacted is not 0 where it cannot go on because of that; the error is another reason.
func (t *tap) give(l *Leg) (compacted int64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.read) > 0 {
		l.Read = append(l.Read, t.read...)
		t.stir() // it may wait for that
		t.read, t.bytes = nil, 0
	}
	l.Next, l.Closed = t.next, t.next-1
	return t.compacted, t.err
}

// close asks the scope to close up to a revision. It does not wait.
func (t *tap) close(revision int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if revision > t.closing {
		t.closing = revision
		t.stir()
	}
}

func (t *tap) stir() {
	select {
	case t.stirred <- struct{}{}:
	default:
	}
}

// stands is where the scope stands, as new as all that was acknowledged, for those who are to watch some of its keys. The error
// wraps scope.ErrElsewhere if it has delegated some of those, which is known from now on.
func (f *foreign) stands(ctx context.Context, key, end []byte) (h scope.Head, err error) {
	ctx, cancel := context.WithTimeout(ctx, standsWithin)
	defer cancel()
	x := aboutNow(key)
	x.End = end
	got, revision, err := f.events(ctx, x, true, 0)
	if err != nil {
		if !errors.Is(err, ErrMute) {
			err = fmt.Errorf("%w: scope %q: %w", ErrMute, f.genesis.Prefix(), err)
		}
		return h, err
	}
	if news, err := f.learnGiven(ctx, key, end, got.Given); err != nil || news {
		return h, cmp.Or(err, error(scope.ErrElsewhere))
	}
	h.Revision, h.Compacted = revision, got.Compacted
	return h, nil
}

// learnGiven takes the scope's referrals for a range, if it has delegated more prefixes in it than are known.
func (f *foreign) learnGiven(ctx context.Context, key, end []byte, given int64) (news bool, err error) {
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
	return false, fmt.Errorf("%w: scope %q speaks of %d delegations, and refers to %d", ErrMute, f.genesis.Prefix(), given, known)
}
