package scope

import (
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/lineage"
)

// Checkpoint is the lineage before a block as text that anchors of the scope cosign when
// the block is final: its origin names the scope, and its last line the block.
func (h *Header) Checkpoint() lineage.Checkpoint {
	return lineage.Checkpoint{
		Origin: LogOrigin(h.Scope), Head: lineage.Head{Size: h.LineageSize, Root: h.LineageRoot},
		More: []string{fmt.Sprintf("block %d %s", h.Height, h.Hash())},
	}
}

// LogOrigin is what a scope's lineage is called among transparency logs.
func LogOrigin(id aweigh.ScopeID) string { return "aweigh/" + id.String() }

// Encode gives the canonical form, DecodeAncestry reads it.
func (a *Ancestry) Encode() []byte { return canon.Encode(*a) }

// DecodeAncestry reads what Encode gives. Nothing is proven before Verify returns. Errors
// wrap ErrProof.
func DecodeAncestry(raw []byte) (a Ancestry, err error) {
	if err = canon.Decode(raw, &a); err != nil {
		err = fmt.Errorf("%w: %w", ErrProof, err)
	}
	return a, err
}

// Verify checks the way from the network's identity to the final block, and gives the
// block's epoch. Errors wrap ErrProof.
func (a *Ancestry) Verify(network aweigh.NetworkID) (*Epoch, error) {
	_, last, err := a.follow(network, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProof, err)
	}
	return last, nil
}
