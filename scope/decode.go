package scope

import (
	"math"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
)

// Every node decodes every mutation, so bundles, mutations and transactions have
// decoders of their own: they accept exactly what canon.Decode accepts, which is
// their oracle in the tests, at a fraction of the cost. Their results share the
// memory of the input.

func decodeBundle(raw []byte) (b Bundle, err error) {
	r := canon.NewReader(raw)
	r.Array(4)
	r.Array(2)
	b.Author.Scheme, b.Author.Bytes = r.Text(), r.Bytes()
	b.Mutations = make([][]byte, r.Elements(1))
	for i := range b.Mutations {
		b.Mutations[i] = r.Bytes()
	}
	b.Reserve, b.Signature = r.Int(), r.Bytes()
	return b, r.Close()
}

func (m *Mutation) decode(raw []byte) error {
	r := canon.NewReader(raw)
	r.Array(10)
	r.Fixed(m.Scope[:])
	m.Class = Class(r.Uint(math.MaxUint8))
	r.Fixed(m.Author[:])
	m.Content, m.Justification, m.Caller, m.Nonce = r.Bytes(), r.Text(), r.Text(), r.Bytes()
	m.ValidUntil = aweigh.Instant(r.Int())
	m.Grants = make([][]byte, r.Elements(1))
	for i := range m.Grants {
		m.Grants[i] = r.Bytes()
	}
	m.Patient = r.Bool()
	return r.Close()
}

func (t *Txn) decode(raw []byte) error {
	r := canon.NewReader(raw)
	t.read(r, 1)
	return r.Close()
}

// The fewest bytes that a Compare, an Op and a Reach take: a head, and one for each field.
const (
	leastCompare = 7
	leastOp      = 11
	leastReach   = 3
)

// read reads a transaction that is an array at a level, counted from 1.
func (t *Txn) read(r *canon.Reader, level int) {
	if level+1 > canon.MaxLevels {
		r.Fail()
		return
	}
	r.Array(4)
	t.Compare = make([]Compare, r.Elements(leastCompare))
	for i := range t.Compare {
		t.Compare[i].read(r)
	}
	t.Success = readOps(r, level+2)
	t.Failure = readOps(r, level+2)
	t.Reach = make([]Reach, r.Elements(leastReach))
	for i := range t.Reach {
		r.Array(2)
		t.Reach[i].Key, t.Reach[i].End = r.Bytes(), r.Bytes()
	}
}

func (c *Compare) read(r *canon.Reader) {
	r.Array(6)
	c.Target, c.Relation = Target(r.Uint(math.MaxUint8)), Relation(r.Uint(math.MaxUint8))
	c.Key, c.End = r.Bytes(), r.Bytes()
	c.Number, c.Value = r.Int(), r.Bytes()
}

func readOps(r *canon.Reader, level int) []Op {
	ops := make([]Op, r.Elements(leastOp))
	for i := range ops {
		if r.Failed() {
			return nil
		}
		ops[i].read(r, level)
	}
	return ops
}

func (op *Op) read(r *canon.Reader, level int) {
	r.Array(10)
	op.Kind = OpKind(r.Uint(math.MaxUint8))
	op.Key, op.End, op.Value = r.Bytes(), r.Bytes(), r.Bytes()
	op.Lease = r.Int()
	op.Prev, op.IgnoreValue, op.IgnoreLease = r.Bool(), r.Bool(), r.Bool()
	if !r.Null() {
		op.Range = new(Range)
		op.Range.read(r)
	}
	if !r.Null() && !r.Failed() {
		op.Txn = new(Txn)
		op.Txn.read(r, level+1)
	}
}

func (r *Range) read(from *canon.Reader) {
	from.Array(10)
	r.Revision, r.Limit = from.Int(), from.Int()
	r.Sort, r.Order = SortBy(from.Uint(math.MaxUint8)), Order(from.Uint(math.MaxUint8))
	r.KeysOnly, r.CountOnly = from.Bool(), from.Bool()
	r.MinMod, r.MaxMod = from.Int(), from.Int()
	r.MinCreate, r.MaxCreate = from.Int(), from.Int()
}
