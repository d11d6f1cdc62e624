package node

import (
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/scope"
)

// brokenAlone recovers from what the store has of a scope below the root's, as a part in
// it is made: that may contradict itself, where more of its weight lies than may. The
// error wraps ErrStopped then.
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

// forsake notes that a scope cannot be opened here. The node goes on in all others, and
// tells those who ask for this one.
func (n *Node) forsake(d scope.Delegation, err error) {
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
	n.log.Error("this scope cannot be opened; the others go on", "scope", string(d.Prefix), "error", err)
}

// forsaken is why a scope cannot be opened here, nil if it can.
func (n *Node) forsaken(id aweigh.ScopeID) error {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.broken[id]
}
