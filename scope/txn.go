package scope

import (
	"bytes"
	"cmp"
	"math"

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
	Prev      []KeyValue  // OpPut, OpDelete with Prev: the content before
	Deleted   int64       // OpDelete
	UID       aweigh.UID  // OpPut: the object written; OpMerge: the other parent
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

// plan chooses the branches, and returns why the transaction cannot be
// executed, if so. All checks are here, before the first change.
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
		if price, rev := op.price(); price != nil && failure == nil {
			if op.gives() {
				price = x.giving(price)
			}
			if failure, err = x.afford(op.Key, op.End, rev, price); err != nil {
				return p, nil, err
			}
			failure = cmp.Or(failure, x.tooLarge())
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
				if op.Range.Revision > 0 {
					failure = cmp.Or(failure, x.next.own.wasElsewhere(op.Key, op.End, op.Range.Revision))
				}
			}
		case OpPut, OpDelete:
			if failure == nil {
				failure, err = x.departs(op.Key, op.End, op.Kind == OpDelete)
			}
			if failure == nil && err == nil && op.Kind == OpPut {
				failure, err = x.checkPut(op)
			}
			if err != nil {
				return p, nil, err
			}
		}
	}
	return p, failure, nil
}

// gives reports whether the response has the values that the operation finds.
func (op *Op) gives() bool {
	switch op.Kind {
	case OpRange:
		return op.Range == nil || !op.Range.KeysOnly && !op.Range.CountOnly
	case OpPut, OpDelete:
		return op.Prev
	}
	return false
}

// price is the cost of each version that the operation finds, by its bytes, and the
// revision as of which it looks; nil: it looks at none, or others charge for it.
func (op *Op) price() (price func(bytes int) int64, rev int64) {
	switch rev = math.MaxInt64; {
	case op.Kind == OpRange && op.Range != nil:
		if r := op.Range; r.Revision > 0 {
			rev = r.Revision
		}
		if op.Range.KeysOnly || op.Range.CountOnly {
			return lookCost, rev
		}
		return given, rev
	case op.Kind == OpRange, op.Kind == OpPut && op.Prev:
		return given, rev
	case op.Kind == OpMerge:
		return lookCost, rev
	case op.Kind == OpDelete && op.Prev:
		return func(bytes int) int64 { return deleteUnits + given(bytes) }, rev
	case op.Kind == OpDelete:
		return deleted, rev
	}
	return nil, rev
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
		if op.IgnoreValue {
			return x.affordPut(op, prev.Value)
		}
	}
	return x.affordPut(op, op.Value)
}

// affordPut counts what a put of a value takes, under all names of the object.
func (x *execution) affordPut(op *Op, value []byte) (failure, err error) {
	x.grows += putBytes(op.Key, value)
	if failure, err := x.bill(op.Key, int64(len(op.Key)+len(value))); failure != nil || err != nil {
		return failure, err
	}
	return x.affordAliases(op)
}

// holds evaluates one compare.
func (x *execution) holds(c *Compare) (holds bool, failure, err error) {
	if len(c.End) == 0 {
		v, ok, err := x.newest(c.Key)
		return err == nil && c.Holds(&v, ok), x.spend(lookCost(len(v.Key) + len(v.Value))), err
	}
	failure, err = x.afford(c.Key, c.End, math.MaxInt64, x.giving(lookCost))
	if failure = cmp.Or(failure, x.tooLarge()); failure != nil || err != nil {
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
		case OpMerge:
			err = x.mergeOf(op, resp)
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
	if !x.wants() {
		return nil
	}
	var r Range
	if op.Range != nil {
		r = *op.Range
	}
	if len(op.End) == 0 {
		resp.Range, err = x.one(op.Key, r, x.revision())
	} else {
		resp.Range, err = x.rangeOf(op.Key, op.End, r, x.revision())
	}
	return err
}

// wants reports whether a request at this node waits for the responses of the mutation.
func (x *execution) wants() bool {
	return x.wanted == nil || x.wanted(x.mutation.ID, x.mutation.Author)
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
	e := lineage.Entry{Class: lineage.Insert, Key: op.Key, Reason: x.merged}
	var others *aliases
	if existed {
		v.UID, v.CreateRevision, v.Version = prev.UID, prev.CreateRevision, prev.Version+1
		e.Class, e.Prior = lineage.Update, prev.Digest()
		if others, e.Prev, err = x.chain(&prev); err != nil {
			return err
		}
	} else {
		if err := x.deleteRedirect(op.Key); err != nil {
			return err
		}
		if v.UID, err = x.newUID(op.Key, at.sub); err != nil {
			return err
		}
		x.ops = append(x.ops, kv.Set(x.space.at(atObject, v.UID[:]...), object{Key: op.Key}.record()))
	}
	if op.IgnoreValue {
		v.Value = prev.Value
	}
	if op.IgnoreLease {
		v.Lease = prev.Lease
	}
	if op.Prev && existed && x.wants() {
		resp.Prev = []KeyValue{prev}
	}
	resp.UID = v.UID
	if err := x.attach(&prev, &v); err != nil {
		return err
	}
	e.Object = v.UID
	if e.Posterior, err = x.store(&v); err != nil {
		return err
	}
	x.enter(e)
	return x.follow(others, &v)
}

func (x *execution) delete(op *Op, resp *Response) error {
	gone, err := x.keysToDelete(op.Key, op.End)
	if err != nil {
		return err
	}
	resp.Deleted = int64(len(gone))
	if op.Prev && x.wants() {
		if resp.Prev, err = x.values(op.Key, op.End, len(gone)); err != nil {
			return err
		}
	}
	if len(op.End) == 0 && len(gone) == 1 {
		if given, err := x.givesUp(&gone[0].KeyValue); given || err != nil {
			return err
		}
	}
	for i := range gone {
		if err := x.erase(&gone[i], ""); err != nil {
			return err
		}
	}
	return nil
}
