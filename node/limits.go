package node

import (
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
)

// LimitsFor returns the limits of the scope that decides about some ranges of keys. If the keys are in several scopes,
// or this node does not hold their scope, it returns the most that a policy may say: each scope refuses the rest
// itself.
func (n *Node) LimitsFor(ranges referral.Ranges) scope.Limits {
	var at *Replica
	one := ranges(func(key, end []byte) bool {
		p := n.holder(key, end)
		same := p != nil && (at == nil || at == p)
		at = p
		return same
	})
	switch {
	case !one:
		return scope.MostLimits()
	case at == nil: // there are no keys
		at = n.root
	}
	return at.Limits()
}

// holder returns the replica in the scope that decides about keys, nil if this node holds none.
func (n *Node) holder(key, end []byte) *Replica {
	for at := n.root; at != nil; {
		touched := scope.Touching(at.Delegations(), key, end)
		if len(touched) == 0 {
			return at
		}
		if !scope.Covers(touched[0].Prefix, key, end) {
			return nil
		}
		at = n.replica(touched[0].Child)
	}
	return nil
}
