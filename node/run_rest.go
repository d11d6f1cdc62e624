package node

import "time"

// restAfter is how long there must have been nothing to do before a scope gives back
// what it can have again. To have it again costs the next block some 20 µs, and more
// where the store must ask the disk.
const restAfter = 5 * time.Second

// rest gives back what only a scope needs that has something to do.
func (r *runner) rest() {
	r.machine.Rest()
	if r.stand.Load().state != r.machine.chain.state { // it holds what was given back
		r.tell()
	}
	r.own = nil // it is full again
	r.intake.rest()
	r.replies.rest()
	r.rests()
}

// rest is for when nothing has happened in the scope for a while.
func (n *Part) rest() {
	n.budgets.rest()
	n.expected.rest()
	n.pledges.rest()
}
