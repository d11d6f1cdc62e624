package sim

import (
	"fmt"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
)

// requestID names the subject of a node's reply: a mutation, or the number of a read or of ballots handed
// in.
type requestID struct {
	mutation aweigh.Hash
	number   uint64
}

// request waits for its reply at a node. It is gone with the life of the node.
type request struct {
	requestID
	what  string
	at    time.Duration
	until aweigh.Instant // when it is void without a reply; 0: never
	done  func(machine.Reply)
}

// expect registers done for the reply to a request that the node's machine is about to get.
func (n *Node) expect(r request) {
	r.at = n.world.Now()
	n.requests[r.requestID] = &r
}

// propose gives a bundle of one mutation to the node's machine, and done the reply.
func (n *Node) propose(s machine.Submit, done func(machine.Reply)) {
	n.expect(request{requestID: requestID{mutation: s.Bundle.Mutations()[0].ID}, what: "mutation", until: s.Bundle.ValidUntil(), done: done})
	n.soon(s)
}

// ask gives the machine the event of another number, a read or ballots handed in, and done the reply.
func (n *Node) ask(what string, event func(id uint64) machine.Event, done func(machine.Reply)) {
	n.asked++
	n.expect(request{requestID: requestID{number: n.asked}, what: what, done: done})
	n.soon(event(n.asked))
}

// Reply implements machine.Host.
func (n *Node) Reply(r machine.Reply) {
	if !n.alive() || n.spoiled {
		return
	}
	to := requestID{number: r.Read}
	if r.Read == 0 {
		to.mutation = r.Mutation
		n.world.watch.replied(n, r)
	}
	if q := n.requests[to]; q != nil {
		delete(n.requests, to)
		q.done(r)
	}
}

// unanswered is the request that the node has owed a reply to for longest, nil if there is none.
func (n *Node) unanswered() (oldest *request) {
	if len(n.requests) == 0 {
		return nil
	}
	now := max(n.shown, n.state().Head().Time)
	for _, r := range n.requests { // order-free: the least is sought
		if r.until != 0 && r.until < now {
			continue
		}
		if oldest == nil || r.before(oldest) {
			oldest = r
		}
	}
	return oldest
}

func (r *request) before(o *request) bool {
	switch {
	case r.at != o.at:
		return r.at < o.at
	case r.number != o.number:
		return r.number < o.number
	}
	return string(r.mutation[:]) < string(o.mutation[:])
}

// String is like read 7, asked after 1.5s.
func (r *request) String() string {
	name := fmt.Sprint(r.number)
	if r.number == 0 {
		name = r.mutation.Short()
	}
	return fmt.Sprintf("%s %s, asked after %v", r.what, name, r.at)
}
