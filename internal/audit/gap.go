package audit

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/lineage"
)

// gap is the line of entries that a trail does not show: those before its first, or those with other keys than wanted.
type gap struct {
	Kind         string   `json:"kind"`
	Next         string   `json:"next"`
	Prefix       *string  `json:"prefix,omitempty"`        // of the keys that were wanted; left out: all
	PrefixBase64 []byte   `json:"prefix_base64,omitempty"` // if it is not UTF-8
	From         int64    `json:"from"`
	To           int64    `json:"to"`     // the index after the last
	Hashes       []string `json:"hashes"` // as lineage.Tree.Skip takes them
}

func (v *verifier) gap(g *gap) error {
	hashes := make([]aweigh.Hash, len(g.Hashes))
	for i, text := range g.Hashes {
		var err error
		if hashes[i], err = aweigh.ParseHash(text); err != nil {
			return fmt.Errorf("%w: %w", ErrLine, err)
		}
	}
	if g.Next != since(g.To) || g.From >= g.To {
		return fmt.Errorf("%w: entries from %d up to %d", ErrLine, g.From, g.To)
	}
	if err := v.wanted(g); err != nil {
		return err
	}
	if g.From == 0 && v.tree.Size() > 0 { // the trail was written in several runs, and goes on here
		var before lineage.Tree
		if err := before.Skip(g.To, hashes); err != nil {
			return err
		}
		switch at := v.tree.Size(); {
		case g.To != at:
			return fmt.Errorf("it goes on with entry %d after entry %d: lines are missing, or come twice", g.To, at-1)
		case before.Head() != v.tree.Head():
			return v.blame(errors.New("it names another history before it"))
		}
		return nil
	}
	if g.From != v.tree.Size() {
		return fmt.Errorf("it stands for entries from %d on, and the line before ends before %d", g.From, v.tree.Size())
	}
	if v.report.First < 0 && g.From == 0 {
		v.report.First = g.To
	} else {
		v.report.Hidden += g.To - g.From
	}
	return v.tree.Skip(g.To, hashes)
}

// wanted reports why entries may not be hidden by a gap: it is of a trail of another prefix, or it is within a trail of
// all keys.
func (v *verifier) wanted(g *gap) error {
	prefix := fieldKey(g.Prefix, g.PrefixBase64)
	switch {
	case bytes.Equal(prefix, v.o.Prefix) && (len(prefix) > 0 || g.From == 0):
		return nil
	case len(v.o.Prefix) > 0:
		return fmt.Errorf("it hides entries of a trail of the keys that begin with %q, and not with %q", prefix, v.o.Prefix)
	case len(prefix) > 0:
		return fmt.Errorf("the trail is of the keys that begin with %q, and may hide entries: if that is meant, give --prefix",
			prefix)
	}
	return fmt.Errorf("it hides the entries from %d up to %d: lines were removed", g.From, g.To)
}
