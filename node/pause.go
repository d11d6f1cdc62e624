package node

import (
	"context"
	"time"
)

// pause waits, and reports false if the node stops meanwhile.
func (n *Replica) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-n.runner.replies.done:
		return false
	}
}

// pauseFor waits, and reports false if ctx ends meanwhile.
func (n *Replica) pauseFor(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
