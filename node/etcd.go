package node

import (
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// LastHead returns the head of the scope's state as of the machine's last effects, without asking the machine. It
// never goes back.
func (n *Replica) LastHead() scope.Head { return n.runner.stand.Load().State.Head() }

// LastStatus returns the machine's status as of its last effects.
func (n *Replica) LastStatus() machine.Status { return n.runner.stand.Load().Status() }
