package scope

import (
	"bytes"
	"errors"
)

// ErrApproval is what a change of names fails with where the policy asks for
// approval.
var ErrApproval = errors.New("scope: the policy asks for approval of changes below that key, and changes of names cannot wait for it yet; put or delete keys instead, which can")

// spread returns a plan with the puts that its puts stand for: one for every alias of the object. A caller that may
// change an object under one name may not thereby change it under a name that requires more. A put that keeps a lease
// names the lease here.
func (x *execution) spread(m *CheckedMutation, p *plan) (*plan, error) {
	if len(x.policy.Approvals) == 0 && !x.restricted(m) {
		return p, nil
	}
	all := &plan{succeeded: p.succeeded}
	inner := p.inner
	for _, op := range p.ops {
		if op.IgnoreLease {
			v, _, err := x.newest(op.Key)
			if err != nil {
				return nil, err
			}
			op.Lease = v.Lease
		}
		all.ops = append(all.ops, op)
		switch op.Kind {
		case OpTxn:
			in, err := x.spread(m, &inner[0])
			if err != nil {
				return nil, err
			}
			all.inner, inner = append(all.inner, *in), inner[1:]
		case OpPut:
			others, err := x.otherAliases(op.Key)
			if err != nil {
				return nil, err
			}
			for _, h := range others {
				if !bytes.Equal(h.Key, op.Key) {
					all.ops = append(all.ops, Op{Kind: OpPut, Key: h.Key})
				}
			}
		}
	}
	return all, nil
}

// otherAliases is the aliases of the object that a key names, if it has several.
func (x *execution) otherAliases(key []byte) ([]held, error) {
	v, ok, err := x.newest(key)
	if err != nil || !ok {
		return nil, err
	}
	list, _, err := x.chain(&v)
	if err != nil || list == nil {
		return nil, err
	}
	return list.Held, nil
}

// mayName reports why a naming is not permitted, or needs approval first:
// it changes keys just as puts and deletions do.
func (x *execution) mayName(m *CheckedMutation) (failure, err error) {
	n := m.Naming
	if len(x.policy.Approvals) == 0 && !x.restricted(m) {
		return nil, nil
	}
	if failure := x.rightsOf(m).lacksSource(n); failure != nil {
		return failure, nil
	}
	var p plan
	switch n.Kind {
	case Bind:
		p.ops = []Op{{Kind: OpPut, Key: n.Key}, {Kind: OpPut, Key: n.To}}
	case Fork:
		p.ops = []Op{{Kind: OpPut, Key: n.To}}
	case Move:
		p.ops = []Op{{Kind: OpDelete, Key: n.Key}, {Kind: OpPut, Key: n.To}}
	case Unbind:
		p.ops = []Op{{Kind: OpDelete, Key: n.Key}}
	case Rollback:
		p.ops = []Op{{Kind: OpPut, Key: n.Key, IgnoreLease: true}}
	}
	all, err := x.spread(m, &p)
	if err != nil {
		return nil, err
	}
	if failure, err := x.permitted(m, all); failure != nil || err != nil {
		return failure, err
	}
	needed, failure := x.policy.approval(all, "")
	if needed != nil || failure != nil {
		return ErrApproval, nil
	}
	return nil, nil
}
