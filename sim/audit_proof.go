package sim

import (
	"errors"

	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
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
