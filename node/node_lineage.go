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
	Index   int64 // in the scope's lineage
	Block   aweigh.Hash
	Time    aweigh.Instant // of the block
	Version int64          // of the object, if the entry wrote one and it was counted
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
	kv, err := v.change(key)
	if err != nil {
		return nil, false, head, err
	}
	a, err := v.State.Aliases(kv.UID) // what happened under other names belongs to it
	if err != nil {
		return nil, false, head, err
	}
	if deeds, more, err = n.deeds(v, a.Last, limit); err != nil {
		return nil, false, head, err
	}
	return deeds, more, head, v.number(ctx, kv.UID, deeds)
}

// change is the newest change of a key.
func (v *View) change(key []byte) (scope.KeyValue, error) {
	kv, ok, err := v.NewestChange(key)
	if err == nil && !ok {
		err = fmt.Errorf("%w: %q", scope.ErrKeyNotFound, key)
	}
	return kv, err
}

// Prove gives a proof of the newest change of a key, which verifies offline
// from the network's identity alone. Where no later block covers the change
// yet, it proposes an empty transaction, so that one will.
func (n *Node) Prove(ctx context.Context, key []byte) (*scope.KeyProof, scope.Head, error) {
	ctx, cancel := n.deadline(ctx)
	defer cancel()
	linearizable := true
	for {
		p, head, err := n.prove(ctx, key, linearizable)
		if !errors.Is(err, errUncovered) {
			return p, head, err
		}
		if _, err := n.Txn(ctx, scope.Txn{}, Once{Justification: "to prove what came before"}); err != nil {
			return nil, head, err
		}
		linearizable = false // that transaction is later than every earlier write
	}
}

// errUncovered means that no final block after the change can be proven yet.
var errUncovered = errors.New("node: no block covers the change yet")

func (n *Node) prove(ctx context.Context, key []byte, linearizable bool) (p *scope.KeyProof, head scope.Head, err error) {
	v, err := n.Read(ctx, linearizable)
	if err != nil {
		return nil, head, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	head = v.Head()
	kv, err := v.change(key)
	if err != nil {
		return nil, head, err
	}
	index := kv.Entry
	entry, ok, err := v.State.Lineage().Entry(index)
	if err != nil || !ok {
		return nil, head, errors.Join(err, fmt.Errorf("node: entry %d of the lineage is missing", index))
	}
	cover, err := n.cover(head.Height, entry.Height)
	if err != nil {
		return nil, head, err
	}
	origin, err := n.History().Block(entry.Height)
	if err != nil {
		return nil, head, err
	}
	final, err := n.History().Finality(entry.Height)
	if err != nil {
		return nil, head, err
	}
	handovers, err := n.History().Handovers(0, int(cover.Header.Epoch))
	if err != nil {
		return nil, head, err
	}
	if len(handovers) < int(cover.Header.Epoch) {
		return nil, head, fmt.Errorf("node: this node does not hold the handovers of all %d epochs; ask another node", cover.Header.Epoch)
	}
	p, err = scope.NewKeyProof(n.cfg.Genesis, handovers, v.State, key, origin, final, cover)
	return p, head, err
}

// cover is the finality of the newest block up to a height, and above another,
// that can be proven final.
func (n *Node) cover(newest, above aweigh.Height) (scope.Finality, error) {
	for at := newest; at > above; at-- {
		f, err := n.History().Finality(at)
		if !errors.Is(err, ErrNoBlock) {
			return f, err
		}
	}
	return scope.Finality{}, errUncovered
}
