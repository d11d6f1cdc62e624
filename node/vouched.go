package node

import (
	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/scope"
)

// vouched is by what the newest state of a scope can be checked in the store alone: by
// what its newest block replaced, or, where the state came by a snapshot, by the
// finality of the next block.
type vouched struct {
	_    struct{} `cbor:",toarray"`
	Undo *scope.Undo
	Next *scope.Finality
}

func keyVouched(id aweigh.ScopeID) []byte { return record(id, 'u') }

// maxUndo bounds what is kept of the records that a block replaced.
const maxUndo = 1 << 20

// vouch keeps what the newest block replaces, which is about to be applied.
func (c *chain) vouch(m *Machine, k *candidate) {
	u, err := c.state.Undo(k.block.Hash(), k.result.Ops, m.cfg.Bounds.Undo)
	must.OK(err, "reading what a block replaces")
	m.write(kv.Set(keyVouched(c.id), canon.Encode(vouched{Undo: &u})))
}
