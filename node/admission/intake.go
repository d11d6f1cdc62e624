package admission

import (
	"sync"

	"github.com/aweigh/aweigh/node/machine"
)

// Bounds of what waits for the runner. A message counts with the bytes of its
// frame.
const (
	peerEvents = 1024     // of one peer
	peerBytes  = 8 << 20  // of one peer; a longer frame is taken when no other of its peer waits
	laneBytes  = 64 << 20 // of all anchors together, and of all others together

	// nonMembersAtOnce bounds how many messages of peers that are no anchors one step takes, so that the step stays
	// short while they flood: consensus waits for it.
	nonMembersAtOnce = 128
)

// Intake holds what came from peers and waits for the runner. Every peer has a queue of its own, bounded in number and
// bytes; a peer that fills its queue delays only itself. The runner takes from all queues in turn, anchors first.
type Intake struct {
	ready   chan struct{} // holds a token while something waits
	members Members

	mu     sync.Mutex
	room   sync.Cond // something was taken, or the intake closed
	lanes  [2]lane   // of anchors, of others
	closed bool
}

type lane struct {
	queues map[machine.Peer]*queue
	turns  []*queue // those with something in them, in the order of their turns
	bytes  int
}

// queue holds what waits of one peer.
type queue struct {
	peer   machine.Peer
	events []sized
	bytes  int
}

type sized struct {
	machine.Event
	bytes int
}

// NewIntake returns an empty intake of a scope with the given members.
func NewIntake(m Members) *Intake {
	in := &Intake{ready: make(chan struct{}, 1), members: m}
	in.room.L = &in.mu
	return in
}

// lane returns the lane in which a peer waits.
func (in *Intake) lane(p machine.Peer) *lane {
	if in.members.Anchor(p) {
		return &in.lanes[0]
	}
	return &in.lanes[1]
}

// Put adds an event of a peer, and waits while there is no room for it. It returns false when the intake is closed.
func (in *Intake) Put(p machine.Peer, ev machine.Event, bytes int) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	for !in.closed && !in.fits(p, bytes) {
		in.room.Wait()
	}
	if in.closed {
		return false
	}
	in.add(p, ev, bytes)
	return true
}

// Offer is Put for callers that must not wait: without room it returns false.
func (in *Intake) Offer(p machine.Peer, ev machine.Event, bytes int) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed || !in.fits(p, bytes) {
		return false
	}
	in.add(p, ev, bytes)
	return true
}

// Force adds an event for which there is always room: that an anchor has connected or disconnected, which is not
// repeated.
func (in *Intake) Force(p machine.Peer, ev machine.Event) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.closed {
		in.add(p, ev, 0)
	}
}

func (in *Intake) fits(p machine.Peer, bytes int) bool {
	l := in.lane(p)
	if l.bytes > 0 && l.bytes+bytes > laneBytes {
		return false
	}
	q := l.queues[p]
	return q == nil || len(q.events) < peerEvents && q.bytes+bytes <= peerBytes
}

func (in *Intake) add(p machine.Peer, ev machine.Event, bytes int) {
	l := in.lane(p)
	q := l.queues[p]
	if q == nil {
		q = &queue{peer: p}
		if l.queues == nil {
			l.queues = make(map[machine.Peer]*queue)
		}
		l.queues[p] = q
		l.turns = append(l.turns, q)
	}
	q.events = append(q.events, sized{ev, bytes})
	q.bytes += bytes
	l.bytes += bytes
	in.Wake()
}

// Ready returns the channel that holds a token while something waits, or after Wake.
func (in *Intake) Ready() <-chan struct{} { return in.ready }

// Wake wakes the runner.
func (in *Intake) Wake() {
	select {
	case in.ready <- struct{}{}:
	default:
	}
}

// Take moves events to batch until it has most: one of each peer in turn, those of one peer in their order, anchors'
// events before others'.
func (in *Intake) Take(batch []machine.Event, most int) []machine.Event {
	in.mu.Lock()
	defer in.mu.Unlock()
	select {
	case <-in.ready:
	default:
	}
	before := len(batch)
	batch = in.lanes[0].take(batch, most)
	batch = in.lanes[1].take(batch, min(most, len(batch)+nonMembersAtOnce))
	if len(batch) > before {
		in.room.Broadcast()
	}
	if len(in.lanes[0].turns)+len(in.lanes[1].turns) > 0 {
		in.Wake()
	}
	return batch
}

func (l *lane) take(batch []machine.Event, most int) []machine.Event {
	for len(batch) < most && len(l.turns) > 0 {
		q := l.turns[0]
		l.turns[0] = nil
		l.turns = l.turns[1:]
		first := q.events[0]
		q.events[0] = sized{}
		q.events = q.events[1:]
		q.bytes -= first.bytes
		l.bytes -= first.bytes
		batch = append(batch, first.Event)
		if len(q.events) > 0 {
			l.turns = append(l.turns, q)
		} else {
			delete(l.queues, q.peer)
		}
	}
	return batch
}

// FreeMemory frees the memory of empty queues.
func (in *Intake) FreeMemory() {
	in.mu.Lock()
	defer in.mu.Unlock()
	for i := range in.lanes {
		if l := &in.lanes[i]; len(l.turns) == 0 {
			l.queues, l.turns = nil, nil
		}
	}
}

// Close ends all waiting.
func (in *Intake) Close() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	in.room.Broadcast()
}

// Waiting returns how many events wait.
func (in *Intake) Waiting() (n int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for i := range in.lanes {
		for _, q := range in.lanes[i].turns {
			n += len(q.events)
		}
	}
	return n
}
