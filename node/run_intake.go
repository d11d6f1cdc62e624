package node

import (
	"sync"
)

// Bounds of what waits for the runner. A message counts with the bytes of its
// frame.
const (
	peerEvents = 1024     // of one peer
	peerBytes  = 8 << 20  // of one peer; a longer frame is taken when nothing else of its peer waits
	laneBytes  = 64 << 20 // of all anchors together, and of all others together

	// strangersAtOnce bounds how many messages of those that are no anchors one
	// step takes, so that it stays short while they flood: consensus waits for it.
	strangersAtOnce = 128
)

// intake holds what arrived from peers and waits for the runner. Every peer has
// a queue of its own, bounded in number and bytes, and one that fills it waits
// for itself alone; the runner takes from all in turn, anchors first.
type intake struct {
	ready chan struct{} // holds a token while something waits
	roll  *roll

	mu     sync.Mutex
	room   sync.Cond // something was taken, or the intake closed
	lanes  [2]lane   // of anchors, of others
	closed bool
}

type lane struct {
	queues map[Peer]*queue
	turns  []*queue // those with something in them, in the order of their turns
	bytes  int
}

// queue is what waits of one peer.
type queue struct {
	peer   Peer
	events []sized
	bytes  int
}

type sized struct {
	Event
	bytes int
}

func newIntake(roll *roll) *intake {
	in := &intake{ready: make(chan struct{}, 1), roll: roll}
	in.room.L = &in.mu
	return in
}

// lane is where a peer waits.
func (in *intake) lane(p Peer) *lane {
	if _, ok := in.roll.anchor(p); ok {
		return &in.lanes[0]
	}
	return &in.lanes[1]
}

// put adds an event of a peer, and waits while there is no room for it. It
// reports false when the intake is closed.
func (in *intake) put(p Peer, ev Event, bytes int) bool {
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

// offer is put for those who must not wait: without room it reports false.
func (in *intake) offer(p Peer, ev Event, bytes int) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed || !in.fits(p, bytes) {
		return false
	}
	in.add(p, ev, bytes)
	return true
}

// force adds an event for which there is always room: the news of a connection
// with an anchor, which nothing repeats.
func (in *intake) force(p Peer, ev Event) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.closed {
		in.add(p, ev, 0)
	}
}

func (in *intake) fits(p Peer, bytes int) bool {
	l := in.lane(p)
	if l.bytes > 0 && l.bytes+bytes > laneBytes {
		return false
	}
	q := l.queues[p]
	return q == nil || len(q.events) < peerEvents && q.bytes+bytes <= peerBytes
}

func (in *intake) add(p Peer, ev Event, bytes int) {
	l := in.lane(p)
	q := l.queues[p]
	if q == nil {
		q = &queue{peer: p}
		if l.queues == nil {
			l.queues = make(map[Peer]*queue)
		}
		l.queues[p] = q
		l.turns = append(l.turns, q)
	}
	q.events = append(q.events, sized{ev, bytes})
	q.bytes += bytes
	l.bytes += bytes
	in.wake()
}

func (in *intake) wake() {
	select {
	case in.ready <- struct{}{}:
	default:
	}
}

// take moves events to batch until it holds most: one of each peer in turn,
// those of one peer in their order, anchors' before others'.
func (in *intake) take(batch []Event, most int) []Event {
	in.mu.Lock()
	defer in.mu.Unlock()
	select {
	case <-in.ready:
	default:
	}
	before := len(batch)
	batch = in.lanes[0].take(batch, most)
	batch = in.lanes[1].take(batch, min(most, len(batch)+strangersAtOnce))
	if len(batch) > before {
		in.room.Broadcast()
	}
	if len(in.lanes[0].turns)+len(in.lanes[1].turns) > 0 {
		in.wake()
	}
	return batch
}

func (l *lane) take(batch []Event, most int) []Event {
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

// rest gives back the room in which nothing waits.
func (in *intake) rest() {
	in.mu.Lock()
	defer in.mu.Unlock()
	for i := range in.lanes {
		if l := &in.lanes[i]; len(l.turns) == 0 {
			l.queues, l.turns = nil, nil
		}
	}
}

// close lets all who wait go.
func (in *intake) close() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	in.room.Broadcast()
}

// waiting is how many events wait.
func (in *intake) waiting() (n int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for i := range in.lanes {
		for _, q := range in.lanes[i].turns {
			n += len(q.events)
		}
	}
	return n
}
