package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
)

// Deed is one entry of the lineage with the block that it stands in.
type Deed struct {
	lineage.Entry
	Index int64 // in the scope's lineage
	Block aweigh.Hash
	Time  aweigh.Instant // of the block
}

// Lineage lists what happened to the object that a key names, or named last,
// newest first: at most limit deeds, and whether there are more. The error
// wraps scope.ErrKeyNotFound for a key that never named an object.
func (n *Node) Lineage(ctx context.Context, key []byte, limit int) (deeds []Deed, more bool, head scope.Head, err error) {
	v, err := n.Read(ctx, true)
	if err != nil {
		return nil, false, head, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	head = v.Head()
	last, err := v.lastEntry(key)
	if err != nil {
		return nil, false, head, err
	}
	err = v.State.Lineage().Chain(last+1, func(index int64, e lineage.Entry) bool {
		if more = len(deeds) == limit; !more {
			deeds = append(deeds, Deed{Entry: e, Index: index})
		}
		return !more
	})
	for i := range deeds {
		d := &deeds[i]
		if i > 0 && deeds[i-1].Height == d.Height {
			d.Block, d.Time = deeds[i-1].Block, deeds[i-1].Time
			continue
		}
		b, readErr := n.History().Block(d.Height)
		if readErr != nil {
			return nil, false, head, errors.Join(err, readErr)
		}
		d.Block, d.Time = b.Hash(), b.Header.Time
	}
	return deeds, more, head, err
}

// lastEntry is the index of the newest lineage entry under a key.
func (v *View) lastEntry(key []byte) (int64, error) {
	kv, ok, err := v.NewestChange(key)
	if err == nil && !ok {
		err = fmt.Errorf("%w: %q", scope.ErrKeyNotFound, key)
	}
	return kv.Entry, err
}
