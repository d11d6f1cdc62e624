package referral

import (
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
)

// Farthest is later than any epoch.
const Farthest = ^aweigh.Epoch(0)

// Follow returns epoch to of a scope, proven from the known epoch e by handovers: those in the store, and where it has
// none, those that ask returns. If ask is nil, it returns the latest epoch that the store proves, up to to. Handovers
// that ask returned are stored once they are verified. Only errors about these wrap machine.ErrSnapshot: a handover in
// the store that does not verify is this node's own fault.
func Follow(s store.Store, id aweigh.ScopeID, e *scope.Epoch, to aweigh.Epoch, ask func(above aweigh.Height) ([]byte, error)) (*scope.Epoch, error) {
	for e.Number < to {
		hands, err := machine.History{Reader: s, Scope: id}.Handovers(e.Start, machine.HandoversAtOnce)
		if err != nil {
			return nil, err
		}
		here := len(hands) > 0
		if !here {
			if ask == nil {
				return e, nil
			}
			raw, err := ask(e.Start)
			if err != nil {
				return nil, err
			}
			if err := canon.Decode(raw, &hands); err != nil {
				return nil, fmt.Errorf("%w: handovers: %w", machine.ErrSnapshot, err)
			}
			if len(hands) == 0 || len(hands) > machine.HandoversAtOnce {
				return nil, fmt.Errorf("%w: %d handovers that lead to epoch %d", machine.ErrSnapshot, len(hands), to)
			}
		}
		var ops []kv.Op
		for _, h := range hands {
			if e.Number == to {
				break
			}
			if e, err = e.Follow(h); err != nil && here {
				return nil, fmt.Errorf("%w: the handover of height %d: %w", scope.ErrCorrupt, h.Final.Header.Height, err)
			} else if err != nil {
				return nil, fmt.Errorf("%w: %w", machine.ErrSnapshot, err)
			}
			ops = append(ops, kv.Set(machine.KeyHandover(id, h.Final.Header.Height), canon.Encode(h)))
		}
		if !here {
			if err := s.Commit(ops, false); err != nil {
				return nil, err
			}
		}
	}
	return e, nil
}
