package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
)

// LineageEntry is one entry of the lineage with the block that it stands in.
type LineageEntry struct {
	lineage.Entry
	Index   int64 // in the scope's lineage
	Block   aweigh.Hash
	Time    aweigh.Instant // of the block
	Version int64          // of the object, if the entry wrote one and it was counted
	Name    string         // of the author, under the policy and the roster that the entry names
	Acts    string         // likewise of the key whose rights the author used, if not its own
}

// KeyLineage is what happened to the object that a key names, or named last.
type KeyLineage struct {
	Entries []LineageEntry // newest first
	More    bool           // there are older ones
	Before  aweigh.UID     // the object that the key named before that one; zero if there is none
}

// names are the keys that the entries name.
func (l *KeyLineage) names() referral.Ranges {
	return func(visit func(key, end []byte) bool) bool {
		for i := range l.Entries {
			if !entryNames(&l.Entries[i].Entry)(visit) {
				return false
			}
		}
		return true
	}
}

// entryNames are the keys that an entry names: its own, and that of a version that was merged.
func entryNames(e *lineage.Entry) referral.Ranges {
	from, _ := scope.ParseMerged(e.Reason)
	return referral.Keys(e.Key, from.Key)
}

// Lineage returns what happened to the object that a key names, or named last, at most limit entries.
// The error wraps scope.ErrKeyNotFound for a key that never named an object.
func (n *Replica) Lineage(ctx context.Context, key []byte, limit int) (l KeyLineage, head scope.Head, err error) {
	v, err := n.Read(ctx, true)
	if err != nil {
		return l, head, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	l, err = n.lineageIn(ctx, v, key, limit)
	return l, v.Head(), err
}

// lineageIn is Lineage in a view.
func (n *Replica) lineageIn(ctx context.Context, v *View, key []byte, limit int) (l KeyLineage, err error) {
	kv, err := v.change(key)
	if err != nil {
		return l, err
	}
	if l.Before, _, err = v.NamedBefore(&kv); err != nil {
		return l, err
	}
	a, err := v.State.Aliases(kv.UID) // what happened under other names belongs to it
	if err != nil {
		return l, err
	}
	if l.Entries, l.More, err = n.objectEntries(v, a.Last, limit); err != nil {
		return l, err
	}
	return l, v.number(ctx, kv.UID, l.Entries)
}

// change returns the newest change of a key.
func (v *View) change(key []byte) (scope.KeyValue, error) {
	kv, ok, err := v.NewestChange(key)
	if err == nil && !ok {
		err = fmt.Errorf("%w: %q", scope.ErrKeyNotFound, key)
	}
	return kv, err
}
