package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
)

// Signals are actions that are neither ordered nor stored. The node that takes a signal asks the scopes on the way and
// the list of authors, signs it, delivers it to its watchers of the key, and passes it by gossip to the other nodes of
// the scope, which check it against their own state. Gossip loses messages: a signal reaches a watcher at most once.

// Signal is a signal that was delivered.
type Signal struct {
	Scope    aweigh.ScopeID
	Mutation aweigh.Hash
	Author   aweigh.Hash // votes.PublicKey.ID of the node that took it
	Verb     string
	Key      []byte
	Value    []byte
	At       aweigh.Instant // when it came, by this node's clock
}

// Bounds of signals.
const (
	// maxSignal bounds the value of a signal, in bytes.
	maxSignal = 32 << 10
	// signalFor is how long a signal may be on its way.
	signalFor = 2 * time.Minute
	// signalsSeen bounds the signals that are remembered so as not to be delivered twice.
	signalsSeen = 1 << 16
	// signalsWait bounds the signals that wait for one watcher. Once signalsBytes wait for all watchers of a node,
	// each watcher may have its share of as many again. A signal counts for each of them, with signalCounts bytes in
	// addition to its key and value.
	signalsWait  = 256
	signalsBytes = 64 << 20
	signalCounts = 256
	// maxListeners bounds the watchers of signals.
	maxListeners = 1024
)

// ErrListeners is returned if there are already as many watchers of signals as there may be.
var ErrListeners = fmt.Errorf("%w: %d watch signals already", machine.ErrBusy, maxListeners)

// listener is one watcher of signals.
type listener struct {
	key, end []byte
	waiting  chan Signal
	lost     uint64 // signals since the last one that it took
	bytes    int    // of the signals that wait for it
}

// signals holds the watchers of signals, and the signals that came recently. The zero value is ready.
type signals struct {
	mu        sync.Mutex
	listeners map[*listener]struct{}
	seen      map[aweigh.Hash]aweigh.Instant // valid until
	bytes     int                            // of the signals that wait for watchers
}

// counts returns the bytes that a waiting signal counts.
func (x *Signal) counts() int { return signalCounts + len(x.Key) + len(x.Value) }

// errHeard is returned for a signal that came before.
var errHeard = errors.New("node: the signal was delivered before")

// give delivers a signal once to the watchers of its key. The error wraps errHeard, or ErrBusy if there are more than
// can be remembered.
func (s *signals) give(x Signal, until aweigh.Instant) (to int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.seen[x.Mutation]; ok {
		return 0, errHeard
	}
	if len(s.seen) >= signalsSeen {
		for id, end := range s.seen {
			if end < x.At {
				delete(s.seen, id)
			}
		}
		if len(s.seen) >= signalsSeen {
			return 0, fmt.Errorf("%w: %d signals are on their way", machine.ErrBusy, signalsSeen)
		}
	}
	if s.seen == nil {
		s.seen = make(map[aweigh.Hash]aweigh.Instant)
	}
	s.seen[x.Mutation] = until
	for l := range s.listeners {
		if !scope.Within(x.Key, l.key, l.end) {
			continue
		}
		if s.bytes+x.counts() > signalsBytes && l.bytes+x.counts() > signalsBytes/len(s.listeners) {
			l.lost++
			continue
		}
		select {
		case l.waiting <- x:
			s.bytes += x.counts()
			l.bytes += x.counts()
			to++
		default:
			l.lost++
		}
	}
	return to, nil
}

func (s *signals) add(l *listener) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.listeners) >= maxListeners {
		return ErrListeners
	}
	if s.listeners == nil {
		s.listeners = make(map[*listener]struct{})
	}
	s.listeners[l] = struct{}{}
	return nil
}

func (s *signals) drop(l *listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, l)
	for {
		select {
		case x := <-l.waiting:
			s.bytes -= x.counts()
		default:
			return
		}
	}
}

// took notes that a watcher took a signal that waited for it, and returns how many the watcher lost since the previous
// one.
func (s *signals) took(l *listener, x *Signal) (lost uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes -= x.counts()
	l.bytes -= x.counts()
	lost, l.lost = l.lost, 0
	return lost
}

// WatchSignals delivers the signals to the keys [key, end), in the sense of scope.Op, that come from now on. begun is
// called once it watches. lost counts the signals for which the watcher was too slow. It returns the error of begun or
// deliver, ErrStopped, or the reason why ctx ended.
func (n *Node) WatchSignals(ctx context.Context, key, end []byte, begun func() error, deliver func(x Signal, lost uint64) error) error {
	l := &listener{key: key, end: end, waiting: make(chan Signal, signalsWait)}
	if err := n.signals.add(l); err != nil {
		return err
	}
	defer n.signals.drop(l)
	if err := begun(); err != nil {
		return err
	}
	for {
		select {
		case x := <-l.waiting:
			if err := deliver(x, n.signals.took(l, &x)); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-n.root.runner.replies.done:
			return n.root.runner.replies.stopped
		}
	}
}

// Signal carries out an action of class signal. to is how many watchers at this node receive it. Whether other nodes
// receive it, and how many watchers they have, is not known. If a scope denies it, the error is a Denial. A repeated
// request is delivered once.
func (n *Node) Signal(ctx context.Context, verb string, key, value []byte, once Once) (to int, err error) {
	once.draw()
	err = n.withHeld(ctx, referral.Keys(key), func(p *Replica) error {
		said, err := n.judge(ctx, ActionQuery{Verb: verb, Key: key}, false)
		if err != nil {
			return err
		}
		to, err = p.signal(said, verb, key, value, once)
		return err
	})
	return to, err
}

func (n *Replica) signal(said []Said, verb string, key, value []byte, once Once) (to int, err error) {
	if d := Denied(said); d != nil {
		return 0, &Denial{*d}
	}
	last := &said[len(said)-1]
	switch {
	case !last.Decides || last.Scope != n.id:
		return 0, scope.ErrElsewhere
	case last.Class != action.Signal:
		return 0, fmt.Errorf("%w: %s is of class %s, and nothing is delivered", ErrVerdict, verb, last.Class)
	case len(value) > maxSignal:
		return 0, fmt.Errorf("%w: a signal of %d bytes, at most %d are taken", scope.ErrInvalid, len(value), maxSignal)
	}
	now := n.runner.now()
	once.draw()
	once = once.dated(now) // a signal is not ordered, so the scope's time does not matter
	if once.ValidUntil > now.Add(signalFor) {
		return 0, fmt.Errorf("%w: a signal is valid for %v at most", scope.ErrInvalid, signalFor)
	}
	m := n.mutation(scope.Act, canon.Encode(scope.Action{Verb: verb, Class: action.Signal, Key: key, Value: value}), once)
	b, err := scope.Sign(n.cfg.Identity, n.Limits(), m)
	if err != nil {
		return 0, err
	}
	if err := n.forbidsSignal(b); err != nil {
		return 0, err
	}
	x, until := signalOf(b, now)
	switch to, err = n.of.signals.give(x, until); {
	case errors.Is(err, errHeard): // the same request again
		return 0, nil
	case err != nil:
		return 0, err
	}
	n.Gossip(machine.RawFrame(machine.TagBundle, b.Raw()))
	return to, nil
}

// signalOf returns the signal in a bundle that has one signal and nothing else.
func signalOf(b *scope.CheckedBundle, at aweigh.Instant) (x Signal, until aweigh.Instant) {
	m := &b.Mutations()[0]
	return Signal{
		Scope: m.Scope, Mutation: m.ID, Author: m.Author, Verb: m.Action.Verb, Key: m.Action.Key, Value: m.Action.Value, At: at,
	}, m.ValidUntil
}

// isSignal reports whether a bundle is a signal on its way.
func isSignal(b *scope.CheckedBundle) bool {
	all := b.Mutations()
	return len(all) == 1 && all[0].Action != nil && all[0].Action.Class == action.Signal
}

// forbidsSignal returns why the policy's authors do not permit a signal. A node gives signals in its own name, so none
// goes by a token, whose end no block would decide.
func (n *Replica) forbidsSignal(b *scope.CheckedBundle) error {
	if len(b.Grants()) > 0 {
		return fmt.Errorf("%w: a signal by a token", scope.ErrDenied)
	}
	return n.epochs.epoch().Forbids(&b.Mutations()[0])
}

// heard takes a signal from another node, and reports whether to pass it on: this node's own state allows it, and the
// node had not received it before.
func (n *Replica) heard(b *scope.CheckedBundle) (pass bool) {
	now := n.runner.now()
	x, until := signalOf(b, now)
	if until > now.Add(signalFor) || len(x.Value) > maxSignal || n.forbidsSignal(b) != nil {
		return false
	}
	s, next, err := n.judge(context.Background(), ActionQuery{Verb: x.Verb, Key: x.Key, Caller: x.Author}, false)
	if err != nil || next != nil || !s.Allowed || s.Class != action.Signal {
		if err != nil && !errors.Is(err, ErrStopped) {
			n.log.Debug("signal not judged", "error", err)
		}
		return false
	}
	_, err = n.of.signals.give(x, until)
	return err == nil
}
