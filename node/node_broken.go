package node

import (
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/scope"
)

// openable makes the part in a scope below the root's. What the store has of it may
// contradict itself, where more of its weight lies than may: the error wraps ErrStopped
// then.
func openable(of *Node, g scope.Genesis) (p *Part, err error) {
	defer func() {
		if v := recover(); v != nil {
			broken, ok := v.(must.Violation)
			if !ok {
				panic(v)
			}
			p, err = nil, fmt.Errorf("%w: %w", ErrStopped, broken)
		}
	}()
	return newPart(of, g)
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
