package client

import (
	"bytes"
	"fmt"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// Checkpoint is the verified head of a scope's history.
type Checkpoint struct {
	lineage.Checkpoint
	Genesis     scope.Genesis
	Ancestry    scope.Ancestry // that was verified
	Epoch       *scope.Epoch   // of the block that the checkpoint names
	Handovers   int            // that lead to it
	Cosigned    []votes.Cosignature
	Weight      uint64 // of the anchors that cosigned
	Consistency lineage.Consistency
}

// checkpoint verifies a node's answer.
func checkpoint(resp *aweighv1.CheckpointResponse, network aweigh.NetworkID, old int64) (*Checkpoint, error) {
	a, err := scope.DecodeAncestry(resp.Ancestry)
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{Genesis: a.Genesis, Ancestry: a, Checkpoint: a.Head.Header.Checkpoint(), Handovers: len(a.Handovers)}
	if c.Epoch, err = a.Verify(network); err != nil {
		return nil, err
	}
	c.Consistency = lineage.Consistency{Old: old, Size: c.Head.Size}
	for _, raw := range resp.Consistency {
		if len(raw) != len(aweigh.Hash{}) {
			return nil, fmt.Errorf("%w: a hash of %d bytes", scope.ErrProof, len(raw))
		}
		c.Consistency.Path = append(c.Consistency.Path, aweigh.Hash(raw))
	}
	text, last := c.Text(), []byte(nil)
	for _, x := range c.Epoch.Roster.Anchors {
		id := x.Key.ID()
		for _, s := range resp.Cosignatures {
			if !bytes.Equal(s.Anchor, id[:]) || bytes.Equal(s.Anchor, last) {
				continue
			}
			last = s.Anchor
			by := votes.Cosignature{Key: x.Key, Time: s.Time, Signature: s.Signature}
			if err := by.Check(text); err != nil {
				return nil, fmt.Errorf("%w: the cosignature of anchor %s: %w", scope.ErrProof, x.Name, err)
			}
			c.Cosigned, c.Weight = append(c.Cosigned, by), c.Weight+c.Epoch.Roster.Weights.Of(id)
		}
	}
	return c, nil
}
