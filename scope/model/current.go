package model

import (
	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/keytree"
	"github.com/aweigh/aweigh/scope"
)

// current is the root of the tree of what the keys hold, made at once from all of them.
func (v *View) current() aweigh.Hash {
	var all []keytree.Change
	for key, kv := range v.model.asOf(v.Revision) { // order-free: the tree sorts them
		all = append(all, keytree.Change{Leaf: keytree.Leaf{Key: []byte(key), Kind: scope.HoldsVersion, Digest: kv.Digest()}})
	}
	for i := range v.given {
		all = append(all, keytree.Change{Leaf: keytree.Leaf{Key: v.given[i].Prefix, Kind: scope.HoldsScope, Digest: v.given[i].Child}})
	}
	return keytree.Tree{}.With(all).Root()
}
