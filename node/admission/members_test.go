package admission

import "github.com/aweigh/aweigh/node/machine"

// anchors are the members of a scope.
type anchors map[machine.Peer]bool

func (a anchors) Anchor(p machine.Peer) bool { return a[p] }
func (a anchors) Seats() int                 { return len(a) }
