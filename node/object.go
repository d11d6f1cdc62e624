package node

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// Naming proposes a change of names in this node's name and waits until it is final.
func (n *Replica) Naming(ctx context.Context, c scope.Naming, once Once) (machine.Receipt, error) {
	return n.propose(ctx, scope.Name, canon.Encode(c), once)
}

// Object is what is known of the object with a UID.
type Object struct {
	UID     aweigh.UID
	Aliases [][]byte       // oldest first; none if it is retired
	Parent  *scope.Parent  // of a fork that is not retired
	Deeds   []LineageEntry // newest first
	More    bool           // there are older deeds
	Head    scope.Head     // as of which it was read
}

// went reports whether the object is in another scope, so that the end of its history is not here.
func (o *Object) went() bool {
	if len(o.Aliases) > 0 || len(o.Deeds) == 0 {
		return false
	}
	last := o.Deeds[0].Class
	return last == lineage.HandedOver || last == lineage.Left
}

// ErrNoObject is wrapped if no object has a UID.
var ErrNoObject = errors.New("node: no object has that UID")

// ErrUID is wrapped for a text that no UID begins with, or that is too short to name one.
var ErrUID = errors.New("node: not how a UID begins")

// ErrAmbiguous is wrapped if several objects have UIDs that begin with a text.
var ErrAmbiguous = errors.New("node: several UIDs begin so; give more of it")

// leastPrefix is the least number of characters by which a UID is named.
const leastPrefix = 4

// Object returns the object whose UID begins with a text in base32, with at most limit entries of its history. The
// error wraps ErrNoObject, ErrAmbiguous, or ErrUID.
func (n *Replica) Object(ctx context.Context, prefix string, limit int, linearizable bool) (o Object, err error) {
	v, err := n.Read(ctx, linearizable)
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	o.Head = v.Head()
	if o.UID, err = v.uid(prefix); err != nil {
		return o, err
	}
	a, err := v.State.Aliases(o.UID)
	if err != nil {
		return o, err
	}
	o.Aliases, o.Parent = a.Keys, a.Parent
	if o.Deeds, o.More, err = n.objectEntries(v, a.Last, limit); err != nil {
		return o, err
	}
	return o, v.number(ctx, o.UID, o.Deeds)
}

// uid returns the only UID that begins with a prefix.
func (v *View) uid(prefix string) (aweigh.UID, error) {
	if len(prefix) < leastPrefix {
		return aweigh.UID{}, fmt.Errorf("%w: %q; give %d characters of it at least", ErrUID, prefix, leastPrefix)
	}
	found, err := v.UIDs(prefix, leastPrefix)
	switch {
	case err != nil:
		return aweigh.UID{}, fmt.Errorf("%w: %w", ErrUID, err)
	case len(found) == 0:
		return aweigh.UID{}, fmt.Errorf("%w: %q", ErrNoObject, prefix)
	case len(found) > 1:
		texts := make([]string, len(found))
		for i, u := range found {
			texts[i] = u.String()
		}
		return aweigh.UID{}, fmt.Errorf("%w: %q may be %s", ErrAmbiguous, prefix, strings.Join(texts, ", "))
	}
	return found[0], nil
}

// number sets the versions that the entries of an object's history wrote, unless it had too many to be counted.
func (v *View) number(ctx context.Context, u aweigh.UID, entries []LineageEntry) error {
	at := 0
	err := v.Versions(u, func(w scope.Version) bool {
		for at < len(entries) && entries[at].Index > w.Index {
			at++
		}
		if at < len(entries) {
			entries[at].Version = w.Number
		}
		return at < len(entries) && ctx.Err() == nil
	})
	if errors.Is(err, scope.ErrFar) {
		err = nil
	}
	return errors.Join(err, ctx.Err())
}

// entries returns the entries of one object's history, with their blocks, beginning with last, which counts in the same
// way as lineage.Entry.Prev.
func (n *Replica) objectEntries(v *View, last int64, limit int) (entries []LineageEntry, more bool, err error) {
	err = v.State.Lineage().Chain(last, func(index int64, e lineage.Entry) bool {
		if more = len(entries) == limit; !more {
			entries = append(entries, LineageEntry{Entry: e, Index: index})
		}
		return !more
	})
	names := n.namesThen()
	for i := range entries {
		d := &entries[i]
		if nameErr := names.of(v, d); nameErr != nil {
			return nil, false, errors.Join(err, nameErr)
		}
		if d.Height == 0 { // taken over, as the scope was founded
			d.Block, d.Time = n.id, n.genesis.Time
			continue
		}
		p, readErr := n.History().Stub(d.Height)
		if readErr != nil {
			return nil, false, errors.Join(err, readErr)
		}
		d.Block, d.Time = p.Block, p.Time
	}
	return entries, more, err
}
