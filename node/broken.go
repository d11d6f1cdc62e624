package node

import (
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/scope"
)

// brokenAlone recovers from a panic while the replica of a scope below the root is made from the store: if more weight
// than allowed lies, what the store has of the scope may contradict itself. The error then wraps ErrStopped.
func brokenAlone(g scope.Genesis, err *error) {
	if g.Descent == nil {
		return
	}
	switch v := recover().(type) {
	case nil:
	case must.Violation:
		*err = fmt.Errorf("%w: %w", ErrStopped, v)
	default:
		panic(v)
	}
}

// markFailed notes that a scope cannot be opened here. The node goes on in all other scopes, and returns err to
// requests for this one.
func (n *Node) markFailed(d scope.Delegation, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.broken[d.Child] != nil {
		return
	}
	if n.broken == nil {
		n.broken = make(map[aweigh.ScopeID]error)
	}
	n.broken[d.Child] = fmt.Errorf("node: scope %q: %w", d.Prefix, err)
	close(n.opened)
	n.opened = make(chan struct{})
	n.root.log.Error("this scope cannot be opened; the others go on", "scope", string(d.Prefix), "error", err)
}

// failure returns why a scope cannot be opened here, nil if it can.
func (n *Node) failure(id aweigh.ScopeID) error {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.broken[id]
}
