package scope

import "bytes"

// spread returns a plan with the puts that its puts stand for: one for every alias of the object. A caller that may
// change an object under one name may not thereby change it under a name that requires more. A put that keeps a lease
// names the lease here.
func (x *execution) spread(m *CheckedMutation, p *plan) (*plan, error) {
	if len(x.policy.Approvals) == 0 && !x.restricted(m) && !m.Patient {
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

// txn is the puts and deletions that a change of names stands for, as rights, approvals and voters see it. The values
// of its puts are in the state: see Motion.Copies.
func (n *Naming) txn() *Txn {
	put, del := Op{Kind: OpPut, Key: n.To}, Op{Kind: OpDelete, Key: n.Key}
	switch n.Kind {
	case Bind:
		return &Txn{Success: []Op{{Kind: OpPut, Key: n.Key, IgnoreValue: true}, put}}
	case Fork:
		return &Txn{Success: []Op{put}}
	case Move:
		return &Txn{Success: []Op{del, put}}
	case Unbind, Send:
		return &Txn{Success: []Op{del}}
	}
	return &Txn{Success: []Op{{Kind: OpPut, Key: n.Key, IgnoreLease: true}}}
}

// renames returns what a change of names stands for; failure is the reason why there is nothing to change.
func (x *execution) renames(m *CheckedMutation) (p plan, failure, err error) {
	n := m.Naming
	for _, key := range n.own() {
		if failure := x.next.own.owns(key, nil); failure != nil {
			return p, failure, nil
		}
	}
	if n.Kind != Fork {
		if v, ok, err := x.newest(n.Key); err != nil || !ok || v.UID != n.Object && !n.Object.IsZero() {
			return p, ErrUnnamed, err
		}
	}
	if len(x.policy.Approvals) > 0 || x.restricted(m) {
		failure = x.rightsOf(m).lacksSource(n)
	}
	return plan{succeeded: true, ops: n.txn().Success}, failure, nil
}
