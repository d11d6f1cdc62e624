package scope

import (
	"bytes"
	"cmp"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/lineage"
)

// Response is the answer to one Op, of the kind that the Op has.
type Response struct {
	_         struct{} `cbor:",toarray"`
	Kind      OpKind
	Revision  int64       // of the key space after the operation, within its transaction
	Range     RangeResult // OpRange
	Prev      []KeyValue  // OpPut, OpDelete with Prev: what was there
	Deleted   int64       // OpDelete
	UID       aweigh.UID  // OpPut: the object written
	Succeeded bool        // OpTxn: its compares held
	Responses []Response  // OpTxn
}

// plan is a transaction with its branches chosen. As in etcd, all compares,
// those of inner transactions too, look at the state before the transaction.
type plan struct {
	succeeded bool
	ops       []Op
	inner     []plan // of those ops that are transactions, in order
}

// plan chooses the branches, and says why the transaction cannot be executed,
// if so. Whatever could fail fails here, before anything is changed.
func (x *execution) plan(t *Txn) (p plan, failure, err error) {
	p = plan{succeeded: true, ops: t.Success}
	for i := range t.Compare {
		if p.succeeded, failure, err = x.holds(&t.Compare[i]); failure != nil || err != nil {
			return p, failure, err
		}
		if !p.succeeded {
			p.ops = t.Failure
			break
		}
	}
	for i := range p.ops {
		op := &p.ops[i]
		if op.Kind == OpRange || op.Kind == OpDelete || op.Kind == OpPut && op.Prev {
			if failure == nil {
				failure, err = x.afford(op.Key, op.End)
			}
			if err != nil {
				return p, nil, err
			}
		}
		switch op.Kind {
		case OpTxn:
			inner, innerFailure, err := x.plan(op.Txn)
			if err != nil {
				return p, nil, err
			}
			p.inner, failure = append(p.inner, inner), cmp.Or(failure, innerFailure)
		case OpRange:
			if op.Range != nil {
				failure = cmp.Or(failure, x.next.head.readable(op.Range.Revision))
			}
		case OpPut:
			if failure == nil {
				failure, err = x.checkPut(op)
			}
			if err != nil {
				return p, nil, err
			}
		}
	}
	return p, failure, nil
}

func (x *execution) checkPut(op *Op) (failure, err error) {
	if keeps := op.IgnoreValue || op.IgnoreLease; keeps || op.Lease != 0 {
		prev, ok, err := x.newest(op.Key)
		if err != nil || keeps && !ok {
			return ErrKeyNotFound, err
		}
		if failure, err := x.leasable(op, &prev); failure != nil || err != nil {
			return failure, err
		}
	}
	return x.affordAliases(op)
}

// holds evaluates one compare.
func (x *execution) holds(c *Compare) (holds bool, failure, err error) {
	if len(c.End) == 0 {
		v, ok, err := x.newest(c.Key)
		return err == nil && c.Holds(&v, ok), x.spend(1, len(v.Value)), err
	}
	if failure, err = x.afford(c.Key, c.End); failure != nil || err != nil {
		return false, failure, err
	}
	res, err := x.rangeOf(c.Key, c.End, Range{}, 0)
	if err != nil {
		return false, nil, err
	}
	for i := range res.Kvs {
		if !c.Holds(&res.Kvs[i], true) {
			return false, nil, nil
		}
	}
	return len(res.Kvs) > 0 || c.Holds(&KeyValue{}, false), nil, nil
}

// Holds evaluates the compare for one key; an absent one is all zeros.
func (c *Compare) Holds(v *KeyValue, present bool) bool {
	var sign int
	switch c.Target {
	case OnVersion:
		sign = cmp.Compare(v.Version, c.Number)
	case OnCreate:
		sign = cmp.Compare(v.CreateRevision, c.Number)
	case OnMod:
		sign = cmp.Compare(v.ModRevision, c.Number)
	case OnLease:
		sign = cmp.Compare(v.Lease, c.Number)
	case OnValue:
		if !present {
			return false
		}
		sign = bytes.Compare(v.Value, c.Value)
	}
	switch c.Relation {
	case Equal:
		return sign == 0
	case NotEqual:
		return sign != 0
	case Greater:
		return sign > 0
	default:
		return sign < 0
	}
}

// run executes a planned transaction.
func (x *execution) run(p plan) ([]Response, error) {
	responses := make([]Response, len(p.ops))
	for i := range p.ops {
		op, resp := &p.ops[i], &responses[i]
		resp.Kind = op.Kind
		var err error
		switch op.Kind {
		case OpRange:
			err = x.read(op, resp)
		case OpPut:
			err = x.put(op, resp)
		case OpDelete:
			err = x.delete(op, resp)
		case OpTxn:
			resp.Succeeded = p.inner[0].succeeded
			resp.Responses, err = x.run(p.inner[0])
			p.inner = p.inner[1:]
		}
		if err != nil {
			return nil, err
		}
		resp.Revision = x.revision()
	}
	return responses, nil
}

func (x *execution) read(op *Op, resp *Response) (err error) {
	var r Range
	if op.Range != nil {
		r = *op.Range
	}
	resp.Range, err = x.rangeOf(op.Key, op.End, r, x.revision())
	return err
}

func (x *execution) put(op *Op, resp *Response) error {
	prev, existed, err := x.newest(op.Key)
	if err != nil {
		return err
	}
	must.Hold(existed || !op.IgnoreValue && !op.IgnoreLease, "a put keeps what is not there: %q", op.Key)
	at := x.place()
	v := KeyValue{
		Key: op.Key, Value: op.Value, Lease: op.Lease,
		CreateRevision: at.main, ModRevision: at.main, Sub: at.sub, Version: 1, Entry: x.nextEntry(),
	}
	e := lineage.Entry{Class: lineage.Insert, Key: op.Key}
	var others *aliases
	if existed {
		v.UID, v.CreateRevision, v.Version = prev.UID, prev.CreateRevision, prev.Version+1
		e.Class, e.Prior = lineage.Update, prev.Digest()
		if others, e.Prev, err = x.chain(&prev); err != nil {
			return err
		}
	} else {
		if err := x.vacate(op.Key); err != nil {
			return err
		}
		v.UID = aweigh.NewUID(x.mutation.ID, at.sub)
		x.ops = append(x.ops, kv.Set(x.space.at(atObject, v.UID[:]...), object{Key: op.Key}.record()))
	}
	if op.IgnoreValue {
		v.Value = prev.Value
	}
	if op.IgnoreLease {
		v.Lease = prev.Lease
	}
	if op.Prev && existed {
		resp.Prev = []KeyValue{prev}
	}
	resp.UID = v.UID
	if err := x.attach(&prev, &v); err != nil {
		return err
	}
	e.Object, e.Posterior = v.UID, x.store(&v)
	x.enter(e)
	return x.follow(others, &v)
}

func (x *execution) delete(op *Op, resp *Response) error {
	var gone []KeyValue
	if len(op.End) == 0 {
		prev, ok, err := x.newest(op.Key)
		if err != nil {
			return err
		}
		if ok {
			gone = []KeyValue{prev}
		}
	} else {
		res, err := x.rangeOf(op.Key, op.End, Range{}, 0)
		if err != nil {
			return err
		}
		gone = res.Kvs
	}
	for i := range gone {
		if err := x.unname(&gone[i], ""); err != nil {
			return err
		}
	}
	resp.Deleted = int64(len(gone))
	if op.Prev {
		resp.Prev = gone
	}
	return nil
}
