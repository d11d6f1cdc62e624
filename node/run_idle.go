package node

import "time"

// idleAfter is how long there must have been nothing to do before a scope frees the memory that it can fill again. To
// fill it costs the next block some 20 µs, and more if the store must read from disk.
const idleAfter = 5 * time.Second

// freeMemory frees the memory that only a busy scope needs.
func (r *runner) freeMemory() {
	r.machine.FreeMemory()
	if r.machine.Aged(r.stand.Load()) { // it refers to what was freed
		r.tell()
	}
	r.repeats.FreeMemory()
	r.intake.FreeMemory()
	r.replies.freeMemory()
	r.onIdle()
}

// onIdle is called when nothing has happened in the scope for a while.
func (n *Replica) onIdle() {
	n.budgets.FreeMemory()
}
