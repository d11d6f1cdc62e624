package scope

import (
	"bytes"

	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/lineage"
)

// writeVerb is what puts, deletions and changes of names do.
const writeVerb = "write"

// act executes an action; failure is the reason why it cannot be done. pending
// means that it waits for approval, as a Write may.
func (x *execution) act(m *CheckedMutation, out *Outcome) (failure error, pending bool, err error) {
	a := m.Action
	if a.Class == action.Signal {
		return ErrSignal, false, nil
	}
	if failure := x.next.own.owns(a.Key, nil); failure != nil {
		return failure, false, nil
	}
	if a.Class == action.Write {
		return x.transact(m, out)
	}
	if failure := x.authorizes(m, &Op{Key: a.Key}); failure != nil {
		return failure, false, nil
	}
	v, failure, err := x.actable(m)
	if failure == nil && err == nil {
		failure, err = x.underAliases(m)
	}
	if failure != nil || err != nil {
		return failure, false, err
	}
	return nil, false, x.claim(a, v)
}

// underAliases asks the rule of an action's verb under the other aliases of the object: it changes what all of them
// show, or the history that they share.
func (x *execution) underAliases(m *CheckedMutation) (failure, err error) {
	a := m.Action
	others, err := x.otherAliases(a.Key)
	for i := 0; i < len(others) && failure == nil && err == nil; i++ {
		key := others[i].Key
		if bytes.Equal(key, a.Key) {
			continue
		}
		if failure = x.authorizes(m, &Op{Key: key}); failure != nil {
			break
		}
		var v KeyValue
		var ok bool
		if v, ok, err = x.newest(key); err == nil {
			_, failure = x.verdict(m, a.Verb, key, &v, ok)
		}
	}
	return failure, err
}

// actable reports why the policy, or the state, does not allow an action now; v is
// the version under its key, nil if there is none.
func (x *execution) actable(m *CheckedMutation) (v *KeyValue, failure, err error) {
	a := m.Action
	is, ok, err := x.newest(a.Key)
	if err != nil {
		return nil, nil, err
	}
	if ok {
		v = &is
	}
	if (a.Class == action.Claim || !a.Object.IsZero()) && !ok || ok && !a.Object.IsZero() && is.UID != a.Object {
		return v, ErrUnnamed, nil
	}
	said, failure := x.verdict(m, a.Verb, a.Key, &is, ok)
	if failure == nil && said.Class != a.Class {
		failure = ErrClass
	}
	return v, failure, nil
}

// verdict asks the policy in force about a verb, and charges the mutation for it.
func (x *execution) verdict(m *CheckedMutation, verb string, key []byte, v *KeyValue, ok bool) (said action.Verdict, failure error) {
	rules := x.epoch.rules
	if failure := x.spend(lookCost(len(v.Value)) + int64(rules.Cost(verb)/stepsAVisit)); failure != nil {
		return said, failure
	}
	h := &x.block.Header
	said = rules.Judge(x.epoch.facts(call{verb, m.Author, h.Time, h.Height}, string(x.next.head.Prefix), key, v, ok))
	if !said.Allowed {
		return said, denied(said)
	}
	return said, nil
}

// stepsAVisit is how many steps of a predicate cost what a look at a version does.
const stepsAVisit = 100

// permitted reports why the policy does not allow the author of a mutation to make the puts
// and deletions of a plan, with its aliases spread. An action was judged by its own verb.
func (x *execution) permitted(m *CheckedMutation, p *plan) (failure, err error) {
	if m.Class == Act {
		for i := range p.ops {
			if failure = x.authorizes(m, &p.ops[i]); failure != nil {
				return failure, nil
			}
		}
		if _, failure, err = x.actable(m); failure != nil || err != nil {
			return failure, err
		}
		return x.underAliases(m)
	}
	if !x.restricted(m) {
		return nil, nil
	}
	inner := p.inner
	for i := range p.ops {
		op := &p.ops[i]
		switch op.Kind {
		case OpTxn:
			failure, err = x.permitted(m, &inner[0])
			inner = inner[1:]
		case OpMerge:
			failure = x.rightsOf(m).lacksCopy(op.Key)
		case OpPut, OpDelete:
			if failure = x.authorizes(m, op); failure == nil && x.epoch.rules.Has(writeVerb) {
				failure, err = x.permits(m, op)
			}
		}
		if failure != nil || err != nil {
			return failure, err
		}
	}
	return nil, nil
}

// permits reports why the rule about writes does not permit one put or deletion. Of a range, each key is judged.
func (x *execution) permits(m *CheckedMutation, op *Op) (failure, err error) {
	if len(op.End) == 0 {
		v, ok, err := x.newest(op.Key)
		if err != nil {
			return nil, err
		}
		_, failure = x.verdict(m, writeVerb, op.Key, &v, ok)
		return failure, nil
	}
	res, err := x.rangeOf(op.Key, op.End, Range{}, 0)
	for i := 0; i < len(res.Kvs) && failure == nil && err == nil; i++ {
		v := &res.Kvs[i]
		_, failure = x.verdict(m, writeVerb, v.Key, v, true)
	}
	return failure, err
}

// claim records in an object's chain that the author claims it. The content stays,
// and so does the revision. An object that had no list of aliases gets one, which is
// where its newest entry stands from then on.
func (x *execution) claim(a *Action, v *KeyValue) error {
	list, last, err := x.chain(v)
	if err != nil {
		return err
	}
	if list == nil {
		list = &aliases{Held: []held{{Key: a.Key}}}
		x.names.Objects++
	}
	list.Last = x.nextEntry() + 1
	digest := v.Digest()
	x.enter(lineage.Entry{Class: lineage.Claim, Key: a.Key, Object: v.UID, Prev: last, Prior: digest, Posterior: digest, Reason: a.Verb})
	return x.storeAliases(v.UID, list)
}
