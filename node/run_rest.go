package node

import "time"

// restAfter is how long there must have been nothing to do before a scope frees the memory that it can fill again. To
// fill it costs the next block some 20 µs, and more if the store must read from disk.
const restAfter = 5 * time.Second

// rest frees the memory that only a busy scope needs.
func (r *runner) rest() {
	r.machine.Rest()
	if r.machine.Aged(r.stand.Load()) { // it refers to what was freed
		r.tell()
	}
	r.repeats.Rest()
	r.intake.Rest()
	r.replies.rest()
	r.rests()
}

// rest is called when nothing has happened in the scope for a while.
func (n *Replica) rest() {
	n.budgets.Rest()
}
