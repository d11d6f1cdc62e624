package node

import "github.com/aweigh/aweigh/scope"

// LastHead is where the scope's state stood when the machine last had something to say,
// which costs no trip to the machine. It never goes back.
func (n *Part) LastHead() scope.Head { return n.runner.stand.Load().state.Head() }

// LastStatus is the machine's status as of then.
func (n *Part) LastStatus() Status { return n.runner.stand.Load().status() }
