package sim

import (
	"cmp"
	"slices"

	"github.com/aweigh/aweigh"
)

// event is something that will happen: a frame arrives, or do is called.
type event struct {
	at    aweigh.Instant
	seq   uint64
	to    *Node
	from  *Node
	frame *frame
	sent  aweigh.Instant
	do    func()
}

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// queue holds events, of which the next one comes out first. Of a thousand
// anchors a million frames are on their way at once, so only those of the slot
// that is being emptied are in a heap. The others wait in their slots, unsorted.
// The zero value is empty.
type queue struct {
	near  heap // of slots up to slot
	slot  int64
	far   map[int64]heap // by slot, not yet in the order of a heap
	slots []int64        // that are in far, the next one last
	spare heap           // an empty one, to use again
}

// slotBits is the logarithm of the length of a slot in nanoseconds: the fewer
// events share a slot the smaller is the heap, but the more slots there are.
const slotBits = 15

func (q *queue) push(e event) {
	slot := int64(e.at) >> slotBits
	if slot <= q.slot {
		q.near.push(e)
		return
	}
	events, there := q.far[slot]
	if !there {
		if q.far == nil {
			q.far = make(map[int64]heap)
		}
		at, _ := slices.BinarySearchFunc(q.slots, slot, func(a, b int64) int { return cmp.Compare(b, a) })
		q.slots = slices.Insert(q.slots, at, slot)
		events, q.spare = q.spare, nil
	}
	q.far[slot] = append(events, e)
}

// next is the event that pop gives, nil if there is none.
func (q *queue) next() *event {
	if len(q.near) == 0 {
		if len(q.slots) == 0 {
			return nil
		}
		q.slot = q.slots[len(q.slots)-1]
		q.slots = q.slots[:len(q.slots)-1]
		q.near, q.spare = q.far[q.slot], q.near
		delete(q.far, q.slot)
		q.near.order()
	}
	return &q.near[0]
}

func (q *queue) pop() event {
	q.next()
	return q.near.pop()
}

// heap is a heap of events, the next one first, with four children each.
type heap []event

func (h *heap) push(e event) {
	*h = append(*h, e)
	h.up(len(*h) - 1)
}

// order makes a heap of events in any order.
func (h *heap) order() {
	for i := range *h {
		h.up(i)
	}
}

// up moves the last of the first i+1 events to its place.
func (h *heap) up(i int) {
	a := *h
	e := a[i]
	for i > 0 {
		up := (i - 1) / 4
		if !e.before(&a[up]) {
			break
		}
		a[i] = a[up]
		i = up
	}
	a[i] = e
}

func (h *heap) pop() event {
	a := *h
	top, last := a[0], a[len(a)-1]
	a[len(a)-1] = event{}
	a = a[:len(a)-1]
	*h = a
	for i := 0; len(a) > 0; {
		least := -1
		for c := 4*i + 1; c < min(4*i+5, len(a)); c++ {
			if least < 0 || a[c].before(&a[least]) {
				least = c
			}
		}
		if least < 0 || !a[least].before(&last) {
			a[i] = last
			break
		}
		a[i] = a[least]
		i = least
	}
	return top
}
