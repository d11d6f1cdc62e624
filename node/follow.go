package node

import (
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
)

// farthest is later than any epoch.
const farthest = ^aweigh.Epoch(0)

// follow is a later epoch of a scope than one that is known, proven by the handovers that
// the store has or that ask gives; without ask, as late as the store shows. What it gives
// is kept, since it is proven.
func follow(s store.Store, id aweigh.ScopeID, e *scope.Epoch, to aweigh.Epoch, ask func(above aweigh.Height) ([]byte, error)) (*scope.Epoch, error) {
	for e.Number < to {
		hands, err := History{Reader: s, Scope: id}.Handovers(e.Start, HandoversAtOnce)
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
				return nil, fmt.Errorf("%w: handovers: %w", ErrSnapshot, err)
			}
			if len(hands) == 0 || len(hands) > HandoversAtOnce {
				return nil, fmt.Errorf("%w: %d handovers that lead to epoch %d", ErrSnapshot, len(hands), to)
			}
		}
		var ops []kv.Op
		for _, h := range hands {
			if e.Number == to {
				break
			}
			if e, err = e.Follow(h); err != nil {
				return nil, fmt.Errorf("%w: %w", ErrSnapshot, err)
			}
			ops = append(ops, kv.Set(keyHandover(id, h.Final.Header.Height), canon.Encode(h)))
		}
		if !here {
			if err := s.Commit(ops, false); err != nil {
				return nil, err
			}
		}
	}
	return e, nil
}
