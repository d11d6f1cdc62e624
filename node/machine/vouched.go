package machine

import (
	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/scope"
)

// Vouched is the record by which the newest state of a scope can be checked from the store alone: what the newest
// block replaced, or, if the state came by a snapshot, the finality of the next block.
type Vouched struct {
	_    struct{} `cbor:",toarray"`
	Undo *scope.Undo
	Next *scope.Finality
}

func KeyVouched(id aweigh.ScopeID) []byte { return Record(id, 'u') }

// maxUndo bounds the stored copy of the records that a block replaced, in bytes.
const maxUndo = 1 << 20

// vouch stores what a block replaces that is about to be applied as the newest.
func (c *chain) vouch(m *Machine, k *candidate) {
	u, err := c.state.Undo(k.block.Hash(), k.result.Ops, m.cfg.Bounds.Undo)
	must.OK(err, "reading what a block replaces")
	m.write(kv.Set(KeyVouched(c.id), canon.Encode(Vouched{Undo: &u})))
}
