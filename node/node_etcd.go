package node

// LastStatus is the machine's status as of when it last had something to say,
// which costs no trip to the machine. It never goes back. It must not be changed.
func (n *Part) LastStatus() *Status { return n.runner.status.Load() }
