package sim

import (
	"bytes"
	"errors"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/scope/model"
)

// prover makes proofs from the disk of a node, as the node makes them for clients.
func (n *Node) prover() *machine.Prover {
	w := n.world
	return &machine.Prover{
		Genesis: w.Genesis, State: n.state(), History: machine.History{Reader: n.Disk, Scope: w.id},
		Above: func(d *scope.Descent) ([]scope.Step, error) {
			parent := w.find(d.Parent).Nodes[n.Index].prover()
			a, err := parent.Ancestry(d.Height)
			if err != nil {
				return nil, err
			}
			return scope.NewStep(a, parent.State, d)
		},
	}
}

// provable reports whether a node lacks neither a later block nor what leads there.
func provable(err error) bool {
	return !errors.Is(err, machine.ErrUncovered) && !errors.Is(err, machine.ErrNoHandovers)
}

// proofs has a node prove some keys and a motion, and verifies that from the network's identity alone, after an
// encoding. The content of a proof must be the model's.
func (x *watch) proofs(n *Node) {
	p, m, network := n.prover(), x.exec.model, x.w.scopes[0].id
	v := m.At(p.State.Height())
	keys := v.Keys()
	for range 2 {
		key := keys[x.exec.rand.IntN(len(keys))]
		change, ok, err := p.State.NewestChange(key)
		must.OK(err, "reading a key")
		if !ok {
			continue
		}
		proof, err := p.Key(key, change.Entry)
		if !provable(err) || errors.Is(err, scope.ErrElsewhere) {
			continue
		}
		var r scope.Report
		if err == nil {
			if proof, err = scope.DecodeKeyProof(proof.Encode()); err == nil {
				r, err = proof.Verify(network)
			}
		}
		if x.w.holds(Execution, n, err == nil, "the newest change of %q is not proven: %v", key, err); err == nil {
			is, there := v.Get(key)
			x.w.holds(Execution, n, (r.Kv != nil) == there && (!there || string(r.Kv.Value) == string(is.Value) && r.Kv.Entry == is.Entry),
				"%q is proven to be %+v, want %v, %+v", key, r.Kv, there, is)
			x.reach("key proven")
		}
	}
	x.proveRange(n, p, v)
	x.proveOlder(n, p)
	for _, id := range v.Motions() {
		proof, err := p.Motion(id, 0)
		if !provable(err) || errors.Is(err, machine.ErrNoMotion) && p.State.Height() < m.Height() {
			continue // the model's are those of the newest block
		}
		var r scope.MotionReport
		if err == nil {
			if proof, err = scope.DecodeMotionProof(proof.Encode()); err == nil {
				r, err = proof.Verify(network)
			}
		}
		x.w.holds(Execution, n, err == nil && r.Motion.ID() == id, "motion %s is not proven: %v", id.Short(), err)
		x.reach("motion proven")
		break
	}
}

// proveRange has a node prove what the keys of a range hold, and verifies that from the network's identity alone.
func (x *watch) proveRange(n *Node, p *machine.Prover, v *model.View) {
	a, err := p.Claim(0)
	if !provable(err) {
		return // the newest block changed a key, and no header claims that yet
	}
	keys, r := v.Keys(), x.exec.rand
	pick := func() []byte { return keys[r.IntN(len(keys))] }
	key, end := pick(), []byte(nil)
	switch r.IntN(4) {
	case 0: // which may be absent
		key = append(bytes.Clone(key), "/none"...)
	case 1:
		if end = pick(); bytes.Compare(key, end) > 0 {
			key, end = end, key
		}
	case 2:
		if prefix := n.world.Genesis.Prefix(); len(prefix) > 0 {
			key, end = prefix, scope.PrefixEnd(prefix)
		} else {
			key, end = []byte{0}, []byte{0}
		}
	}
	if bytes.Equal(key, end) && !scope.ToEnd(end) {
		end = nil
	}
	var got *scope.RangeProof
	part, err := scope.NewRangePart(a, p.State, key, end, 1<<30)
	if errors.Is(err, scope.ErrElsewhere) {
		return
	}
	if err == nil {
		if got, err = scope.DecodeRangeProof((&scope.RangeProof{Key: key, End: end, Parts: []scope.RangePart{part}}).Encode()); err == nil {
			_, err = got.Parts[0].Verify(x.w.scopes[0].id, key, end)
		}
	}
	if x.w.holds(Execution, n, err == nil, "what %q to %q hold is not proven: %v", key, end, err); err != nil {
		return
	}
	want, err := v.Range(key, end, scope.Range{})
	if errors.Is(err, scope.ErrElsewhere) {
		return
	}
	x.w.holds(Execution, n, err == nil && bytes.Equal(canon.Encode(want.Kvs), canon.Encode(got.Parts[0].Kvs)),
		"%q to %q is proven to hold %d keys, want %d, or with other content: %v", key, end, len(got.Parts[0].Kvs), len(want.Kvs), err)
	x.reach("range proven")
}

// proveOlder has a node prove what all keys held after an earlier block. It may refuse what is compacted.
func (x *watch) proveOlder(n *Node, p *machine.Prover) {
	if p.State.Height() < 2 {
		return
	}
	at := 1 + aweigh.Height(x.exec.rand.IntN(int(p.State.Height())-1))
	v := x.exec.model.At(at)
	a, err := p.ClaimAfter(at)
	if v == nil || !provable(err) {
		return
	}
	key, end := n.world.Genesis.Prefix(), []byte(nil)
	if end = scope.PrefixEnd(key); len(key) == 0 {
		key, end = []byte{0}, []byte{0}
	}
	var part scope.RangePart
	if err == nil {
		part, err = scope.NewOlderRangePart(a, p.State, key, end, 1<<30, nil)
	}
	if compacted := p.State.Compacted(); v.Revision < compacted {
		x.w.holds(Execution, n, errors.Is(err, scope.ErrCompacted), "block %d, of revision %d, is proven, and %d is compacted: %v", at, v.Revision, compacted, err)
		return
	}
	if err == nil {
		_, err = part.Verify(x.w.scopes[0].id, key, end)
	}
	if x.w.holds(Execution, n, err == nil, "what the keys held after block %d is not proven: %v", at, err); err != nil {
		return
	}
	want, err := v.Range(key, end, scope.Range{})
	if errors.Is(err, scope.ErrElsewhere) {
		return
	}
	x.w.holds(Execution, n, err == nil && bytes.Equal(canon.Encode(want.Kvs), canon.Encode(part.Kvs)),
		"after block %d, %d keys are proven, want %d, or with other content: %v", at, len(part.Kvs), len(want.Kvs), err)
	x.reach("range proven as of an earlier block")
}
