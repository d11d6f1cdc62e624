package doctor

import (
	"errors"
	"fmt"

	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/fsck"
	"github.com/aweigh/aweigh/scope"
)

// inUse reports that the state cannot be checked while the node writes it.
func (e *exam) inUse() {
	if e.State {
		e.warn("state", "not checked: the node runs and writes to its store",
			"stop the node for that, or back it up and restore the backup elsewhere, which checks the same")
	}
}

// checkState checks the whole store against what its network made final.
func (e *exam) checkState(r kv.Reader, g scope.Genesis) {
	if !e.State {
		return
	}
	rep, err := fsck.Store(r, g, func(p fsck.Progress) error {
		if e.Audited != nil {
			e.Audited(p)
		}
		return e.ctx.Err()
	})
	switch {
	case errors.Is(err, fsck.ErrUnvouched):
		e.warn("state", err.Error(), "start the node, wait until it has taken part in another block, and stop it again")
	case errors.Is(err, fsck.ErrForged):
		e.fail("state", err.Error(), "do not start a node from it: restore a backup, or join the network anew")
	case err != nil:
		e.skip("state", err.Error())
	default:
		vacant := 0
		for _, s := range rep.Scopes {
			if s.Vacant {
				vacant++
			}
		}
		h := rep.Scopes[0].Head
		e.ok("state", fmt.Sprintf("%d records and blocks, %s, are what the network made final: state %s after block %d of the root scope, %d of %d scopes checked",
			rep.Records, size(uint64(rep.Bytes)), h.Digest.Short(), h.Height, len(rep.Scopes)-vacant, len(rep.Scopes)))
	}
}
