package sim

import "github.com/aweigh/aweigh"

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

// queue is a heap of events, the next one first.
type queue []event

func (q *queue) push(e event) {
	*q = append(*q, e)
	h := *q
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 4
		if !e.before(&h[up]) {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = e
}

func (q *queue) pop() event {
	h := *q
	top, last := h[0], h[len(h)-1]
	h[len(h)-1] = event{}
	h = h[:len(h)-1]
	*q = h
	for i := 0; len(h) > 0; {
		least := -1
		for c := 4*i + 1; c < min(4*i+5, len(h)); c++ {
			if least < 0 || h[c].before(&h[least]) {
				least = c
			}
		}
		if least < 0 || !h[least].before(&last) {
			h[i] = last
			break
		}
		h[i] = h[least]
		i = least
	}
	return top
}
